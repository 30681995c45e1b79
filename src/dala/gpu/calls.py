"""The drawing calls in machine code, where the interpreter is one that they know.

A call for each primitive costs more in Python than the drawing does: checking a few numbers,
packing them, and an append. :func:`install` puts functions in the place of those in ``draw.py``
(and of the methods of ``Surface``) that do just that without Python running, in about a fifth of
the time; whatever is not quite ordinary they hand on to the ones they replaced. Where anything is
not as expected (another interpreter than CPython on 64 bits, one without a GIL, no compiler) all
stays as it was: the two differ in speed alone.

Where the machine code is not on disk yet, it would be a sixth of the time to the first pixel. So it
is made later, when a program has drawn so much that it pays, by a thread that does only this;
whoever holds a function in Python by then holds one that calls the other from then on.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import sysconfig
import threading
import types
from collections.abc import Callable
from typing import Any, Final

from dala.errors import DalaError
from dala.gpu import command
from dala.gpu.calls_text import FORM, WORDS, calls_text
from dala.gpu.color import seen
from dala.gpu.render.lifecycle import exiting, helpers
from dala.gpu.render.worker import QUEUE

#: The calls, and the commands that they make.
CALLS: Final = {
    "clear": "clear",
    "fill_rect": "fill_rect",
    "draw_line": "draw_line",
    "draw_circle": "draw_circle",
    "fill_circle": "fill_circle",
    "draw_triangle": "draw_triangle",
    "fill_triangle": "fill_triangle",
    "draw_round_rect": "draw_round_rect",
    "fill_round_rect": "fill_round_rect",
    "draw_image": "image_blit",
    "blit": "blit",
}
#: Commands from which on it pays to compile the calls.
MANY: Final = 2000
_SIZES: Final = {"u32": 4, "i32": 4, "u64": 8}
#: Ids that do not fit a signed number are left to Python.
_MOST: Final = (1 << 63) - 1
#: Arguments as they are, counted, with those that have names.
_FASTCALL_KEYWORDS: Final = 0x82
_ONE_ARGUMENT: Final = 0x08
_PAYLOAD: Final = bytes.__basicsize__ - 1


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def known_interpreter() -> bool:
    """Whether objects look here as the machine code takes it."""
    if sys.implementation.name != "cpython" or sys.byteorder != "little":
        return False
    if struct.calcsize("P") != 8 or hasattr(sys, "gettotalrefcount"):
        return False
    if sysconfig.get_config_var("Py_GIL_DISABLED") or object.__basicsize__ != 16:
        return False
    sample: list[Any] = [b"dala", (1,)]
    words = (ctypes.c_int64 * 4).from_address(id(sample))
    items = (ctypes.c_int64 * 2).from_address(words[3])
    text, pair = ((ctypes.c_int64 * 3).from_address(id(thing)) for thing in sample)
    return (
        (words[1], words[2], *items) == (id(list), 2, id(sample[0]), id(sample[1]))
        and (text[1], text[2], pair[1], pair[2]) == (id(bytes), 4, id(tuple), 1)
        and ctypes.string_at(id(sample[0]) + _PAYLOAD, 5) == b"dala\0"
    )


def install(module: Any, surface: type, *, made: bool = False) -> bool:
    """Puts the calls into a module's names and into the class; False where they stay in Python.

    With ``made`` only if their code need not be compiled: it is when much was drawn.
    """
    names = vars(module)
    try:
        if not known_interpreter():
            return False
        from dala.gpu.compute.engines.cpu.jit import jit

        exports = [f"{kind}_{name}" for name in CALLS for kind in ("call", "method")]
        exports += ["where", "join"]
        text = calls_text(tuple(CALLS), _PAYLOAD, command.OPCODES["batch"])
        code = jit().recall(text, tuple(exports))
        if code is None:
            if made:
                command.join = Late(module, surface).join
                return False
            code = jit().compile(text, tuple(exports), vectors=True)
        if not isinstance(names["clear"], types.FunctionType):
            return True  # by somebody else meanwhile
        shared = _shared(surface)
    except (DalaError, RuntimeError, AttributeError, OSError, MemoryError):
        return False
    _keep(code._owner)
    at = code.addresses
    form = ctypes.CFUNCTYPE(ctypes.c_void_p)(at["where"])()
    ready: dict[str, tuple[Any, Any]] = {}
    for n, (name, told) in enumerate(CALLS.items()):
        careful, method = _twin(names[name]), surface.__dict__[name]
        layout = command.LAYOUTS[command.OPCODES[told]]
        words = {**shared, "careful": _keep(careful), "opcode": layout.opcode}
        _fill(form + 8 * WORDS * n, words, layout.fields)
        ready[name] = (
            _function(module, name, at[f"call_{name}"], careful),
            _descriptor(surface, name, at[f"method_{name}"], method),
        )
    for name, (function, descriptor) in ready.items():
        before, names[name] = names[name], function
        setattr(surface, name, descriptor)
        if not made:
            _lead(before)
    command.join = _new(module, "join", at["join"], _ONE_ARGUMENT, "join(commands)")
    return True


class Late:
    """Has the calls compiled when many commands were drawn, once, by a thread of its own."""

    def __init__(self, module: Any, surface: type) -> None:
        self.module, self.surface = module, surface
        self.process = os.getpid()
        self.count = 0

    def join(self, commands: list[Any]) -> None:
        """Takes the place of what joins commands in machine code: counts them, and leaves them."""
        self.count += len(commands)
        if self.count >= MANY:
            command.join = None
            self.start()

    def start(self) -> None:
        """From any thread, in the middle of anything."""
        if os.getpid() != self.process or exiting():
            return  # a child does without it: its parent may have been in the middle of it
        thread = threading.Thread(target=self.install, name="dala-calls", daemon=True)
        helpers.append(thread)
        try:
            thread.start()
        except RuntimeError:  # there are no more to be had
            helpers.remove(thread)

    def install(self) -> None:
        """Does it; what has the functions by name gets the new ones."""
        room = sys.modules.get("dala.gpu")
        before = {name: getattr(self.module, name) for name in CALLS}
        if install(self.module, self.surface) and room is not None:
            for name, function in before.items():
                if vars(room).get(name) is function:
                    setattr(room, name, getattr(self.module, name))


def _twin(function: Any) -> Any:
    """The same function again, for those who call it when the first one leads elsewhere."""
    made = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__
    )
    made.__doc__ = function.__doc__
    return made


def _lead(function: Any) -> None:
    """Makes a function call what has its name in its module now."""
    code = function.__code__
    given = ", ".join(code.co_varnames[: code.co_argcount])
    found: dict[str, Any] = {}
    exec(f"def {code.co_name}({given}):\n    return {code.co_name}({given})", found)
    function.__code__ = found[code.co_name].__code__


def _keep(thing: Any) -> int:
    """Its address, for as long as the process lives: finalizers may draw when modules are gone."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return id(thing)


