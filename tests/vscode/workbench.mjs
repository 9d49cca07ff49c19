// The real VS Code, with a home of its own, in a real browser. Nothing waits by the clock: each wait
// is for something, and has an end.
import { spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const installed = join(here, ".installed");
const ours = join(here, "../../editors/vscode");
export const pictures = process.env.PICTURES ?? join(installed, "pictures");

const SETTINGS = {
  "workbench.startupEditor": "none",
  "workbench.colorTheme": "Default Light Modern",
  "workbench.tips.enabled": false,
  "workbench.reduceMotion": "on",
  "workbench.hover.delay": 600_000, // of buttons; no concern of the editor's own
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.layoutControl.enabled": false,
  "window.commandCenter": false,
  "chat.commandCenter.enabled": false,
  "security.workspace.trust.enabled": false,
  "telemetry.telemetryLevel": "off",
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "update.mode": "none",
  "files.autoSave": "off",
  "editor.minimap.enabled": false,
  "breadcrumbs.enabled": false,
  "editor.fontFamily": "DejaVu Sans Mono",
  "chat.mcp.access": "all",
  "chat.mcp.autostart": "newAndOutdated",
};

/** A home with a project in it. `files`: by path below the home. */
export async function makeHome(files) {
  const home = await mkdtemp(join(tmpdir(), "pinfold-vscode-"));
  for (const [name, text] of Object.entries({ "shop/README.md": "# Shop\n", ...files })) {
    await mkdir(dirname(join(home, name)), { recursive: true });
    await writeFile(join(home, name), text);
  }
  return home;
}

/** Start both on a home. `settings`: those of the machine, where ours are; `env`: more of it. */
export async function openWorkbench(home, settings, env = {}) {
  const data = join(home, ".data");
  const extensions = join(home, ".extensions");
  await write(join(data, "User/settings.json"), SETTINGS);
  await write(join(data, "Machine/settings.json"), settings);
  await writeFile(join(home, "config.yaml"), "bind-addr: 127.0.0.1:0\nauth: none\ncert: false\n");
  await cp(join(here, "agent"), join(extensions, "tests.agent-0.0.1"), { recursive: true });
  await unpack(extensions);
  const server = await serve(home, data, extensions, env);
  const { chromium } = createRequire(join(installed, "playwright/package.json"))("playwright-core");
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: { width: 1120, height: 660 } });
  page.setDefaultTimeout(40_000);
  await page.goto(`${server.url}/?folder=${join(home, "shop")}`);
  return new Workbench(page, server.pid, async () => {
    await browser.close();
    await server.end();
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  });
}

async function write(path, value) {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, JSON.stringify(value));
}

/** What the .vsix holds, installed as code-server itself does it. */
async function unpack(extensions) {
  const args = ["--install-extension", join(ours, "pinfold.vsix"), "--extensions-dir", extensions];
  const child = spawn(node(), [entry(), ...args], { stdio: ["ignore", "pipe", "pipe"], env: serverEnv("/nonexistent") });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (said += bytes));
  const code = await new Promise((resolve) => child.on("exit", resolve));
  if (code !== 0) throw new Error(`the .vsix could not be installed:\n${said}`);
}

const node = () => join(installed, "bin/node");
const entry = () => join(installed, "server/node_modules/code-server/out/node/entry.js");
const serverEnv = (home, more = {}) => ({
  ...process.env,
  ...more,
  HOME: home,
  PATH: `${join(installed, "bin")}:${process.env.PATH}`,
});

async function serve(home, data, extensions, env) {
  const folders = ["--config", join(home, "config.yaml"), "--user-data-dir", data, "--extensions-dir", extensions];
  const quiet = ["--disable-telemetry", "--disable-update-check", "--disable-workspace-trust", "--disable-getting-started-override"];
  const child = spawn(node(), [entry(), ...folders, ...quiet], {
    stdio: ["ignore", "pipe", "pipe"],
    env: serverEnv(home, env),
  });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const said = [];
  const url = await new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on("line", (line) => {
        said.push(line);
        const found = /listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(line);
        if (found) resolve(found[1]);
      });
    }
    ended.then(() => reject(new Error(`code-server ended:\n${said.join("\n")}`)));
  });
  return { url, pid: child.pid, end: () => (child.kill(), ended) };
}

