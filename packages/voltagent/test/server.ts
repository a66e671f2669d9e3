/** A real `keepstone serve` for tests, which can be ended and begun again on the same port. */
import { type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

import { KeepstoneStorage, type KeepstoneStorageOptions } from "../src/index.js";
import { firstLine, newFolder, output, python } from "./places.js";

export class Server {
  readonly home = newFolder(() => this.end());
  readonly #environment: NodeJS.ProcessEnv;
  #child: ChildProcess | undefined;
  #port = "0";
  #told = "";
  #token: Promise<string> | undefined;

  private constructor(environment: NodeJS.ProcessEnv) {
    this.#environment = environment;
  }

  /** Start a server on a new home; it ends with the test, or with the file's tests. */
  static async start(environment: NodeJS.ProcessEnv = {}): Promise<Server> {
    const server = new Server(environment);
    await server.begin();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Return the link that opens the pages, once, without a token. */
  async signIn(): Promise<string> {
    for (const end = Date.now() + 10_000; Date.now() < end; await sleep(20)) {
      const link = /http:\S+\/sign-in\S+/.exec(this.#told)?.[0];
      if (link !== undefined) {
        return link;
      }
    }
    throw new Error("keepstone serve printed no link to its pages");
  }

  /** Start the process, on the port that it had before. */
  async begin(): Promise<void> {
    this.#child = python(["-m", "keepstone", "serve", "--home", this.home, "--port", this.#port], "pipe", this.#environment);
    this.#child.stdout?.on("data", (part: Buffer) => (this.#told += part.toString()));
    const port = /http:\/\/127\.0\.0\.1:(\d+)\/v1/.exec(await firstLine(this.#child))?.[1];
    if (port === undefined) {
      throw new Error("keepstone serve did not say where it is");
    }
    this.#port = port;
  }

  /** End the process, kindly or at once. */
  async end(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child?.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      child.kill(signal);
      await ended;
    }
  }

  /** Make a token for some agents, or for all. */
  async token(...agents: string[]): Promise<string> {
    const only = agents.length > 0 ? ["--agents", agents.join(",")] : [];
    return ((await this.command("token", "create", ...only)) as { token: string }).token;
  }

  /** Return a storage for an agent, with a token for all of the home. */
  async storage(agent: string, options: Partial<KeepstoneStorageOptions> = {}): Promise<KeepstoneStorage> {
    this.#token ??= this.token();
    const logger = { info: (): void => undefined };
    return new KeepstoneStorage({ agent, url: this.url, token: await this.#token, logger, ...options });
  }

  /** Run a command of keepstone on the home and return the document that it prints. */
  async command(...args: string[]): Promise<unknown> {
    return JSON.parse(await output(python(["-m", "keepstone", ...args, "--home", this.home, "--json"])));
  }
}
