"""Install commands of optional extras."""

from __future__ import annotations


def install_command(extra: str) -> str:
    """Return the command that installs an extra, from a release and in a clone.

    Example:
        >>> install_command("chat")
        "pip install 'keepstone[chat]' (in a clone: pip install '.[chat]')"
    """
    return f"pip install 'keepstone[{extra}]' (in a clone: pip install '.[{extra}]')"
