/**
 * Sends every operation with a client whose types are generated from the server's description.
 *
 * `test/generated-client.test.ts` writes `schema.ts` beside a copy of this file, compiles both and runs it:
 * node operations.js URL TOKEN. It prints the operations that were answered as described, one a line.
 */
import createClient from "openapi-fetch";

import type { components, operations, paths } from "./schema.js";

const [baseUrl = "", token = ""] = process.argv.slice(2);
const { GET, POST, PUT, PATCH, DELETE } = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });

interface Sent<T> {
  data?: T;
  error?: components["schemas"]["Problem"];
  response: Response;
}

async function data<T>(operation: keyof operations, sending: Promise<Sent<T>>): Promise<T> {
  const { data, error, response } = await sending;
  if (data === undefined || !response.headers.get("x-request-id")) {
    throw new Error(`${operation}: ${response.status} ${JSON.stringify(error)}`);
  }
  console.log(operation);
  return data;
}

function same<T>(found: T, expected: T): void {
  if (JSON.stringify(found) !== JSON.stringify(expected)) {
    throw new Error(`${JSON.stringify(found)} is not ${JSON.stringify(expected)}`);
  }
}

const AGENT = "/v1/agents/{agent}";
const SESSION = `${AGENT}/sessions/{session}` as const;
const ENTRY = `${AGENT}/entries/{entry}` as const;
const FILE = `${AGENT}/files/{path}` as const;
const agent = { params: { path: { agent: "typed" } } };
const session = { params: { path: { agent: "typed", session: "a/b ü" } } };
const entry = { params: { path: { agent: "typed", entry: "cause/1" } } };
const file = { params: { path: { agent: "typed", path: "plans/today.md" } } };

await data("health", GET("/v1/health"));
same((await data("new_session", POST(`${AGENT}/sessions`, { ...agent, body: { id: "a/b ü" } }))).id, "a/b ü");

const decision = { id: "cause/1", type: "decision", data: { decision: "Use OAuth" }, tags: ["auth"], valid_from: "2026-01-01" };
const header = { "Idempotency-Key": "add-once" };
const adding = { params: { ...session.params, header }, body: decision };
const added = await data("add_entry", POST(`${SESSION}/entries`, adding));
const repeated = await POST(`${SESSION}/entries`, adding);
same([repeated.data?.ts, repeated.response.headers.get("idempotency-replayed")], [added.ts, "true"]);
await data("add_entries", POST(`${SESSION}/entries/batch`, { ...session, body: { items: [{ type: "note", text: "one" }] } }));
const again = { items: [{ id: "effect", type: "note", text: "OAuth will be in use" }] };
same((await data("put_entries", PUT(`${SESSION}/entries`, { ...session, body: again }))).entries.map(({ id }) => id), ["effect"]);
const effect = { path: { ...session.params.path, entry: "effect" } };
await data("put_entry", PUT(`${SESSION}/entries/{entry}`, { params: effect, body: { type: "note", text: "OAuth is in use" } }));

const found = await data("get_entry", GET(ENTRY, { params: { ...entry.params, query: { session: "a/b ü" } } }));
same([found.data?.decision, found.tags?.[0], found.priority], ["Use OAuth", "auth", undefined]);
await data("update_entry", PATCH(ENTRY, { ...entry, body: { pinned: true } }));
const links = { params: { path: { agent: "typed", entry: "effect" } }, body: { to: "cause/1", rel: "because" } };
await data("link_entry", POST(`${ENTRY}/links`, links));
same((await data("related_entries", GET(`${ENTRY}/related`, entry))).entries.map(({ id }) => id), ["effect"]);
const newer = { ...links.params, query: { session: "a/b ü" } };
const superseding = await data("supersede_entry", POST(`${ENTRY}/supersede`, { params: newer, body: { text: "PKCE too" } }));
same([superseding.type, superseding.links?.length], ["note", 1]);
same((await data("reinstate_entry", POST(`${ENTRY}/reinstate`, { params: newer }))).valid_to, undefined);
same((await data("entry_history", GET(`${ENTRY}/history`, entry))).versions.map(({ deleted }) => deleted), [false, false]);
const query = { limit: 1, newest: true, type: ["note", "decision"] };
const page = await data("list_entries", GET(`${SESSION}/entries`, { params: { ...session.params, query } }));
same([page.entries.length, typeof page.next], [1, "string"]);
await data("count_accesses", POST(`${SESSION}/count`, { ...session, body: { increments: { effect: 2 }, wait: true } }));
same((await data("count_entries", GET(`${AGENT}/entry-counts`, agent))).counts, { "a/b ü": 3 });

