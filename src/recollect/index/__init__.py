"""One agent's index in SQLite: fast, derived from the logs, never the truth.

``database`` opens and heals the file, ``words`` fills and asks the full-text
tables, ``entries`` keeps the rows, ``catchup`` brings rows and logs together.
"""

from recollect.index.catchup import DamagedError, Index, UnavailableError
from recollect.index.entries import Row

__all__ = ["DamagedError", "Index", "Row", "UnavailableError"]
