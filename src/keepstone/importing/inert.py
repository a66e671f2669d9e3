"""Reading pickle and msgpack as plain data. Nothing is executed, looked up or imported.

Both formats can name classes and functions to call. Here such a name is only a string: an instance of a class
becomes an ``Object`` with the arguments and state of the instance.
"""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_DEEPEST = 200
_MOST = 20_000_000
"""Maximum number of values in one blob."""


@dataclass(slots=True)
class Object:
    """The data of an instance of a foreign class; the class is not imported."""

    name: Any = None
    """The module and name of the class, or the number of a msgpack extension."""
    args: Any = None
    state: Any = None


_CONTAINERS = (dict, list, tuple, Object)


class _Mark:
    pass


_MARK = _Mark()


def read_pickle(raw: bytes) -> Any:
    """Return the data in a pickle.

    Raises:
        ValueError: The pickle is damaged, has an opcode that data does not need, nests too deep, or refers to
            a container in two places, with which few bytes could expand to any number of values.
    """
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    try:
        for opcode, argument, _ in pickletools.genops(raw):
            if opcode.name == "STOP":
                found = stack.pop()
                _check_tree(found)
                return found
            _step(opcode.name, argument, stack, memo)
    except (IndexError, KeyError, TypeError, AttributeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"the pickle is damaged: {error!r:.80}") from error
    raise ValueError("the pickle is truncated")


def _check_tree(found: Any) -> None:
    """Raise ValueError if a container is reached twice, or if there are too many levels or values."""
    # Walk level by level, as a deep tree would exhaust recursion. ``found`` keeps every value alive, so that
    # an ``id()`` stands for one container.
    reached: set[int] = set()
    count = 0
    level = [found]
    for _ in range(_DEEPEST):
        if not level:
            return
        count += len(level)
        # Empty containers are left out: they expand to nothing, and CPython shares one empty tuple
        # everywhere.
        containers = [value for value in level if _parts(value)]
        identities = set(map(id, containers))
        if count > _MOST or len(identities) < len(containers) or not identities.isdisjoint(reached):
            raise ValueError("the pickle refers to one container in two places, or has too many values")
        reached |= identities
        level = [part for value in containers for part in _parts(value)]
    raise ValueError(f"the pickle nests deeper than {_DEEPEST} levels")


