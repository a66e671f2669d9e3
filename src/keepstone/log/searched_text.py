"""The searched text of an entry, whose words find the entry."""

from __future__ import annotations

from keepstone.model import Record
from keepstone.text.tokenizer import with_name_parts


def searched_text(text: str, record: Record) -> str:
    r"""Return the text of an entry with its aliases, followed by the parts of its camelCase names.

    Examples:
        >>> searched_text("It calls getUserName.", {"aliases": ["login"]})
        'It calls getUserName.\nlogin get User Name'
    """
    aliases = record.get("aliases")
    if isinstance(aliases, list):
        text = "\n".join((text, *[name for name in aliases if isinstance(name, str)]))
    return with_name_parts(text)
