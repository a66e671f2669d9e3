"""One agent's index in SQLite: fast, derived from the logs, never the truth.

``database`` opens and heals the file, ``words`` fills and asks the full-text
tables, ``entries`` keeps the rows, ``catchup`` brings rows and logs together.
``vectors`` keeps vectors in rows too; ``similar`` compares them, with the help of
files that ``building`` makes of them (``generation``) and ``upkeep`` (``graph``).
"""

from keepstone.index.database import DamagedError, UnavailableError
from keepstone.index.entries import Place, Row
from keepstone.index.index import Index

__all__ = ["DamagedError", "Index", "Place", "Row", "UnavailableError"]