def _parts(value: Any) -> Sequence[Any]:
    """Return the values in a container; empty for an empty container and for a scalar."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, Object):
        # Names and arguments are mostly strings, which may be shared without harm.
        return [part for part in (value.name, value.args, value.state) if isinstance(part, _CONTAINERS)]
    return ()


_LITERALS = frozenset(
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE "
    "BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8".split()
)
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
    # JSON has no sets.
    "EMPTY_SET": list,
    "MARK": lambda: _MARK,
}
# Opcodes without data: the protocol version, and the lengths of frames for stream readers.
_NOTHING = frozenset({"PROTO", "FRAME"})


def _step(name: str, argument: Any, stack: list[Any], memo: dict[int, Any]) -> None:
    if name in _LITERALS:
        stack.append(argument)
    elif name in _CONSTANTS:
        stack.append(_CONSTANTS[name]())
    elif name in _NOTHING:
        pass
    elif name == "MEMOIZE":
        memo[len(memo)] = stack[-1]
    elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
        memo[argument] = stack[-1]
    elif name in ("GET", "BINGET", "LONG_BINGET"):
        stack.append(memo[argument])
    elif name in _ACTIONS:
        _ACTIONS[name](stack, argument)
    else:
        raise ValueError(f"the pickle has the opcode {name}, which data does not need")


def _since_mark(stack: list[Any]) -> list[Any]:
    found: list[Any] = []
    while (value := stack.pop()) is not _MARK:
        found.append(value)
    return found[::-1]


def _set_items(stack: list[Any], _: Any) -> None:
    items = _since_mark(stack)
    for key, value in zip(items[::2], items[1::2], strict=True):
        _set(stack[-1], key, value)


def _set(target: Any, key: Any, value: Any) -> None:
    # An instance of a subclass of ``dict`` is an ``Object`` here and keeps none of its items. Keys of other
    # types may not be hashable.
    if isinstance(target, dict) and isinstance(key, str | int | float | None):
        target[key] = value


def _set_item(stack: list[Any], _: Any) -> None:
    value, key = stack.pop(), stack.pop()
    _set(stack[-1], key, value)


def _extend(stack: list[Any], _: Any) -> None:
    items = _since_mark(stack)
    if isinstance(stack[-1], list):
        stack[-1].extend(items)


def _append(stack: list[Any], _: Any) -> None:
    value = stack.pop()
    if isinstance(stack[-1], list):
        stack[-1].append(value)


def _tuple(count: int) -> Callable[[list[Any], Any], None]:
    def make(stack: list[Any], _: Any) -> None:
        items = tuple(stack[-count:])
        del stack[-count:]
        stack.append(items)

    return make


def _marked(make: Callable[[list[Any]], Any]) -> Callable[[list[Any], Any], None]:
    def action(stack: list[Any], _: Any) -> None:
        stack.append(make(_since_mark(stack)))

    return action


def _object(stack: list[Any], _: Any) -> None:
    # In pickle, REDUCE calls a function and NEWOBJ a class. Both have the name below the arguments on the
    # stack. Nothing is called here.
    args, name = stack.pop(), stack.pop()
    stack.append(Object(name, args))


def _build(stack: list[Any], _: Any) -> None:
    state = stack.pop()
    if isinstance(stack[-1], Object):
        stack[-1].state = state


def _global(stack: list[Any], argument: Any) -> None:
    stack.append(Object(str(argument)))


def _stack_global(stack: list[Any], _: Any) -> None:
    # The name was pushed after the module.
    name, module = stack.pop(), stack.pop()
    stack.append(Object(f"{module} {name}"))


def _pop(stack: list[Any], _: Any) -> None:
    stack.pop()


_ACTIONS: dict[str, Callable[[list[Any], Any], None]] = {
    "SETITEMS": _set_items,
    "SETITEM": _set_item,
    "APPENDS": _extend,
    "APPEND": _append,
    "ADDITEMS": _extend,
    "TUPLE1": _tuple(1),
    "TUPLE2": _tuple(2),
    "TUPLE3": _tuple(3),
    "TUPLE": _marked(tuple),
    "LIST": _marked(list),
    # As for EMPTY_SET: JSON has no sets.
    "FROZENSET": _marked(list),
    "DICT": _marked(lambda items: dict(zip(items[::2], items[1::2], strict=True))),
    "REDUCE": _object,
    "NEWOBJ": _object,
    "BUILD": _build,
    "GLOBAL": _global,
    "STACK_GLOBAL": _stack_global,
    "POP": _pop,
}


def read_msgpack(raw: bytes) -> Any:
    """Return the data in a msgpack blob; an extension becomes an ``Object`` with its bytes as ``args``.

    Raises:
        ValueError: The blob is damaged, nests too deep, or has too many values.
    """
    reader = _Msgpack(raw)
    try:
        return reader.value(0)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"the msgpack is damaged: {error!r:.80}") from error


_MAPS, _LISTS, _TEXTS, _NIL, _NEGATIVE = 0x80, 0x90, 0xA0, 0xC0, 0xE0
"""The lowest first byte of each kind of small value; bytes below ``_MAPS`` are small numbers."""
_FIXED = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_LENGTHS: dict[int, tuple[type, str]] = {
    0xD9: (str, ">B"), 0xDA: (str, ">H"), 0xDB: (str, ">I"),
    0xC4: (bytes, ">B"), 0xC5: (bytes, ">H"), 0xC6: (bytes, ">I"),
    0xDC: (list, ">H"), 0xDD: (list, ">I"), 0xDE: (dict, ">H"), 0xDF: (dict, ">I"),
    0xC7: (Object, ">B"), 0xC8: (Object, ">H"), 0xC9: (Object, ">I"),
}  # fmt: skip
_FIXED_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


class _Msgpack:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = self._count = 0

    def value(self, depth: int) -> Any:
        self._count += 1
        # The limit on depth is far below Python's recursion limit, which this method would otherwise exceed.
        if depth > _DEEPEST or self._count > _MOST:
            raise ValueError("the msgpack nests too deep, or has too many values")
        first = self._number(">B")
        if first < _MAPS or first >= _NEGATIVE:
            return first if first < _MAPS else first - 256
        if first < _NIL:
            small = first & (31 if first >= _TEXTS else 15)
            return self._long(dict if first < _LISTS else list if first < _TEXTS else str, small, depth)
        if first in _FIXED:
            return _FIXED[first]
        if first in _NUMBERS:
            return self._number(_NUMBERS[first])
        if first in _FIXED_EXTENSIONS:
            return self._long(Object, _FIXED_EXTENSIONS[first], depth)
        if first not in _LENGTHS:
            raise ValueError(f"the msgpack has the unknown type {first:#x}")
        kind, form = _LENGTHS[first]
        return self._long(kind, self._number(form), depth)

    def _long(self, kind: type, length: int, depth: int) -> Any:
        # The length in the blob is not trusted: no memory is allocated for values before they are read.
        if kind is list:
            return [self.value(depth + 1) for _ in range(length)]
        if kind is dict:
            pairs = [(self.value(depth + 1), self.value(depth + 1)) for _ in range(length)]
            # Keys in msgpack may be lists or mappings, which Python cannot hash and JSON does not allow.
            return {key: value for key, value in pairs if isinstance(key, str | int)}
        if kind is Object:
            code = self._number(">b")
            return Object(code, self._bytes(length))
        raw = self._bytes(length)
        return raw.decode() if kind is str else raw

    def _number(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self._raw, self._at)
        self._at += struct.calcsize(form)
        return value

    def _bytes(self, length: int) -> bytes:
        found = self._raw[self._at : self._at + length]
        # A slice past the end of the blob raises no error; it is only shorter.
        if len(found) < length:
            raise IndexError("it is truncated")
        self._at += length
        return found
