"""Generate the list of common English words that weights the words of a question for relevance.

    python scripts/common_words.py

The words come from the vocabulary of BERT (uncased, Apache-2.0), which is roughly ordered by frequency. The
list has one word for each stem, and no stop words. Needs ``keepstone model install minilm``.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

from keepstone.embed.installed import models_folder
from keepstone.text.tokenizer import STOP_WORDS, stem

LIST = Path(__file__).resolve().parent.parent / "src/keepstone/recall/common_words.txt"
FIRST_WORD = 1996
"""The index of the first whole word; earlier tokens are characters and symbols."""
STEMS = 4000


def main() -> None:
    """Write the list."""
    vocabulary = json.loads((models_folder() / "minilm/tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    words: dict[str, str] = {}
    for word, number in sorted(vocabulary.items(), key=lambda item: item[1]):
        is_word = number >= FIRST_WORD and word.isascii() and word.isalpha() and len(word) > 1
        if is_word and word not in STOP_WORDS:
            words.setdefault(stem(word), word)
    LIST.write_text(textwrap.fill(" ".join([*words.values()][:STEMS]), 110) + "\n", "ascii")


if __name__ == "__main__":
    main()
