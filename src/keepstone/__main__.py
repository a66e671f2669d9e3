"""``python -m keepstone`` is the command ``keepstone``."""

from __future__ import annotations

from keepstone.cli import main

if __name__ == "__main__":
    main()
