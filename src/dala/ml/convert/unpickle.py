"""A reader of pickles that calls only the functions that its subclass allows.

Opcodes are decoded by :mod:`pickletools`, which executes nothing. With Python's own unpickler in C,
a single opcode can fill the memory.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from dala.budget import checked

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
        """Return the object for a global name, or raise."""

    @abstractmethod
    def persistent_load(self, pid: Pickled) -> Pickled:
        """Return the object for a reference to something outside the pickle, or raise."""

    @abstractmethod
    def create(self, function: Pickled, args: tuple[Pickled, ...]) -> Pickled:
        """Return the result of a call, or a new object, or raise."""

    @abstractmethod
    def set_state(self, target: Pickled, state: Pickled) -> None:
        """Set the attributes of an object, or raise."""

    def load(self) -> Pickled:
        """Return the value of the pickle."""
        for opcode, argument, _ in checked(pickletools.genops(self._file), "read_torch"):
            if opcode.name == "STOP":
                return self._stack.pop()
            if opcode.name in _VALUES:
                self._stack.append(argument)
            elif opcode.name in self._MAKERS:
                # Made first: taking what is above a mark replaces the stack.
                made = self._MAKERS[opcode.name](self, argument)
                self._stack.append(made)
            elif opcode.name in self._HANDLERS:
                self._HANDLERS[opcode.name](self, argument)
            else:
                raise pickle.UnpicklingError(f"the opcode {opcode.name}")
        raise pickle.UnpicklingError("a pickle without end")

    def _take_marked(self) -> list[Pickled]:
        """Pop the items above the mark, and the mark."""
        items, self._stack = self._stack, self._marked.pop()
        return items

    def _take(self, count: int) -> tuple[Pickled, ...]:
        if count > len(self._stack):
            raise pickle.UnpicklingError("a stack that is too short")
        taken = tuple(self._stack[len(self._stack) - count :])
        del self._stack[len(self._stack) - count :]
        return taken

    def _top(self, kind: type[Pickled], what: str) -> Pickled:
        """Return the last value of the stack, which must be a container of a kind."""
        target = self._stack[-1]
        if not isinstance(target, kind):
            raise pickle.UnpicklingError(f"{what} for type {type(target).__name__}")
        return target

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

    def _extend(self, items: Sequence[Pickled]) -> None:
        self._top(list, "items").extend(items)

    def _update(self, items: Sequence[Pickled]) -> None:
        self._top(dict, "keys").update(_pairs(items))

    def _add_items(self, _: Pickled) -> None:
        items = self._take_marked()
        self._top(set, "members").update(map(checked_key, items))

    def _put(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    def _named(self, names: str) -> Pickled:
        module, _, name = names.partition(" ")
        return self.find_class(module, name)

    def _stack_global(self, _: Pickled) -> Pickled:
        module, name = self._take(2)
        if not isinstance(module, str) or not isinstance(name, str):
            raise pickle.UnpicklingError("a global name that is not text")
        return self.find_class(module, name)

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

    def _call(self, _: Pickled, count: int = 2) -> Pickled:
        function, args, *keywords = self._take(count)
        if not isinstance(args, tuple) or any(keywords):
            raise pickle.UnpicklingError("arguments that are not a tuple, or have keywords")
        return self._create(function, args)

    def _obj(self, _: Pickled) -> Pickled:
        function, *args = self._take_marked()
        return self._create(function, tuple(args))

    def _inst(self, names: str) -> Pickled:
        args = tuple(self._take_marked())
        return self._create(self._named(names), args)

    def _build(self, _: Pickled) -> None:
        (state,) = self._take(1)
        self._spend(state)
        self.set_state(self._stack[-1], state)

    #: Opcodes whose result goes on the stack, and others.
    _MAKERS: ClassVar[dict[str, Callable[[Unpickler, Pickled], Pickled]]] = {
        "DUP": lambda self, _: self._stack[-1],
        "NONE": lambda self, _: None,
        "NEWTRUE": lambda self, _: True,
        "NEWFALSE": lambda self, _: False,
        "EMPTY_LIST": lambda self, _: [],
        "EMPTY_TUPLE": lambda self, _: (),
        "EMPTY_DICT": lambda self, _: {},
        "EMPTY_SET": lambda self, _: set(),
        "LIST": lambda self, _: self._take_marked(),
        "TUPLE": lambda self, _: tuple(self._take_marked()),
        "TUPLE1": lambda self, _: self._take(1),
        "TUPLE2": lambda self, _: self._take(2),
        "TUPLE3": lambda self, _: self._take(3),
        "DICT": lambda self, _: _pairs(self._take_marked()),
        "FROZENSET": lambda self, _: frozenset(map(checked_key, self._take_marked())),
        "GLOBAL": lambda self, names: self._named(names),
        "PERSID": lambda self, pid: self.persistent_load(pid),
        "BINPERSID": lambda self, _: self.persistent_load(self._take(1)[0]),
        **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda self, index: self._memo[index]),
        "STACK_GLOBAL": _stack_global,
        "REDUCE": _call,
        "NEWOBJ": _call,
        "OBJ": _obj,
        "INST": _inst,
        "NEWOBJ_EX": lambda self, _: self._call(_, 3),
    }
    _HANDLERS: ClassVar[dict[str, Callable[[Unpickler, Pickled], object]]] = {
        "PROTO": _proto,
        "FRAME": lambda self, _: None,
        "MARK": _mark,
        "POP": _pop,
        "POP_MARK": lambda self, _: self._take_marked(),
        "APPEND": lambda self, _: self._extend(self._take(1)),
        "APPENDS": lambda self, _: self._extend(self._take_marked()),
        "SETITEM": lambda self, _: self._update(self._take(2)),
        "SETITEMS": lambda self, _: self._update(self._take_marked()),
        "ADDITEMS": _add_items,
        **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _put),
        "MEMOIZE": lambda self, _: self._put(len(self._memo)),
        "BUILD": _build,
    }


#: Opcodes whose argument is the value.
_VALUES: Final = (
    *("INT", "LONG", "LONG1", "LONG4", "BININT", "BININT1", "BININT2", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
)


def _pairs(items: Sequence[Pickled]) -> dict[Pickled, Pickled]:
    if len(items) % 2:
        raise pickle.UnpicklingError("a key without a value")
    return {checked_key(key): value for key, value in zip(items[::2], items[1::2], strict=True)}
