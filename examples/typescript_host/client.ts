/** A connection to a gateway: spawned, framed, typed by the contract. This is the part to copy. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import type { Requests, Sent } from "../../editors/vscode/src/protocol.ts";

type Permit = (
  question: Sent["permission/request"]["params"],
) => Promise<Sent["permission/request"]["result"]>;
type Waiting = { resolve: (result: never) => void; reject: (error: Error) => void };
type Message = {
  id?: number;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string };
};

export class Client {
  private readonly process: ChildProcessByStdio<Writable, Readable, null>;
  private readonly ended: Promise<unknown>;
  private readonly permit: Permit;
  private readonly waiting = new Map<number, Waiting>();
  private lost: Error | undefined;
  private lastId = 0;
  private input = Buffer.alloc(0);

  private constructor(command: string[], permit: Permit) {
    const [program = "pinfold", ...args] = command;
    this.permit = permit;
    this.process = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.ended = once(this.process, "close").then(
      ([status]) => {
        this.fail(new Error("the gateway ended before it answered"));
        return status;
      },
      (error) => this.fail(error as Error),
    );
    this.process.stdin.on("error", (cause) =>
      this.fail(new Error("the gateway takes no more messages", { cause })),
    );
    this.process.stdout.on("data", (data: Buffer) => this.receive(data));
  }

  /** Start `command` and initialize it. Rejects, and leaves no process, if that fails. */
  static async spawn(command: string[], permit: Permit): Promise<Client> {
    const client = new Client(command, permit);
    const capabilities = { experimental: { pinfold: { permissionRequests: true } } };
    try {
      await client.ask("initialize", { processId: process.pid, capabilities });
    } catch (error) {
      client.process.kill();
      throw error;
    }
    client.send({ method: "initialized", params: {} });
    return client;
  }

  /** A request of the contract. Rejects with what the gateway says is wrong; `cause` has the code. */
  request<M extends keyof Requests>(
    method: M,
    params: Requests[M]["params"],
  ): Promise<Requests[M]["result"]> {
    return this.ask(method, params);
  }

  /** `shutdown` and `exit`; the gateway's exit status. */
  async close(): Promise<unknown> {
    await this.ask("shutdown", null);
    this.send({ method: "exit" });
    this.process.stdin.end();
    return this.ended;
  }

  private ask<T>(method: string, params: unknown): Promise<T> {
    if (this.lost) return Promise.reject(this.lost);
    this.lastId += 1;
    const id = this.lastId;
    return new Promise<T>((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.send({ id, method, params });
    });
  }

  private send(message: Message): void {
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    this.process.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.process.stdin.write(body);
  }

  private receive(data: Buffer): void {
    this.input = Buffer.concat([this.input, data]);
    for (;;) {
      const header = this.input.indexOf("\r\n\r\n");
      if (header < 0) return;
      const length = /^content-length:\s*(\d+)/im.exec(this.input.toString("latin1", 0, header));
      if (!length) {
        this.fail(new Error("the gateway's output could not be understood"));
        this.process.kill();
        return;
      }
      const end = header + 4 + Number(length[1]);
      if (this.input.length < end) return;
      const body = this.input.toString("utf8", header + 4, end);
      this.input = this.input.subarray(end);
      this.dispatch(JSON.parse(body) as Message);
    }
  }

  private dispatch(message: Message): void {
    if (message.method !== undefined) {
      if (message.id !== undefined) void this.answer(message.id, message);
      return;
    }
    const waiting = this.waiting.get(message.id ?? 0);
    this.waiting.delete(message.id ?? 0);
    const { error } = message;
    if (error) waiting?.reject(new Error(error.message, { cause: error }));
    else waiting?.resolve(message.result as never);
  }

  /** What the gateway asks: a question that fails is an error, and so a denial. */
  private async answer(id: number, message: Message): Promise<void> {
    try {
      if (message.method !== "permission/request") throw new Error("not known here");
      const question = message.params as Sent["permission/request"]["params"];
      this.send({ id, result: await this.permit(question) });
    } catch (error) {
      this.send({ id, error: { code: -32603, message: String(error) } });
    }
  }

  private fail(error: Error): void {
    this.lost ??= error;
    for (const each of this.waiting.values()) each.reject(this.lost);
    this.waiting.clear();
  }
}