const asked = { limit: 5, min_priority: 0, min_relevance: 0, neighbours: 0, include_superseded: false, include: ["entries" as const] };
const recalled = await data("recall", POST(`${AGENT}/recall`, { ...agent, body: { ...asked, query: "OAuth" } }));
same(recalled.hits.flatMap(({ entry, why }) => [entry?.id, ...why.words]).includes("oauth"), true);
const refused = await POST(`${AGENT}/recall`, { ...agent, body: { ...asked, query: "OAuth", since: "nonsense" } });
const code: components["schemas"]["Problem"]["code"] | undefined = refused.error?.code;
same(code, "invalid_argument");
const receiver = { params: { path: { agent: "typed", to: "reader" } } };
same((await data("grant", PUT(`${AGENT}/grants/{to}`, { ...receiver, body: { may: "read", types: ["note"] } }))).types, ["note"]);
same((await data("list_grants", GET(`${AGENT}/grants`, agent))).grants.map(({ to }) => to), ["reader"]);
same((await data("revoke", DELETE(`${AGENT}/grants/{to}`, receiver))).revoked, true);
const refusedCopy = await POST(`${ENTRY}/share`, { ...entry, body: { to: "reader" } });
same(refusedCopy.error?.code, "not_granted");
console.log("share_entry");
const doubts = { trust: "model", untrusted: "fence" as const, stale: "omit" as const };
const about = { query: "OAuth", budget: 400, notes: true, window: [], ids: false, ...doubts };
const context = await data("context", POST(`${AGENT}/context`, { ...agent, body: about }));
same([context.stable > 0, context.parts.length > 0, context.left_out.length >= 0], [true, true, true]);
const embedded = await POST(`${AGENT}/embed`, { ...agent, body: { texts: ["OAuth"] } });
// Without an embedder there the answer is a problem, which is described as well.
same(embedded.error?.code ?? embedded.data?.vectors.length ?? 0, embedded.response.ok ? 1 : "embedder_unavailable");
console.log("embed");

await data("list_sessions", GET(`${AGENT}/sessions`, { params: { ...agent.params, query: { order: "id" } } }));
const shown = GET(SESSION, session);
same((await data("show_session", shown)).entries, 3);
const old = { "if-match": (await shown).response.headers.get("etag") };
const said = { messages: [{ role: "user", content: "Hi" }] };
same((await data("add_messages", POST(`${SESSION}/messages`, { ...session, body: said }))).entries.length, 1);
same((await data("messages", GET(`${SESSION}/messages`, session))).messages, said.messages);
await data("set_session_title", PUT(`${SESSION}/title`, { ...session, body: { title: "Sign-in" } }));
const summaries = GET(`${AGENT}/session-summaries`, { params: { ...agent.params, query: { texts: false } } });
same((await data("list_session_summaries", summaries)).sessions[0]?.title, "Sign-in");
const copied = { params: { path: { agent: "typed", session: "copied" } } };
same((await data("copy_session", POST(`${SESSION}/copy`, { ...session, body: { new_id: "copied" } }))).id, "copied");
same((await data("rename_session", POST(`${SESSION}/rename`, { ...copied, body: { new_id: "x" } }))).id, "x");
const x = { params: { path: { agent: "typed", session: "x" } } };
same((await data("export_session", GET(`${SESSION}/export`, { ...x, parseAs: "text" }))).includes("OAuth"), true);
const upTo = { new_id: "copied", until: "effect" };
same((await data("fork_session", POST(`${SESSION}/fork`, { ...x, body: upTo }))).id, "copied");
for (const made of [copied, x]) await DELETE(SESSION, made);
const now = { query: { timeout: 0 } };
same((await data("watch", GET("/v1/changes", { params: now, parseAs: "text" }))).startsWith(":"), true);
const watching = { params: { ...agent.params, ...now }, parseAs: "text" } as const;
same((await data("watch_agent", GET(`${AGENT}/changes`, watching))).startsWith(":"), true);
await data("conflicts", GET(`${AGENT}/conflicts`, agent));
await data("compact_session", POST(`${SESSION}/compact`, { ...session, body: { archive: true } }));
await data("delete_entry", DELETE(ENTRY, entry));
const every = { include_superseded: true };
await data("list_agent_entries", POST(`${AGENT}/entries/list`, { ...agent, body: { ...every, limit: 100, newest_first: false, types: ["note"] } }));
await data("count_agent_entries", POST(`${AGENT}/entries/count`, { ...agent, body: { ...every, where: { by: "Ada" } } }));
await data("delete_where", POST(`${AGENT}/entries/delete`, { ...agent, body: { ...every, tags: ["x"], dry_run: true } }));
await data("purge_where", POST(`${AGENT}/entries/purge`, { ...agent, body: { ...every, tags: ["x"], dry_run: true } }));
const fact = { params: { path: { agent: "typed", key: "plan" } } };
same((await data("set_fact", PUT(`${AGENT}/facts/{key}`, { ...fact, body: { value: "Free" } }))).type, "fact");
same((await data("get_fact", GET(`${AGENT}/facts/{key}`, fact))).value, "Free");
same((await data("list_facts", GET(`${AGENT}/facts`, agent))).facts, { plan: "Free" });
const proposed = { body: { do: "add" as const, entries: [], item: { text: "Ada likes tea" }, why: "she said so", evidence: [] } };
const made = await data("suggest", POST(`${AGENT}/suggestions`, { ...agent, ...proposed }));
same((await data("list_suggestions", GET(`${AGENT}/suggestions`, agent))).suggestions.map(({ id }) => id), [made.id]);
const named = { params: { path: { agent: "typed", suggestion: made.id } } };
const one = { ...named, body: { by: "Ada" } };
same((await data("get_suggestion", GET(`${AGENT}/suggestions/{suggestion}`, named))).state, "open");
same((await data("accept_suggestion", POST(`${AGENT}/suggestions/{suggestion}/accept`, one))).decided_by, "Ada");
same((await data("undo_suggestion", POST(`${AGENT}/suggestions/{suggestion}/undo`, one))).state, "undone");
const other = await data("suggest", POST(`${AGENT}/suggestions`, { ...agent, ...proposed }));
const unwanted = { params: { path: { agent: "typed", suggestion: other.id } }, body: {} };
same((await data("reject_suggestion", POST(`${AGENT}/suggestions/{suggestion}/reject`, unwanted))).state, "rejected");
same((await data("unset_fact", DELETE(`${AGENT}/facts/{key}`, fact))).unset, true);
same((await data("restore_entry", POST(`${ENTRY}/restore`, entry))).id, "cause/1");
await data("purge_entry", POST(`${ENTRY}/purge`, entry));
same((await data("purge_entries", POST(`${SESSION}/purge`, { ...session, body: { ids: ["effect", "x"] } }))).purged, 1);
await data("purge_matching", POST(`${AGENT}/purge`, { ...agent, body: { text: "one", dry_run: true } }));
const late = await POST(`${SESSION}/clear`, { params: { ...session.params, header: old } });
same([late.response.status, late.error?.code], [412, "session_changed"]);
await data("clear_session", POST(`${SESSION}/clear`, session));
await data("drop_session", POST(`${SESSION}/drop`, session));
same((await data("list_dropped_sessions", GET(`${AGENT}/dropped-sessions`, agent))).sessions, ["a/b ü"]);
await data("new_session", POST(`${AGENT}/sessions`, { ...agent, body: { id: "a/b ü" } }));
await data("remove_session", DELETE(SESSION, session));

