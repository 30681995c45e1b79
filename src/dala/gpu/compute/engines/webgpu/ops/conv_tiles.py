"""Convolutions over tiles of the image: each pixel is read once for all positions of a window."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Final

from dala.forks import cached_property
from dala.gpu.compute.engines.webgpu.ops import gemm
from dala.gpu.compute.engines.webgpu.ops.dispatches import shader_text
from dala.gpu.compute.engines.webgpu.wgsl.names import bindings, text_of

#: Positions next to each other that an invocation computes.
RUN: Final = 4

#: Channels in workgroup memory at a time, so that the weights of a slice are a multiple of four.
SLICE: Final = 4


@dataclass(frozen=True)
class ConvTile:
    """A tile: its outputs and positions, and those of each invocation.

    ``slice`` is the number of channels in workgroup memory at a time. The window and the strides
    belong to it, because they decide how many pixels it covers. ``speed`` is the part of the
    device's full speed that it reaches with 3x3 windows, and ``wait`` the microseconds from one
    slice to the next where a processor has nothing else to do.
    """

    outputs: int
    down: int
    across: int
    #: Outputs (a multiple of four) and rows of one invocation; its columns are :data:`RUN`.
    each: int
    rows: int
    slice: int = SLICE
    window: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    speed: float = 1.0
    wait: float = 1.0

    @property
    def places(self) -> int:
        """The number of positions of a window."""
        return self.window[0] * self.window[1]

    @property
    def threads_x(self) -> int:
        return self.across // RUN

    @property
    def threads_y(self) -> int:
        return self.down // self.rows

    @property
    def threads(self) -> int:
        return self.threads_x * self.threads_y * (self.outputs // self.each)

    @property
    def height(self) -> int:
        """Rows of pixels that the tile covers."""
        return (self.down - 1) * self.stride[0] + self.window[0]

    @property
    def phases(self) -> int:
        """Columns that are a stride apart are neighbors in memory; so many sets of them."""
        return min(self.stride[1], self.window[1])

    @property
    def phase_quads(self) -> int:
        """Columns of one set that the tile covers, in fours."""
        return -(-(self.across + (self.window[1] - 1) // self.stride[1]) // 4)

    @property
    def quads(self) -> int:
        """Columns of pixels that the tile covers, in fours."""
        return self.phases * self.phase_quads

    @cached_property
    def step(self) -> int:
        """From one row of pixels to the next, in fours: eight invocations read different banks."""

        def banks(step: int) -> int:
            apart = self.rows * self.stride[0] * step
            places = (divmod(n, self.threads_x) for n in range(8))
            return len({(x + y % self.threads_y * apart) % 8 for y, x in places})

        return max(range(self.quads, self.quads + 3), key=lambda n: (banks(n), -n))

    @property
    def weight_units(self) -> int:
        return self.outputs // 4 * (self.slice * self.places // 4)

    @property
    def pixel_units(self) -> int:
        return self.slice * self.height * self.quads

    @property
    def covered(self) -> list[int]:
        """Columns that the windows of an invocation cover, in fours, by set of columns."""
        return [
            -(-(RUN + (self.window[1] - 1 - phase) // self.stride[1]) // 4)
            for phase in range(self.phases)
        ]

    @property
    def covered_rows(self) -> int:
        """Rows that the windows of an invocation cover."""
        return (self.rows - 1) * self.stride[0] + self.window[0]

    @property
    def steps(self) -> int:
        """The products of an invocation for one slice."""
        return self.slice * self.places * self.each * self.rows * RUN

    @property
    def reads(self) -> int:
        """The vectors that an invocation reads from workgroup memory for one slice."""
        pixels = self.covered_rows * sum(self.covered)
        return self.slice * (pixels + self.places * self.each // 4)

    @property
    def own_speed(self) -> float:
        """The speed with the tile's window: lower if it reads more for each product."""
        usual = replace(self, window=(3, 3), stride=(1, 1))
        more = self.reads / self.steps * usual.steps / usual.reads
        return self.speed / max(more, 1.0)

    def nbytes(self, itemsize: int) -> int:
        """Return the size of a slice in workgroup memory."""
        pixels = self.slice * self.height * self.step * 4
        return (pixels + self.slice * self.places * self.outputs) * itemsize

    def count(self, outputs: int, height: int, width: int) -> tuple[int, int, int]:
        """Return the number of tiles across, down and over the outputs."""
        return -(-width // self.across), -(-height // self.down), -(-outputs // self.outputs)


def _places(tile: ConvTile) -> str:
    """Return where each load of an invocation reads and writes."""
    text: list[str] = []
    threads = tile.threads
    per_channel = tile.height * tile.quads
    wide, apart = tile.phase_quads, tile.stride[1]
    for i, _ in gemm.turns(tile.pixel_units, threads):
        text += [
            f"let pixel{i} = id + {i * threads}u;",
            f"let channel{i} = pixel{i} / {per_channel}u;",
            f"let row{i} = pixel{i} % {per_channel}u / {tile.quads}u;",
            f"let quad{i} = pixel{i} % {tile.quads}u;",
            f"let y{i} = edge_y + i32(row{i});",
            f"let x{i} = edge_x + i32(quad{i} / {wide}u + quad{i} % {wide}u * {4 * apart}u);",
            f"var inside{i} = 0u;",
            f"if (u32(y{i}) < p.height) {{",
            *(
                f"    if (u32(x{i} + {j * apart}) < p.width) {{ inside{i} |= {1 << j}u; }}"
                for j in range(4)
            ),
            "}",
            f"let at{i} = source + i32(channel{i}) * plane + y{i} * i32(p.width) + x{i};",
            f"let entry{i} = (channel{i} * {tile.height}u + row{i}) * {tile.step}u + quad{i};",
        ]
    fours = tile.slice * tile.places // 4
    for i, _ in gemm.turns(tile.weight_units, threads):
        text += [
            f"let part{i} = (id + {i * threads}u) % {fours}u;",
            f"let four{i} = (id + {i * threads}u) / {fours}u;",
            f"let place{i} = part{i} * {tile.outputs}u + (four{i} ^ (part{i} & {_mask(tile)}u));",
        ]
    return text_of(text)


def _mask(tile: ConvTile) -> int:
    """Return the bits of an exclusive or that spreads stores over all banks."""
    fours = tile.outputs // 4
    return min(fours & -fours, 8) - 1


def _fetching(tile: ConvTile, at: str, declare: bool) -> str:
    """Return the loads of a slice into registers."""
    text = []
    var = "var " if declare else ""
    for i, guard in gemm.turns(tile.pixel_units, tile.threads):
        wanted = f"{at} + channel{i} < end" + (f" && {guard}" if guard else "")
        call = f"fetch_pixels(at{i} + i32({at}) * plane, inside{i})"
        text.append(f"{var}pixels{i} = vec4<$T>();")
        text.append(f"if ({wanted}) {{ pixels{i} = {call}; }}")
    for i, guard in gemm.turns(tile.weight_units, tile.threads):
        k = f"{at} * {tile.places}u + part{i} * 4u"
        call = f"fetch_weights(left, top + four{i} * 4u, {k}, end * {tile.places}u);"
        if guard:
            text += [f"var weights{i} = Four();"] if declare else []
            text.append(f"if ({guard}) {{ weights{i} = {call} }}")
        else:
            text.append(f"{var}weights{i} = {call}")
    return text_of(text)


def _storing(tile: ConvTile) -> str:
    """Return the stores of a slice from registers to workgroup memory."""
    text = []
    for i, guard in gemm.turns(tile.pixel_units, tile.threads):
        store = f"pixels[entry{i}] = pixels{i};"
        text.append(f"if ({guard}) {{ {store} }}" if guard else store)
    for i, guard in gemm.turns(tile.weight_units, tile.threads):
        stores = [
            f"weights[place{i} + {j * (tile.outputs // 4)}u] = weights{i}.v{j};" for j in range(4)
        ]
        text += [f"if ({guard}) {{", *stores, "}"] if guard else stores
    return text_of(text, 2)


def _sums(tile: ConvTile) -> str:
    return text_of(
        f"var s{r}_{x}_{h} = vec4<$T>();"
        for r in range(tile.rows)
        for x in range(RUN)
        for h in range(tile.each // 4)
    )


def _products(tile: ConvTile, unrolled: bool) -> str:
    """Return the steps along a slice: a channel at a time, all positions of the window."""
    fours = tile.outputs // 4
    text: list[str] = []
    for n in range(tile.slice) if unrolled else range(1):
        c = f"{n}u" if unrolled else "n"
        inner: list[str] = []
        for r in range(tile.covered_rows):
            for phase, many in enumerate(tile.covered):
                for q in range(many):
                    far = phase * tile.phase_quads + q
                    at = f"window + ({c} * {tile.height}u + {r}u) * {tile.step}u + {far}u"
                    inner.append(f"let p{r}_{phase}_{q} = pixels[{at}];")
        for k in range(tile.places):
            ky, kx = divmod(k, tile.window[1])
            if unrolled:
                number = n * tile.places + k
                turn = f"{number // 4 & _mask(tile)}u"
                line = f"{number // 4 * tile.outputs + number % 4 * fours}u"
            else:
                inner.append(f"let k{k} = n * {tile.places}u + {k}u;")
                turn = f"(k{k} / 4u & {_mask(tile)}u)"
                line = f"k{k} / 4u * {tile.outputs}u + k{k} % 4u * {fours}u"
            for h in range(tile.each // 4):
                # The outputs of an invocation are apart, so that a subgroup reads neighbors.
                far = h * (tile.outputs // tile.each)
                inner.append(f"let w{k}_{h} = weights[{line} + ((to + {far}u) ^ {turn})];")
            for r in range(tile.rows):
                for x in range(RUN):
                    column = x + kx // tile.stride[1]
                    name = f"p{r * tile.stride[0] + ky}_{kx % tile.stride[1]}_{column // 4}"
                    pixel = f"{name}.{'xyzw'[column % 4]}"
                    for h in range(tile.each // 4):
                        inner.append(f"s{r}_{x}_{h} += {pixel} * w{k}_{h};")
        text += ["{", *inner, "}"]
    if not unrolled:
        text[0] = f"for (var n = 0u; n < {tile.slice}u; n++) {{"
    return text_of(text, 2)


def _results(tile: ConvTile, quads: bool, bias: bool) -> str:
    """Return the stores of the sums, which have four outputs in a vector, as four neighbors."""
    text: list[str] = []
    for h in range(tile.each // 4):
        far = h * (tile.outputs // tile.each) * 4
        for j, c in enumerate("xyzw"):
            name = f"o{h}{j}"
            text.append(f"let {name} = top + to * 4u + {far + j}u;")
            text.append(f"if ({name} < p.outputs) {{")
            text.append(
                f"    let line = first + (plane_of_outputs * p.outputs + {name}) * p.out_height"
                " * p.out_width;"
            )
            if bias:
                text.append(
                    f"    let more = select($T(0), bias[part * p.outputs + {name}], start == 0u);"
                )
            for r in range(tile.rows):
                sums = ", ".join(f"s{r}_{x}_{h}.{c}" for x in range(RUN))
                added = " + vec4<$T>(more)" if bias else ""
                text += [
                    f"    let down{r} = tile_y * {tile.down}u + ty * {tile.rows}u + {r}u;",
                    f"    if (down{r} < p.out_height) {{",
                    f"        let v = vec4<$T>({sums}){added};",
                    f"        let at = line + down{r} * p.out_width + x;",
                ]
                if quads:
                    text.append("        if (x < p.out_width) { out[at / 4u] = v; }")
                else:
                    text += [
                        f"        if (x + {i}u < p.out_width) {{ out[at + {i}u] = v.{d}; }}"
                        for i, d in enumerate("xyzw")
                    ]
                text.append("    }")
            text.append("}")
    return text_of(text)


def write_tiles(
    tile: ConvTile, dtype: str, *, lines: bool, quads: bool, bias: bool, unrolled: bool
) -> str:
    """Return the shader.

    ``lines`` says that a line of weights is a multiple of four, ``quads`` that one of outputs is.
    """
    kinds = dtype, f"vec4<{dtype}>"
    reads = [f"a: array<{kinds[lines]}>", f"b: array<{dtype}>"]
    if bias:
        reads.append(f"bias: array<{dtype}>")
    if lines:
        fetch = ["if (output < p.outputs && k < end) { v = a[at / 4u]; }"]
    else:
        fetch = [
            "if (output < p.outputs) {",
            *(f"    if (k + {i}u < end) {{ v.{c} = a[at + {i}u]; }}" for i, c in enumerate("xyzw")),
            "}",
        ]
    text = shader_text(
        "conv_tiles.wgsl",
        BINDINGS="\n".join(bindings(reads, [f"out: array<{kinds[quads]}>"], "Numbers")), T="$T",
        OUTS=tile.outputs, DOWN=tile.down, ACROSS=tile.across, SLICE=tile.slice,
        STRIDE_Y=tile.stride[0], STRIDE_X=tile.stride[1], TWO_STRIDES=2 * tile.stride[1],
        THREE_STRIDES=3 * tile.stride[1], WINDOW=tile.places, THREADS=tile.threads,
        THREADS_X=tile.threads_x, THREADS_Y=tile.threads_y,
        THREADS_XY=tile.threads_x * tile.threads_y,
        THREAD_STEP=tile.rows * tile.stride[0] * tile.step,
        PIXEL_ENTRIES=tile.slice * tile.height * tile.step,
        WEIGHT_ENTRIES=tile.slice * tile.places * tile.outputs // 4, FETCH_LINE=text_of(fetch),
        PLACES=_places(tile), SUMS=_sums(tile), FETCH=_fetching(tile, "c", declare=True),
        FETCH_NEXT=_fetching(tile, "after", declare=False), STORE=_storing(tile),
        PRODUCTS=_products(tile, unrolled), RESULTS=_results(tile, quads, bias),
    )  # fmt: skip
    return text.replace("$T", dtype)


# choosing -----------------------------------------------------------------------------------------


#: The forms, as measured with 3x3 windows on an H200.
KINDS: Final = (
    ConvTile(64, 16, 16, 8, 2, speed=0.94, wait=3.3),
    ConvTile(32, 8, 16, 4, 2, speed=0.92, wait=1.0),
    ConvTile(64, 4, 16, 4, 2, speed=0.90, wait=1.0),
    ConvTile(32, 4, 28, 4, 2, speed=0.85, wait=1.0),
    ConvTile(32, 4, 16, 4, 1, speed=0.68, wait=0.8),
    ConvTile(32, 8, 8, 4, 1, speed=0.76, wait=0.85),
)

#: Microseconds to begin, more than a matrix product takes: there is more code to load.
START: Final = 2.0
#: Microseconds of a second dispatch that adds shares.
DISPATCH: Final = 5.0

#: Products of a slice that are written out one after the other; more are in a loop.
MAX_UNROLLED: Final = 2500


@dataclass(frozen=True)
class ConvSizes:
    """The sizes of a convolution: outputs and channels of one part, and how many there are."""

    outputs: int
    channels: int
    planes: int
    height: int
    width: int
    window: tuple[int, int]
    stride: tuple[int, int]


def choose(
    problem: ConvSizes, itemsize: int, room: int, threads: int
) -> gemm.GemmPlan[ConvTile] | None:
    """Return the plan that the cost model of :mod:`.gemm` finds fastest, or None if no tile fits.

    ``room`` is the workgroup memory, ``threads`` the most invocations of a workgroup.

    >>> problem = ConvSizes(64, 64, 1, 512, 512, (3, 3), (1, 1))
    >>> choose(problem, 4, 16384, 256).shares
    1
    """
    found = []
    for tile in (replace(k, window=problem.window, stride=problem.stride) for k in KINDS):
        if tile.nbytes(itemsize) > room or tile.threads > threads:
            continue
        tiles = prod(tile.count(problem.outputs, problem.height, problem.width)) * problem.planes
        flops = 2 * tile.outputs * tile.down * tile.across * SLICE * tile.places
        nbytes = problem.outputs * problem.planes * problem.height * problem.width * itemsize
        for shares, share in gemm.splits(problem.channels, SLICE, 2 * SLICE, 8):
            work, shared = (tiles * shares, share / SLICE, flops), (shares, nbytes, DISPATCH)
            cost = START + gemm.estimate(work, tile.own_speed, tile.wait, shared)
            found.append(gemm.GemmPlan(tile, shares, share, cost))
    return min(found, key=lambda plan: plan.cost, default=None)
