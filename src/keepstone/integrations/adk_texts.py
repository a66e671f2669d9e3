"""The indexed text of Google ADK's contents."""

from __future__ import annotations

from keepstone.integrations.homes import needs
from keepstone.integrations.texts import called, returned, said, text_of_blocks
from keepstone.model import Record

with needs("adk"):
    from google.genai.types import Content, Part


def content_text(content: Content, author: str | None) -> str:
    """Return the text of a content, with its author before it, for the search."""
    return text_of_blocks(blocks_of(content), author or content.role)


def blocks_of(content: Content) -> list[Record]:
    """Return the parts of a content as blocks in the common format."""
    return [*map(_block, content.parts or ())]


def _block(part: Part) -> Record:
    if part.function_call is not None:
        return called(part.function_call.name, part.function_call.args)
    if part.function_response is not None:
        return returned(part.function_response.response)
    return said(part.text)
