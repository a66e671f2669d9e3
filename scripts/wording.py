#!/usr/bin/env python3
"""Refuse phrases that are hard to read, in code, messages, tests and documentation.

python scripts/wording.py            # lists them with a better wording; the status is 1 if there are any

In Python, comments, strings and names of tests are checked; in other files, whole lines. A docstring must
begin with a noun or a verb: "What", "Which", "Where" and "Of" are refused.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PHRASES = {
    r"in the mean\b(?! time)": "on average",
    r"so many\b": "a number, 'at most N', 'this many'",
    r"(?:take|takes|taking|taken|took) note\b": "record, register, remember",
    r"anew\b": "again",
    r"meanwhile\b": "during the write, since then, at the same time",
    r"(?:somebody|whoever)\b": "a person, a caller, who does it",
    r"tells? whether\b": "return whether, show whether",
    r"stands?\b(?! (?:for|still|out)\b|-|\.md)": "is, is in, comes before or after",
    r"as far as\b": "if, up to, the part that",
    r"that which\b": "the noun that it means",
    r"goes? by\b": "follows, uses",
    r"(?:is|are) told\b(?! (?:apart|from|to|what|that|how|when|so|of|by|the|nothing|on)\b)": "is reported",
    r"let(?:s|ting)? go (?:of|first)\b": "release, yield",
    r"None where\b": "None if",
    r"by now\b": "already, so far",
    r"has got\b": "has",
    r"(?:was )?used last\b": "the most recently used",
    r"sorts? behind\b": "sorts after",
    r"(?:is|are) no (?:longer )?truth values?\b": "is not a Boolean",
}
"""Refused phrases, as regular expressions that begin at the start of a word, and better wordings."""
FILES = ("*.py", "*.md", "*.ts", "*.js", "*.vue", "*.yml", "*.toml", "Makefile")
LEFT_OUT = re.compile(r"docs/llms|tests/(?:quality|bench)/.*/|scripts/wording\.py|tests/test_wording\.py")
"""Files that are not checked: generated texts, conversations as data, and files with the phrases."""
_REFUSED = re.compile(
    "|".join(rf"\b(?P<p{number}>{phrase})" for number, phrase in enumerate(PHRASES)), re.IGNORECASE
)
_NO_NOUN = re.compile(r"(?:What|Which|Where|Of)\s")
_MAYBE_NO_NOUN = re.compile(rf'"""{_NO_NOUN.pattern}')


def findings(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield a line number and a remark for each refused phrase in a file."""
    # Modules without a candidate in their text are not tokenized, as tokens and syntax trees take most of the
    # time. Underscores in names of tests count as spaces.
    parts: Iterable[tuple[int, str]] = enumerate(text.splitlines(), 1)
    if path.endswith(".py"):
        parts = prose(text) if _REFUSED.search(text.replace("_", " ")) else ()
    for line, words in parts:
        for found in _REFUSED.finditer(words):
            advice = list(PHRASES.values())[int(str(found.lastgroup)[1:])]
            yield line + words.count("\n", 0, found.start()), f"'{found[0]}': write {advice}"
    if path.endswith(".py") and _MAYBE_NO_NOUN.search(text):
        for line, words in docstrings(ast.parse(text), attributes_only=path.startswith("tests/")):
            if _NO_NOUN.match(words):
                yield line, f"'{words.split()[0]} …': begin the docstring with the noun"


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments, strings and names of tests of a Python module, with their lines."""
    kinds = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and token.string.startswith("test_"):
            yield token.start[0], token.string.replace("_", " ")
        elif token.type in kinds:
            yield token.start[0], token.string


def docstrings(module: ast.Module, *, attributes_only: bool) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of constants and attributes, and also of modules, classes and functions."""
    for node in ast.walk(module):
        body = getattr(node, "body", None)
        statements = body if isinstance(body, list) else []
        if not attributes_only and statements and not isinstance(node, (ast.If, ast.For, ast.With, ast.Try)):
            statements = [ast.Assign(), *statements]
        for before, after in pairwise(statements):
            match before, after:
                case ast.Assign() | ast.AnnAssign(), ast.Expr(ast.Constant(str(words))):
                    yield after.lineno, words


def main() -> int:
    """List the findings; return the exit status."""
    listed = subprocess.run(
        ["git", "ls-files", *FILES], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    number = 0
    for path in listed:
        if LEFT_OUT.match(path) or not (ROOT / path).exists():
            continue
        for line, remark in findings(path, (ROOT / path).read_text(encoding="utf-8")):
            print(f"{path}:{line}: {remark}")
            number += 1
    return int(number > 0)


if __name__ == "__main__":
    sys.exit(main())
