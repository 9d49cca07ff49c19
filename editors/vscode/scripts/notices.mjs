// The licences of what the bundle holds of others, into dist/THIRD-PARTY.txt. Reads esbuild's account
// of the bundle; a package without a licence file fails the build.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const { inputs } = JSON.parse(readFileSync("dist/meta.json", "utf8"));
const folders = new Set(
  Object.keys(inputs).flatMap((path) => {
    const found = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path);
    return found ? [found[1]] : [];
  }),
);
const notices = [...folders].sort().map((folder) => {
  const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (!file) throw new Error(`${name} has no licence file`);
  return `${name} ${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
});
writeFileSync("dist/THIRD-PARTY.txt", notices.join(`\n${"-".repeat(80)}\n\n`));
