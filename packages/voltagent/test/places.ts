/** Where the tests find the repository, Python, and folders of their own. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

/** The repository's root, as seen from build/test. */
export const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
export const GOLDEN = join(ROOT, "tests", "packages", "golden");

/** Return a new folder that is removed, once `before` was done, when the test or the file's tests are over. */
export function newFolder(before: () => Promise<void> = async () => undefined): string {
  const folder = mkdtempSync(join(tmpdir(), "keepstone-voltagent-"));
  after(async () => {
    await before();
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** Return the folder of an agent's logs. */
export function sessionsOf(root: string, agent: string): string {
  return join(root, "agents", agent, "memory", "sessions");
}

function pythonPath(): string {
  const own = join(ROOT, ".venv", "bin", "python");
  return process.env.KEEPSTONE_PYTHON ?? (existsSync(own) ? own : "python3");
}

/** Start Python with keepstone on its path; `args` are its arguments. */
export function python(args: string[], stdio: "pipe" | "inherit" = "pipe", environment: NodeJS.ProcessEnv = {}): ChildProcess {
  const env = { ...process.env, ...environment, PYTHONPATH: join(ROOT, "src") };
  return spawn(pythonPath(), args, { env, stdio: ["pipe", stdio, "inherit"] });
}

/** Run a Python program and return what it prints. */
export async function runPython(program: string, ...args: string[]): Promise<string> {
  return output(python(["-c", program, ...args]));
}

/** Start a Node program of build/test. */
export function node(file: string, ...args: string[]): ChildProcess {
  const path = fileURLToPath(new URL(file, import.meta.url));
  return spawn(process.execPath, [path, ...args], { stdio: ["pipe", "pipe", "inherit"] });
}

/** Return what a process prints, once it has ended well. */
export async function output(child: ChildProcess): Promise<string> {
  const parts: Buffer[] = [];
  child.stdout?.on("data", (part: Buffer) => parts.push(part));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) {
    throw new Error(`${child.spawnfile} ended with ${code}`);
  }
  return Buffer.concat(parts).toString();
}

/** Resolve when a process has printed a line, with that line; what it prints later is dropped. */
export async function firstLine(child: ChildProcess): Promise<string> {
  let text = "";
  // Not a loop over the stream: leaving that would close it, and the process could print no more.
  await new Promise<void>((resolve) => {
    child.once("exit", resolve);
    child.stdout?.on("data", (part: Buffer) => {
      text += part.toString();
      if (text.includes("\n")) {
        resolve();
      }
    });
  });
  return text.split("\n")[0] ?? "";
}
