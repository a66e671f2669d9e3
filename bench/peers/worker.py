"""One step of one peer, run in the peer's environment: ``python -m bench.peers.worker``.

The figures are written to a file, because packages may print to stdout.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.peers.measure import STEPS, facts
from bench.peers.peer import load


def main(step: str, name: str, data: str, folder: str, answer: str) -> None:
    """Run the step and write its figures."""
    peer = load(name)()
    figures = STEPS[step](peer, Path(data), Path(folder))
    Path(answer).write_text(json.dumps({"facts": facts(peer)} | figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
