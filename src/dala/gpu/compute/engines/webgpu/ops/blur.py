"""Blur on WebGPU: one dispatch for small radii, two for larger ones, four for the largest.

Two dispatches use the same shader. It blurs the columns and stores the result transposed, so
that two passes blur both axes and restore the orientation. The intermediate of u8 images has 16
bits per channel. The largest radii of a Gaussian use a coarse grid, as ``sampling.gauss`` explains:
the first dispatch computes it, two blur it, and the last one interpolates.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template
from typing import TYPE_CHECKING

from dala.gpu.compute.engines.base import Runner, Storage, Task, Values
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
from dala.gpu.compute.engines.webgpu.ops import implements
from dala.gpu.compute.engines.webgpu.ops.dispatches import (
    OUTPUT,
    BufferRef,
    Dispatches,
    block,
    read_text,
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
    """Return what a blur needs to know of a device, or None if it cannot run in one dispatch."""
    strips = engine.depends_on_size and not engine.adapter.software
    return BlurDevice.of(engine.limits, engine.workgroup, strips=strips)


@implements("blur", "box_blur")
def make_blur(engine: WebGPUEngine, task: Task) -> Runner | None:
    """Return a runner of one, two or four dispatches, depending on the radius."""
    radius = fixed(task["radius"])
    if radius == 0:

        def copy(inputs: Sequence[Storage], output: Storage, params: Values) -> None:
            engine.copy(inputs[0], output)

        return copy
    shape = task.output.shape
    height, width = shape[:2]
    picture = ImageFormat(task.output.dtype, shape[2] if len(shape) == 3 else 1)
    if task.op == "blur" and radius > EXACT_RADIUS:
        return _wide(engine, picture, coarse_blur(radius, task["sigma"]), (height, width))
    weights, sums = blur_weights(task, picture), Sums(picture, task.op == "box_blur")
    dispatches = Dispatches(engine, task.op)
    apart = picture.words and width % 4 != 0
    target = dispatches.temporary(4 * height * width) if apart else OUTPUT
    device = blur_device(engine) if radius <= ONE_DISPATCH_RADIUS else None
    if device is not None:
        form = device.form(picture, radius, Finish(), device.size(height, width))
        assert form is not None  # without programs
        whole = width % 4 == 0 if isinstance(form, BlurStrip) else not apart
        workgroup = device.workgroup
        shader = write_blur(sums, Finish(), picture, form, whole=whole, workgroup=workgroup)
        numbers = engine.pack(shader.block, shader.numbers(weights, height, width), ())
        groups = shader.groups(height, width)
        dispatches.add(shader.source, [BufferRef("input")], target, numbers, groups)
    else:
        _add_columns(dispatches, sums, weights, (height, width), BufferRef("input"), target)
    if apart:
        words = -(-height * width * picture.channels // 4)
        size = min(engine.workgroup, 128)
        text = Template(read_text("blur_pack.wgsl"))
        source = text.substitute(channels=picture.channels, group=size)
        numbers = block(words, height * width)
        dispatches.add(source, [target], OUTPUT, numbers, -(-words // size))
    return dispatches.runner()


def _add_columns(
    dispatches: Dispatches,
    sums: Sums,
    weights: list[float],
    size: tuple[int, int],
    source: BufferRef,
    target: BufferRef,
) -> None:
    """Add the two dispatches that blur columns; words that pixels share are stored apart."""
    height, width = size
    picture, radius = sums.picture, len(weights) - 1
    between = dispatches.temporary(picture.middle[1] * height * width)
    group = min(dispatches.engine.workgroup, 128)
    for first, reads, writes, (rows, columns) in (
        (True, source, between, (height, width)),
        (False, between, target, (width, height)),
    ):
        apart = picture.words and target is not OUTPUT
        text = _columns_text(sums, first, apart, group, wide=radius > SIXTEEN_BITS)
        # Entry i is the weight of the pixel i - (RUN - 1) rows below the start of the window.
        zero: list[float] = [0.0 if sums.number(first) == "f32" else 0]
        own = [w * 1.0 for w in weights] if sums.number(first) == "f32" else weights
        line = zero * (RUN - 1) + own[:0:-1] + own
        line += zero * (WEIGHTS - len(line))
        runs = -(-rows // RUN)
        numbers = block(*line, rows, columns, radius, -(-(2 * radius + RUN) // 4))
        groups = -(-columns // group) * runs
        dispatches.add(text, [reads], writes, numbers, groups)


def _wide(
    engine: WebGPUEngine, picture: ImageFormat, coarse: CoarseBlur, size: tuple[int, int]
) -> Runner:
    """Return a runner that blurs on a coarse grid."""
    height, width = size
    rows, columns = (coarse.samples(n) for n in size)
    is_bytes = picture.dtype == "u8"
    grid = ImageFormat("u32" if is_bytes else "f32", 1 if picture.channels == 1 else 4)
    nbytes = (4 if grid.channels == 1 else 16) * rows * columns
    dispatches = Dispatches(engine, "blur")
    samples, blurred = dispatches.temporary(nbytes), dispatches.temporary(nbytes)
    source = BufferRef("input")
    to_grid, to_pixels = _wide_texts(picture, grid, coarse.factor)
    numbers = block(columns, rows, width, height)
    dispatches.add(to_grid, [source], samples, numbers, image_groups(grid, rows * columns))
    weights = list(coarse.steps() if is_bytes else coarse.weights)
    _add_columns(dispatches, Sums(grid), weights, (rows, columns), samples, blurred)
    numbers = block(width, height, columns, rows)
    groups = image_groups(picture, height * width)
    dispatches.add(to_pixels, [blurred, source], OUTPUT, numbers, groups)
    return dispatches.runner()


def _wide_texts(picture: ImageFormat, grid: ImageFormat, factor: int) -> tuple[str, str]:
    """Return the shaders from pixels to the grid, and from the grid to pixels."""
    head, *parts = read_text("wide_blur.wgsl").split("// ---\n")
    value = "value"
    if picture.channels == 4:
        alpha = "picture[y * p.width + x].w"
        if picture.dtype == "u8":
            alpha = "f32(picture[y * p.width + x] >> 24u)"
        value = f"vec4<f32>(value.xyz, {alpha})"
    formats = ((picture, grid), (grid, picture))
    # A sum has the square of 2 * factor**2 as its unit, a sample of integers 2**-GRID_SHIFT.
    all_shares, sample = (2 * factor * factor) ** 2, "sum * $scale"
    scale, color = 1.0 / all_shares, "mixed"
    if picture.dtype == "u8":
        sample, scale = "vec4<u32>(floor(sum * $scale + 0.5f))", scale * (1 << GRID_SHIFT)
        color = f"floor(mixed * {0.5**GRID_SHIFT}f + 0.5f)"
    to_grid, to_pixels = (
        Template(head + part).substitute(
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
        )
        for part, pair in zip(parts, formats, strict=True)
    )
    return to_grid, to_pixels


def _columns_text(sums: Sums, first: bool, apart: bool, group: int, *, wide: bool) -> str:
    """Return the shader of the first pass (to the intermediate image) or of the second."""
    picture = sums.picture
    alpha, parts, middle = picture.channels == 4, picture.parts, picture.middle[0]
    starts = [f"    var a{j} = {sums.begin(first)};" for j in range(RUN)]
    taps = []
    for m in range(4):
        taps.append(f"        let t{m} = pixel(top + at + {m}i, column);")
        for j in range(RUN):
            quad, part = divmod(m - j + RUN - 1, 4)
            taps.append(f"        a{j} += t{m}{parts} * v{quad}.{'xyzw'[part]};")
    stores = []
    for j in range(RUN):
        kept = f"pixel(row + {j}i, column).w" if alpha else ""
        if first:
            value = f"to_middle({sums.middle(f'a{j}')}{', ' + kept if alpha else ''})"
        else:
            count = "u32((2i * p.radius + 1i) * (2i * p.radius + 1i))"
            value = picture.hold(sums.result(f"a{j}", count), kept)
        stores.append(f"    let h{j} = {value};")
    quads = picture.words and not apart
    if not first and quads:
        for j in range(0, RUN, 4):
            results = [f"h{j + k}" for k in range(4)]
            inside = " ".join(store_quad(picture, f"(e / 4u + {j // 4}u)", results, None))
            stores.append(f"    if (row + {j}i < p.rows) {{ {inside} }}")
    else:
        for j in range(RUN):
            place = f"e + {j}u"
            plain = first or apart
            inside = (
                f"output[{place}] = h{j};"
                if plain
                else " ".join(store_one(picture, place, f"h{j}", None))
            )
            stores.append(f"    if (row + {j}i < p.rows) {{ {inside} }}")
    if first:
        functions = picture.fetch() + "\n" + picture.middles(wide=wide)
    else:
        kind = picture.refetched
        fetch = f"fn fetch(i: u32) -> {kind} {{\n    return from_middle(source[i]);\n}}"
        functions = "\n".join([picture.middles(wide=wide), fetch, picture.holding()])
    named = {
        "weights": WEIGHTS // 4,
        "source": picture.element if first else middle,
        "output": middle if first else "u32" if apart else picture.element,
        "fetched": picture.fetched if first else picture.refetched,
        "weight": sums.number(first),
        "functions": functions,
        "sums": "\n".join(starts),
        "taps": "\n".join(taps),
        "stores": "\n".join(stores),
        "group": group,
        "run": RUN,
    }
    return Template(read_text("blur_columns.wgsl")).substitute(named)
