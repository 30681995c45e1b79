"""Write the ``main`` of a shader, which computes the position, runs the kernel and stores."""

from __future__ import annotations

from dala.gpu.compute.engines.webgpu.rewrite.ranges import find_ranges
from dala.gpu.compute.engines.webgpu.wgsl.body import WgslBody
from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_source
from dala.gpu.compute.engines.webgpu.wgsl.loads import READ_BY_FUNCTION
from dala.gpu.compute.engines.webgpu.wgsl.names import bindings, indented, param_member
from dala.gpu.compute.engines.webgpu.wgsl.offsets import MAX_OFFSET, plus
from dala.gpu.compute.engines.webgpu.wgsl.quads import Quads
from dala.gpu.compute.engines.webgpu.wgsl.shader import (
    STRIP,
    TABLE_QUADS,
    TILE,
    BlockLayout,
    Metering,
    Shader,
    block_packer,
)
from dala.gpu.compute.lang.ir import values


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
        members = [param_member(param, "param") for param in program.params]
        params, types = [self.names.new(wish) for wish, _ in members], [kind for _, kind in members]
        free = [
            i
            for i in sorted(self.looked)
            if self.kind(i) in READ_BY_FUNCTION and i not in self.offsets
        ]
        readers = {i: self.reader(i) for i in free}
        body = WgslBody(
            program, self.names.inner(), loaded=dict(enumerate(self.values)), positions=self.at,
            readers=readers, params=tuple(f"p.{name}" for name in params),
            dims={v.attr: self.extent(*v.attr) for v in values(program.body) if v.op == "dim"},
            near=self.near, metering=self.metering or Metering(), apart=apart,
            ranges=find_ranges(program) if ordinary else {},
        )  # fmt: skip
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
        struct, layout = self.block(params, types)
        return Shader(
            source="\n".join([
                f"// {program.name}: {self.describe()}",
                "",
                *struct,
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
            block=layout,
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

    def block(self, names: list[str], types: list[str]) -> tuple[list[str], BlockLayout]:
        """Return the declaration of the uniform block with some parameters, and its layout."""
        params = sorted(enumerate(types), key=lambda item: item[1] not in ("f64", "i64"))
        wide = sum(type_ in ("f64", "i64") for type_ in types)
        order = [(names[i], type_) for i, type_ in params]
        order[wide:wide] = [(name, type_) for name, (type_, _) in self.members.items()]
        statics = tuple(value for _, value in self.members.values())
        first = list(self.members).index("first") if self.metering is not None else None
        packer = block_packer(type_ for _, type_ in order)
        lines = indented(f"{name}: {type_}," for name, type_ in order)
        layout = BlockLayout(statics, tuple(params), wide, packer, first)
        return ["struct Block {", *lines, "}"], layout

    def bind(self) -> list[str]:
        """Return the declarations of all bindings."""
        read = [f"{self.bindings[i]}: array<{self.stored(i)}>" for i in self.bound]
        read += [
            f"{name}: array<{group.element}>"
            for name, group in zip(self.shared, self.joined, strict=True)
        ]
        write, private = [f"output: array<{self.stored(-1)}>"], []
        if self.metering is not None:
            write, private = [*write, "over: atomic<u32>"], ["var<private> left: i32;"]
        return bindings(read, write) + private

    def main_single(self) -> list[str]:
        """Return lines for one position per invocation, in order."""
        return self.main([
            f"let e = {self.number()};",
            f"if (e >= {self.count()}) {{ return; }}",
            *self.where("e"),
            *self.gather("e"),
            *self.store("e", self.call()),
        ])  # fmt: skip

    def tile(self, down: str, *more: str) -> tuple[str, str, list[str]]:
        """Return width, height, and lines that compute an invocation's place in tiles of pixels."""
        width = self.member("width", lambda g: g.out_shape[1])
        height = self.member("height", lambda g: g.out_shape[0])
        across = self.member("tiles_across", lambda g: -(-g.out_shape[1] // TILE))
        lines = [
            f"let tile = {self.group()};",
            f"let column = (tile % {across}) * {TILE}u + lane % {TILE}u;",
            f"let {down} = (tile / {across}) * {self.workgroup // TILE}u + lane / {TILE}u;",
            *more,
            f"if (column >= {width} || row >= {height}) {{ return; }}",
        ]
        return width, height, lines

    def main_tiles(self) -> list[str]:
        """Return lines for one pixel per invocation; a workgroup is a rectangle of pixels."""
        width, _, lines = self.tile("row")
        y, x = self.at
        return self.main([
            *lines,
            f"let e = row * {width} + column;",
            *([f"let {y} = i32(row);"] if 0 in self.positions else []),
            *([f"let {x} = i32(column);"] if 1 in self.positions else []),
            *self.gather("e"),
            *self.store("e", self.call()),
        ])  # fmt: skip

    # a few pixels of a column per invocation

    def main_strips(self) -> list[str]:
        """Return lines for one strip per invocation; the strips of a workgroup are side by side."""
        width, height, lines = self.tile("strip", f"let row = strip * {STRIP}u;")
        lines += [
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
            head = f"if (row + {k}u < {height}) {{" if k else "{"
            lines += [head, *indented(self.store(f"e{k}", f"r{k}")), "}"]
        return self.main(lines)

    def load_near(self, lines: list[str]) -> dict[tuple[int, int, int], str]:
        """Add lines that load the neighbors of a strip; return names by argument, dx and row."""
        found: dict[tuple[int, int, int], str] = {}

        def clamped(i: int, word: str, step: int, end: str) -> str:
            name = self.names.new(f"{self.values[i]}_{word}_{step + MAX_OFFSET}")
            lines.append(f"let {name} = u32(clamp(i32({word}) {plus(step)}, 0i, {end});")
            return name

        for i, pairs in self.offsets.items():
            wanted = {(dy + k, dx) for dx, dy in pairs for k in range(STRIP)}
            across, down = self.size(i, 1), self.size(i, 0)
            columns = {
                dx: clamped(i, "column", dx, f"{across} - 1i)")
                for dx in sorted({dx for _, dx in wanted})
            }
            rows = {
                dy: clamped(i, "row", dy, f"{down} - 1i) * {across}")
                for dy in sorted({dy for dy, _ in wanted})
            }
            for dy, dx in sorted(wanted):
                place = self.names.new(f"{self.values[i]}_at")
                name = found[i, dx, dy] = self.names.new(f"{self.values[i]}_here")
                lines.append(f"let {place} = {rows[dy]} + {columns[dx]};")
                lines.append(f"let {name} = {self.pixel(i, place)};")
        return found
