"""Parameters of the cases: minimum, default, maximum, each choice, and three random settings.

They follow from a filter's declaration. ``ENDS`` has finite ends where a range is unlimited, or so
wide that most of it gives one color, and values of parameters that have no default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from dala.answers.material import number
from dala.gpu.compute.kernels.filter import FilterParam, FilterSpec
from dala.media.filters.plans import FilterValue

#: Parameters by name, by the name of the setting. Inputs are added when a case runs.
Settings: TypeAlias = "dict[str, dict[str, FilterValue]]"
#: A number, a word, or several numbers.
Value: TypeAlias = "float | str | tuple[float, ...]"
#: Smallest, largest and, for a parameter that must be given, usual value.
Ends: TypeAlias = "tuple[Value, Value] | tuple[Value, Value, Value]"

#: How many random settings a filter has.
RANDOM: Final = 3
#: Small radii, which often have forms of their own.
RADII: Final = (1, 2, 4, 9)
#: Random numbers are multiples of this share of their range.
_STEPS: Final = 1 << 10
#: Bounds of this magnitude only exclude infinity.
_FAR: Final = 1e3

_FILL: Final = (1.0, 0.75, 0.5, 0.25)

ENDS: Final[dict[str, dict[str, Ends | None]]] = {
    "": {  # any filter
        "border": None,  # a choice is a setting of its own
        "fill": ((0.0,) * 4, _FILL),
    },
    "blur": {"sigma": (0.3, 60.0)},
    "gaussian_blur": {"sigma": (0.3, 100.0), "radius": (0, 200)},
    "brightness": {"value": (-1.0, 1.0)},
    "contrast": {"value": (-1.0, 3.0)},
    "saturation": {"value": (-1.0, 3.0)},
    "gamma": {"value": (0.01, 8.0)},
    "hue": {"degrees": (-270.0, 400.0)},
    "posterize": {"levels": (0, 256)},
    "vignette": {"amount": (-1.0, 2.0), "radius": (0.0, 1.5), "softness": (0.0001, 2.0)},
    "chroma_key": {
        "key": ((0.0, 0.0, 0.0), (1.0, 0.9, 0.8)),
        "threshold": (0.0, 1.0),
        "softness": (0.0001, 1.0),
    },
    "lut_apply": {
        "domain_min": (-0.5, 0.25),
        "domain_max": (0.75, 1.5),
        "shaper": None,
        "shaper_min": None,
        "shaper_max": None,
    },
    "sharpen": {"amount": (-1.0, 4.0)},
    "edge_detect": {"amount": (-1.0, 4.0)},
    "denoise": {"sigma_space": (0.001, 50.0), "sigma_color": (0.001, 2.0)},
    "emboss": {"amount": (-2.0, 4.0)},
    "resize": {"size": ((1, 1), (90, 70), (28, 19))},
    "bicubic_scale": {"scale": (0.05, 2.5, 1.7)},
    "warp_affine": {
        "matrix": (
            (0.6, -0.4, -9.25, -0.3, 0.55, -7.5),
            (1.6, 0.5, 12.5, 0.4, 1.5, 9.75),
            (0.9, 0.2, 3.25, -0.15, 1.1, 2.5),
        ),
        "size": ((1, 1), (70, 50)),
    },
    "warp_perspective": {
        "matrix": (
            (0.6, -0.4, -9.25, -0.3, 0.55, -7.5, -0.004, -0.003, 0.9),
            (1.6, 0.5, 12.5, 0.4, 1.5, 9.75, 0.005, 0.004, 1.1),
            (0.9, 0.2, 3.25, -0.15, 1.1, 2.5, 0.002, -0.001, 1.0),
        ),
        "size": ((1, 1), (70, 50)),
    },
    "crop": {"box": ((0, 0, 8, 5), (3, 2, 18, 7), (2, 1, 16, 6)), "size": None},
    "pad": {"padding": ((0, 0, 0, 0), (11, 9, 14, 6), (3, 5, 2, 4))},
    "grade": {"gamma": (0.01, 6.0), "gain": (0.0, 4.0), "saturation": (-1.0, 3.0)},
    "overlay": {
        "matrix": None,
        "position": ((-9.5, -6.25), (20.0, 11.5)),
        "scale": ((0.3, 0.4), (2.5, 3.0)),
        "angle": (-100.0, 270.0),
        "anchor": ((0.0, 0.0), (1.0, 0.75)),
    },
    "virtual_background": {"edge": ((0.0, 0.6), (0.5, 1.0))},
    "levels": {
        "in_black": ((-0.25, 0.0, 0.1), (0.4, 0.3, 0.2)),
        "in_white": ((0.5, 0.45, 0.55), (1.0, 1.5, 0.9)),
        "gamma": (0.01, 9.0),
        "out_black": ((-0.25, 0.0, 0.1), (1.0, 0.4, 0.2)),
        "out_white": ((0.0, 0.5, 0.6), (1.0, 1.5, 0.9)),
    },
    "color_matrix": {
        "matrix": (
            (-0.5, 0.0, 0.1, -0.2, 0.5, 0.0, 0.3, -0.1, 0.2),
            (1.5, 0.9, 0.8, 0.4, 2.0, 0.7, 1.0, 0.6, 1.2),
            (0.25, 0.5, 0.25, 0.0, 1.0, 0.0, 0.75, 0.125, 0.125),
        )
    },
    "grain": {"seed": (0, 0x7FFFFFFF)},
    "chromatic_aberration": {"amount": (-20.0, 20.0)},
    "threshold": {"value": (0.0, 1.0), "block_size": (3, 41)},
    "clahe": {"clip_limit": (0.0, 40.0), "tiles": ((1, 1), (9, 16))},
    "auto_contrast": {"cutoff": ((0.0, 0.0), (40.0, 30.0))},
    "white_balance": {"color": None, "temperature": (2000.0, 25000.0)},
    "rotate": {"angle": (-200.0, 330.0, 30.0), "center": ((-3.0, 2.5), (40.0, 30.25))},
    "thumbnail": {"size": ((1, 1), (50, 33), (24, 16))},
    "pixelate": {"block": (1, 30)},
    "motion_blur": {"length": (1.0, 61.0), "angle": (-100.0, 250.0)},
    "unsharp_mask": {"radius": (0.01, 30.0), "amount": (-2.0, 5.0)},
    "bilateral": {"sigma_color": (0.001, 2.0), "sigma_space": (0.001, 50.0)},
    "morphology": {"radius": (0, 9), "iterations": (1, 3)},
    "canny": {"low": (0.0, 1.5), "high": (0.1, 3.0), "sigma": (0.0, 3.0)},
    "yuv_to_rgb": {"format": (0, 0, "nv12")},
    "rgb_to_yuv": {"format": (0, 0, "nv12")},
}
#: The value of an input that stands for the stored one of its type.
STORED: Final = "stored"
#: Settings of parameters that exclude others, and of inputs that may be left out.
MORE: Final[dict[str, Settings]] = {
    "crop": {"centered": {"size": (11, 5)}},
    "curves": {
        "all": {"master": ((0.0, 0.1), (0.3, 0.2), (1.0, 0.9))},
        "each": {
            "red": ((0.0, 0.0), (0.5, 0.7), (1.0, 1.0)),
            "green": ((0.1, 0.0), (0.4, 0.5), (0.8, 1.0)),
            "blue": ((0.0, 1.0), (1.0, 0.0)),
        },
    },
    "overlay": {"matrix": {"matrix": (0.75, 0.25, 3.5, -0.25, 0.75, 6.25)}},
    "virtual_background": {
        "color": {"background": (0.125, 0.5, 0.75, 1.0)},
        "picture": {"background": STORED},
    },
    "white_balance": {"color": {"color": (0.75, 0.5, 0.625)}},
    "morphology": {"element": {"element": STORED}},
}
#: Parameters of one number that must be odd.
_ODD: Final = {("threshold", "block_size")}


def settings(spec: FilterSpec) -> Settings:
    """Return the parameters that a filter is tried with, by the name of the setting."""
    numbers = [p for p in spec.parameters if not p.is_input and not _choices(p)]
    choices = [p for p in spec.parameters if _choices(p)]
    usual: dict[str, FilterValue] = {
        p.name: v for p in spec.parameters if (v := _usual(spec.name, p)) is not None
    }
    made: Settings = {"default": usual}
    ranges = {p: ends for p in numbers if (ends := _ends(spec.name, p)) is not None}
    if ranges:
        made["min"] = usual | {p.name: ends[0] for p, ends in ranges.items()}
        made["max"] = usual | {p.name: ends[1] for p, ends in ranges.items()}
    for p in choices:
        fill = {"fill": _FILL} if p.name == "border" and "fill" in spec.names else {}
        for word in _choices(p):
            if word != usual.get(p.name, p.default):
                made[f"{p.name}={word}"] = usual | fill | {p.name: word}
    for p in numbers:
        if p.name == "radius" and p.type == "int" and p.high is not None:
            some = (r for r in RADII if r <= p.high and r != p.default)
            made |= {f"radius={r}": usual | {"radius": r} for r in some}
    for n in range(1, RANDOM + 1) if ranges or len(choices) > 1 else ():
        made[f"random{n}"] = usual | _random(spec.name, f"random{n}", ranges, choices)
    return made | MORE.get(spec.name, {})


def _choices(p: FilterParam) -> Sequence[bool | str]:
    return (False, True) if p.type == "bool" else p.choices


def _listed(name: str, p: FilterParam) -> Ends | bool | None:
    """Return the entry of a parameter in ``ENDS``; False for none."""
    for home in (name, ""):
        if p.name in ENDS.get(home, {}):
            return ENDS[home][p.name]
    return False


def _usual(name: str, p: FilterParam) -> Value | None:
    """Return the value of a parameter that has no default; None for all others."""
    listed = _listed(name, p)
    return listed[2] if isinstance(listed, tuple) and len(listed) == 3 else None


def _ends(name: str, p: FilterParam) -> tuple[Value, Value] | None:
    """Return the smallest and the largest value; None for a parameter that is left alone."""
    listed = _listed(name, p)
    if isinstance(listed, tuple):
        return listed[0], listed[1]
    if listed is None:
        return None
    if p.low is None or p.high is None or max(abs(p.low), abs(p.high)) > _FAR:
        raise LookupError(f"answers: {name}.{p.name} has no finite range. Add it to ENDS.")
    kind = int if p.whole else float
    low, high = kind(p.low), kind(p.high)
    if p.size and not p.spread:
        return (low,) * p.size, (high,) * p.size
    return low, high


def _random(
    name: str,
    setting: str,
    ranges: dict[FilterParam, tuple[Value, Value]],
    choices: Sequence[FilterParam],
) -> dict[str, FilterValue]:
    made: dict[str, FilterValue] = {}
    for p, (low, high) in ranges.items():
        seed = f"{name}/{setting}/{p.name}"
        if isinstance(low, tuple) and isinstance(high, tuple):
            turn = -1 if p.type == "size" else 1  # the height of a size is drawn first
            pairs = enumerate(zip(low[::turn], high[::turn], strict=True))
            made[p.name] = tuple(_between(a, b, f"{seed}/{n}") for n, (a, b) in pairs)[::turn]
        elif isinstance(low, int | float) and isinstance(high, int | float):
            drawn = _between(low, high, seed)
            made[p.name] = int(drawn) | 1 if (name, p.name) in _ODD else drawn
    for p in choices:
        words = _choices(p)
        made[p.name] = words[number(f"{name}/{setting}/{p.name}", len(words))]
    return made


def _between(low: float, high: float, seed: str) -> int | float:
    if isinstance(low, int) and isinstance(high, int):
        return low + number(seed, high - low + 1)
    return round(low + (high - low) * (number(seed, _STEPS + 1) / _STEPS), 6)
