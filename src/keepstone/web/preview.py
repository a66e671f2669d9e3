"""Markdown as HTML for the preview of a file: no raw HTML, no images, and only web and mail links."""

from __future__ import annotations

from markdown_it import MarkdownIt

from keepstone.web.phrases import shown

MOST = 100_000
"""Maximum characters that are rendered. A text made to be slow takes about 5 seconds."""
_SAFE = ("http://", "https://", "mailto:")


def rendered(text: str) -> str:
    r"""Return the Markdown of a text's first ``MOST`` characters as HTML that runs nothing and loads nothing.

    Examples:
        >>> rendered("# Plan\n\nCall **Ana** <script>x</script>")
        '<h1>Plan</h1>\n<p>Call <strong>Ana</strong> &lt;script&gt;x&lt;/script&gt;</p>\n'
    """
    # An image would reveal to its server who reads the file, and when. Without ``html``, tags in the text are
    # shown as text.
    parser = MarkdownIt("js-default", {"html": False}).disable("image")
    parser.validateLink = lambda url: url.lower().startswith(_SAFE)  # type: ignore[method-assign]
    return str(parser.render(shown(text[:MOST])))
