"""The terminal app: a conversation on a screen, and pages to look after memory.

``app`` is the conversation, ``selector`` asks where a note goes; ``memory``, ``sessions``,
``forgetting`` and ``page`` are pages over it; ``commands`` says what may be typed and ``wording``
what is answered. Only this package loads Textual.
"""
