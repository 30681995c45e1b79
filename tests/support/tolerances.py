"""How near is near enough: one table for every engine, type and class of operation.

Errors of floats are counted in units in the last place (ulps) of the expected value, with a floor
in absolute terms where the result of many operations may cancel. Division on webgpu is what WGSL
promises; the functions are the engines' own and better than that. Stored u8 is counted in steps of
1/255.

Classes: ``exact`` (+ - * comparisons, selection, all of integers), ``div`` (division, square
root), ``exp`` (exp, log, sigmoid, tanh), ``trig`` (sin cos tan atan2), ``pow``, and ``program``
(many operations in a row, which a compiler may contract to fused multiply-adds).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: NumPy's name of each dtype.
NUMPY = {"f32": "<f4", "f64": "<f8", "s32": "<i4", "s64": "<i8", "u32": "<u4", "u8": "u1"}


@dataclass(frozen=True)
class Tolerance:
    ulps: float = 0.0
    absolute: float = 0.0


#: TOLERANCES[engine][dtype][class]
TOLERANCES: dict[str, dict[str, dict[str, Tolerance]]] = {
    "reference": {
        "f32": {
            "exact": Tolerance(),
            "div": Tolerance(),
            "exp": Tolerance(10, 2**-126),
            "trig": Tolerance(1),
            "pow": Tolerance(2),
            "program": Tolerance(),
        },
        "f64": {
            "exact": Tolerance(),
            "div": Tolerance(),
            "exp": Tolerance(10, 2**-1022),
            "trig": Tolerance(4),
            "pow": Tolerance(4),
            "program": Tolerance(),
        },
    },
    "cpu": {
        "f32": {
            "exact": Tolerance(),
            "div": Tolerance(),
            "exp": Tolerance(10, 2**-126),
            "trig": Tolerance(2),
            "pow": Tolerance(2),
            "program": Tolerance(64, 2**-18),
        },
        "f64": {
            "exact": Tolerance(),
            "div": Tolerance(),
            "exp": Tolerance(10, 2**-1022),
            "trig": Tolerance(4),
            "pow": Tolerance(4),
            "program": Tolerance(64, 2**-44),
        },
    },
    "webgpu": {
        "f32": {
            "exact": Tolerance(),
            "div": Tolerance(3),
            "exp": Tolerance(16),
            "trig": Tolerance(8),
            "pow": Tolerance(16),
            "program": Tolerance(256, 2**-16),
        },
        "f64": {
            "exact": Tolerance(),
            "div": Tolerance(3),
            "exp": Tolerance(16),
            "trig": Tolerance(8),
            "pow": Tolerance(128),
            "program": Tolerance(256, 2**-40),
        },
    },
}

#: Steps by which a stored u8 may differ: a value on the edge between two may fall to either side.
U8_STEPS = {"exact": 0, "div": 1, "exp": 1, "trig": 1, "pow": 1, "program": 1}

#: Engines that may take numbers nearer to zero than the smallest normal one for zero.
FLUSHES_DENORMALS = frozenset({"webgpu"})


def family(engine: str) -> str:
    """The engine's column in the tables: "webgpu" for "webgpu:1" and "webgpu-vulkan" alike."""
    return engine.replace(":", "-").split("-")[0]


def flush(x: np.ndarray) -> np.ndarray:
    """The array with its denormals replaced by zeros of their sign."""
    if x.dtype.kind != "f":
        return x
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(np.zeros_like(x), x), x)


def allowed(expected: np.ndarray, engine: str, kind: str) -> np.ndarray:
    """How far from each expected value an engine's answer may be."""
    dtype = expected.dtype
    if dtype.kind != "f":
        steps = U8_STEPS[kind] if dtype == np.uint8 and family(engine) != "reference" else 0
        return np.full(expected.shape, steps, np.float64)
    column = "f32" if dtype == np.float32 else "f64"
    tolerance = TOLERANCES[family(engine)][column][kind]
    size = np.where(np.isfinite(expected), np.abs(expected), 0)
    limits = np.finfo(dtype)
    ulp = np.spacing(np.clip(size, limits.tiny, limits.max / 2)).astype(np.float64)
    floor = limits.tiny if family(engine) in FLUSHES_DENORMALS else 0.0
    return np.maximum(tolerance.ulps * ulp + tolerance.absolute, floor)


def differs(got: np.ndarray, expected: np.ndarray, engine: str, kind: str) -> np.ndarray:
    """Where an answer is further from the expected one than the table allows."""
    if expected.dtype.kind != "f":
        distance = np.abs(got.astype(object) - expected.astype(object)).astype(np.float64)
        return distance > allowed(expected, engine, kind)
    with np.errstate(all="ignore"):
        same = (got == expected) | (np.isnan(got) & np.isnan(expected))
        distance = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        near = np.isfinite(distance) & (distance <= allowed(expected, engine, kind))
    return ~(same | near)


def assert_close(
    got: np.ndarray,
    expected: np.ndarray,
    engine: str,
    kind: str = "exact",
    *,
    flushed: np.ndarray | None = None,
) -> None:
    """Fails, showing the first wrong element, unless the answer is within the table's tolerance.

    NaN equals NaN, an infinity equals itself, and -0 equals 0. ``flushed`` is the answer computed
    from inputs without denormals; engines that flush them may give that instead.
    """
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype, f"dtype {got.dtype}, expected {expected.dtype}"
    assert got.shape == expected.shape, f"shape {got.shape}, expected {expected.shape}"
    wrong = differs(got, expected, engine, kind)
    if flushed is not None and family(engine) in FLUSHES_DENORMALS:
        wrong &= differs(got, np.asarray(flushed), engine, kind)
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        limit = allowed(expected, engine, kind)[where]
        raise AssertionError(
            f"{int(wrong.sum())} of {wrong.size} elements differ on {engine} ({kind}): "
            f"at {where} got {got[where]!r}, expected {expected[where]!r} "
            f"(within {limit:.3g})"
        )
