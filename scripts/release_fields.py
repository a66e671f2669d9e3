#!/usr/bin/env python3
"""Write the version and the owner's fields into every file that has them.

python scripts/release_fields.py            # writes them, from pyproject.toml and owner.toml
python scripts/release_fields.py --check    # names the files that differ, with status 1
python scripts/release_fields.py --release [v0.1.0]  # the same; refuses empty fields, and a tag that differs

A field that is empty in owner.toml is left out everywhere, so that no file has an address that does not
exist.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import tomlkit
from tomlkit.items import Table

ROOT = Path(__file__).resolve().parent.parent
REQUIRED = {"repository": r"https://[^/\s]+/\S+[^/\s]", "security": r"[^@\s]+@[^@\s]+\.[^@\s]+"}
"""Fields that a release requires, each with the pattern that it must match."""
OPTIONAL = {"documentation": r"https://\S+/"}


class Facts(NamedTuple):
    """The values to write into the files."""

    version: str
    repository: str
    documentation: str
    security: str

    @property
    def server_name(self) -> str:
        """The name in MCP's registry, derived from a GitHub repository; empty for any other repository."""
        on_github = re.fullmatch(r"https://github\.com/([\w.-]+)/[\w.-]+", self.repository)
        return f"io.github.{on_github[1]}/keepstone" if on_github else ""

    def blob(self, path: str) -> str:
        """Return the address of a file on the main branch; empty without a repository."""
        return self.repository and f"{self.repository}/blob/main/{path}"


