"""Blur on WebGPU: one dispatch for small radii, two for larger ones, four for the largest.

Two dispatches use the same shader. It blurs the columns and stores the result transposed, so
that two passes blur both axes and restore the orientation. The intermediate of u8 images has 16
bits per channel. The largest radii of a Gaussian use a coarse grid, as ``sampling.gauss`` explains:
the first dispatch computes it, two blur it, and the last one interpolates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dala.gpu.compute.engines.base import Task
from dala.gpu.compute.engines.sampling.gauss import (
    BEFORE,
    EXACT_RADIUS,
    GRID_SHIFT,
    MAX_RADIUS,
    CoarseBlur,
    box_weights,
    byte_steps,
    coarse_blur,
    gaussian_weights,
)
from dala.gpu.compute.engines.symbols import fixed
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    BufferRef,
    Dispatches,
    implements,
    shader_parts,
    shader_text,
)
from dala.gpu.compute.engines.webgpu.wgsl.blur.finish import Finish, store_one, store_quad
from dala.gpu.compute.engines.webgpu.wgsl.blur.forms import (
    ONE_DISPATCH_RADIUS,
    BlurDevice,
    write_blur,
)
from dala.gpu.compute.engines.webgpu.wgsl.blur.strips import BlurStrip
from dala.gpu.compute.engines.webgpu.wgsl.blur.sums import Sums
from dala.gpu.compute.engines.webgpu.wgsl.pixels import ImageFormat, image_groups, image_pass

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

#: Pixels of a column that each invocation computes.
RUN = 8

#: Length of the weight table for the largest radius: padded with zeros, a multiple of four.
WEIGHTS = -(-(2 * MAX_RADIUS + 2 * RUN + 5) // 4) * 4


#: The largest radius of a box whose sums of columns have 16 bits.
SIXTEEN_BITS = 128


def blur_weights(task: Task, picture: ImageFormat) -> list[float]:
    """Return the weights of a blur from the center outwards; ints for u8 pictures."""
    radius = fixed(task["radius"])
    if task.op == "box_blur":
        return (
            [1] * (radius + 1) if picture.dtype == "u8" else box_weights(radius)[radius:].tolist()
        )
    if picture.dtype == "u8":
        return list(byte_steps(radius, task["sigma"]))
    found: list[float] = gaussian_weights(radius, task["sigma"])[radius:].tolist()
    return found


def blur_device(engine: WebGPUEngine) -> BlurDevice | None:
    """Return the facts about a device for a blur, or None if it cannot run in one dispatch."""
    strips = engine.depends_on_size and not engine.adapter.software
    return BlurDevice.of(engine.limits, engine.workgroup, strips=strips)


@implements("blur", "box_blur")
def add_blur(work: Dispatches, task: Task) -> None:
    """Add one, two or four dispatches, depending on the radius."""
    radius = fixed(task["radius"])
    if radius == 0:
        return  # a copy
    engine, picture = work.engine, ImageFormat.of(task.output)
    height, width = task.output.shape[:2]
    if task.op == "blur" and radius > EXACT_RADIUS:
        _add_wide(work, picture, coarse_blur(radius, task["sigma"]), (height, width))
        return
    weights, sums = blur_weights(task, picture), Sums(picture, task.op == "box_blur")
    apart = picture.words and width % 4 != 0
    target = work.temporary(4 * height * width) if apart else work.output
    device = blur_device(engine) if radius <= ONE_DISPATCH_RADIUS else None
    if device is not None:
        form = device.form(picture, radius, Finish(), device.size(height, width))
        assert form is not None  # without programs
        whole = width % 4 == 0 if isinstance(form, BlurStrip) else not apart
        workgroup = device.workgroup
        shader = write_blur(sums, Finish(), picture, form, whole=whole, workgroup=workgroup)
        block = engine.pack(shader.block, shader.numbers(weights, height, width), ())
        work.add(shader.source, work.inputs, target, block, shader.groups(height, width))
    else:
        _add_columns(work, sums, weights, (height, width), work.inputs[0], target)
    if apart:
        words = -(-height * width * picture.channels // 4)
        size = min(engine.workgroup, 128)
        source = shader_text("blur_pack.wgsl", channels=picture.channels, group=size)
        work.add(source, [target], work.output, (words, height * width), -(-words // size))


def _add_columns(
    work: Dispatches,
    sums: Sums,
    weights: list[float],
    size: tuple[int, int],
    source: BufferRef,
    target: BufferRef,
) -> None:
    """Add the two dispatches that blur columns; words that pixels share are stored apart."""
    height, width = size
    picture, radius = sums.picture, len(weights) - 1
    between = work.temporary(picture.middle[1] * height * width)
    group = min(work.engine.workgroup, 128)
    for first, reads, writes, (rows, columns) in (
        (True, source, between, (height, width)),
        (False, between, target, (width, height)),
    ):
        apart = picture.words and target is not work.output
        text = _columns_text(sums, first, apart, group, wide=radius > SIXTEEN_BITS)
        # Entry i is the weight of the pixel i - (RUN - 1) rows below the start of the window.
        one = 1.0 if sums.number(first) == "f32" else 1
        line = [*[0] * (RUN - 1), *weights[:0:-1], *weights]
        line += [0] * (WEIGHTS - len(line))
        numbers = (*(w * one for w in line), rows, columns, radius, -(-(2 * radius + RUN) // 4))
        work.add(text, [reads], writes, numbers, -(-columns // group) * -(-rows // RUN))


def _add_wide(
    work: Dispatches, picture: ImageFormat, coarse: CoarseBlur, size: tuple[int, int]
) -> None:
    """Add dispatches that blur on a coarse grid."""
    height, width = size
    rows, columns = (coarse.samples(n) for n in size)
    is_bytes = picture.dtype == "u8"
    grid = ImageFormat("u32" if is_bytes else "f32", 1 if picture.channels == 1 else 4)
    nbytes = (4 if grid.channels == 1 else 16) * rows * columns
    samples, blurred = work.temporary(nbytes), work.temporary(nbytes)
    source = work.inputs[0]
    to_grid, to_pixels = _wide_texts(picture, grid, coarse.factor)
    numbers = (columns, rows, width, height)
    work.add(to_grid, [source], samples, numbers, image_groups(grid, rows * columns))
    weights = list(coarse.steps() if is_bytes else coarse.weights)
    _add_columns(work, Sums(grid), weights, (rows, columns), samples, blurred)
    numbers = (width, height, columns, rows)
    groups = image_groups(picture, height * width)
    work.add(to_pixels, [blurred, source], work.output, numbers, groups)


def _wide_texts(picture: ImageFormat, grid: ImageFormat, factor: int) -> tuple[str, str]:
    """Return the shaders from pixels to the grid, and from the grid to pixels."""
    value = "value"
    if picture.channels == 4:
        alpha = "picture[y * p.width + x].w"
        if picture.dtype == "u8":
            alpha = "f32(picture[y * p.width + x] >> 24u)"
        value = f"vec4<f32>(value.xyz, {alpha})"
    # A sum has the square of 2 * factor**2 as its unit, a sample of integers 2**-GRID_SHIFT.
    all_shares, sample = (2 * factor * factor) ** 2, "sum * $scale"
    scale, color = 1.0 / all_shares, "mixed"
    if picture.dtype == "u8":
        sample, scale = "vec4<u32>(floor(sum * $scale + 0.5f))", scale * (1 << GRID_SHIFT)
        color = f"floor(mixed * {0.5**GRID_SHIFT}f + 0.5f)"
    to_grid, to_pixels = (
        shader_parts(
            "wide_blur.wgsl",
            element=picture.element,
            grid=grid.element,
            before=BEFORE,
            factor=factor,
            half=factor // 2,
            taps=2 * factor,
            sample=sample.replace("$scale", f"{scale}f"),
            samples="u32" if picture.dtype == "u8" else "f32",
            color=color,
            value=value,
            image_pass=image_pass(*pair),
        )[n]
        for n, pair in enumerate([(picture, grid), (grid, picture)])
    )
    return to_grid, to_pixels


def _columns_text(sums: Sums, first: bool, apart: bool, group: int, *, wide: bool) -> str:
    """Return the shader of the first pass (to the intermediate image) or of the second."""
    picture = sums.picture
    alpha, parts, middle = picture.channels == 4, picture.parts, picture.middle[0]
    starts = [f"    var a{j} = {sums.begin(first)};" for j in range(RUN)]
    taps = [f"        let v{q} = p.weights[quad + {q}i];" for q in range((RUN + 2) // 4 + 1)]
    for m in range(4):
        taps.append(f"        let t{m} = pixel(top + at + {m}i, column);")
        for j in range(RUN):
            quad, part = divmod(m - j + RUN - 1, 4)
            taps.append(f"        a{j} += t{m}{parts} * v{quad}.{'xyzw'[part]};")
    count = "u32((2i * p.radius + 1i) * (2i * p.radius + 1i))"
    stores = []
    for j in range(RUN):
        kept = f"pixel(row + {j}i, column).w" if alpha else ""
        value = f"to_middle({sums.middle(f'a{j}')}{', ' + kept if alpha else ''})"
        if not first:
            value = picture.hold(sums.result(f"a{j}", count), kept)
        stores.append(f"    let h{j} = {value};")
    step = 4 if picture.words and not (first or apart) else 1
    for j in range(0, RUN, step):
        if step == 4:
            results = [f"h{j + k}" for k in range(4)]
            inside = store_quad(picture, f"(e / 4u + {j // 4}u)", results, None)
        elif first or apart:
            inside = [f"output[e + {j}u] = h{j};"]
        else:
            inside = store_one(picture, f"e + {j}u", f"h{j}", None)
        stores.append(f"    if (row + {j}i < p.rows) {{ {' '.join(inside)} }}")
    if first:
        functions = "\n".join([picture.fetch(), sums.rounding(), picture.middles(wide=wide)])
    else:
        kind = picture.refetched
        fetch = f"fn fetch(i: u32) -> {kind} {{\n    return from_middle(source[i]);\n}}"
        functions = "\n".join([picture.middles(wide=wide), fetch, picture.holding()])
    return shader_text(
        "blur_columns.wgsl", weights=WEIGHTS // 4, source=picture.element if first else middle,
        output=middle if first else "u32" if apart else picture.element,
        fetched=picture.fetched if first else picture.refetched, weight=sums.number(first),
        functions=functions, sums="\n".join(starts), taps="\n".join(taps),
        stores="\n".join(stores), group=group, run=RUN,
    )  # fmt: skip
