"""The pages in the browser: sessions, chat, recall, notes, files and more, served from this computer alone.

They call the library and nothing else. Who may see them is decided by whoever mounts them.
"""

from keepstone.web.answering import Answerer
from keepstone.web.mounting import mount
from keepstone.web.site import Hook, Open, Permissions

__all__ = ["Answerer", "Hook", "Open", "Permissions", "mount"]
