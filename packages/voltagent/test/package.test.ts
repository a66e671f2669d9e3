/** The package as a user gets it: packed, unpacked into a project, and used as its README says. */
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { newFolder, ROOT } from "./places.js";
import { Server } from "./server.js";

const PACKAGE = join(ROOT, "packages", "voltagent");
const MODULES = join(PACKAGE, "node_modules");
const LARGEST = 260_000;

const project = newFolder();
const installed = join(project, "node_modules", "keepstone-voltagent");
install();
const [agentExample = "", filesExample = "", recallExample = "", aiExample = ""] = [
  ...readFileSync(join(installed, "README.md"), "utf8").matchAll(/```ts\n([\s\S]*?)```/g),
].map(([, code]) => code);

/** Unpack the package beside what a user has installed with it. */
function install(): void {
  const packed = execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", project], { cwd: PACKAGE, encoding: "utf8" });
  mkdirSync(installed, { recursive: true });
  execFileSync("tar", ["-xzf", join(project, packed.trim().split("\n").at(-1) ?? ""), "-C", installed, "--strip-components=1"]);
  for (const name of ["@voltagent", "@types", "@ai-sdk", "ai", "koffi", "zod", "typescript"]) {
    symlinkSync(join(MODULES, name), join(project, "node_modules", name));
  }
  writeFileSync(join(project, "package.json"), '{"type": "module"}');
}

function compile(...options: string[]): void {
  const tsc = join(MODULES, "typescript", "bin", "tsc");
  const always = ["--target", "es2022", "--strict", "--skipLibCheck", "--types", "node"];
  execFileSync(process.execPath, [tsc, ...always, ...options, "agent.ts", "files.ts", "recall.ts", "ai.ts"], { cwd: project, stdio: "inherit" });
}

async function run(file: string, environment: NodeJS.ProcessEnv = {}): Promise<string> {
  const env = { ...process.env, NODE_ENV: "production", ...environment };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [file], { cwd: project, env }, (error, printed) => (error ? reject(error) : resolve(printed)));
  });
}

test("the package holds what is built, its licence and its README, and little more", () => {
  assert.deepEqual(readdirSync(installed).sort(), ["LICENSE", "README.md", "dist", "package.json"]);
  const sizes = readdirSync(join(installed, "dist")).map((name) => statSync(join(installed, "dist", name)).size);
  assert.ok(sizes.reduce((sum, size) => sum + size) < LARGEST);
  const { license, engines, dependencies, optionalDependencies } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  assert.deepEqual([license, engines, dependencies], ["Apache-2.0", { node: ">=20.15" }, undefined]);
  assert.deepEqual(Object.keys(optionalDependencies), ["koffi"]);
});

test("the README's examples have types, however modules are resolved", () => {
  writeFileSync(join(project, "agent.ts"), agentExample);
  writeFileSync(join(project, "files.ts"), filesExample);
  writeFileSync(join(project, "recall.ts"), recallExample);
  writeFileSync(join(project, "ai.ts"), aiExample);
  compile("--noEmit", "--module", "esnext", "--moduleResolution", "bundler");
  compile("--noEmit", "--module", "node16");
  compile("--module", "nodenext");
});

test("all entries have types where modules are resolved as by node10", () => {
  const program = 'import { MemoryAdapter } from "keepstone-voltagent"; import { KeepstoneRetriever } from "keepstone-voltagent/recall"; import { memoryTools } from "keepstone-voltagent/ai"; void [MemoryAdapter, KeepstoneRetriever, memoryTools];';
  writeFileSync(join(project, "entries.ts"), program);
  const tsc = join(MODULES, "typescript", "bin", "tsc");
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "esnext", "--moduleResolution", "node10"];
  execFileSync(process.execPath, [tsc, ...options, "entries.ts"], { cwd: project, stdio: "inherit" });
});

test("without koffi the server's storage loads, and files name the remedy", async () => {
  const alone = newFolder();
  cpSync(installed, join(alone, "node_modules", "keepstone-voltagent"), { recursive: true });
  const program = `
    import { KeepstoneStorage, MemoryAdapter } from "keepstone-voltagent";
    console.log(typeof KeepstoneStorage, (await new MemoryAdapter().save({ n: 1 }).catch(String)));`;
  writeFileSync(join(alone, "save.mjs"), program);
  const printed = await run(join(alone, "save.mjs"));
  assert.match(printed, /^function StoreError: the optional package koffi is not installed: npm install koffi\./);
  assert.deepEqual(readdirSync(alone).sort(), ["node_modules", "save.mjs"]);
});

test("scripts on files need no VoltAgent, which takes long to load", async () => {
  const alone = newFolder();
  for (const name of ["keepstone-voltagent", "koffi"]) {
    mkdirSync(join(alone, "node_modules"), { recursive: true });
    cpSync(join(project, "node_modules", name), join(alone, "node_modules", name), { recursive: true, verbatimSymlinks: true });
  }
  const program = 'import { MemoryAdapter } from "keepstone-voltagent"; console.log((await new MemoryAdapter().save({ n: 1 })).n);';
  writeFileSync(join(alone, "save.mjs"), program);
  assert.equal(await run(join(alone, "save.mjs")), "1\n");
});

test("the entry for the AI SDK needs no VoltAgent", async () => {
  const alone = newFolder();
  mkdirSync(join(alone, "node_modules"), { recursive: true });
  cpSync(installed, join(alone, "node_modules", "keepstone-voltagent"), { recursive: true });
  for (const name of ["@ai-sdk", "ai", "zod"]) {
    symlinkSync(join(MODULES, name), join(alone, "node_modules", name));
  }
  const program = 'import { memoryTools } from "keepstone-voltagent/ai"; console.log(Object.keys(memoryTools({ agent: "a" })).join());';
  writeFileSync(join(alone, "tools.mjs"), program);
  assert.equal(await run(join(alone, "tools.mjs")), "remember,recall\n");
});

test("the README's example on files runs as it is written", async () => {
  const printed = await run("files.js");
  assert.match(printed, /role: 'user',\s+content: 'Hi'/);
  assert.match(printed, /modified: .*\s+size: \d+/);
});

test("the README's agent runs with a model that needs no network", async () => {
  const server = await Server.start();
  const model = `new (await import("ai/test")).MockLanguageModelV3({
    doGenerate: async ({ prompt }) => ({
      content: [{ type: "text", text: JSON.stringify(prompt).includes("I use pnpm.") ? "pnpm" : "?" }],
      usage: { inputTokens: {}, outputTokens: {} }, warnings: [], finishReason: { unified: "stop", raw: "stop" },
    }),
  })`;
  const program = readFileSync(join(project, "agent.js"), "utf8").replace('"openai/gpt-4o-mini"', model);
  writeFileSync(join(project, "offline.js"), `${program}\nawait storage.getMessages("ada", "set-up");\nprocess.exit();\n`);
  const printed = await run("offline.js", { KEEPSTONE_URL: server.url, KEEPSTONE_TOKEN: await server.token("coder") });
  assert.match(printed, /^pnpm$/m);
  const { entries } = (await server.command("sessions", "show", "set-up", "--agent", "coder")) as { entries: object[] };
  assert.equal(entries.length, 4);
});
