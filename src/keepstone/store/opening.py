"""Opening a home's store by the scheme of its target.

A path or a ``file:`` URL names a folder, a ``postgresql:`` URL a schema of a database. A further store needs
one line in ``SCHEMES``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from types import MappingProxyType
from urllib.parse import unquote, urlsplit

from keepstone.errors import AccessDeniedError, StoreError, install_command
from keepstone.filesystem.layout import FORMAT, FORMAT_FILE, Layout
from keepstone.store.protocol import Store

Open = Callable[[str, Layout, bool, str | None], tuple[Store, Path]]
"""Takes a target, a layout, whether to sync each write, and the stemming language (None: the recorded
one); returns the store and the home's folder."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?")


def open_store(
    target: str | os.PathLike[str], layout: Layout, *, durable: bool, language: str | None = None
) -> tuple[Store, Path]:
    """Return the store that a target names, and the home's folder.

    Raises:
        TypeError, ValueError: The target is neither a path nor a URL of a known scheme, or is a file.
        AccessDeniedError: Permission to access the target is denied.
        StoreError: The store needs an extra that is not installed, or its database cannot be used.
    """
    path: object = os.fspath(target) if isinstance(target, os.PathLike) else target
    if not isinstance(path, str):
        raise TypeError(f"target must be a path, not {type(path).__name__}")
    return SCHEMES[_scheme_of(path)](path, layout, durable, language)


def _scheme_of(target: str) -> str:
    """Return the scheme of a target; a path has the scheme ``file``."""
    found = _SCHEME.match(target)
    if found is None:
        return "file"
    scheme = found[1].lower()
    if scheme in SCHEMES:
        return scheme
    if found[2] is None:
        return "file"  # A folder with a colon in its name.
    known = ", ".join(f"{name}:" for name in SCHEMES)
    # Messages must not repeat a URL, as it may contain a password.
    raise ValueError(f"target has the unknown scheme {scheme + '://'!r}; use a path or one of {known}")


def _open_folder(
    target: str,
    layout: Layout,
    durable: bool,  # noqa: FBT001
    language: str | None,
) -> tuple[Store, Path]:
    # SQLite is loaded when a home is opened, not on import.
    from keepstone.store.files.file_store import FileStore

    root = _root(target)
    _check_format(root)
    return FileStore(root, layout, durable=durable, language=language), root


def _root(target: str) -> Path:
    path = _path_of(target) if target[:5].lower() == "file:" else target
    if not path or "\0" in path:
        raise ValueError(f"target is not a path: {path!r:.80}")
    try:
        root = Path(path).expanduser().absolute()
        is_folder = _is_folder(root)
    except PermissionError as error:
        raise AccessDeniedError(f"permission denied for {path!r:.80}; check its owner and mode") from error
    except NotADirectoryError:
        # The nearest existing parent is the file in the way.
        is_folder, root = False, next(folder for folder in root.parents if folder.exists())
    except (OSError, RuntimeError, UnicodeEncodeError) as error:
        raise ValueError(f"target is not the path of a folder: {path!r:.80}; {error}") from error
    if not is_folder:
        raise ValueError(f"target {root} is a file; choose a folder, or move the file away")
    return root


def _check_format(root: Path) -> None:
    """Raise StoreError if the files of a home have a format that this version does not read."""
    try:
        # Reading a pipe of this name would wait forever.
        if not S_ISREG((root / FORMAT_FILE).stat().st_mode):
            raise StoreError(f"{root / FORMAT_FILE} is no regular file, so the home is left as it is")
        found = json.loads((root / FORMAT_FILE).read_bytes())["format"]
    except (FileNotFoundError, PermissionError):
        return  # Later calls report a folder that may not be read.
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{root / FORMAT_FILE} cannot be read, so the home is left as it is: {error}"
        ) from error
    if found != FORMAT:
        raise StoreError(
            f"the home {root} is of format {found!r:.20}; this keepstone reads {FORMAT}: update it. "
            "Nothing was changed"
        )


def _path_of(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise ValueError(f"a file: URL names the host {parts.hostname!r:.80}; write file:///path")
    return unquote(parts.path)


def _is_folder(root: Path) -> bool:
    """Return whether a path is a folder or does not exist."""
    try:
        return S_ISDIR(root.stat().st_mode)
    except FileNotFoundError:
        return True


def _open_database(target: str, _: Layout, durable: bool, language: str | None) -> tuple[Store, Path]:  # noqa: FBT001
    try:
        from keepstone.store.postgres.postgres_store import PostgresStore
    except ImportError as error:
        raise StoreError(
            "a home in PostgreSQL needs the extra 'postgres', which is missing: "
            f"{install_command('postgres')}"
        ) from error
    store = PostgresStore(target, durable=durable, language=language)
    return store, Path(store.shown)


def shown_root(root: Path) -> str:
    """Return a home's folder, or the URL of its database; ``Path`` removes one of the URL's slashes.

    Examples:
        >>> shown_root(Path("postgresql://ada@db/memory"))
        'postgresql://ada@db/memory'
    """
    return str(root).replace(":/", "://", 1) if is_database(root) else str(root)


def is_database(root: Path) -> bool:
    """Return whether the root of a home is the URL of a database."""
    return str(root).startswith(("postgresql:", "postgres:"))


SCHEMES: Mapping[str, Open] = MappingProxyType(
    {"file": _open_folder, "postgresql": _open_database, "postgres": _open_database}
)
"""The function that opens a target, by scheme."""
