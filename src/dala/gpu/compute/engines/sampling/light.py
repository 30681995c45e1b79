"""The constants of HDR: HLG and PQ of BT.2100, reference white, and the gamut matrix."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

#: Reference white of HDR, and the nominal peak of an HLG display, in cd/m2.
WHITE: Final = 203.0
HLG_PEAK: Final = 1000.0
#: The peak of PQ, in cd/m2.
PQ_PEAK: Final = 10000.0
#: The exponent of an SDR display (BT.1886).
DISPLAY_GAMMA: Final = 2.4
#: The exponent of the HLG OOTF at 1,000 cd/m2, less one.
SYSTEM_GAMMA: Final = 0.2
#: Scene light below which the OOTF is linear, so that it has an inverse at and below 0.
DARK: Final = 1e-7

#: Luma weights of BT.2020.
LUMA: Final = (0.2627, 0.6780, 0.0593)
# The constants of HLG and PQ, as BT.2100 gives them.
HLG_A: Final = 0.17883277
HLG_B: Final = 1.0 - 4.0 * HLG_A
HLG_C: Final = 0.5 - HLG_A * math.log(4.0 * HLG_A)
PQ_M1: Final = 2610.0 / 16384.0
PQ_M2: Final = 2523.0 / 4096.0 * 128.0
PQ_C1: Final = 3424.0 / 4096.0
PQ_C2: Final = 2413.0 / 4096.0 * 32.0
PQ_C3: Final = 2392.0 / 4096.0 * 32.0


def _to_xyz(*xy: tuple[float, float]) -> npt.NDArray[np.float64]:
    """Return the matrix from RGB of three primaries, with white D65, to XYZ."""
    columns = np.array([[x / y, 1.0, (1.0 - x - y) / y] for x, y in xy]).T
    white = np.array([0.3127 / 0.3290, 1.0, (1.0 - 0.3127 - 0.3290) / 0.3290])
    made: npt.NDArray[np.float64] = columns * np.linalg.solve(columns, white)
    return made


_BT2020: Final = _to_xyz((0.708, 0.292), (0.170, 0.797), (0.131, 0.046))
_BT709: Final = _to_xyz((0.640, 0.330), (0.300, 0.600), (0.150, 0.060))
#: From linear BT.2020 to linear BT.709 (BT.2407), row by row.
TO_BT709: Final[tuple[tuple[float, ...], ...]] = tuple(
    map(tuple, np.linalg.solve(_BT709, _BT2020).tolist())
)
#: From linear BT.709 to linear BT.2020 (BT.2087), row by row.
TO_BT2020: Final[tuple[tuple[float, ...], ...]] = tuple(
    map(tuple, np.linalg.solve(_BT2020, _BT709).tolist())
)