/** What a person does in the window, and what they see there. */
export class Workbench {
  constructor(page, pid, close) {
    this.page = page;
    this.pid = pid;
    this.close = close;
  }

  /** Wait until something holds. */
  async until(what, holds, milliseconds = 40_000) {
    const end = Date.now() + milliseconds;
    for (;;) {
      const found = await holds();
      if (found) return found;
      if (Date.now() > end) throw new Error(`never seen: ${what}`);
      await this.page.waitForTimeout(50);
    }
  }

  /** Run a command by its name in the palette. */
  async command(title) {
    await this.page.locator(".quick-input-widget").waitFor({ state: "hidden" });
    await this.page.keyboard.press("F1");
    const input = this.page.locator(".quick-input-widget input.input");
    await input.waitFor();
    await input.fill(`>${title}`);
    await this.pick(title);
  }

  /** Choose from a list that is shown. */
  pick(text) {
    return this.page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first().click();
  }

  /** The tree of memory, opened by its icon. */
  async memory() {
    await this.page.locator(".activitybar .action-label[aria-label^='pinfold']").click();
    await this.page.locator(".sidebar .title-label", { hasText: /Agent Memory/i }).waitFor();
    await this.page.mouse.move(700, 400);
  }

  /** What the tree shows, from top to bottom. */
  async rows() {
    const rows = await this.page.locator(".sidebar .monaco-list-row").all();
    const found = await Promise.all(rows.map(async (row) => [(await row.boundingBox()).y, await row.innerText()]));
    return found.sort((a, b) => a[0] - b[0]).map(([, text]) => text.trim());
  }

  row(text) {
    return this.page.locator(".sidebar .monaco-list-row").filter({ hasText: text });
  }

  /** Choose from a row's menu. A menu pays no heed to a click that comes right when it opens. */
  async menu(row, text) {
    await this.row(row).click({ button: "right" });
    const item = this.page.locator(".context-view .action-label", { hasText: text });
    await item.waitFor();
    await this.until("the menu closed", async () => {
      await item.click({ timeout: 1000 }).catch(() => undefined);
      return !(await item.isVisible());
    });
  }

  status() {
    return this.page.locator("#pinfold\\.pinfold\\.pinfold\\.status, [id$='pinfold.status']").first();
  }

  /** The lines of the editor that is active. */
  async text() {
    const lines = await this.page.locator(".editor-group-container.active .view-lines .view-line").all();
    const found = await Promise.all(
      lines.map(async (line) => [(await line.boundingBox())?.y ?? 0, await line.innerText()]),
    );
    return found.sort((a, b) => a[0] - b[0]).map(([, text]) => text.replaceAll("\u00a0", " ")).join("\n");
  }

  async picture(name) {
    await mkdir(pictures, { recursive: true });
    await this.page.screenshot({ path: join(pictures, `${name}.png`) });
  }
}

/** The JSON lines of a file. */
export async function lines(path) {
  const text = await readFile(path, "utf8").catch(() => "");
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

/** The process `pinfold serve` that the extension runs, below another process; not `except`. */
export async function gatewayBelow(pid, except) {
  const processes = await readdir("/proc").then((names) => names.filter((name) => /^\d+$/.test(name)));
  const known = await Promise.all(
    processes.map(async (name) => {
      const [status, command] = await Promise.all(
        ["stat", "cmdline"].map((file) => readFile(`/proc/${name}/${file}`, "utf8").catch(() => "")),
      );
      const parent = Number(/^\d+ \(.*\) \S (\d+)/s.exec(status)?.[1]);
      return { pid: Number(name), parent, command: command.split("\0") };
    }),
  );
  const parents = new Map(known.map((each) => [each.pid, each.parent]));
  const below = (each) => each === pid || (parents.has(each) && below(parents.get(each)));
  return known.find(
    (each) => each.pid !== except && below(each.pid) && /serve,*$/.test(each.command.join()) && each.command.some((word) => word.endsWith("pinfold")),
  );
}
