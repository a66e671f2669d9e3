"""Web pages for sessions, chat, recall, notes, files and more. All assets come from this server.

Pages call only the library. The application that mounts them authorizes requests through a hook.
"""

from keepstone.web.answering import Answerer
from keepstone.web.mounting import mount
from keepstone.web.site import Hook, Open, Permissions

__all__ = ["Answerer", "Hook", "Open", "Permissions", "mount"]
