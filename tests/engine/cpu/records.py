"""What several tests of native code use."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    f32,
    i64,
    static,
)


@native
def filtered(a: Array[f32], out: Array[f32], start: i64, end: i64, *, taps: int) -> None:
    for i in range(start, end):
        acc = f32(0)
        for k in static(range(taps)):
            acc += a[i + k] * (k + 1)
        out[i] = acc


@native(fast=True)
def fast_sum(a: Array[f32]) -> f32:
    acc = f32(0)
    for i in range(len(a)):
        acc += a[i]
    return acc