def facts(root: Path) -> Facts:
    """Read the version and the owner's fields."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    owner = tomllib.loads((root / "owner.toml").read_text(encoding="utf-8"))
    return Facts(project["version"], owner["repository"], owner["documentation"], owner["security"])


def faults(found: Facts) -> list[str]:
    """Return messages about missing or malformed fields in owner.toml for a release."""
    values = {name: getattr(found, name) for name in (*REQUIRED, *OPTIONAL)}
    empty = [f"owner.toml: {name} is empty; a release needs it" for name in REQUIRED if not values[name]]
    wrong = [
        f"owner.toml: {name} {values[name]!r} does not have the form {form}"
        for name, form in (REQUIRED | OPTIONAL).items()
        if values[name] and not re.fullmatch(form, values[name])
    ]
    return empty + wrong


def _pyproject(text: str, found: Facts) -> str:
    document = tomlkit.parse(text)
    project, hooks = _table(document, "project"), _table(document, "tool", "hatch", "metadata", "hooks")
    project.pop("urls", None)
    if found.repository:
        urls = {
            "Homepage": found.documentation or found.repository,
            "Documentation": found.documentation or found.blob("docs/index.md"),
            "Source": found.repository,
            "Changelog": found.blob("CHANGELOG.md"),
            "Issues": f"{found.repository}/issues",
        }
        project.append("urls", tomlkit.item(urls))
    (authors,) = project["authors"]
    authors.pop("email", None)
    if found.security:
        authors["email"] = found.security
    page = _table(hooks, "fancy-pypi-readme")
    page["fragments"] = _list(*_fragments(found))
    page["substitutions"] = _list(*_substitutions(found))
    return tomlkit.dumps(document)


def _table(container: Any, *names: str) -> Table:
    for name in names:
        container = container[name]
    return container  # type: ignore[no-any-return]


def _list(*items: dict[str, str]) -> Any:
    made = tomlkit.array().multiline(multiline=True)
    for item in items:
        row = tomlkit.inline_table()
        row.update(item)
        made.append(row)
    return made


def _fragments(found: Facts) -> list[dict[str, str]]:
    # MCP's registry checks that the package's page has this line.
    name = [{"text": f"\n<!-- mcp-name: {found.server_name} -->\n"}] if found.server_name else []
    return [{"path": "README.md"}, *name]


def _substitutions(found: Facts) -> list[dict[str, str]]:
    """Return substitutions that make relative links absolute, or remove them if there is no repository."""
    picture, link = r"!\[([^\]]*)\]\((?!https?:)([^)]+)\)", r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)]+)\)"
    if not found.repository:
        return [
            {"pattern": picture + r"\n*", "replacement": ""},
            {"pattern": link, "replacement": r"\1"},
        ]
    at = f"{found.repository}/{{}}/v$HFPR_VERSION"
    return [
        {"pattern": picture, "replacement": rf"![\1]({at.format('raw')}/\2)"},
        {"pattern": link, "replacement": rf"[\1]({at.format('blob')}/\2)"},
    ]


def _npm(text: str, found: Facts) -> str:
    package = json.loads(text)
    fields: dict[str, Any] = {"version": found.version}
    if found.repository:
        fields["homepage"] = found.documentation or found.repository
        fields["repository"] = {
            "type": "git",
            "url": f"git+{found.repository}.git",
            "directory": "packages/voltagent",
        }
        fields["bugs"] = {"url": f"{found.repository}/issues"}
    return _json(_with(package, fields, after="description", managed=("homepage", "repository", "bugs")))


def _npm_lock(text: str, found: Facts) -> str:
    lock = json.loads(text)
    lock["version"] = lock["packages"][""]["version"] = found.version
    return _json(lock)


def _mkdocs(text: str, found: Facts) -> str:
    text = re.sub(r"^(?:site_url|repo_url|edit_uri): .*\n", "", text, flags=re.MULTILINE)
    lines = [f"site_url: {found.documentation}\n"] if found.documentation else []
    lines += [f"repo_url: {found.repository}\nedit_uri: edit/main/docs/\n"] if found.repository else []
    first, second, rest = text.split("\n", 2)
    return f"{first}\n{second}\n{''.join(lines)}{rest}"


def _server(text: str, found: Facts) -> str:
    server = json.loads(text)
    for package in server["packages"]:
        package["version"] = found.version
        package["runtimeArguments"][0]["value"] = f"keepstone[mcp]=={found.version}"
    fields: dict[str, Any] = {"name": found.server_name} if found.server_name else {}
    if found.server_name:
        fields["repository"] = {"url": found.repository, "source": "github"}
    fields["version"] = found.version
    return _json(_with(server, fields, after="$schema", managed=("name", "repository")))


def _citation(text: str, found: Facts) -> str:
    text = re.sub(r"^repository-code: .*\n", "", text, flags=re.MULTILINE)
    code = f"repository-code: {found.repository}\n" if found.repository else ""
    return re.sub(r"^version: .*\n", f"version: {found.version}\n{code}", text, flags=re.MULTILINE)


def _security(text: str, found: Facts) -> str:
    text = re.sub(r"^Or write to .*\n", "", text, flags=re.MULTILINE)
    line = f"Or write to <{found.security}>.\n" if found.security else ""
    return text.replace(_PRIVATE_REPORT, _PRIVATE_REPORT + line)


_PRIVATE_REPORT = (
    'Use the repository\'s private vulnerability report ("Security", then "Report a vulnerability").\n'
)


def _issue_forms(text: str, found: Facts) -> str:
    links = ""
    if found.repository:
        links = (
            "contact_links:\n"
            "  - name: Vulnerability\n"
            f"    url: {found.repository}/security/advisories/new\n"
            "    about: Please report it privately.\n"
        )
    return text.partition("contact_links:")[0] + links


def _with(
    document: dict[str, Any], fields: dict[str, Any], after: str, managed: tuple[str, ...]
) -> dict[str, Any]:
    """Set fields at their place, or insert them after a key; remove managed fields that have no value."""
    kept = {key: value for key, value in document.items() if key not in managed or key in fields}
    new = {key: value for key, value in fields.items() if key not in kept}
    items = list((kept | {key: fields[key] for key in fields if key in kept}).items())
    at = [key for key, _ in items].index(after) + 1
    return dict([*items[:at], *new.items(), *items[at:]])


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


PLACES: dict[str, Callable[[str, Facts], str]] = {
    "pyproject.toml": _pyproject,
    "packages/voltagent/package.json": _npm,
    "packages/voltagent/package-lock.json": _npm_lock,
    "mkdocs.yml": _mkdocs,
    "server.json": _server,
    "CITATION.cff": _citation,
    "SECURITY.md": _security,
    ".github/ISSUE_TEMPLATE/config.yml": _issue_forms,
}
"""The files, each with the function that returns its updated text."""
WITHOUT_VERSION = {"mkdocs.yml", "SECURITY.md", ".github/ISSUE_TEMPLATE/config.yml"}
"""The files that contain only the owner's fields."""


def outdated(root: Path) -> dict[Path, str]:
    """Return the files that differ from the facts, each with its updated text."""
    found = facts(root)
    made = {
        root / name: write((root / name).read_text(encoding="utf-8"), found) for name, write in PLACES.items()
    }
    return {path: text for path, text in made.items() if path.read_text(encoding="utf-8") != text}


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Write the fields, or check them; return the exit status."""
    mode, tag = [*arguments, "", ""][:2]
    if mode not in {"", "--check", "--release"} or len(arguments) > 1 + (mode == "--release"):
        sys.exit(__doc__)
    found = facts(root)
    wrong = faults(found) if mode == "--release" else []
    if tag and tag != f"v{found.version}":
        wrong.append(f"the tag {tag!r} is not the version of pyproject.toml: v{found.version}")
    for path, text in outdated(root).items():
        if mode:
            wrong.append(f"{path.relative_to(root)} is out of date: run python scripts/release_fields.py")
        else:
            path.write_text(text, encoding="utf-8")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
