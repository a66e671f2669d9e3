"""Measure keepstone beside its peers and print the table.

python bench/peers/run.py --scale 10k,100k [--only keepstone,chroma]
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Put the repository on the import path, which has only the script's folder, and run the command."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from bench.peers.command import main as run

    run()


if __name__ == "__main__":
    main()
