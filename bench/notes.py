"""Figures of notes: adding a note to an AGENTS.md of 1 MB, and the prompt from a file of 5 MB.

python bench/notes.py
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from string import ascii_lowercase

from keepstone.notes.notes import Notes

RUNS = 7
GUIDE = """## Building

Some words about how this project is built, and why it is done in this way and in no other.
They go on for a second line, as such texts do.

```sh
make build && make test
```

- a list of things to know
  - with a nested one
- and another that is a little longer than the first

"""
BULLETS = "- We decided to keep the width of lines in this part of the code below one hundred\n"


def median_ms(call: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def up_to(size: int, text: str) -> str:
    return text * (size // len(text))


def adding(folder: Path, name: str, text: str) -> None:
    (folder / "AGENTS.md").write_text(text)
    notes = Notes(folder, folder / "user.md")
    numbers = iter(range(RUNS))
    took = median_ms(lambda: notes.add(f"a new note, number {next(numbers)}", "Project"))
    print(f"add a note to an AGENTS.md of 1 MB, {name}: {took:.1f} ms (at most 20)")


def prompting(folder: Path, name: str, text: str, query: str | None) -> None:
    (folder / "AGENTS.md").write_text(text)
    notes = Notes(folder, folder / "user.md")
    took = median_ms(lambda: notes.prompt(2000, query))
    print(f"prompt of 2,000 tokens from an AGENTS.md of 5 MB, {name}: {took:.0f} ms (at most 1000)")


def first_prompt(folder: Path, name: str, words: Sequence[str]) -> None:
    lines, size = ["## Memories\n\n"], 0
    while size < 5_000_000:
        lines.append(f"- {' '.join(random.choices(words, k=12))}\n")
        size += len(lines[-1].encode())
    (folder / "AGENTS.md").write_text("".join(lines), "utf-8")
    notes = Notes(folder, folder / "user.md")
    begin = time.process_time()
    notes.prompt(2000, " ".join(words[:10]))
    took = (time.process_time() - begin) * 1000
    print(
        f"first prompt of 2,000 tokens with a query, AGENTS.md of 5 MB, {name}: "
        f"{took:.0f} ms of processor time (at most 1000)"
    )


def made_up(count: int, letters: str) -> list[str]:
    return ["".join(random.choices(letters, k=random.randrange(3, 9))) for _ in range(count)]


def main() -> None:
    random.seed(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        adding(folder, "a guide with a few notes", up_to(1_000_000, GUIDE) + "## Memories\n\n- a note\n")
        adding(folder, "all notes", "## Memories\n\n" + up_to(1_000_000, BULLETS))
        notes = "## Memories\n\n" + up_to(5_000_000, BULLETS)
        prompting(folder, "all notes", notes, None)
        prompting(folder, "all notes, with a query", notes, "how wide may lines of code be?")
        guide = up_to(5_000_000, GUIDE.replace("## Building", "### Building"))
        prompting(folder, "a guide below Memories", "## Memories\n\n" + guide, "which list?")
        first_prompt(folder, "20,000 words", made_up(20_000, ascii_lowercase))
        first_prompt(folder, "20,000 words with umlauts", made_up(20_000, ascii_lowercase + "äöüß"))
        first_prompt(folder, "5,000 Chinese words", made_up(5_000, "".join(map(chr, range(0x4E00, 0x5200)))))


if __name__ == "__main__":
    main()
