/** The connection to the gateway: started, restarted, ended; what it is asked. */

import { execFile } from "node:child_process";
import * as vscode from "vscode";
import {
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  State,
} from "vscode-languageclient/node";
import { asSettings, initializationOptions, type Settings } from "./options.ts";
import { PROTOCOL_VERSION, type Requests, type Sent } from "./protocol.ts";
import { projectFolder, readSettings } from "./settings.ts";

/** `missing`: there is no such program; `failed`: there is, and it does not serve. */
export type Condition = "starting" | "running" | "missing" | "failed" | "stopped";

const VERSION_MILLISECONDS = 10_000;

/** What goes wrong is in the output and in the status item, and told once, by us. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

export class Gateway implements vscode.Disposable {
  readonly output: vscode.LogOutputChannel;
  settings: Settings = readSettings();
  /** Why it does not run, for a person; "" where that is not known. */
  problem = "";
  private client: LanguageClient | undefined;
  private changing: Promise<void> = Promise.resolve();
  private state: Condition = "stopped";
  private readonly record: string;
  private readonly commands: Middleware["executeCommand"];
  private readonly conditionChanged = new vscode.EventEmitter<Condition>();
  private readonly memoryChanged = new vscode.EventEmitter<Sent["memory/didChange"]["params"]>();
  readonly onDidChangeCondition = this.conditionChanged.event;
  readonly onDidChangeMemory = this.memoryChanged.event;

  /** `record`: where decisions are noted; `commands`: what stands before the server's commands. */
  constructor(record: string, commands: Middleware["executeCommand"]) {
    this.output = vscode.window.createOutputChannel("pinfold", { log: true });
    this.record = record;
    this.commands = commands;
  }

  get condition(): Condition {
    return this.state;
  }

  /** Start with the settings as they are now; one that runs is ended first. */
  restart(): Promise<void> {
    this.changing = this.changing.then(() => this.change()).catch((error) => this.failed(error));
    return this.changing;
  }

  /** Ask something of the contract. Rejects where nothing runs, and with the gateway's errors. */
  request<M extends keyof Requests>(
    method: M,
    params: Requests[M]["params"],
    token?: vscode.CancellationToken,
  ): Promise<Requests[M]["result"]> {
    return this.ask(method, params, token);
  }

  /** Ask something of LSP. */
  async ask<T>(method: string, params: object, token?: vscode.CancellationToken): Promise<T> {
    if (!this.client || this.state !== "running") throw new Error("pinfold is not running.");
    // A token that is undefined would be taken for one more parameter.
    return token
      ? this.client.sendRequest<T>(method, params, token)
      : this.client.sendRequest<T>(method, params);
  }

  async dispose(): Promise<void> {
    await this.changing;
    await this.stop();
    this.output.dispose();
    this.conditionChanged.dispose();
    this.memoryChanged.dispose();
  }

  private async change(): Promise<void> {
    await this.stop();
    this.settings = readSettings();
    this.problem = "";
    this.enter("starting");
    const version = await versionOf(this.settings.command);
    if (version instanceof Error) {
      this.failed(version, (version as NodeJS.ErrnoException).code === "ENOENT");
      return;
    }
    this.output.info(`${version}, by ${this.settings.command}, for ${projectFolder()}`);
    await this.start();
  }

  private async start(): Promise<void> {
    const { command } = this.settings;
    const client = new QuietClient(
      "pinfold",
      "pinfold",
      { command, args: ["serve"] },
      this.clientOptions(),
    );
    this.client = client;
    client.onDidChangeState(({ newState }) => this.followed(client, newState));
    client.onNotification("memory/didChange", (told: Sent["memory/didChange"]["params"]) =>
      this.memoryChanged.fire(told),
    );
    try {
      await client.start();
      this.checkVersion(client);
    } catch (error) {
      this.failed(error);
    }
  }

  private failed(error: unknown, missing = false): void {
    const message = error instanceof Error ? error.message : String(error);
    this.problem = asSettings(message);
    this.output.error(`${this.settings.command}: ${message}`);
    this.enter(missing ? "missing" : "failed");
  }

  private followed(client: LanguageClient, state: State): void {
    if (client !== this.client) return;
    if (state === State.Running) this.enter("running");
    if (state === State.Stopped && this.state === "running") this.enter("stopped");
    if (state === State.Starting && this.state === "stopped") this.enter("starting");
  }

  private checkVersion(client: LanguageClient): void {
    const told = client.initializeResult?.capabilities.experimental?.pinfold?.protocolVersion;
    if (told === PROTOCOL_VERSION) return;
    this.output.warn(
      `this extension knows version ${PROTOCOL_VERSION} of the contract, not ${told}`,
    );
  }

  private clientOptions(): LanguageClientOptions {
    return {
      // Every file, so that agents see what is unsaved in any of them.
      documentSelector: [{ scheme: "file" }],
      outputChannel: this.output,
      initializationOptions: initializationOptions(this.settings, projectFolder(), this.record),
      connectionOptions: { maxRestartCount: 2 },
      initializationFailedHandler: () => false,
      middleware: { ...forMarkdown(), executeCommand: this.commands },
      markdown: { isTrusted: false },
    };
  }

  private async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client?.needsStop()) await client.stop().catch(() => undefined);
    await client?.dispose().catch(() => undefined);
  }

  private enter(condition: Condition): void {
    if (condition === this.state) return;
    this.state = condition;
    this.conditionChanged.fire(condition);
  }
}

/** What `pinfold --version` says, or why it says nothing. */
function versionOf(command: string): Promise<string | Error> {
  return new Promise((resolve) => {
    execFile(command, ["--version"], { timeout: VERSION_MILLISECONDS }, (error, stdout) =>
      resolve(error ?? stdout.trim()),
    );
  });
}

const FEATURES = [
  "provideHover",
  "provideCompletionItem",
  "provideDocumentLinks",
  "provideDocumentSymbols",
  "provideCodeLenses",
  "provideRenameEdits",
  "prepareRename",
] as const;

/** All documents are told to the gateway; asked about are only those that can be memory. */
function forMarkdown(): Middleware {
  // biome-ignore lint/suspicious/noExplicitAny: a feature is handed on whatever its parameters are
  const handOn = (document: vscode.TextDocument, ...more: any[]) => {
    const next = more.pop();
    return document.uri.path.endsWith(".md") ? next(document, ...more) : undefined;
  };
  return {
    ...Object.fromEntries(FEATURES.map((name) => [name, handOn])),
    // Pin is offered in every line of a topic: where nobody asked, a light bulb would be noise.
    provideCodeActions: (document, range, context, token, next) =>
      context.triggerKind === vscode.CodeActionTriggerKind.Invoke
        ? handOn(document, range, context, token, next)
        : undefined,
    provideDiagnostics: (document, previous, token, next) => {
      const uri = document instanceof vscode.Uri ? document : document.uri;
      return uri.path.endsWith(".md") ? next(document, previous, token) : undefined;
    },
  };
}
