"""Write a shader's bindings, uniform block and reads of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Final

from dala.gpu.compute.dtypes import ITEMSIZE
from dala.gpu.compute.engines.base import Geometry
from dala.gpu.compute.engines.unroll import has_loops
from dala.gpu.compute.engines.webgpu.wgsl.joining import ALIGN, join_inputs
from dala.gpu.compute.engines.webgpu.wgsl.names import WGSL_TYPE, Names
from dala.gpu.compute.engines.webgpu.wgsl.offsets import fixed_offsets, offset_names
from dala.gpu.compute.engines.webgpu.wgsl.shader import MANY_BUFFERS, Metering, Pattern
from dala.gpu.compute.lang.ir import LOADED, Program, values

#: Kinds of argument that are read by a function instead of passed to ``kernel``.
READ_BY_FUNCTION: Final = frozenset({"image", "array"})


class Reading:
    """Writes the reads of a shader. Methods return expressions, or lines that assign them."""

    def __init__(
        self,
        program: Program,
        geometry: Geometry,
        pattern: Pattern,
        workgroup: int,
        aliased: tuple[int, ...],
        metering: Metering | None = None,
        buffers: int = MANY_BUFFERS,
    ) -> None:
        self.program = program
        self.metering = metering
        self.pattern = pattern
        self.workgroup = workgroup
        self.aliased = aliased
        self.axes = len(geometry.dims)
        # The output has stride 1; an argument with a single number may alias it with stride 0.
        self.inner = [1 if i in aliased else step for i, step in enumerate(geometry.layout[1])]
        self.channels = program.out.channels
        self.pixelwise = program.out.pixels or any(
            arg.kind in ("pixel", "image") for arg in program.args
        )
        used = list(values(program.body))
        #: Arguments and axes that the program uses.
        self.looked = {v.attr for v in used if v.op in ("element", "array")}
        self.looked |= {v.attr[0] for v in used if v.op in ("pixel", "image")}
        #: Used arguments that are passed to ``kernel``.
        self.passed = [
            i
            for i, arg in enumerate(program.args)
            if i in self.looked and arg.kind not in READ_BY_FUNCTION
        ]
        self.positions = {v.attr for v in used if v.op == "position"}
        self.offsets = (fixed_offsets(program) or {}) if self.pattern == "strips" else {}
        if any(v.op == "image" for v in used) and not self.offsets:
            self.positions |= {0, 1}
        self.loops = has_loops(program.body)

        self.names = Names()
        axes = ("y", "x") if program.rank == 2 else [f"at{k}" for k in range(program.rank)]
        self.at = tuple(self.names.new(name) for name in axes)
        self.values = [self.names.new(arg.name) for arg in program.args]
        self.bindings = [
            "output" if i in aliased else self.names.new(f"in_{arg.name}")
            for i, arg in enumerate(program.args)
        ]
        free = [i for i in range(len(program.args)) if i not in aliased]
        own = 1 if metering is None else 2  # the output, and a flag
        #: Arguments with a binding of their own, and those that share one.
        self.bound, self.joined = join_inputs(program, free, buffers - own)
        self.shared = [self.names.new(f"joined_{k}") for k in range(len(self.joined))]
        self.near = offset_names(self.names, self.values, self.offsets)
        self.helpers: set[str] = set()
        self.functions: list[str] = []
        #: Members of the uniform block by name: the WGSL type, and the function that computes the
        #: value from the geometry.
        self.members: dict[str, tuple[str, Callable[[Geometry], int]]] = {}
        #: Names of functions that read arguments.
        self._made: dict[str, str] = {}

    # bindings

    def stored(self, i: int) -> str:
        """Return the element type of an argument's binding; -1 is the output."""
        if i < 0:
            dtype, channels = self.program.out.dtype, self.channels
            quads = self.pattern in ("quads", "table")
        else:
            arg = self.program.args[i]
            dtype, quads = arg.dtype, self.in_quads(i)
            channels = arg.channels if arg.kind in ("pixel", "image") else 1
        scalar = WGSL_TYPE[LOADED[dtype]]
        if dtype == "u8":
            return "vec4<u32>" if quads and channels == 4 else "u32"
        if ITEMSIZE[dtype] == 8:
            return scalar
        return f"vec4<{scalar}>" if quads or channels == 4 else scalar

    def in_quads(self, i: int) -> bool:
        """Return True if four neighboring elements of this argument are loaded at once."""
        arg = self.program.args[i]
        if self.pattern not in ("quads", "table") or ITEMSIZE[arg.dtype] == 8:
            return False
        if arg.kind == "element":
            return self.inner[i] == 1 and (not self.pixelwise or self.axes == 1)
        return arg.kind == "pixel"

    def fetch(self, i: int, index: str) -> str:
        """Return one element of an argument's binding, of the type that :meth:`stored` returns."""
        if i in self.bound or i in self.aliased:
            return f"{self.bindings[i]}[{index}]"
        stored = self.stored(i)

        def joined() -> str:
            k = next(k for k, group in enumerate(self.joined) if i in group.args)
            group, program = self.joined[k], self.program
            place = group.args.index(i)
            start = self.member(
                f"{self.values[i]}_start", lambda g: group.starts(program, g)[place] // ALIGN
            )
            return group.fetch(self.shared[k], start, stored)

        return f"{self.function(f'{self.values[i]}_joined', stored, joined)}({index})"

    def function(self, wish: str, type_: str, value: Callable[[], str]) -> str:
        """Return the name of a function of ``i: u32``; it is written on the first call."""
        if wish not in self._made:
            name = self._made[wish] = self.names.new(wish)
            text = f"fn {name}(i: u32) -> {type_} {{\n    return {value()};\n}}"
            self.functions.append(text)
        return self._made[wish]

    # the uniform block

    def member(self, name: str, value: Callable[[Geometry], int], type_: str = "u32") -> str:
        """Add a number of the geometry to the uniform block, and return its expression."""
        self.members.setdefault(name, (type_, value))
        return f"p.{name}"

    def extent(self, argument: int, axis: int) -> str:
        """Return the size of an argument (-1: the output) along an axis, as ``dim`` defines it."""
        name = "out" if argument < 0 else self.values[argument]
        return self.member(f"{name}_dim_{axis}", lambda g: g.extent(argument, axis), "i32")

    def size(self, i: int, axis: int) -> str:
        """Return the size of an image or array along an axis; 1 if it is empty."""
        member = f"{self.values[i]}_size_{axis}"
        return self.member(member, lambda g: max(g.shapes[i][axis], 1), "i32")

    def count(self) -> str:
        """Return the number of positions."""
        return self.member("count", lambda g: g.count)

    def dim(self, axis: int) -> str:
        """Return the extent of the positions along an axis."""
        return self.member(f"dim_{axis}", lambda g: g.dims[axis])

    def step(self, i: int, axis: int, unit: int) -> str:
        """Return an argument's stride along an axis, in numbers or in quads."""
        return self.member(f"{self.values[i]}_step_{axis}", lambda g: g.strides[i][axis] // unit)

    # one number, one pixel

    def byte(self, i: int) -> str:
        """Return a function that reads one u8 of an argument."""
        return self.function(
            f"{self.values[i]}_byte",
            "i32",
            lambda: f"i32(({self.fetch(i, 'i >> 2u')} >> ((i & 3u) * 8u)) & 255u)",
        )

    def item(self, i: int, index: str) -> str:
        """Return one number of an argument that is not bound in quads."""
        if self.program.args[i].dtype == "u8":
            return f"{self.byte(i)}({index})"
        return self.fetch(i, index)

    def four(self, i: int, index: str) -> str:
        """Return four numbers of an argument, which are one element of its binding."""
        found = self.fetch(i, index)
        return self.helped("unpack_u8", found) if self.program.args[i].dtype == "u8" else found

    def helped(self, helper: str, argument: str) -> str:
        """Return a call of a helper function."""
        self.helpers.add(helper)
        return f"{helper}({argument})"

    def pixel(self, i: int, index: str) -> str:
        """Return one pixel of an argument that is not bound in quads; ``index`` is a name."""
        arg = self.program.args[i]
        n = arg.channels
        if n == 1:
            return self.item(i, index)
        if n == 4 and ITEMSIZE[arg.dtype] <= 4:
            return self.four(i, index)
        parts = [self.item(i, f"{index} * {n}u + {c}u") for c in range(n)]
        return f"{vector(LOADED[arg.dtype], n)}({', '.join(parts)})"

    def reader(self, i: int) -> str:
        """Return a function that reads an image at an offset or an array at indices, clamped."""
        arg = self.program.args[i]
        name = self.names.new(f"read_{arg.name}")

        if arg.kind == "image":
            # Clamp the offset before adding it, so that the sum does not overflow.
            lines = [
                f"fn {name}(x: i32, y: i32, dx: i32, dy: i32) -> "
                f"{vector(LOADED[arg.dtype], arg.channels)} {{",
                f"    let column = u32(x + clamp(dx, -x, {self.size(i, 1)} - 1i - x));",
                f"    let row = u32(y + clamp(dy, -y, {self.size(i, 0)} - 1i - y));",
                f"    let i = row * u32({self.size(i, 1)}) + column;",
                f"    return {self.pixel(i, 'i')};",
            ]
        else:
            flat = "0u"
            for k in range(arg.rank):
                clamped = f"u32(clamp(i{k}, 0i, {self.size(i, k)} - 1i))"
                flat = clamped if k == 0 else f"({flat}) * u32({self.size(i, k)}) + {clamped}"
            indexes = ", ".join(f"i{k}: i32" for k in range(arg.rank))
            lines = [
                f"fn {name}({indexes}) -> {WGSL_TYPE[LOADED[arg.dtype]]} {{",
                f"    let i = {flat};",
                f"    return {self.item(i, 'i')};",
            ]
        self.functions.append("\n".join([*lines, "}"]))
        return name

    # everything at one position

    def where(self, linear: str) -> list[str]:
        """Return lines that compute the indices (i32) of a position from its number, if used."""
        if not self.positions:
            return []

        def size(axis: int) -> str:
            return self.member(f"out_size_{axis}", lambda g: g.out_shape[axis])

        sizes = [size(axis) for axis in range(1, self.program.rank)]
        return unravel(linear, list(self.at), sizes, "up", "i32")

    def gather(self, linear: str, skip: Set[int] = frozenset()) -> list[str]:
        """Return lines that load the arguments of ``kernel`` at one position."""
        lines: list[str] = []
        walked: list[str] = []
        for i in (i for i in self.passed if i not in skip):
            if self.program.args[i].kind == "pixel":
                lines.append(f"let {self.values[i]} = {self.pixel(i, linear)};")
                continue
            if i in self.aliased or (self.axes == 1 and self.inner[i] == 1):
                index = linear
            elif self.axes == 1:
                index = "0u"
            else:
                if not walked:
                    walked = [f"d{k}" for k in range(self.axes)]
                    sizes = [self.dim(k) for k in range(1, self.axes)]
                    lines += unravel(linear, walked, sizes, "rest")
                index = self.index(i, walked)
            lines.append(f"let {self.values[i]} = {self.item(i, index)};")
        return lines

    def index(self, i: int, walked: list[str], unit: int = 1) -> str:
        """Return the index of an element from the indices along the axes."""
        terms = [f"{at} * {self.step(i, k, unit)}" for k, at in enumerate(walked[:-1])]
        if self.inner[i] == 1:
            terms.append(walked[-1])
        return " + ".join(terms) or "0u"


def vector(type_: str, n: int) -> str:
    """Return the WGSL type of ``n`` numbers of an IR type."""
    return WGSL_TYPE[type_] if n == 1 else f"vec{n}<{WGSL_TYPE[type_]}>"


def unravel(
    linear: str, names: list[str], sizes: list[str], rest: str, type_: str = ""
) -> list[str]:
    """Return lines that split a number into indices; ``sizes`` has all axes but the first.

    ``rest`` is the prefix of the remainders' names.
    """
    lines, left = [], linear
    for k in range(len(names) - 1, 0, -1):
        remainder = f"{left} % {sizes[k - 1]}"
        lines.append(f"let {names[k]} = {f'{type_}({remainder})' if type_ else remainder};")
        lines.append(f"let {rest}{k} = {left} / {sizes[k - 1]};")
        left = f"{rest}{k}"
    return [*lines, f"let {names[0]} = {f'{type_}({left})' if type_ else left};"]
