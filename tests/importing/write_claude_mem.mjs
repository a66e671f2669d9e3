// Writes a database with claude-mem's own class, prints what that class reads back, and dies with an open journal.
import { createRequire } from "node:module";
import { writeSync } from "node:fs";

const [, , folder, file] = process.argv;
const { SessionStore } = createRequire(import.meta.url)(`${folder}/plugin/sqlite/SessionStore.js`);
const store = new SessionStore(file);
const written = { observations: [], prompts: [], memories: [] };
// Two programs give their session the same id.
for (const platform of ["claude", "codex"]) {
  const session = store.createSDKSession("chat", "ferry", "Fix the timetable", undefined, platform);
  const memory = `memory-${platform}`;
  const prompt = store.saveUserPrompt("chat", 1, `Fix the timetable for ${platform}`, session);
  store.ensureMemorySessionIdRegistered(session, memory);
  const observation = {
    type: "bugfix",
    title: `Off by one in ${platform}`,
    subtitle: "Noon",
    facts: ["Noon is 12:00", "größe 日本"],
    narrative: "It counted from zero.",
    concepts: ["gotcha"],
    files_read: ["a.py"],
    files_modified: ["b.py"],
    agent_type: "Explore",
    agent_id: "x1",
  };
  const summary = {
    request: "Fix it",
    investigated: "The parser",
    learned: "Noon is 12:00",
    completed: "Fixed",
    next_steps: "Test it",
    notes: null,
  };
  const at = Date.UTC(2026, 0, 11, 10);
  const stored = store.storeObservations(memory, "ferry", [observation], summary, 1, 10, at, "some-model");
  written.observations.push(...stored.observationIds);
  written.prompts.push(prompt);
  written.memories.push(memory);
}
const manual = store.getOrCreateManualSession("ferry");
const note = { type: "discovery", title: "Ferry", subtitle: null, narrative: "Noted by hand", facts: [], concepts: [] };
written.observations.push(store.storeObservation(manual, "ferry", { ...note, files_read: [], files_modified: [] }).id);

const read = {
  exportedAt: new Date().toISOString(),
  exportedAtEpoch: Date.now(),
  query: "",
  observations: store.getObservationsByIds(written.observations),
  sessions: store.getSdkSessionsBySessionIds([...written.memories, manual]),
  summaries: store.getSessionSummariesByIds([1, 2]),
  prompts: store.getUserPromptsByIds(written.prompts),
};
writeSync(1, JSON.stringify(read));
process.kill(process.pid, "SIGKILL");
