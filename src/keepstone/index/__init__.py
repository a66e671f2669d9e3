"""One agent's index in SQLite: fast, derived from the logs, never the source of truth.

``database`` opens the file and rebuilds it when it is damaged, ``entries`` keeps the rows,
``reading`` reads logs into them. ``words`` has the full-text table and BM25; ``vectors``
has the vectors, their exact scan and their graphs.
"""

from keepstone.index.database import DamagedError, UnavailableError
from keepstone.index.entries import Place, Row
from keepstone.index.index import Index

__all__ = ["DamagedError", "Index", "Place", "Row", "UnavailableError"]
