// The official TypeScript clients of MCP, both generations, do what a test says.
// Usage: node mcp.mjs v1|v2 MODE PLAN COMMAND ARGUMENT…
// PLAN is JSON: {calls: [[tool, arguments]…], answer: of an elicitation form, root: a URI}. Prints one
// JSON object for the test.
const [generation, mode, given, command, ...args] = process.argv.slice(2);
const plan = JSON.parse(given);
const old = generation === 'v1';
const base = old ? '@modelcontextprotocol/sdk/client' : '@modelcontextprotocol/client';
const { Client } = await import(old ? `${base}/index.js` : base);
const { StdioClientTransport } = await import(old ? `${base}/stdio.js` : `${base}/stdio`);
const types = old ? await import('@modelcontextprotocol/sdk/types.js') : {};
const name = (method, schema) => (old ? types[schema] : method);

const seen = { asked: [], errors: [], results: [], progress: 0 };
const capabilities = { elicitation: {}, ...(plan.root ? { roots: {} } : {}) };
const client = new Client(
  { name: `typescript-${generation}`, version: '1' },
  { capabilities, ...(old ? {} : { versionNegotiation: { mode } }) },
);
client.onerror = (error) => seen.errors.push(String(error));
const early = /unknown message ID/; // an answer that was on its way when its request was given up
client.setRequestHandler(name('elicitation/create', 'ElicitRequestSchema'), ({ params }) => {
  seen.asked.push(params.message);
  return plan.answer;
});
if (plan.root) {
  client.setRequestHandler(name('roots/list', 'ListRootsRequestSchema'), () => ({
    roots: [{ uri: plan.root }],
  }));
}
const transport = new StdioClientTransport({ command, args, env: { ...process.env } });
await client.connect(transport);
seen.version = client.getNegotiatedProtocolVersion?.() ?? transport._protocolVersion ?? null;
seen.server = client.getServerVersion()?.name;
seen.instructions = client.getInstructions();
seen.tools = (await client.listTools()).tools;
for (const [tool, args_] of plan.calls) {
  const call = client.callTool({ name: tool, arguments: args_ });
  seen.results.push(await call.catch((error) => ({ code: error.code })));
}
// Many at once, and one that is given up: the rest is answered.
if (plan.many) {
  const [tool, args_] = plan.many;
  const aborted = new AbortController();
  const options = { signal: aborted.signal };
  const call = { name: tool, arguments: args_ };
  const given_up = old ? client.callTool(call, undefined, options) : client.callTool(call, options);
  aborted.abort();
  seen.aborted = await given_up.then(() => 'answered', () => 'aborted');
  const all = await Promise.all(Array.from({ length: 100 }, () => client.callTool(call)));
  seen.errors = seen.errors.filter((error) => !early.test(error));
  seen.many = all.filter((result) => result.isError !== true).length;
}
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
