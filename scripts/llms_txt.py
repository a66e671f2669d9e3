#!/usr/bin/env python3
"""Write docs/llms.txt and docs/llms-full.txt: the pages of mkdocs.yml for language models.

python scripts/llms_txt.py            # writes both
python scripts/llms_txt.py --check    # says whether they are up to date, with status 1 if not

llms.txt lists the pages with one sentence about each, in the format of llmstxt.org. llms-full.txt has the
text of the pages, without the decision records and generated references.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
UNLISTED = re.compile(r"decisions/\d")
"""Decision records are not listed; their index is."""
_NO_SUMMARY = "This page is made by"
LEFT_OUT = ("decisions/", "cli.md", "reference.md", "figures.md")
"""Pages that the full text leaves out: decision records, and pages that are generated or hold figures."""
INTRODUCTION = """\
# keepstone

> Memory for AI agents that people can open in a text editor, trust and take with them: one NDJSON line for
> each thing remembered, found by words and by meaning, on the user's machine, with the reason of each hit.

Install with `pip install 'keepstone[minilm]'`; the command is `keepstone`, the module `keepstone`.
`keepstone mcp install --all` adds the MCP server to the clients of this machine.
All pages in one file: [llms-full.txt]({full}).
"""


class Loader(yaml.SafeLoader):
    """A YAML loader that reads mkdocs.yml and ignores its Python tags."""


Loader.add_multi_constructor("tag:", lambda *_: None)


def pages(nav: list[Any], section: str = "Start") -> Iterator[tuple[str, str, str]]:
    """Yield the section, title and path of each page in the navigation."""
    for item in nav:
        if isinstance(item, str):
            yield section, "", item
            continue
        ((title, below),) = item.items()
        if isinstance(below, str):
            yield section, title, below
        else:
            yield from pages(below, title)


def summary(text: str) -> str:
    """Return the first sentence of a page's prose, as plain text."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    parts = (part.strip() for part in prose.split("\n\n"))
    first = next(
        (part for part in parts if re.match(r"[A-Za-z*`]", part) and not part.startswith(_NO_SUMMARY)), ""
    )
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)|\*\*", r"\1", " ".join(first.split()))
    return re.split(r"(?<=\.) ", plain)[0].rstrip(":")


def made() -> dict[Path, str]:
    """Return the generated text of both files."""
    nav = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)["nav"]  # noqa: S506  A SafeLoader.
    site = tomllib.loads((ROOT / "owner.toml").read_text(encoding="utf-8"))["documentation"]
    full = INTRODUCTION.partition("\nInstall")[0]
    sections: dict[str, str] = {}
    for section, title, path in pages(nav):
        text = (DOCS / path).read_text(encoding="utf-8")
        address = f"{site}{path.removesuffix('.md')}.html" if site else path
        if not UNLISTED.match(path):
            line = f"- [{title or heading(text)}]({address}): {summary(text)}\n"
            sections[section] = sections.get(section, "") + line
        if not path.startswith(LEFT_OUT):
            full += f"\n\n<!-- {path} -->\n\n{text.strip()}\n"
    lists = "".join(f"\n## {section}\n\n{lines}" for section, lines in sections.items())
    listed = INTRODUCTION.format(full=f"{site}llms-full.txt") + lists
    return {DOCS / "llms.txt": listed, DOCS / "llms-full.txt": full}


def heading(text: str) -> str:
    """Return the title of a page."""
    return text.partition("\n")[0].removeprefix("# ")


def main(arguments: list[str]) -> int:
    """Write the files, or check them; return the exit status."""
    if arguments == ["--check"]:
        old = [path for path, text in made().items() if not path.exists() or path.read_text("utf-8") != text]
        for path in old:
            print(f"{path.relative_to(ROOT)} is out of date: run python scripts/llms_txt.py")
        return int(bool(old))
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
