"""Write the ``main`` of a shader, which computes the position, runs the kernel and stores."""

from __future__ import annotations

import struct

from dala.gpu.compute.engines.webgpu.rewrite.tables import copied_channels
from dala.gpu.compute.engines.webgpu.wgsl.body import WgslBody
from dala.gpu.compute.engines.webgpu.wgsl.helpers import helper_source
from dala.gpu.compute.engines.webgpu.wgsl.loads import READ_BY_FUNCTION, Reading, unravel, vector
from dala.gpu.compute.engines.webgpu.wgsl.names import WGSL_TYPE
from dala.gpu.compute.engines.webgpu.wgsl.offsets import MAX_OFFSET
from dala.gpu.compute.engines.webgpu.wgsl.shader import (
    PACK,
    STRIP,
    TABLE_QUADS,
    TILE,
    BlockLayout,
    Shader,
)
from dala.gpu.compute.lang.ir import LOADED, Param, values


class ShaderWriter(Reading):
    """Writes one shader."""

    # the whole text

    #: Whether ``main`` calls ``kernel`` in a loop.
    looped = False

    def write(self, *, looped: bool = False, apart: bool = False) -> Shader:
        """Return the complete shader, with calls of ``kernel`` in a loop if asked for.

        ``apart`` puts each loop of the program into one that runs once.
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

    # the kernel

    def kind(self, i: int) -> str:
        """Return the kind of an argument."""
        return self.program.args[i].kind

    def result_type(self) -> str:
        """Return the type that ``kernel`` returns."""
        return vector(LOADED[self.program.out.dtype], self.channels)

    def signature(self) -> list[str]:
        """Return the parameters of ``kernel``: loaded arguments, neighbors, positions."""
        loaded = [
            f"{self.values[i]}: "
            + vector(LOADED[arg.dtype], arg.channels if arg.kind == "pixel" else 1)
            for i, arg in enumerate(self.program.args)
            if i in self.looked and arg.kind not in READ_BY_FUNCTION
        ]
        for (i, _, _), name in self.near.items():
            arg = self.program.args[i]
            loaded.append(f"{name}: {vector(LOADED[arg.dtype], arg.channels)}")
        return loaded + [f"{name}: i32" for k, name in enumerate(self.at) if k in self.positions]

    def call(self, **named: str) -> str:
        """Return a call of ``kernel``; ``named`` replaces the default names."""
        args = [part.split(":")[0] for part in self.signature()]
        return f"kernel({', '.join(named.get(a, a) for a in args)})"

    # one position per invocation

    def main(self, lines: list[str]) -> list[str]:
        """Return the entry point with these lines."""
        return [
            f"@compute @workgroup_size({self.workgroup})",
            "fn main(@builtin(workgroup_id) group: vec3<u32>,",
            "        @builtin(num_workgroups) groups: vec3<u32>,",
            "        @builtin(local_invocation_index) lane: u32) {",
            *("    " + line for line in lines),
            "}",
        ]

    def number(self) -> str:
        """Return the invocation's number; workgroups are in rows of at most 65535."""
        return f"({self.group()}) * {self.workgroup}u + lane"

    def group(self) -> str:
        """Return the number of the workgroup."""
        here = "group.y * groups.x + group.x"
        return here if self.metering is None else f"{here} + p.first"

    def store(self, index: str, value: str) -> list[str]:
        """Return lines that store one position's result."""
        if self.channels == 4 and self.program.out.dtype == "u8":
            self.helpers.add("pack_u8")
            return [f"output[{index}] = pack_u8({value});"]
        if self.channels == 1 or self.stored(-1).startswith("vec4"):
            return [f"output[{index}] = {value};"]
        lines = [f"let result = {value};"]
        for c in range(self.channels):
            place = f"{index} * {self.channels}u + {c}u"
            lines.append(f"output[{place}] = result.{'xyzw'[c]};")
        return lines

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

    # four positions per invocation

    def begin_four(self) -> list[str]:
        """Return lines that compute the quad ``i`` and its first position ``e``."""
        return [
            f"let i = {self.number()};",
            f"if (i >= {self.member('quads', lambda g: -(-g.count // 4))}) {{ return; }}",
            "let e = i * 4u;",
        ]

    def main_bytes(self) -> list[str]:
        """Return lines for four u8 per invocation, loaded one by one."""
        lines = [*self.where("e"), *self.gather("e"), f"return {self.call()};"]
        inside = "\n".join("    " + line for line in lines)
        self.functions.append(f"fn at(e: u32) -> {self.result_type()} {{\n{inside}\n}}")
        if self.looped:
            results = self.results_in_loop([{}] * 4, [], "at(e + k)")
        else:
            results = [f"let r{k} = at(min(e + {k}u, {self.count()} - 1u));" for k in range(4)]
        return self.main([*self.begin_four(), *results, *self.store_four()])

    def main_quads(self) -> list[str]:
        """Return lines for four positions per invocation, loaded and stored together."""
        return self.main(self.quad_of_pixels() if self.pixelwise else self.quad_of_elements())

    def quad_of_elements(self) -> list[str]:
        """Return lines of ``main`` for four elements."""
        lines = self.begin_four()
        walked = ["i"]
        if self.axes > 1:
            row = self.member("row_quads", lambda g: g.dims[-1] // 4)
            walked = [*(f"d{k}" for k in range(self.axes - 1)), "q"]
            sizes = [*(self.dim(k) for k in range(1, self.axes - 1)), row]
            lines += unravel("i", walked, sizes, "rest")
        calls: list[dict[str, str]] = [{}, {}, {}, {}]
        for i, arg in enumerate(self.program.args):
            if i not in self.looked or arg.kind in READ_BY_FUNCTION:
                continue
            name = self.values[i]
            if self.in_quads(i):
                index = "i" if i in self.aliased else self.index(i, walked, 4)
                load = self.fetch(i, index)
                if arg.dtype == "u8":
                    self.helpers.add("unpack_u8")
                    load = f"unpack_u8({load})"
                parts = [f"{name}.{c}" for c in "xyzw"]
            elif self.inner[i] == 0:
                load, parts = self.item(i, self.index(i, walked)), [name] * 4
            else:  # 64-bit: the name is the index of the four
                load = self.index(i, [*walked[:-1], f"{walked[-1]} * 4u"])
                parts = [self.item(i, f"{name} + {k}u") for k in range(4)]
            lines.append(f"let {name} = {load};")
            for k in range(4):
                calls[k][name] = parts[k]
        for axis in self.positions:
            inner = axis == self.program.rank - 1
            first = "e" if self.axes == 1 else "q * 4u" if inner else f"d{axis}"
            for k in range(4):
                calls[k][self.at[axis]] = f"i32({first} + {k}u)" if inner else f"i32({first})"
        return lines + self.results(calls) + self.store_four()

    def quad_of_pixels(self) -> list[str]:
        """Return lines of ``main`` for four pixels."""
        lines = self.begin_four()
        calls: list[dict[str, str]] = [{}, {}, {}, {}]
        together = {
            i for i in self.looked if self.kind(i) not in READ_BY_FUNCTION and self.in_quads(i)
        }
        for i in sorted(together):
            more, parts = self.four_pixels(i)
            lines += more
            for k in range(4):
                calls[k][self.values[i]] = parts[k]
        alone = [
            i for i in self.looked if self.kind(i) not in READ_BY_FUNCTION and i not in together
        ]
        if not self.positions and not alone:
            return lines + self.results(calls) + self.store_four()
        if self.looped:  # load positions and arguments with other strides for each pixel
            each = ["let ek = e + k;", *self.where("ek"), *self.gather("ek", together)]
            return lines + self.results_in_loop(calls, each) + self.store_four()
        for k in range(4):
            lines += [
                f"var r{k}: {self.result_type()};",
                "{",
                f"    let e{k} = min(e + {k}u, {self.count()} - 1u);",
                *("    " + line for line in self.where(f"e{k}")),
                *("    " + line for line in self.gather(f"e{k}", together)),
                f"    r{k} = {self.call(**calls[k])};",
                "}",
            ]
        return lines + self.store_four()

    # bytes by a table

    def main_table(self) -> list[str]:
        """Return lines that compute a table of bytes, then look up the bytes of many pixels."""
        (i,) = self.looked
        quads = self.member("quads", lambda g: -(-g.count // 4))
        if self.channels == 4:
            self.helpers.add("pack_u8")
            entry = f"pack_u8({self.call(**{self.values[i]: 'vec4<i32>(i32(n))'})})"
            value = f"vec4<u32>({', '.join(f'look_up(found.{c})' for c in 'xyzw')})"
        else:  # the same byte at all four places of a word
            entry = f"u32({self.call(**{self.values[i]: 'i32(n)'})}) * 0x01010101u"
            value = "look_up(found)"
        copied = copied_channels(self.program) if self.channels == 4 else set()
        parts = []
        for c in range(4):
            at = f"(word >> {8 * c}u) & 255u" if c else "word & 255u"
            whole = "word" if c in copied else f"table[{at}]"
            parts.append(f"({whole} & 0x{255 << 8 * c:08x}u)")
        self.functions.append(
            "var<workgroup> table: array<u32, 256>;\n\n"
            "// Each byte of a word by its entry; an entry has the results of all channels.\n"
            f"fn look_up(word: u32) -> u32 {{\n    return {' | '.join(parts)};\n}}"
        )
        return self.main([
            f"for (var n = lane; n < 256u; n += {self.workgroup}u) {{ table[n] = {entry}; }}",
            "workgroupBarrier();",
            f"let first = ({self.group()}) * {TABLE_QUADS * self.workgroup}u + lane;",
            f"for (var k = 0u; k < {TABLE_QUADS}u; k += 1u) {{",
            f"    let i = first + k * {self.workgroup}u;",
            f"    if (i < {quads}) {{",
            f"        let found = {self.fetch(i, 'i')};",
            f"        output[i] = {value};",
            "    }",
            "}",
        ])  # fmt: skip

    def results(self, calls: list[dict[str, str]]) -> list[str]:
        """Return lines that compute four results r0 to r3; ``calls`` has the names of each."""
        if self.looped:
            return self.results_in_loop(calls, [])
        texts = [self.call(**named) for named in calls]
        lines = [f"let r0 = {texts[0]};"]
        for k in (1, 2, 3):
            if self.loops:  # numbers beyond the end are arbitrary, and a loop over them may be long
                lines.append(f"var r{k}: {self.result_type()};")
                lines.append(f"if (e + {k}u < {self.count()}) {{ r{k} = {texts[k]}; }}")
            else:
                lines.append(f"let r{k} = {texts[k]};")
        return lines

    def results_in_loop(
        self, calls: list[dict[str, str]], each: list[str], call: str = ""
    ) -> list[str]:
        """Return lines that compute four results in a loop, so that ``kernel`` is there once.

        ``each`` are lines at the beginning of the loop, where ``k`` is the number of the result.
        ``call`` replaces the call of ``kernel``.
        """
        lines, named = [], {}
        for name, type_ in (part.split(": ") for part in self.signature()):
            texts = [of.get(name, name) for of in calls]
            if len(set(texts)) > 1:
                four = self.names.new(f"{name}_four")
                lines.append(f"var {four} = array<{type_}, 4>({', '.join(texts)});")
                named[name] = f"{four}[k]"
            elif name in calls[0]:
                named[name] = texts[0]
        return [
            *lines,
            f"var r: array<{self.result_type()}, 4>;",
            f"let last = min(4u, {self.count()} - e);",
            "for (var k = 0u; k < last; k += 1u) {",
            *("    " + line for line in each),
            f"    r[k] = {call or self.call(**named)};",
            "}",
            *(f"let r{k} = r[{k}];" for k in range(4)),
        ]

    def four_pixels(self, i: int) -> tuple[list[str], list[str]]:
        """Return lines that load four neighboring pixels of an argument, and their expressions."""
        arg, name = self.program.args[i], self.values[i]
        n = arg.channels
        if arg.dtype == "u8":
            self.helpers.add("unpack_u8")
            if n == 4:
                words = self.names.new(f"{name}_words")
                pixels = [f"unpack_u8({words}.{c})" for c in "xyzw"]
                return [f"let {words} = {self.fetch(i, 'i')};"], pixels
        lines, numbers = [], []
        for k in range(n):
            four = name if n == 1 else self.names.new(f"{name}{k}")
            load = self.fetch(i, "i" if n == 1 else f"i * {n}u + {k}u")
            lines.append(f"let {four} = {f'unpack_u8({load})' if arg.dtype == 'u8' else load};")
            numbers += [f"{four}.{c}" for c in "xyzw"]
        if n == 1:
            return lines, numbers
        type_ = vector(LOADED[arg.dtype], n)
        return lines, [f"{type_}({', '.join(numbers[k * n : k * n + n])})" for k in range(4)]

    def store_four(self) -> list[str]:
        """Return lines that store r0 to r3; a vec4 beyond the end is not written."""
        n, u8 = self.channels, self.program.out.dtype == "u8"
        if u8:
            self.helpers.add("pack_u8")
            if n == 4:
                packed = ", ".join(f"pack_u8(r{k})" for k in range(4))
                return [f"output[i] = vec4<u32>({packed});"]
        numbers = [f"r{k}" if n == 1 else f"r{k}.{c}" for k in range(4) for c in "xyzw"[:n]]
        type_ = vector(LOADED[self.program.out.dtype], 4)
        lines = []
        for k in range(n):
            value = f"{type_}({', '.join(numbers[k * 4 : k * 4 + 4])})"
            value = f"pack_u8({value})" if u8 else value
            place = "i" if n == 1 else f"i * {n}u + {k}u"
            line = f"output[{place}] = {value};"
            if k > 0:
                fours = self.member("fours", lambda g: -(-g.count * n // 4))
                line = f"if ({place} < {fours}) {{ {line} }}"
            lines.append(line)
        return lines


def _param_name(param: Param) -> str:
    return f"param_{param.name}" + ("" if param.component is None else f"_{param.component}")
