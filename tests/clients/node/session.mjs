// vscode-jsonrpc drives a gateway: a session, all four tools, errors, cancellation, the end.
// Usage: node session.mjs PROJECT COMMAND ARGUMENT…   Prints one JSON object for the test.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const rpc = require('vscode-jsonrpc/node');

const [project, command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const ended = new Promise((resolve) => child.on('exit', (code) => resolve(code)));
const connection = rpc.createMessageConnection(
  new rpc.StreamMessageReader(child.stdout),
  new rpc.StreamMessageWriter(child.stdin),
);
const trouble = [];
connection.onError(([error]) => trouble.push(String(error)));
connection.onUnhandledNotification((message) => trouble.push(message.method));
const changed = [];
connection.onNotification('memory/didChange', (params) => changed.push(params.kind));
connection.listen();

const seen = {};
const initialized = await connection.sendRequest('initialize', {
  processId: process.pid,
  rootUri: null,
  clientInfo: { name: 'vscode-jsonrpc' },
  capabilities: {},
});
seen.server = initialized.serverInfo.name;
await connection.sendNotification('initialized', {});

const opened = await connection.sendRequest('session/open', {
  profile: 'dream',
  projectRoot: project,
});
const { sessionId } = opened;
const memory = opened.roots[0].path;
const call = (name, args) =>
  connection.sendRequest('tools/call', { sessionId, name, arguments: args, callId: name });

seen.write = await call('write_file', { file_path: `${memory}/topic.md`, content: 'é😀 one\n' });
seen.edit = await call('edit', {
  file_path: `${memory}/topic.md`,
  old_string: 'one',
  new_string: 'two',
});
seen.read = await call('read_file', { file_path: `${memory}/topic.md` });
seen.memory = await call('read_memory', { file_path: `${memory}/topic.md` });
seen.denied = await call('write_file', { file_path: `${memory}/pinned/new.md`, content: 'x' });

seen.errors = {};
for (const [method, params] of [
  ['session/close', { sessionId: 'nobody' }],
  ['tools/call', { sessionId, name: 'nothing' }],
  ['no/such/method', {}],
]) {
  await connection.sendRequest(method, params).catch((error) => (seen.errors[method] = error.code));
}

// Many at once, and one that is cancelled at once: each is answered.
const source = new rpc.CancellationTokenSource();
const cancelled = connection.sendRequest('policy/explain', {
  sessionId,
  name: 'edit',
  arguments: { file_path: memory },
}, source.token);
source.cancel();
seen.cancelled = await cancelled.then(() => 'answered', (error) => error.code);
const many = await Promise.all(
  Array.from({ length: 200 }, () => call('read_file', { file_path: `${memory}/topic.md` })),
);
seen.many = many.filter((result) => result.content[0].text === 'é😀 two\n').length;

seen.closed = await connection.sendRequest('session/close', { sessionId });
await connection.sendRequest('shutdown');
await connection.sendNotification('exit');
seen.status = await ended;
seen.trouble = trouble;
seen.changed = changed;
console.log(JSON.stringify(seen));
process.exit(0);