def _shared(surface: type) -> dict[str, int]:
    """The words that all forms have in common."""
    things = {
        "surface": surface, "int": int, "tuple": tuple, "str": str, "bytes": bytes, "list": list,
        "seen": seen, "door": sys.intern("_door"), "nudge": sys.intern("_nudge"), "none": None,
        "exception": Exception,
    }  # fmt: skip
    words = {name: _keep(thing) for name, thing in things.items()}
    for name in FORM:
        if name.startswith("Py"):
            words[name] = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    return words | {"queue": QUEUE}


def _fill(address: int, words: dict[str, int], fields: list[Any]) -> None:
    """Writes a form."""
    numbers = [kind for _, kind in fields if kind != "rgba"]
    words = words | {"colored": int(len(numbers) < len(fields)), "fields": len(numbers)}
    row: list[Any] = [words.get(name, 0) for name in FORM]
    for kind in numbers:
        low, high = command._RANGES[kind]
        row += [low, min(high, _MOST), _SIZES[kind]]
    row += [0] * (WORDS - len(row))
    (ctypes.c_int64 * WORDS).from_address(address)[:] = row


_kept: Final[list[Any]] = []


def _definition(name: str, address: int, flags: int, doc: str) -> int:
    method = _Method(name.encode(), address, flags, doc.encode())
    _kept.append(method)
    _keep(method)
    return ctypes.addressof(method)


def _new(module: Any, name: str, address: int, flags: int, doc: str) -> Any:
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, *2 * (ctypes.py_object,))
    return make(_definition(name, address, flags, doc), module, module.__name__)


def _document(function: Callable[..., Any], first: str) -> str:
    """The signature as the interpreter wants it written, and the docstring."""
    code = function.__code__
    given = code.co_varnames[1 : code.co_argcount]
    return f"{function.__name__}({', '.join((first, *given))})\n--\n\n{function.__doc__}"


def _function(module: Any, name: str, address: int, careful: Any) -> Any:
    return _new(module, name, address, _FASTCALL_KEYWORDS, _document(careful, "s"))


def _descriptor(surface: type, name: str, address: int, careful: Any) -> Any:
    make = ctypes.pythonapi.PyDescr_NewMethod
    make.restype, make.argtypes = ctypes.py_object, (ctypes.py_object, ctypes.c_void_p)
    doc = _document(careful, "$self")
    return make(surface, _definition(name, address, _FASTCALL_KEYWORDS, doc))
