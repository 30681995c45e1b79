"""High dynamic range: the formulas of BT.2100 and BT.2390, in NumPy and in the kernel language.

*Coded* values are R'G'B' as a file stores them, from 0 to 1, by HLG or PQ. *Light* is linear and
relative to reference white: 1.0 is 203 cd/m2 (BT.2408), in BT.2020 primaries. *Display* values are
light coded for an SDR display by the inverse of BT.1886, ``light ** (1 / 2.4)``, so that SDR white
is 1.0 and highlights are above.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dala.gpu.compute.engines.sampling.light import (
    DARK,
    DISPLAY_GAMMA,
    HLG_A,
    HLG_B,
    HLG_C,
    HLG_PEAK,
    LUMA,
    PQ_C1,
    PQ_C2,
    PQ_C3,
    PQ_M1,
    PQ_M2,
    PQ_PEAK,
    SYSTEM_GAMMA,
    TO_BT709,
    TO_BT2020,
    WHITE,
)
from dala.typing import NDArray

Light = npt.NDArray[np.float64]


# HLG and PQ -------------------------------------------------------------------------------------
def light_to_pq(light: NDArray | float) -> Light:
    """Return the PQ values of light, where 1.0 is 10,000 cd/m2: the inverse EOTF."""
    x = np.asarray(light, np.float64)
    p = np.abs(x) ** PQ_M1
    return np.asarray(np.sign(x) * ((PQ_C1 + PQ_C2 * p) / (1.0 + PQ_C3 * p)) ** PQ_M2)


# light ------------------------------------------------------------------------------------------
# the tone curve ---------------------------------------------------------------------------------
def curve_numbers(peak: float) -> tuple[float, float, float]:
    """Return the knee, the top and the PQ value of the peak, for the curve of BT.2390.

    The first two are shares of the third. A peak of reference white or less needs no curve: its
    knee is out of reach.
    """
    code = float(light_to_pq(max(peak, WHITE) / PQ_PEAK))
    top = float(light_to_pq(WHITE / PQ_PEAK)) / code
    knee = 1.5 * top - 0.5 if peak > WHITE else 2.0
    return knee, top, code


# the same in the kernel language ----------------------------------------------------------------
def _each(line: str) -> str:
    """Return a line of a kernel for each of r, g and b, which replace ``@``."""
    return "\n" + "".join(f"    {line.replace('@', c)}\n" for c in "rgb")


_TO_SCENE = f"""
def to_scene(x):
    high = (exp((x - {HLG_C}) * {1.0 / HLG_A}) + {HLG_B}) * {1.0 / 12.0}
    return high if x > 0.5 else x * abs(x) * {1.0 / 3.0}
"""

_FROM_SCENE = f"""
def from_scene(x):
    high = {HLG_A} * log(max(12.0 * x, 1.0) - {HLG_B}) + {HLG_C}
    return high if x > {1.0 / 12.0} else sign(x) * sqrt(3.0 * abs(x))
"""

_FROM_PQ = f"""
def from_pq(x):
    q = pow(min(abs(x), 1.0), {1.0 / PQ_M2})
    return sign(x) * pow(max(q - {PQ_C1}, 0.0) / ({PQ_C2} - {PQ_C3} * q), {1.0 / PQ_M1})
"""

_TO_PQ = f"""
def to_pq(x):
    p = pow(abs(x), {PQ_M1})
    return sign(x) * pow(({PQ_C1} + {PQ_C2} * p) / (1.0 + {PQ_C3} * p), {PQ_M2})
"""

_TO_LIGHT = {
    "hlg": f"""
    r, g, b = to_scene(r), to_scene(g), to_scene(b)
    scene = max({LUMA[0]} * r + {LUMA[1]} * g + {LUMA[2]} * b, {DARK})
    ootf = pow(scene, {SYSTEM_GAMMA}) * {HLG_PEAK / WHITE}
    r, g, b = r * ootf, g * ootf, b * ootf
""",
    "pq": _each(f"@ = from_pq(@) * {PQ_PEAK / WHITE}"),
}

_TO_CODED = {
    "hlg": f"""
    r, g, b = r * {WHITE / HLG_PEAK}, g * {WHITE / HLG_PEAK}, b * {WHITE / HLG_PEAK}
    shown = max({LUMA[0]} * r + {LUMA[1]} * g + {LUMA[2]} * b, {DARK ** (1.0 + SYSTEM_GAMMA)})
    ootf = pow(shown, {-SYSTEM_GAMMA / (1.0 + SYSTEM_GAMMA)})
    r, g, b = from_scene(r * ootf), from_scene(g * ootf), from_scene(b * ootf)
""",
    "pq": _each(f"@ = to_pq(@ * {WHITE / PQ_PEAK})"),
}

_TO_DISPLAY = _each(f"@ = sign(@) * pow(abs(@), {1.0 / DISPLAY_GAMMA})")

_FROM_DISPLAY = _each(f"@ = sign(@) * pow(abs(@), {DISPLAY_GAMMA})")

_TO_SDR = f"""
    most = max(r, g, b)
    e = to_pq(max(most, 0.0) * {WHITE / PQ_PEAK}) / code
    t = clamp((e - knee) / (1.0 - knee), 0.0, 1.0)
    t2 = t * t
    t3 = t2 * t
    curve = (2.0 * t3 - 3.0 * t2 + 1.0) * knee + (t3 - 2.0 * t2 + t) * (1.0 - knee)
    curve += (3.0 * t2 - 2.0 * t3) * top
    scale = from_pq(curve * code) * {PQ_PEAK / WHITE} / most if e > knee else 1.0
    light = vec3(r, g, b) * scale
    r = clamp(dot(light, {TO_BT709[0]}), 0.0, 1.0)
    g = clamp(dot(light, {TO_BT709[1]}), 0.0, 1.0)
    b = clamp(dot(light, {TO_BT709[2]}), 0.0, 1.0)
"""

_TO_BT2020 = f"""
    light = vec3(r, g, b)
    r, g, b = dot(light, {TO_BT2020[0]}), dot(light, {TO_BT2020[1]}), dot(light, {TO_BT2020[2]})
"""


def decoding_text(transfer: str, light: str) -> tuple[str, str]:
    """Return helpers and lines that turn coded r, g, b into display values.

    ``light`` is "sdr", whose lines read the parameters knee, top and code, or "float".
    """
    helpers = (_TO_SCENE if transfer == "hlg" else "") + (
        _FROM_PQ + _TO_PQ if light == "sdr" else _FROM_PQ if transfer == "pq" else ""
    )
    lines = _TO_LIGHT[transfer] + (_TO_SDR if light == "sdr" else "") + _TO_DISPLAY
    return helpers, lines


def encoding_text(transfer: str, primaries: str) -> tuple[str, str]:
    """Return helpers and lines that turn display values r, g, b into coded ones."""
    helpers = _FROM_SCENE if transfer == "hlg" else _TO_PQ
    wider = _TO_BT2020 if primaries == "bt709" else ""
    return helpers, _FROM_DISPLAY + wider + _TO_CODED[transfer]


#: Helpers and lines that tone-map display values; they read knee, top and code.
MAPPING_TEXT = _FROM_PQ + _TO_PQ, _FROM_DISPLAY + _TO_SDR + _TO_DISPLAY
