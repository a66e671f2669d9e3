"""The module and summary of each command, so that help and a single command load no others.

Written by ``python scripts/cli_reference.py``; a test says when it is out of date.
"""

COMMANDS = {
    "demo": (
        "demo",
        "Write sample sessions, files, notes, typed entries and vectors, query them and show their files.",
    ),
    "chat": (
        "chat",
        "Chat with an agent that remembers. Messages are stored; those that start with # are notes.",
    ),
    "entries": (
        "agent_entries",
        "List, count, delete and purge the entries of all sessions by filters.",
    ),
    "add": (
        "entries",
        "Add an entry to a session, which is created if it does not exist.",
    ),
    "update": (
        "entries",
        "Change an entry. Keys that are not named stay; previous versions stay in its history.",
    ),
    "supersede": (
        "entries",
        "Replace an entry with a new one. The old one stays, and holds until then.",
    ),
    "reinstate": (
        "entries",
        "Undo supersede: delete what replaced an entry, and let that entry hold again.",
    ),
    "delete": (
        "entries",
        "Delete an entry: hide it. Its history keeps it; purge removes its bytes.",
    ),
    "restore": (
        "entries",
        "Give a deleted entry back, with its text, payload and tags, at the time of now.",
    ),
    "purge": (
        "entries",
        "Remove every byte of an entry, history and index included. This cannot be undone.",
    ),
    "history": (
        "entries",
        "List the versions of an entry, oldest first, and what each changed.",
    ),
    "vouch": (
        "vouching",
        "Confirm an entry as a person: its trust is user until it, or one of its sources, changes.",
    ),
    "why": (
        "vouching",
        "Show who said an entry, what it was derived from, and what was derived from it.",
    ),
    "verify": (
        "vouching",
        "Compare all citations with their files. The status is 1 if any cited text has changed or is gone.",
    ),
    "expect": (
        "expecting",
        "Add a test of memory: what a question must find, or must not.",
    ),
    "test": (
        "expecting",
        "Run the tests of memory. The status is 1 if one fails. Nothing is written.",
    ),
    "set": (
        "facts",
        "Set the value of a key. Its former value is superseded, and stays in the history.",
    ),
    "value": (
        "facts",
        "Print the value of a key.",
    ),
    "unset": (
        "facts",
        "Delete the value of a key, which its history keeps.",
    ),
    "recall": (
        "recall",
        "Search the agent's memory. The best hits come first.",
    ),
    "conflicts": (
        "conflicts",
        "List the pairs of entries that repeat or contradict one another.",
    ),
    "suggest": (
        "suggestions",
        "Suggest what to do about entries that repeat or contradict one another; needs no model.",
    ),
    "suggestions": (
        "suggestions",
        "List the suggestions in a state, oldest first.",
    ),
    "review": (
        "suggestions",
        "Show the open suggestions one by one, with what they would change, and ask what to do.",
    ),
    "context": (
        "context",
        "Print the memory block for a system prompt: notes first, then entries.",
    ),
    "sessions": (
        "sessions",
        "List, read, write, rename, copy, clear and delete an agent's sessions.",
    ),
    "files": (
        "files",
        "List, read and write an agent's own files.",
    ),
    "notes": (
        "notes",
        "List, add, edit and remove notes: bullets in AGENTS.md and in the user's file.",
    ),
    "agents": (
        "agents",
        "List the agents of a home, purge one, or name one after a user.",
    ),
    "grant": (
        "sharing",
        "Let another agent read, or also write, entries of the agent that --agent names.",
    ),
    "revoke": (
        "sharing",
        "Withdraw what was granted to another agent, for the next call of every process and server.",
    ),
    "grants": (
        "sharing",
        "List which agents may access the agent's memory, and what of it.",
    ),
    "share": (
        "sharing",
        "Copy an entry to another agent, which granted writing.",
    ),
    "model": (
        "models",
        "Install, list or remove embedding models, and allow servers.",
    ),
    "doctor": (
        "maintenance",
        "Check the home for damage; each finding has its cost and remedy.",
    ),
    "backup": (
        "maintenance",
        "Copy the home, and check the copy. Writers need not stop.",
    ),
    "index": (
        "maintenance",
        "Update the indexes from the logs.",
    ),
    "compact": (
        "maintenance",
        "Shorten the agent's logs: old versions and deleted entries move to the archive.",
    ),
    "migrate": (
        "databases",
        "Copy a home to another one: from files to PostgreSQL, or back. The source is not changed.",
    ),
    "postgres": (
        "databases",
        "Look after a home in PostgreSQL.",
    ),
    "serve": (
        "serve",
        "Serve the home over HTTP until interrupted.",
    ),
    "mcp": (
        "mcp",
        "Serve an agent's memory to MCP clients over stdio, or install that in a client.",
    ),
    "hook": (
        "hook",
        "Answer an event of a coding agent, which standard input holds. For the agent's configuration.",
    ),
    "token": (
        "tokens",
        "Create, list or revoke access tokens of the server.",
    ),
    "watch": (
        "watch",
        "Print changes of entries and sessions as they come, those of other processes too.",
    ),
    "import": (
        "moving",
        "Import the memory of another tool; auto recognises which.",
    ),
    "export": (
        "moving",
        "Export memory in an open format: lines, Markdown, an OKF bundle, SQLite or CSV.",
    ),
    "sync": (
        "moving",
        "Exchange entries, files, grants and purges with other homes, over a shared folder or ssh.",
    ),
    "git": (
        "git",
        "Keep a home in git: branches and devices that both remembered merge without conflict.",
    ),
    "diff": (
        "diff",
        "Show which entries of a session were added, removed or changed between two times or git revisions.",
    ),
    "changes": (
        "changes",
        "Show what was added, edited, superseded, deleted and purged, by day, the newest first.",
    ),
}
