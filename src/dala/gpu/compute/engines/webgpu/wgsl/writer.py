"""Write the ``main`` of a shader, which computes the position, runs the kernel and stores."""

from __future__ import annotations

import struct

from dala.gpu.compute.engines.webgpu.rewrite.ranges import find_ranges
from dala.gpu.compute.engines.webgpu.wgsl.body import WgslBody
from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_source
from dala.gpu.compute.engines.webgpu.wgsl.loads import READ_BY_FUNCTION
from dala.gpu.compute.engines.webgpu.wgsl.names import WGSL_TYPE
from dala.gpu.compute.engines.webgpu.wgsl.offsets import MAX_OFFSET
from dala.gpu.compute.engines.webgpu.wgsl.quads import Quads
from dala.gpu.compute.engines.webgpu.wgsl.shader import (
    PACK,
    STRIP,
    TABLE_QUADS,
    TILE,
    BlockLayout,
    Shader,
)
from dala.gpu.compute.lang.ir import Param, values


class ShaderWriter(Quads):
    """Writes one shader."""

    # the whole text

    def write(self, *, looped: bool = False, apart: bool = False, ordinary: bool = False) -> Shader:
        """Return the complete shader, with calls of ``kernel`` in a loop if asked for.

        ``apart`` puts each loop of the program into one that runs once. ``ordinary`` parameters are
        small enough that numbers computed from bytes are neither NaN nor infinite.
        """
        self.looped = looped
        program = self.program
        params = [self.names.new(_param_name(param)) for param in program.params]
        types = ["u32" if p.type == "bool" else WGSL_TYPE[p.type] for p in program.params]
        free = [
            i
            for i in sorted(self.looked)
            if self.kind(i) in READ_BY_FUNCTION and i not in self.offsets
        ]
        readers = {i: self.reader(i) for i in free}
        body = WgslBody(
            program,
            self.names.inner(),
            loaded=dict(enumerate(self.values)),
            positions=self.at,
            readers=readers,
            params=tuple(f"p.{name}" for name in params),
            dims={v.attr: self.extent(*v.attr) for v in values(program.body) if v.op == "dim"},
            near=self.near,
            metering=self.metering,
            apart=apart,
            ranges=find_ranges(program) if ordinary else None,
        )
        if apart:
            self.member("once", lambda g: 1)
        if self.metering is not None:
            self.member("first", lambda g: 0)
            if self.metering.cut:
                self.member("zero", lambda g: 0)
        kernel = body.lines()
        self.helpers |= body.helpers
        main = getattr(self, f"main_{self.pattern}")()
        helpers = helper_source(self.helpers) if self.helpers else ""
        if "p.zero" in helpers:
            self.member("zero", lambda g: 0)
        return Shader(
            source="\n".join([
                f"// {program.name}: {self.describe()}",
                "",
                *self.block_struct(params, types),
                "",
                *self.bind(),
                "",
                *([helpers] if helpers else []),
                *(function + "\n" for function in self.functions),
                f"fn kernel({', '.join(self.signature())}) -> {self.result_type()} {{",
                *kernel,
                "}",
                "",
                *main,
                "",
            ]),
            pattern=self.pattern,
            bound=self.bound,
            block=self.block_layout(types),
            workgroup=self.workgroup,
            joined=self.joined,
        )  # fmt: skip

    def describe(self) -> str:
        """Return a comment that describes the generated ``main``."""
        what = "pixel" if self.pixelwise else "element"
        return {
            "quads": f"each invocation computes four {what}s",
            "single": f"each invocation computes one {what}",
            "bytes": f"each invocation computes four {what}s, one word",
            "table": f"each invocation looks up {4 * TABLE_QUADS} {what}s in a table of bytes",
            "tiles": f"each invocation computes one {what}, in tiles {TILE} wide",
            "strips": f"each invocation computes {STRIP} {what}s of a column",
        }[self.pattern]

    def block_struct(self, params: list[str], types: list[str]) -> list[str]:
        """Return the declaration of the uniform block."""
        typed = [f"    {name}: {type_}," for name, type_ in zip(params, types, strict=True)]
        wide = [line for line, type_ in zip(typed, types, strict=True) if type_ in ("f64", "i64")]
        return [
            "struct Block {",
            *wide,
            *(f"    {name}: {type_}," for name, (type_, _) in self.members.items()),
            *(line for line in typed if line not in wide),
            "}",
        ]

    def block_layout(self, types: list[str]) -> BlockLayout:
        """Return the layout of the uniform block."""
        params = sorted(enumerate(types), key=lambda item: item[1] not in ("f64", "i64"))
        wide = sum(type_ in ("f64", "i64") for type_ in types)
        order = [type_ for _, type_ in params]
        order[wide:wide] = [type_ for type_, _ in self.members.values()]
        form = "<" + "".join(PACK[type_] for type_ in order)
        form += "x" * (-struct.calcsize(form) % 16)
        statics = tuple(value for _, value in self.members.values())
        first = list(self.members).index("first") if self.metering is not None else None
        return BlockLayout(statics, tuple(params), wide, struct.Struct(form), first)

    def bind(self) -> list[str]:
        """Return the declarations of all bindings."""
        read = [f"{self.bindings[i]}: array<{self.stored(i)}>" for i in self.bound]
        read += [
            f"{name}: array<{group.element}>"
            for name, group in zip(self.shared, self.joined, strict=True)
        ]
        n = len(read)
        return [
            *(f"@group(0) @binding({k}) var<storage, read> {text};" for k, text in enumerate(read)),
            f"@group(0) @binding({n}) var<storage, read_write> output: array<{self.stored(-1)}>;",
            *(
                [f"@group(0) @binding({n + 1}) var<storage, read_write> over: atomic<u32>;"]
                if self.metering is not None
                else []
            ),
            f"@group(0) @binding({n + 1 + (self.metering is not None)}) var<uniform> p: Block;",
            *(["var<private> left: i32;"] if self.metering is not None else []),
        ]

    def main_single(self) -> list[str]:
        """Return lines for one position per invocation, in order."""
        return self.main([
            f"let e = {self.number()};",
            f"if (e >= {self.count()}) {{ return; }}",
            *self.where("e"),
            *self.gather("e"),
            *self.store("e", self.call()),
        ])  # fmt: skip

    def main_tiles(self) -> list[str]:
        """Return lines for one pixel per invocation; a workgroup is a rectangle of pixels."""
        width = self.member("width", lambda g: g.out_shape[1])
        height = self.member("height", lambda g: g.out_shape[0])
        across = self.member("tiles_across", lambda g: -(-g.out_shape[1] // TILE))
        y, x = self.at
        return self.main([
            f"let tile = {self.group()};",
            f"let column = (tile % {across}) * {TILE}u + lane % {TILE}u;",
            f"let row = (tile / {across}) * {self.workgroup // TILE}u + lane / {TILE}u;",
            f"if (column >= {width} || row >= {height}) {{ return; }}",
            f"let e = row * {width} + column;",
            *([f"let {y} = i32(row);"] if 0 in self.positions else []),
            *([f"let {x} = i32(column);"] if 1 in self.positions else []),
            *self.gather("e"),
            *self.store("e", self.call()),
        ])  # fmt: skip

    # a few pixels of a column per invocation

    def main_strips(self) -> list[str]:
        """Return lines for one strip per invocation; the strips of a workgroup are side by side."""
        width = self.member("width", lambda g: g.out_shape[1])
        height = self.member("height", lambda g: g.out_shape[0])
        across = self.member("tiles_across", lambda g: -(-g.out_shape[1] // TILE))
        lines = [
            f"let tile = {self.group()};",
            f"let column = (tile % {across}) * {TILE}u + lane % {TILE}u;",
            f"let strip = (tile / {across}) * {self.workgroup // TILE}u + lane / {TILE}u;",
            f"let row = strip * {STRIP}u;",
            f"if (column >= {width} || row >= {height}) {{ return; }}",
            "let e0 = row * p.width + column;",
            *(
                f"let e{k} = min(row + {k}u, {height} - 1u) * {width} + column;"
                for k in range(1, STRIP)
            ),
        ]
        near = self.load_near(lines)
        named: list[dict[str, str]] = []
        for k in range(STRIP):
            given = {name: near[i, dx, dy + k] for (i, dx, dy), name in self.near.items()}
            for i in sorted(self.looked):
                if self.kind(i) == "pixel":
                    given[self.values[i]] = self.names.new(f"{self.values[i]}_{k}")
                    lines.append(f"let {given[self.values[i]]} = {self.pixel(i, f'e{k}')};")
            given[self.at[0]] = f"i32(min(row + {k}u, {height} - 1u))" if k else "i32(row)"
            given[self.at[1]] = "i32(column)"
            named.append(given)
        # Compute all results before storing any, so that the compiler can share common work.
        lines += [f"let r{k} = {self.call(**given)};" for k, given in enumerate(named)]
        for k in range(STRIP):
            lines.append(f"if (row + {k}u < {height}) {{" if k else "{")
            lines += ["    " + line for line in self.store(f"e{k}", f"r{k}")]
            lines.append("}")
        return self.main(lines)

    def load_near(self, lines: list[str]) -> dict[tuple[int, int, int], str]:
        """Add lines that load the neighbors of a strip; return names by argument, dx and row."""
        found: dict[tuple[int, int, int], str] = {}
        for i, pairs in self.offsets.items():
            wanted = {(dy + k, dx) for dx, dy in pairs for k in range(STRIP)}
            across, down = self.size(i, 1), self.size(i, 0)
            columns, rows = {}, {}
            for dx in sorted({dx for _, dx in wanted}):
                columns[dx] = self.names.new(f"{self.values[i]}_column_{dx + MAX_OFFSET}")
                place = f"i32(column) + {dx}i" if dx >= 0 else f"i32(column) - {-dx}i"
                lines.append(f"let {columns[dx]} = u32(clamp({place}, 0i, {across} - 1i));")
            for dy in sorted({dy for dy, _ in wanted}):
                rows[dy] = self.names.new(f"{self.values[i]}_row_{dy + MAX_OFFSET}")
                place = f"i32(row) + {dy}i" if dy >= 0 else f"i32(row) - {-dy}i"
                lines.append(f"let {rows[dy]} = u32(clamp({place}, 0i, {down} - 1i) * {across});")
            for dy, dx in sorted(wanted):
                place = self.names.new(f"{self.values[i]}_at")
                name = found[i, dx, dy] = self.names.new(f"{self.values[i]}_here")
                lines.append(f"let {place} = {rows[dy]} + {columns[dx]};")
                lines.append(f"let {name} = {self.pixel(i, place)};")
        return found


def _param_name(param: Param) -> str:
    return f"param_{param.name}" + ("" if param.component is None else f"_{param.component}")
