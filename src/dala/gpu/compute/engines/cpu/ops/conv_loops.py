"""Native loops of 2D convolutions; ``conv.py`` describes the layout."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import native
from dala.gpu.compute.engines.cpu.native.names import (
    Array,
    T,
    fma,
    i64,
    independent,
    load,
    local,
    splat,
    static,
    store,
)


@native
def pad_planes(
    x: Array[T],
    to: Array[T],
    shifts: Array[i64],
    phases: i64,
    height: i64,
    width: i64,
    rows: i64,
    pitch: i64,
    step_y: i64,
    step_x: i64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
) -> None:
    """Copy planes of an image to the padded layout, grouped by phase.

    ``shifts`` are the first row and column of the image for each phase.
    """
    for plane in range(start, end):
        for phase in range(phases):
            first_y, first_x = shifts[2 * phase], shifts[2 * phase + 1]
            # Columns [low, high) are inside the image.
            low = min(max((step_x - 1 - first_x) // step_x, 0), pitch)
            high = max(min((width - 1 - first_x) // step_x + 1, pitch), low)
            for y in range(rows):
                line = to[((plane * phases + phase) * rows + y) * pitch :]
                row = y * step_y + first_y
                if row < 0 or row >= height:
                    for i in independent(range(pitch)):
                        line[i] = T(0)
                else:
                    source = x[(plane * height + row) * width :]
                    for i in independent(range(low)):
                        line[i] = T(0)
                    if step_x == 1:
                        for i in independent(range(low, high)):
                            line[i] = source[i + first_x]
                    else:
                        for i in independent(range(low, high)):
                            line[i] = source[i * step_x + first_x]
                    for i in independent(range(high, pitch)):
                        line[i] = T(0)


@native
def convolve(
    x: Array[T],
    weight: Array[T],
    bias: Array[T],
    out: Array[T],
    offsets: Array[i64],
    channels: i64,
    plane: i64,
    groups: i64,
    outputs: i64,
    height: i64,
    width: i64,
    pitch: i64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    lanes: int,
    across: int,
    rows: int,
) -> None:
    """Compute blocks of ``rows`` outputs at ``across * lanes`` positions, summed in registers.

    A position is an index in rows of ``pitch``; those beyond ``width`` are computed and dropped.
    There are at least ``rows`` outputs; the last block repeats some of the block before it.
    """
    span = static(across * lanes)
    taps = len(offsets)
    inner = channels * taps
    blocks = (outputs + rows - 1) // rows
    places = height * pitch
    strips = (places + span - 1) // span
    sums = local(T, rows * across * lanes)
    done = local(T, rows * across * lanes)
    for number in range(start, end):
        block = number % blocks
        strip = number // blocks % strips
        part = number // blocks // strips
        first = strip * span
        output = min(block * rows, outputs - rows)
        seen = x[part * channels * plane + first :]
        taken = weight[(part % groups * outputs + output) * inner :]
        for o in static(range(rows)):
            begin = bias[part % groups * outputs + output + o] if len(bias) > 0 else T(0)
            for v in static(range(across)):
                store(sums, static((o * across + v) * lanes), splat(begin, lanes))
        for c in range(channels):
            for t in range(taps):
                here = seen[c * plane + offsets[t] :]
                by = taken[c * taps + t :]
                for o in static(range(rows)):
                    w = splat(by[o * inner], lanes)
                    for v in static(range(across)):
                        i = static((o * across + v) * lanes)
                        step = load(here, static(v * lanes), lanes)
                        store(sums, i, fma(step, w, load(sums, i, lanes)))
        target = out[(part * outputs + output) * height * width :]
        y, column = first // pitch, first % pitch
        if column + span <= width:
            for o in static(range(rows)):
                line = target[(o * height + y) * width + column :]
                for v in static(range(across)):
                    i = static((o * across + v) * lanes)
                    store(line, static(v * lanes), load(sums, i, lanes))
        else:
            for i in static(range(rows * across)):
                store(done, static(i * lanes), load(sums, static(i * lanes), lanes))
            at = 0
            while at < span and y < height:
                many = min(width - column, span - at)
                for o in range(rows):
                    line = target[(o * height + y) * width + column :]
                    made = done[o * span + at :]
                    for i in independent(range(many)):
                        line[i] = made[i]
                at += pitch - column
                column = 0
                y += 1


@native
def convolve_parts(
    x: Array[T],
    slots: Array[T],
    weight: Array[T],
    bias: Array[T],
    out: Array[T],
    shifts: Array[i64],
    offsets: Array[i64],
    image_height: i64,
    image_width: i64,
    image_rows: i64,
    pitch: i64,
    step_y: i64,
    step_x: i64,
    channels: i64,
    groups: i64,
    outputs: i64,
    height: i64,
    width: i64,
    slot: i64,
    tile: i64,
    start: i64,
    end: i64,
    *,
    T: type,  # noqa: N803
    lanes: int,
    across: int,
    rows: int,
) -> None:
    """Convolve groups one by one, each padded in a slot that stays in the cache."""
    phases = len(shifts) // 2
    plane = phases * image_rows * pitch
    span = static(across * lanes)
    numbers = (outputs + rows - 1) // rows * ((height * pitch + span - 1) // span)
    laid = slots[start // tile * slot : (start // tile + 1) * slot]
    for i in range(channels * plane, slot):
        laid[i] = T(0)
    for part in range(start, end):
        seen = x[part * channels * image_height * image_width :]
        pad_planes(seen, laid, shifts, phases, image_height, image_width, image_rows, pitch,
               step_y, step_x, 0, channels)  # fmt: skip
        group = part % groups
        convolve(laid, weight[group * outputs * channels * len(offsets) :],
                 bias[min(group * outputs, len(bias)) :],
                 out[part * outputs * height * width :], offsets, channels, plane, 1, outputs,
                 height, width, pitch, 0, numbers,
                 lanes=lanes, across=across, rows=rows)  # fmt: skip
