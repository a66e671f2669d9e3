"""The terminal app: a chat screen, and pages to manage memory.

``app`` is the chat screen, and ``selector`` asks where to save a note. ``memory``, ``sessions``, ``agents``,
``purge`` and ``page`` are pages. ``commands`` has the slash commands and ``wording`` the texts. Only this
package imports Textual.
"""
