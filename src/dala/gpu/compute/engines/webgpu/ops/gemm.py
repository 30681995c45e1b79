"""Generate matrix multiplication shaders from the template ``gemm.wgsl``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from dala.gpu.compute.engines.webgpu.limits import WORKGROUP_MEMORY
from dala.gpu.compute.engines.webgpu.ops.dispatches import shader_text
from dala.gpu.compute.engines.webgpu.wgsl.names import WGSL_TYPE, bindings, text_of

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine

#: The WGSL type to compute with, by dtype; u8 is summed as i32.
WGSL_TYPES: Final = {**WGSL_TYPE, "u8": "i32"}


@dataclass(frozen=True)
class GemmTile:
    """A tile of the output: its size, and the size of the part that each invocation computes.

    ``depth`` is the length of a slice along k in workgroup memory. ``speed`` is the part of the
    device's full speed that the tile reaches, and ``wait`` the microseconds from one slice to the
    next where a processor has nothing else to do.
    """

    height: int
    width: int
    rows: int
    columns: int
    depth: int
    speed: float
    wait: float

    @property
    def threads(self) -> int:
        return self.height // self.rows * (self.width // self.columns)

    def count(self, rows: int, columns: int) -> tuple[int, int]:
        """Return the number of tiles across and down."""
        return -(-columns // self.width), -(-rows // self.height)

    def nbytes(self, itemsize: int) -> int:
        """Return the size of both slices in workgroup memory."""
        return (self.height + self.width) * self.depth * itemsize


#: Tiles that fit in 16 KiB of workgroup memory. Taller and wider ones read less for each product.
TILES: Final = (
    GemmTile(128, 128, 16, 8, 16, speed=1.0, wait=1.5),
    GemmTile(64, 128, 8, 8, 16, speed=0.94, wait=1.0),
    GemmTile(64, 64, 8, 8, 16, speed=0.94, wait=0.9),
    GemmTile(32, 32, 4, 4, 32, speed=0.61, wait=1.0),
)
#: The tile where even the smallest of them does not fit, for 64-bit numbers.
LEAST_TILE: Final = GemmTile(32, 32, 4, 4, 16, speed=0.5, wait=1.0)

#: Workgroup memory that every WebGPU device has.
WORKGROUP_BYTES: Final = 16384

# The cost model: a large device, as measured on an H200 (46 TFLOP/s). On smaller ones the numbers
# scale alike, and there are enough groups in any case.
#: Processors, and flops per microsecond of each.
PROCESSORS: Final = 132
FLOPS: Final = 350_000
#: What a slice waits longer for numbers that are not read in order: their cost per microsecond.
FETCHES: Final = 55.0
#: Microseconds of a second dispatch that adds shares, and bytes per microsecond of its memory.
DISPATCH: Final = 8.0
BYTES: Final = 3_000_000


def tiles_for(engine: WebGPUEngine, itemsize: int) -> tuple[GemmTile, ...]:
    """Return the tiles that fit a device: only the smallest where a processor compiles the shaders.

    Software adapters take ten seconds to compile a large tile.
    """
    room = min(engine.limits[WORKGROUP_MEMORY], WORKGROUP_BYTES)
    tiles = TILES[-1:] if engine.adapter.software else TILES
    return tuple(tile for tile in tiles if tile.nbytes(itemsize) <= room) or (LEAST_TILE,)


T = TypeVar("T")


@dataclass(frozen=True)
class GemmPlan(Generic[T]):
    """A tile, how many groups share the sum over k, and the length of a share."""

    tile: T
    shares: int
    share: int
    #: The estimated microseconds.
    cost: float = 0.0


def choose(
    rows: int,
    columns: int,
    inner: int,
    layers: int,
    itemsize: int,
    fetch: float = 0.0,
    tiles: tuple[GemmTile, ...] = TILES,
) -> GemmPlan[GemmTile]:
    """Return the plan that the cost model finds fastest.

    ``fetch`` is the cost in flops of one number of the right side that is not read in order.

    >>> plan = choose(4096, 4096, 4096, 1, 4)
    >>> plan.tile.height, plan.shares
    (128, 1)
    >>> choose(8, 8, 8192, 1, 4).shares
    64
    """
    found = []
    for tile in (tile for tile in tiles if tile.nbytes(itemsize) <= WORKGROUP_BYTES):
        across, down = tile.count(rows, columns)
        flops = 2 * tile.height * tile.width * tile.depth + fetch * tile.width * tile.depth
        wait, nbytes = tile.wait + fetch / FETCHES, rows * columns * layers * itemsize
        for shares, share in splits(inner, tile.depth, MIN_SHARE):
            work = across * down * layers * shares, share / tile.depth, flops
            cost = estimate(work, tile.speed, wait, (shares, nbytes, DISPATCH))
            found.append(GemmPlan(tile, shares, share, cost))
    return min(found, key=lambda plan: plan.cost)


#: The shortest share of a sum.
MIN_SHARE: Final = 64


def splits(length: int, unit: int, least: int, most: int = 64) -> Iterator[tuple[int, int]]:
    """Yield how many groups may share a sum, and the length of a share, in whole units."""
    for shares in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64):
        share = -(-length // shares // unit) * unit
        if shares == 1 or (least <= share and -(-length // share) == shares <= most):
            yield shares, max(share, unit)


def estimate(
    work: tuple[int, float, float], speed: float, wait: float, shared: tuple[int, int, float]
) -> float:
    """Return the estimated microseconds of groups, with so many slices and flops of each.

    Each processor works on its groups at the tile's speed, but no faster than one slice after
    another arrives. Shared sums are written and added in a second dispatch: ``shared`` has the
    shares, the bytes of one, and the microseconds of the dispatch.
    """
    groups, slices, flops = work
    shares, nbytes, dispatch = shared
    busy = -(-groups // PROCESSORS) * slices * flops / (FLOPS * speed)
    added = dispatch + 2 * shares * nbytes / BYTES if shares > 1 else 0.0
    return max(busy, slices * wait) + added


@dataclass(frozen=True)
class GemmOperand:
    """The memory layout of an operand.

    ``lines`` is True if k is contiguous in memory, so that four values of k are read at once and
    transposed; otherwise rows (of the left side) or columns (of the right side) are contiguous.
    ``quads`` is True if four numbers can be read as a vec4.
    """

    name: str
    dtype: str
    lines: bool
    quads: bool

    @property
    def element(self) -> str:
        """The element type of the buffer."""
        if self.dtype == "u8":
            return "u32"
        scalar = WGSL_TYPES[self.dtype]
        return f"vec4<{scalar}>" if self.quads else scalar

    def read(self, index: str) -> str:
        """Return the expression that reads one number."""
        if self.dtype == "u8":
            word = f"({self.name}[({index}) >> 2u] >> ((({index}) & 3u) * 8u))"
            return f"i32({word} & 255u)"
        return f"{self.name}[{index}]"


def fetch(side: GemmOperand, extent: str, whole: bool) -> str:
    """Return the function that reads 4 by 4 numbers, with zeros outside the matrix."""
    kind = WGSL_TYPES[side.dtype]
    name = "left" if side.name == "a" else "right"
    along, across = ("k", "row") if side.lines else ("row", "k")
    limit_along, limit_across = ("end", extent) if side.lines else (extent, "end")
    text = [
        f"fn fetch_{name}_line(place: u32, row: u32, k: u32, end: u32) -> vec4<{kind}> {{",
        f"    var v = vec4<{kind}>();",
        f"    let at = place + {across} * p.{name}_step + {along};",
    ]
    if side.quads:
        inside = f"if ({across} < {limit_across} && {along} < {limit_along}) "
        text.append(f"    {'' if whole else inside}{{ v = {side.name}[at / 4u]; }}")
    else:
        text.append(f"    if ({across} < {limit_across}) {{")
        for i, c in enumerate("xyzw"):
            read = side.read(f"at + {i}u")
            text.append(f"        if ({along} + {i}u < {limit_along}) {{ v.{c} = {read}; }}")
        text.append("    }")
    text += ["    return v;", "}"]
    step = ("row + {0}u, k" if side.lines else "row, k + {0}u").format
    text.append(f"fn fetch_{name}(place: u32, row: u32, k: u32, end: u32) -> Four {{")
    text += [
        f"    let v{i} = fetch_{name}_line(place, {step(i)}, end);".replace(" + 0u", "")
        for i in range(4)
    ]
    if side.lines:
        turned = ",\n        ".join(
            f"vec4<{kind}>({', '.join(f'v{i}.{c}' for i in range(4))})" for c in "xyzw"
        )
        text.append(f"    return Four(\n        {turned});")
    else:
        text.append("    return Four(v0, v1, v2, v3);")
    return "\n".join([*text, "}"])


@dataclass(frozen=True)
class _Load:
    """Four by four numbers that an invocation moves to workgroup memory, if ``guard`` holds."""

    side: str
    number: int
    unit: str
    guard: str = ""

    @property
    def name(self) -> str:
        return f"{self.side}{self.number}"


def turns(units: int, threads: int) -> list[tuple[int, str]]:
    """Return the number and the guard of each turn of ``threads`` invocations over units."""
    return [
        (i, "" if units >= (i + 1) * threads else f"id + {i * threads}u < {units}u")
        for i in range(-(-units // threads))
    ]


def loads(tile: GemmTile) -> list[list[_Load]]:
    """Return the loads of an invocation; those in one list are alternatives and share registers."""
    threads = tile.threads
    left, right = (n * tile.depth // 16 for n in (tile.height, tile.width))
    if left + right <= threads:
        both = [
            _Load("left", 0, "id", f"id < {left}u"),
            _Load("right", 0, f"(id - {left}u)", f"id >= {left}u && id < {left + right}u"),
        ]
        return [both]
    return [
        [_Load(side, i, f"(id + {i * threads}u)", guard)]
        for side, units in (("left", left), ("right", right))
        for i, guard in turns(units, threads)
    ]


def places(tile: GemmTile, lines: dict[str, bool], prepare: str) -> str:
    """Return where each load of an invocation reads and writes.

    Neighboring invocations read neighboring memory. ``prepare`` is added for each load of the right
    side, with {i} and {first}.
    """
    text = []
    parts = tile.depth // 4
    for load in (one for slot in loads(tile) for one in slot):
        side, name, unit = load.side, load.name, load.unit
        quads = (tile.height if side == "left" else tile.width) // 4
        if lines[side]:
            part, quad = f"{unit} % {parts}u", f"{unit} / {parts}u"
        else:
            part, quad = f"{unit} / {quads}u", f"{unit} % {quads}u"
        text += [
            f"let {name}_part = {part};",
            f"let {name}_quad = {quad};",
            f"let {name}_entry = {name}_part * {quads * 4}u + "
            f"({name}_quad ^ ({name}_part * {turn(tile)}u));",
            f"let {name}_first = {'top' if side == 'left' else 'edge'} + {name}_quad * 4u;",
        ]
        if side == "right" and prepare:
            text += prepare.format(i=load.number, first=f"{name}_first").split("\n")
    return text_of(text)


def turn(tile: GemmTile) -> int:
    """Return the step of the exclusive or that spreads a subgroup's stores over all banks."""
    return max(1, 32 // tile.depth)


def fetching(tile: GemmTile, args: dict[str, str], k: str, declare: bool) -> str:
    """Return the loads of a slice into registers. ``args`` are given to the fetch functions."""
    text = []
    for n, slot in enumerate(loads(tile)):
        if declare:
            text.append(f"var next{n} = Four();")
        for load in slot:
            given = args[load.side].format(i=load.number)
            at = f"{given}, {load.name}_first, {k} + {load.name}_part * 4u, end"
            call = f"next{n} = fetch_{load.side}({at});"
            text.append(f"if ({load.guard}) {{ {call} }}" if load.guard else call)
    return text_of(text)


def storing(tile: GemmTile) -> str:
    """Return the stores of a slice from registers to workgroup memory."""
    text = []
    for n, slot in enumerate(loads(tile)):
        for load in slot:
            quads = (tile.height if load.side == "left" else tile.width) // 4
            stores = [
                f"{load.side}_tile[{load.name}_entry + {i * quads}u] = next{n}.v{i};"
                for i in range(4)
            ]
            text += [f"if ({load.guard}) {{", *stores, "}"] if load.guard else stores
    return text_of(text, 2)


def sums(tile: GemmTile, kind: str) -> str:
    """Return the declarations of a tile's sums."""
    return text_of(
        f"var s{r}_{h} = vec4<{kind}>();"
        for r in range(tile.rows)
        for h in range(tile.columns // 4)
    )


def products(tile: GemmTile, unrolled: bool) -> str:
    """Return the steps along a slice; unrolled, they are 7% faster on a GPU."""
    parts = tile.depth // 4
    text: list[str] = []
    for q in (
        map(str, range(parts)) if unrolled else "q"
    ):  # literals 0u, 1u, ..., or the variable qu
        text.append(f"let y{q} = {q}u * {tile.height}u + (ty ^ ({q}u * {turn(tile)}u));")
        text.append(f"let x{q} = {q}u * {tile.width}u + (tx ^ ({q}u * {turn(tile)}u));")
        for j in range(4):
            k = f"{q}_{j}"
            for h in range(tile.rows // 4):
                at = j * tile.height // 4 + h * tile.height // tile.rows
                text.append(f"let a{k}_{h} = left_tile[y{q} + {at}u];")
            for h in range(tile.columns // 4):
                at = j * tile.width // 4 + h * tile.width // tile.columns
                text.append(f"let b{k}_{h} = right_tile[x{q} + {at}u];")
            for r in range(tile.rows):
                for h in range(tile.columns // 4):
                    text.append(f"s{r}_{h} += a{k}_{r // 4}.{'xyzw'[r % 4]} * b{k}_{h};")
    if not unrolled:
        text = [f"for (var qu = 0u; qu < {parts}u; qu++) {{", *text, "}"]
    return text_of(text, 2)


def results(tile: GemmTile, quads: bool, whole: bool, value: str, place: str) -> str:
    """Return the stores. ``value`` and ``place`` are WGSL with {sum}, {row} and {column}."""
    text: list[str] = []
    for h in range(tile.columns // 4):
        right = h * 4 * (tile.width // tile.columns)
        text.append(f"let column{h} = edge + tx * 4u + {right}u;")
    for r in range(tile.rows):
        down = r // 4 * 4 * (tile.height // tile.rows) + r % 4
        text.append(f"let row{r} = top + ty * 4u + {down}u;")
        for h in range(tile.columns // 4):
            names = {"sum": f"s{r}_{h}", "row": f"row{r}", "column": f"column{h}"}
            v, at = value.format(**names), place.format(**names)
            if quads:
                inside = f"if (row{r} < p.rows && column{h} < p.columns) "
                text.append(f"{'' if whole else inside}{{ out[{at} / 4u] = {v}; }}")
                continue
            text.append(f"if (row{r} < p.rows) {{")
            text.append(f"    let v = {v};")
            for i, c in enumerate("xyzw"):
                here = place.format(sum="", row=f"row{r}", column=f"(column{h} + {i}u)")
                text.append(f"    if (column{h} + {i}u < p.columns) {{ out[{here}] = v.{c}; }}")
            text.append("}")
    return text_of(text)


def write(
    tile: GemmTile,
    kind: str,
    *,
    numbers: str,
    reads: list[str],
    quads: bool,
    whole: bool = False,
    bias: str = "",
    functions: str,
    prepare: str,
    left: tuple[bool, str],
    right: tuple[bool, str],
    place: str,
    prepare_load: str = "",
    unrolled: bool = True,
) -> str:
    """Return a shader.

    ``reads`` are its buffers. ``quads`` says that results are stored in fours, ``whole`` that all
    tiles are inside the matrices. ``left`` and ``right`` are (True if k is contiguous, arguments).
    ``bias`` is the index of a bias, "" without one, and ``place`` that of a result: WGSL with {row}
    and {column}.
    """
    value, result = "{sum}", f"vec4<{kind}>" if quads else kind
    if bias:  # the group with the first share adds it
        value += f" + vec4<{kind}>(select({kind}(0), bias[{bias}], start == 0u))"
        reads = [*reads, f"bias: array<{kind}>"]
    args = {"left": left[1], "right": right[1]}
    return shader_text(
        "gemm.wgsl", T=kind, NUMBERS=numbers,
        BINDINGS="\n".join(bindings(reads, [f"out: array<{result}>"], "Numbers")),
        LEFT_ENTRIES=tile.height * tile.depth // 4, RIGHT_ENTRIES=tile.width * tile.depth // 4,
        FUNCTIONS=functions, THREADS=tile.threads, HEIGHT=tile.height, WIDTH=tile.width,
        ACROSS=tile.width // tile.columns // 8, PREPARE=prepare,
        PLACES=places(tile, {"left": left[0], "right": right[0]}, prepare_load),
        SUMS=sums(tile, kind), FETCH=fetching(tile, args, "k", declare=True), DEPTH=tile.depth,
        STORE=storing(tile), FETCH_NEXT=fetching(tile, args, "after", declare=False),
        PRODUCTS=products(tile, unrolled), RESULTS=results(tile, quads, whole, value, place),
    )  # fmt: skip
