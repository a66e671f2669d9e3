"""The command that installs an optional part."""

from __future__ import annotations


def install_command(extra: str) -> str:
    """Return how to install an extra, from a release and in a clone.

    Example:
        >>> install_command("chat")
        "pip install 'keepstone[chat]' (in a clone: pip install '.[chat]')"
    """
    return f"pip install 'keepstone[{extra}]' (in a clone: pip install '.[{extra}]')"
