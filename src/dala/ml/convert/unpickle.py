"""A reader of pickles that calls nothing but what its subclass allows.

Opcodes are decoded by :mod:`pickletools`, which executes nothing. With Python's own unpickler in C,
a single opcode can fill the memory.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeAlias

#: A value in a pickle: a number, text, container, array or object of the subclass.
Pickled: TypeAlias = Any

#: The newest protocol that the reader knows.
_PROTOCOL: Final = 5
#: Larger numbers can have the same hash, and a dict of them takes quadratic time.
_LARGEST_KEY: Final = (1 << 60) - 1


def checked_key(value: Pickled) -> Pickled:
    """Return a key of a dict or member of a set.

    Tuples are refused: hashing a deeply nested one overflows the stack.
    """
    if not isinstance(value, str | bytes | int | float | None):
        raise pickle.UnpicklingError(f"a key of type {type(value).__name__}")
    if isinstance(value, int) and abs(value) > _LARGEST_KEY:
        raise pickle.UnpicklingError("a key of more than 60 bits")
    return value


class Unpickler(ABC):
    """Reads one pickle from a file; the file is then positioned behind it."""

    def __init__(self, file: io.BytesIO) -> None:
        self._file = file
        self._stack: list[Pickled] = []
        self._marked: list[list[Pickled]] = []
        self._memo: dict[int, Pickled] = {}
        #: Items that calls may still copy. An opcode of a few bytes can name a container of any
        #: size, again and again; a call for each tensor copies no more than the file has.
        self._copies = 1000 + file.getbuffer().nbytes

    @abstractmethod
    def find_class(self, module: str, name: str) -> Pickled:
        """Return what stands for a global name, or raise."""

    @abstractmethod
    def persistent_load(self, pid: Pickled) -> Pickled:
        """Return what stands for a reference to something outside the pickle, or raise."""

    @abstractmethod
    def create(self, function: Pickled, args: tuple[Pickled, ...]) -> Pickled:
        """Return the result of a call, or a new object, or raise."""

    @abstractmethod
    def set_state(self, target: Pickled, state: Pickled) -> None:
        """Set the attributes of an object, or raise."""

    def load(self) -> Pickled:
        """Return the value of the pickle."""
        for opcode, argument, _ in pickletools.genops(self._file):
            if opcode.name == "STOP":
                return self._stack.pop()
            if opcode.name in _VALUES:
                self._push(argument)
                continue
            handler = self._HANDLERS.get(opcode.name)
            if handler is None:
                raise pickle.UnpicklingError(f"the opcode {opcode.name}")
            handler(self, argument)
        raise pickle.UnpicklingError("a pickle without end")

    def _push(self, value: Pickled) -> None:
        self._stack.append(value)

    def _take_marked(self) -> list[Pickled]:
        """Return what is above the mark, and remove it with the mark."""
        items, self._stack = self._stack, self._marked.pop()
        return items

    def _take(self, count: int) -> tuple[Pickled, ...]:
        if count > len(self._stack):
            raise pickle.UnpicklingError("a stack that is too short")
        taken = tuple(self._stack[len(self._stack) - count :])
        del self._stack[len(self._stack) - count :]
        return taken

    # opcodes ----------------------------------------------------------------------------------
    def _proto(self, version: int) -> None:
        if version > _PROTOCOL:
            raise pickle.UnpicklingError(f"protocol {version}")

    def _mark(self, _: Pickled) -> None:
        self._marked.append(self._stack)
        self._stack = []

    def _pop(self, _: Pickled) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._take_marked()

    def _pop_mark(self, _: Pickled) -> None:
        self._take_marked()

    def _append(self, _: Pickled) -> None:
        items = self._take(1)
        self._extend(self._stack[-1], items)

    def _appends(self, _: Pickled) -> None:
        items = self._take_marked()
        self._extend(self._stack[-1], items)

    @staticmethod
    def _extend(target: Pickled, items: list[Pickled] | tuple[Pickled, ...]) -> None:
        if not isinstance(target, list):
            raise pickle.UnpicklingError(f"items for type {type(target).__name__}")
        target.extend(items)

    def _set_item(self, _: Pickled) -> None:
        self._update(list(self._take(2)))

    def _set_items(self, _: Pickled) -> None:
        self._update(self._take_marked())

    def _update(self, items: list[Pickled]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict):
            raise pickle.UnpicklingError(f"keys for type {type(target).__name__}")
        target.update(_pairs(items))

    def _add_items(self, _: Pickled) -> None:
        items = self._take_marked()
        target = self._stack[-1]
        if not isinstance(target, set):
            raise pickle.UnpicklingError(f"members for type {type(target).__name__}")
        target.update(map(checked_key, items))

    def _get(self, index: int) -> None:
        self._push(self._memo[index])

    def _put(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    def _memoize(self, _: Pickled) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def _global(self, names: str) -> None:
        module, _, name = names.partition(" ")
        self._push(self.find_class(module, name))

    def _stack_global(self, _: Pickled) -> None:
        module, name = self._take(2)
        if not isinstance(module, str) or not isinstance(name, str):
            raise pickle.UnpicklingError("a global name that is not text")
        self._push(self.find_class(module, name))

    def _spend(self, *values: Pickled) -> None:
        """Count the items of containers and texts that a call copies."""
        self._copies -= sum(
            len(v) for v in values if isinstance(v, str | bytes | list | tuple | dict | set)
        )
        if self._copies < 0:
            raise pickle.UnpicklingError("calls that copy more than the file has")

    def _create(self, function: Pickled, args: tuple[Pickled, ...]) -> Pickled:
        self._spend(args, *args)
        return self.create(function, args)

    def _call(self, _: Pickled) -> None:
        function, args = self._take(2)
        if not isinstance(args, tuple):
            raise pickle.UnpicklingError("arguments that are not a tuple")
        self._push(self._create(function, args))

    def _new_with_keywords(self, _: Pickled) -> None:
        function, args, keywords = self._take(3)
        if not isinstance(args, tuple) or keywords:
            raise pickle.UnpicklingError("keyword arguments")
        self._push(self._create(function, args))

    def _obj(self, _: Pickled) -> None:
        function, *args = self._take_marked()
        self._push(self._create(function, tuple(args)))

    def _inst(self, names: str) -> None:
        module, _, name = names.partition(" ")
        args = tuple(self._take_marked())
        self._push(self._create(self.find_class(module, name), args))

    def _build(self, _: Pickled) -> None:
        (state,) = self._take(1)
        self._spend(state)
        self.set_state(self._stack[-1], state)

    def _persistent(self, pid: Pickled) -> None:
        self._push(self.persistent_load(pid))

    _HANDLERS: ClassVar[dict[str, Callable[[Unpickler, Pickled], None]]] = {
        "PROTO": _proto,
        "FRAME": lambda self, _: None,
        "MARK": _mark,
        "POP": _pop,
        "POP_MARK": _pop_mark,
        "DUP": lambda self, _: self._push(self._stack[-1]),
        "NONE": lambda self, _: self._push(None),
        "NEWTRUE": lambda self, _: self._push(True),
        "NEWFALSE": lambda self, _: self._push(False),
        "EMPTY_LIST": lambda self, _: self._push([]),
        "EMPTY_TUPLE": lambda self, _: self._push(()),
        "EMPTY_DICT": lambda self, _: self._push({}),
        "EMPTY_SET": lambda self, _: self._push(set()),
        "LIST": lambda self, _: self._push(self._take_marked()),
        "TUPLE": lambda self, _: self._push(tuple(self._take_marked())),
        "TUPLE1": lambda self, _: self._push(self._take(1)),
        "TUPLE2": lambda self, _: self._push(self._take(2)),
        "TUPLE3": lambda self, _: self._push(self._take(3)),
        "DICT": lambda self, _: self._push(_pairs(self._take_marked())),
        "FROZENSET": lambda self, _: self._push(frozenset(map(checked_key, self._take_marked()))),
        "APPEND": _append,
        "APPENDS": _appends,
        "SETITEM": _set_item,
        "SETITEMS": _set_items,
        "ADDITEMS": _add_items,
        "GET": _get,
        "BINGET": _get,
        "LONG_BINGET": _get,
        "PUT": _put,
        "BINPUT": _put,
        "LONG_BINPUT": _put,
        "MEMOIZE": _memoize,
        "GLOBAL": _global,
        "STACK_GLOBAL": _stack_global,
        "REDUCE": _call,
        "NEWOBJ": _call,
        "NEWOBJ_EX": _new_with_keywords,
        "OBJ": _obj,
        "INST": _inst,
        "BUILD": _build,
        "PERSID": _persistent,
        "BINPERSID": lambda self, _: self._persistent(self._take(1)[0]),
    }


#: Opcodes whose argument is the value.
_VALUES: Final = (
    *("INT", "LONG", "LONG1", "LONG4", "BININT", "BININT1", "BININT2", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
)


def _pairs(items: list[Pickled]) -> dict[Pickled, Pickled]:
    if len(items) % 2:
        raise pickle.UnpicklingError("a key without a value")
    return {checked_key(key): value for key, value in zip(items[::2], items[1::2], strict=True)}
