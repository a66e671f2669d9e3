/** A client whose types are generated from the server's description compiles, and sends every operation. */
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import openapiTS, { astToString, type OpenAPI3 } from "openapi-typescript";

import { firstLine, newFolder, output, python, ROOT } from "./places.js";

const PACKAGE = join(ROOT, "packages", "voltagent");
let server: ChildProcess | undefined;
const folder = newFolder(async () => {
  if (server?.exitCode === null) {
    const ended = once(server, "exit");
    server.kill();
    await ended;
  }
});

/** Start a server with notes of its own; return where it is and a token. */
async function serve(): Promise<[string, string]> {
  const home = ["--home", join(folder, "home")];
  const notes = ["--project", folder, "--user-file", join(folder, "user.md")];
  server = python(["-m", "keepstone", "serve", ...home, ...notes, "--port", "0"]);
  const url = /http:\/\/[\d.:]+/.exec(await firstLine(server))?.[0] ?? "";
  const made = JSON.parse(await output(python(["-m", "keepstone", "token", "create", ...home, "--json"])));
  return [url, made.token];
}

/** Write the generated types beside the script, and compile both strictly. */
async function compile(description: OpenAPI3): Promise<string> {
  symlinkSync(join(PACKAGE, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "package.json"), '{"type": "module"}');
  copyFileSync(join(PACKAGE, "generated-client", "operations.ts"), join(folder, "operations.ts"));
  writeFileSync(join(folder, "schema.ts"), astToString(await openapiTS(description)));
  const tsc = join(PACKAGE, "node_modules", "typescript", "bin", "tsc");
  const options = ["--strict", "--noUncheckedIndexedAccess", "--skipLibCheck", "--target", "es2022", "--module", "nodenext"];
  mkdirSync(join(folder, "built"));
  execFileSync(process.execPath, [tsc, ...options, "--types", "node", "--outDir", "built", "operations.ts"], {
    cwd: folder,
    stdio: "inherit",
  });
  return join(folder, "built", "operations.js");
}

test("a generated TypeScript client sends every operation", async () => {
  const [url, token] = await serve();
  const description = (await (await fetch(`${url}/v1/openapi.json`)).json()) as OpenAPI3;
  const script = await compile(description);
  const printed = execFileSync(process.execPath, [script, url, token], { encoding: "utf8" });
  const described = Object.values(description.paths ?? {}).flatMap((path) =>
    Object.values(path as Record<string, { operationId: string }>).map(({ operationId }) => operationId),
  );
  assert.deepEqual([...new Set(printed.trim().split("\n"))].sort(), described.sort());
});
