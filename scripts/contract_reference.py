#!/usr/bin/env python3
"""Write the generated parts of docs/http.md and docs/json.md: the routes and the error codes.

python scripts/contract_reference.py            # writes both
python scripts/contract_reference.py --check    # says which is out of date, with status 1 if one is
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

import keepstone
from keepstone import errors
from keepstone.cli.exit_status import DeclinedError, code_of, status_of
from keepstone.server import create_app
from keepstone.server.tokens import Tokens

ROOT = Path(__file__).resolve().parent.parent
HTTP, JSON = ROOT / "docs" / "http.md", ROOT / "docs" / "json.md"
BEGIN = "<!-- Made by scripts/contract_reference.py. -->\n"
END = "<!-- The end of what is made. -->\n"
WHOLE = {
    "AddedEntry": "the [entry](json.md#an-entry), and its `conflicts`",
    "Backup": "a ZIP file",
    "Context": "as the [command](json.md#the-commands)",
    "Entry": "the [entry](json.md#an-entry)",
    "Grant": "the [grant](formats/grants.md)",
    "Recall": "a [recall](json.md#a-recall)",
    "Suggestion": "the [suggestion](formats/suggestions.md)",
}
"""Descriptions of responses, by schema, that replace a list of the schema's keys."""
MEDIA = {
    "application/x-ndjson": "NDJSON",
    "application/zip": "a ZIP file",
    "text/event-stream": "server-sent events: `id` is the cursor, `data` a [change](json.md#the-commands)",
    "text/plain": "text",
}
OTHER_ERRORS: list[tuple[BaseException, str]] = [
    (DeclinedError(), "A question was answered with no, or not at all."),
    (typer.TyperException(""), "An unknown command or option, or a missing argument."),
    (
        ValueError(),
        "A value of the wrong form, or a question without a terminal to answer it and without `--yes`.",
    ),
    (OSError(), "Any other error of the operating system."),
]
"""Errors without a class in ``keepstone.errors``."""
KEYS_OF_A_LINE = "the keys of a [log line](formats/log.md)"


def description() -> dict[str, Any]:
    """Return the OpenAPI document of a server with all its routes."""
    with tempfile.TemporaryDirectory() as folder, keepstone.open(folder) as home:
        notes = keepstone.Notes(Path(folder), user_file=Path(folder) / "user.md")
        return create_app(home, tokens=Tokens(Path(folder)), notes=notes).openapi()


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each page with its generated text."""
    yield HTTP, _page(HTTP, routes(description()))
    yield JSON, _page(JSON, error_rows())


def _page(path: Path, lines: Iterable[str]) -> str:
    before, _, rest = path.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return "".join((before, BEGIN, *(line + "\n" for line in lines), END, after))


def error_rows() -> Iterator[str]:
    """Yield the rows of the table of errors: code, exit status, and the start of the class's docstring."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    defined = [kind for kind in kinds if issubclass(kind, errors.KeepstoneError)]
    made = [kind.__new__(kind) for kind in defined if kind not in (errors.KeepstoneError, errors.SourceError)]
    rows = [(status_of(error), code_of(error), _first_sentences(error)) for error in made]
    rows += [(status_of(error), code_of(error), when) for error, when in OTHER_ERRORS]
    yield from ("", "| code | status | when |", "|---|--:|---|")
    yield from (f"| `{code}` | {status} | {when} |" for status, code, when in sorted(rows))
    yield ""


def _first_sentences(error: BaseException) -> str:
    summary = (type(error).__doc__ or "").partition("\n\n")[0]
    return " ".join(summary.replace("``", "`").split())


def routes(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the tables of routes, one table for each tag."""
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if method != "parameters":
                row = _row(document, method.upper(), path.removeprefix("/v1/"), operation)
                by_tag.setdefault(operation["tags"][0], []).append(row)
    for tag, rows in by_tag.items():
        yield from ("", f"### {tag.capitalize()}", "", "| route | what it does | takes | answer |")
        yield from ("|---|---|---|---|", *rows)
    yield ""


def _row(document: Mapping[str, Any], method: str, path: str, operation: Mapping[str, Any]) -> str:
    route = f"`{method} {path.replace('agents/{agent}/', 'A/').replace('agents/{agent}', 'A')}`"
    does = " ".join(operation["description"].partition("\n\n")[0].split())
    return f"| {route} | {does} | {_taken(document, operation)} | {_answer(document, operation)} |"


def _taken(document: Mapping[str, Any], operation: Mapping[str, Any]) -> str:
    parameters = [named["name"] for named in operation.get("parameters", ()) if named["in"] == "query"]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    parts = [", ".join(f"`{name}`" for name in parameters)]
    if body:
        name, schema = _resolved(document, body)
        parts.append(KEYS_OF_A_LINE if name in ("NewEntry", "Change") else _keys(schema))
    return "; ".join(part for part in parts if part)


def _answer(document: Mapping[str, Any], operation: Mapping[str, Any]) -> str:
    status, response = next(
        (status, found) for status, found in operation["responses"].items() if status.startswith("2")
    )
    [(media, content)] = response["content"].items()
    if media in MEDIA:
        return MEDIA[media]
    name, schema = _resolved(document, content["schema"])
    return WHOLE.get(name, _keys(schema)) + (" (201)" if status == "201" else "")


def _resolved(document: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Resolve a schema's reference; return the schema's name, or '', and the schema."""
    given = next((kind for kind in schema.get("anyOf", ()) if "$ref" in kind), schema)
    name = given.get("$ref", "").rpartition("/")[2]
    return name, document["components"]["schemas"][name] if name else given


def _keys(schema: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}`" for name in schema.get("properties", ()))


def main() -> int:
    """Write the pages, or report which are out of date; return the exit status."""
    status = 0
    for path, wanted in pages():
        if "--check" not in sys.argv[1:]:
            path.write_text(wanted, encoding="utf-8")
        elif path.read_text("utf-8") != wanted:
            print(f"docs/{path.name} is out of date: run python {sys.argv[0]}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
