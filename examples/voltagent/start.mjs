/**
 * Runs the example with one command and without a network: node examples/voltagent/start.mjs
 *
 * It needs keepstone[server] (KEEPSTONE_PYTHON, else the repository's .venv, else python3) and what
 * `npm ci` in packages/voltagent installs, which it does the first time.
 */
import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = join(here, "..", "..");
const packed = join(root, "packages", "voltagent");
const built = join(packed, "build", "example");
const venv = join(root, ".venv", "bin", "python");
const python = process.env.KEEPSTONE_PYTHON ?? (existsSync(venv) ? venv : "python3");
const home = process.env.KEEPSTONE_HOME ?? mkdtempSync(join(tmpdir(), "keepstone-example-"));
const env = { ...process.env, KEEPSTONE_HOME: home, NODE_ENV: "production", PYTHONPATH: join(root, "src") };

/** Whether the package was built since its last change: the tests build it once, and then run at the same time. */
function isBuilt() {
  const times = (folder) => readdirSync(folder).map((name) => statSync(join(folder, name)).mtimeMs);
  const dist = join(packed, "dist");
  return existsSync(dist) && Math.min(...times(dist)) > Math.max(...times(join(packed, "src")));
}

/** Compile the example where it finds the package and what that needs, as in a project that has installed it. */
function compile() {
  const npm = (...args) => execFileSync("npm", args, { cwd: packed, stdio: ["ignore", "ignore", "inherit"] });
  if (!existsSync(join(packed, "node_modules"))) {
    npm("ci", "--ignore-scripts", "--include=dev");
  }
  if (!isBuilt()) {
    npm("run", "--silent", "build");
  }
  mkdirSync(built, { recursive: true });
  const sources = ["agent.ts", "mock-model.ts"].map((name) => join(built, name));
  sources.forEach((path) => cpSync(join(here, path.slice(built.length)), path));
  const tsc = join(packed, "node_modules", "typescript", "bin", "tsc");
  const options = ["--module", "nodenext", "--target", "es2022", "--strict", "--skipLibCheck", "--types", "node"];
  execFileSync(process.execPath, [tsc, ...options, ...sources], { cwd: packed, stdio: "inherit" });
}

function keepstone(...args) {
  return spawn(python, ["-m", "keepstone", ...args], { env, stdio: ["ignore", "pipe", "inherit"] });
}

async function firstLine(child) {
  for await (const line of createInterface({ input: child.stdout })) {
    child.stdout.resume();
    return line;
  }
  throw new Error("keepstone ended without a word: is keepstone[server] installed?");
}

compile();
const token = JSON.parse(await firstLine(keepstone("token", "create", "--agents", "harbour", "--json"))).token;
const server = keepstone("serve", "--port", "0");
const url = /http:\S+(?=\/v1)/.exec(await firstLine(server))[0];
const agent = spawn(process.execPath, [join(built, "agent.js")], {
  env: { ...env, KEEPSTONE_URL: url, KEEPSTONE_TOKEN: token },
  stdio: "inherit",
});
agent.once("exit", (code) => {
  console.log(`  with --home ${home}`);
  server.once("exit", () => process.exit(code ?? 1));
  server.kill();
});
