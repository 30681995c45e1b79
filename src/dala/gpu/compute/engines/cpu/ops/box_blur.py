"""Box blur on the CPU with running sums: of columns from row to row, then along the row."""

from __future__ import annotations

from dala.gpu.compute.engines.cpu.native import *
from dala.gpu.compute.engines.cpu.ops.shared import *

#: Sums of up to this radius are computed directly, which is faster than running sums.
DIRECT: Final = 4
#: Up to this radius, a quotient of floats is never off by one: it has an error of 3.05e-5 at most,
#: and is 0.5 / (2 * radius + 1)**2 from the next integer.
EXACT_RADIUS: Final = 63


@native
def sums_along(
    wide: Array[S], sums: Array[S], radius: i64,
    *, S: type, channels: int, direct: int,  # noqa: N803
) -> None:  # fmt: skip
    """Sum 2 * radius + 1 neighboring pixels of a row that has ``radius`` more on both sides."""
    if direct > 0:
        for i in independent(range(len(sums))):
            total = wide[i]
            for k in static(range(1, 2 * direct + 1)):
                total += wide[i + k * channels]
            sums[i] = total
    else:
        totals = local(S, 4)
        for c in static(range(channels)):
            totals[c] = S(0)
        for x in range(2 * radius):
            for c in static(range(channels)):
                totals[c] += wide[x * channels + c]
        ahead = wide[2 * radius * channels :]
        for x in range(len(sums) // channels):
            for c in static(range(channels)):
                at = x * channels + c
                total = totals[c] + ahead[at]
                sums[at] = total
                totals[c] = total - wide[at]


@native
def repeat_edges(wide: Array[T], radius: i64, *, channels: int) -> None:
    """Repeat the first and the last pixel of a row that has ``radius`` more on both sides."""
    first, last = radius * channels, len(wide) - (radius + 1) * channels
    for x in range(radius):
        for c in static(range(channels)):
            wide[x * channels + c] = wide[first + c]
            wide[last + (x + 1) * channels + c] = wide[last + c]


@native
def box_rows(
    src: Array[T], out: Array[T], work: Array[S], height: i64, width: i64, radius: i64,
    scale: f32, count: i32, tile: i64, start: i64, end: i64,
    *, T: type, S: type, channels: int, direct: int, exact: int,  # noqa: N803
) -> None:  # fmt: skip
    """Blur the rows of a tile; ``work`` has a wide row and a row of sums for each tile."""
    size = width * channels
    beside = radius * channels
    first = start // tile * 2 * (size + beside)
    wide = work[first : first + size + 2 * beside]
    columns = wide[beside : beside + size]
    sums = work[first + size + 2 * beside : first + 2 * (size + beside)]
    for i in independent(range(size)):
        columns[i] = S(0)
    for y in range(start - radius, start + radius + 1):
        line = src[min(max(y, 0), height - 1) * size :]
        for i in independent(range(size)):
            columns[i] += S(line[i])
    for y in range(start, end):
        repeat_edges(wide, radius)
        sums_along(wide, sums, radius)
        row = out[y * size : (y + 1) * size]
        for i in independent(range(size)):
            # Half a pixel is added to the sum of bytes, and the odd count makes it no multiple.
            if u8 == T:
                twice = sums[i] * 2 + count
                mean = in_range(i32, f32(twice) * scale)
                if not exact:
                    rest = twice - mean * (2 * count)
                    mean += i32(rest >= 2 * count) - i32(rest < 0)
                row[i] = u8(mean)
            else:
                row[i] = f32(sums[i] * S(scale))
        if channels == 4:
            same = src[y * size : (y + 1) * size]
            for x in independent(range(width)):
                row[4 * x + 3] = same[4 * x + 3]
        new = src[min(y + 1 + radius, height - 1) * size :]
        old = src[max(y - radius, 0) * size :]
        for i in independent(range(size)):
            columns[i] += S(new[i]) - S(old[i])


@implements("box_blur")
def make_box_blur(engine: Engine, task: Task) -> Runner:
    """Return the runner for the task's dtype and channels."""
    height, width, channels = picture_size(task.output.shape)
    radius = task["radius"]
    is_bytes = task.output.dtype == "u8"
    # The sums of a tile's first row read 2 * radius + 1 rows.
    rows = share(height, tiles=2, least=min(radius, height))
    code = compile_native(
        box_rows,
        T=u8 if is_bytes else f32,
        S=i32 if is_bytes else f64,
        channels=channels,
        direct=radius if radius <= DIRECT else 0,
        exact=int(radius <= EXACT_RADIUS),
    )
    count = (2 * radius + 1) ** 2
    scale = (0.5 if is_bytes else 1.0) / count
    nbytes = (4 if is_bytes else 8) * -(-height // rows) * 2 * (width + radius) * channels
    numbers = height, width, radius, scale, count, rows
    return scratch_runner(engine, task, [nbytes], code.parallel(height, rows), *numbers)
