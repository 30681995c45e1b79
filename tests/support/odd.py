"""Values that nobody should pass, and a sweep of a function's parameters with them.

A call refuses each of them with an error of ours, or takes it. What comes from deep inside, such as
an AttributeError about a generator, does not tell what the user did wrong.
"""

from __future__ import annotations

import inspect
import traceback
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import numpy as np

import dala

PIXELS: Final = np.random.default_rng(0).integers(0, 255, (16, 16, 3)).astype(np.uint8)
SHARES: Final = (PIXELS / 255).astype(np.float32)

#: Arrays of other dtypes, layouts and shapes.
ARRAYS: Final[dict[str, Any]] = {
    "big endian floats": SHARES.astype(">f4"),
    "big endian integers": PIXELS.astype(">u2"),
    "half": SHARES.astype(np.float16),
    "long double": SHARES.astype(np.longdouble),
    "complex array": PIXELS.astype(np.complex64),
    "objects": PIXELS.astype(object),
    "dates": PIXELS.astype("M8[s]"),
    "times": PIXELS.astype("m8[s]"),
    "text array": PIXELS.astype(str),
    "byte strings": PIXELS.astype("S3"),
    "records": np.zeros((16, 16), [("r", "u1"), ("g", "u1"), ("b", "u1")]),
    "masked": np.ma.masked_array(PIXELS, PIXELS > 100),
    "matrix": PIXELS[..., 0].view(np.matrix),
    "reversed": PIXELS[::-1, ::-1],
    "by columns": np.asfortranarray(PIXELS),
    "overlapping": np.lib.stride_tricks.as_strided(PIXELS, (8, 8, 3), (3, 3, 1)),
    "unaligned": np.frombuffer(b"x" + SHARES.tobytes(), np.uint8)[1:].view(np.float32),
    "no rows": PIXELS[:0],
    "no columns": PIXELS[:, :0],
    "no channels": PIXELS[..., :0],
    "array of a number": np.array(5),
    "one axis": PIXELS[0, 0],
    "four axes": PIXELS[None],
    "two channels": np.zeros((4, 4, 2), np.uint8),
    "one channel": PIXELS[..., :1],
    "unsigned": PIXELS.astype(np.uint32),
    "nan array": np.full((4, 4, 3), np.nan, np.float32),
    "infinite array": np.full((4, 4, 3), np.inf, np.float32),
    "too large": np.full((4, 4, 3), 1e300),
    "one pixel": PIXELS[:1, :1],
}
#: Things that are no arrays. Those that can be used up are made anew for each call.
THINGS: Final[dict[str, Callable[[], Any]]] = {
    "none": lambda: None,
    "yes": lambda: True,
    "zero": lambda: 0,
    "number": lambda: 5,
    "negative": lambda: -1,
    "large": lambda: 10**30,
    "half way": lambda: 0.5,
    "nan": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "minus infinity": lambda: -float("inf"),
    "complex": lambda: 1j,
    "numpy number": lambda: np.float32(3),
    "word": lambda: "zzz",
    "nothing": lambda: "",
    "surrogate": lambda: "\ud800",
    "null": lambda: "a\0b",
    "bytes": lambda: b"abc",
    "bytearray": lambda: bytearray(b"abc"),
    "view": lambda: memoryview(PIXELS),
    "empty list": list,
    "list": lambda: [1, "a", None],
    "rows": lambda: PIXELS[:2, :2].tolist(),
    "ragged": lambda: [[1], [1, 2]],
    "tuple": lambda: (1, 2, 3, 4, 5),
    "empty dict": dict,
    "dict": lambda: {"a": 1},
    "set": lambda: {1},
    "iterator": lambda: iter([1]),
    "vector": lambda: np.zeros(3),
    "object": object,
    "type": lambda: int,
    "function": lambda: len,
}
VALUES: Final[dict[str, Callable[[], Any]]] = {
    **{name: (lambda array=array: array) for name, array in ARRAYS.items()},
    **THINGS,
}
#: Errors that a call may raise: ours, and those of paths, which users know.
FINE: Final = (
    dala.DalaError,
    FileExistsError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)


def problem(call: Callable[[], object]) -> str:
    """Return what is wrong with the error that a call raises, or "".

    What the call returns is closed, if it can be.
    """
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            made = call()
            if hasattr(made, "close"):
                made.close()
    except FINE:
        return ""
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({at.filename}:{at.lineno})"
    return ""


def sweep(
    call: Callable[..., object],
    given: Mapping[str, Any] | None = None,
    *,
    values: Mapping[str, Callable[[], Any]] = THINGS,
    skip: Collection[str] = (),
) -> None:
    """Pass each odd value as each parameter of a function; fail with the list of all problems.

    Args:
        call: the function or bound method.
        given: arguments that are right, at least for the parameters that it needs. A function of no
            arguments is called for each call, for things that can be used up.
        values: the odd values.
        skip: parameters to leave out.
    """
    right = dict(given or {})
    found: list[str] = []
    for name, parameter in inspect.signature(call).parameters.items():
        if name in skip or parameter.kind not in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        ):
            continue
        for title, value in values.items():
            arguments = {k: v() if inspect.isfunction(v) else v for k, v in right.items()}
            arguments[name] = value()
            wrong = problem(lambda arguments=arguments: call(**arguments))
            if wrong:
                found.append(f"{name} = {title}: {wrong}")
    shown = getattr(call, "__qualname__", repr(call))
    assert not found, f"{shown}:\n" + "\n".join(found)
