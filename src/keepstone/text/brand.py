"""The mark and colour of the page, the sign-in, the terminal and the documentation."""

from __future__ import annotations

ACCENT, ACCENT_ON_DARK = "#1f6660", "#7fc9c0"
"""The brand's colour on light and on dark grounds."""
SIGN = "\u2261"
"""The mark as a character, for terminals."""
SHAPE = (
    f'<rect width="32" height="32" rx="8" fill="{ACCENT}"/>'
    '<path d="M9 10h14M9 16h14M9 22h8" stroke="#fff" stroke-width="2.6" stroke-linecap="round"/>'
)
"""The content of the mark's SVG, 32 units wide."""
MARK = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">{SHAPE}</svg>'
"""The mark as an SVG file."""