await data("write_file", PUT(FILE, { ...file, body: { content: "Call Ada\n" } }));
await data("append_file", POST(FILE, { ...file, body: { content: "Call Bo\n" } }));
same((await data("read_file", GET(FILE, file))).content, "Call Ada\nCall Bo\n");
same((await data("list_files", GET(`${AGENT}/files`, agent))).files, ["plans/today.md"]);
const plans = { params: { ...agent.params, query: { folder: "plans" } } };
const texts = await data("list_file_contents", GET(`${AGENT}/file-contents`, plans));
same(texts.files.map(({ content }) => content), ["Call Ada\nCall Bo\n"]);
await data("delete_file", DELETE(FILE, file));

const { note } = await data("add_note", POST("/v1/notes", { body: { text: "Use pnpm", type: "Project" } }));
same((await data("list_notes", GET("/v1/notes", {}))).notes.length, 1);
const changed = await data("change_note", PUT("/v1/notes", { body: { note, text: "Use pnpm 9" } }));
await data("prompt_of_notes", GET("/v1/notes/prompt", { params: { query: { budget: 500 } } }));
await data("dedupe_notes", POST("/v1/notes/dedupe", { body: {} }));
await data("files_of_notes", GET("/v1/notes/files"));
await data("remove_note", POST("/v1/notes/remove", { body: changed.note }));

same((await data("doctor", GET("/v1/doctor"))).healthy, true);
await data("mend", POST("/v1/doctor", { body: { deep: false, fix: true } }));
await data("index", POST("/v1/index", { body: { rebuild: true } }));
same((await data("metrics", GET("/v1/metrics", { parseAs: "text" }))).includes("keepstone_http_requests_total"), true);
const zip = await data("backup", GET("/v1/backup", { parseAs: "arrayBuffer" }));
same(new TextDecoder().decode(zip as unknown as ArrayBuffer).slice(0, 2), "PK");
same((await data("list_agents", GET("/v1/agents"))).agents, ["typed"]);
same((await data("slug", GET("/v1/slug", { params: { query: { text: "a@b" } } }))).slug, "u.a_40b");
await data("purge_agent", DELETE(AGENT, agent));
