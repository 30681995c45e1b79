"""The formulas of HDR, one color at a time, as the standards print them.

BT.2100 (HLG, PQ), BT.2390 (the curve), BT.2087 (the matrix from BT.2020 to BT.709), BT.1886.
"""

from __future__ import annotations

import math

import numpy as np

#: BT.2087: linear BT.2020 to BT.709, inverted to four digits as published.
TO_709 = np.array(
    [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]]
)


def pq(nits):
    """BT.2100, the inverse EOTF of PQ."""
    y = (nits / 10000) ** 0.1593017578125
    return ((0.8359375 + 18.8515625 * y) / (1 + 18.6875 * y)) ** 78.84375


def nits_of_pq(e):
    n = e ** (1 / 78.84375)
    return 10000 * (max(n - 0.8359375, 0) / (18.8515625 - 18.6875 * n)) ** (1 / 0.1593017578125)


def scene_of_hlg(e):
    """BT.2100, the inverse OETF of HLG."""
    if e <= 0.5:
        return e * e / 3
    return (math.exp((e - 0.55991073) / 0.17883277) + 0.28466892) / 12


def light(rgb, transfer):
    """Light in cd/m2 of coded values from 0 to 1."""
    if transfer == "pq":
        return [nits_of_pq(c) for c in rgb]
    scene = [scene_of_hlg(c) for c in rgb]
    luma = 0.2627 * scene[0] + 0.6780 * scene[1] + 0.0593 * scene[2]
    return [1000 * luma**0.2 * c for c in scene]


def eetf(nits, peak, white=203.0):
    """BT.2390, from a peak to white, both with black at 0."""
    top = pq(white) / pq(peak)
    knee = 1.5 * top - 0.5
    e = min(pq(nits) / pq(peak), 1.0)
    if e >= knee:
        t = (e - knee) / (1 - knee)
        e = (
            (2 * t**3 - 3 * t**2 + 1) * knee
            + (t**3 - 2 * t**2 + t) * (1 - knee)
            + (-2 * t**3 + 3 * t**2) * top
        )
    return nits_of_pq(e * pq(peak))


def sdr(rgb, transfer, peak=1000.0):
    """BT.709 display values of coded values: the curve on the largest, the matrix, BT.1886."""
    shown = light(rgb, transfer)
    most = max(shown)
    scale = eetf(most, peak) / most if most else 1.0
    made = TO_709 @ (np.array(shown) * scale / 203.0)
    return np.clip(made, 0, 1) ** (1 / 2.4)


def codes(rgb, bits=10):
    """The samples of Y, Cb and Cr of a color: BT.2100, limited range."""
    r, g, b = rgb
    y = 0.2627 * r + 0.6780 * g + 0.0593 * b
    unit = 1 << (bits - 8)
    return (
        round((219 * y + 16) * unit),
        round((224 * (b - y) / 1.8814 + 128) * unit),
        round((224 * (r - y) / 1.4746 + 128) * unit),
    )


def rgb_of(y, u, v, bits=10):
    unit = 1 << (bits - 8)
    y, u, v = (y / unit - 16) / 219, (u / unit - 128) / 224, (v / unit - 128) / 224
    r, b = y + 1.4746 * v, y + 1.8814 * u
    return r, (y - 0.2627 * r - 0.0593 * b) / 0.6780, b
