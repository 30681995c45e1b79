"""Write the ``main`` of shaders whose invocations compute four positions, or look up many bytes."""

from __future__ import annotations

from dala.gpu.compute.engines.webgpu.rewrite.tables import copied_channels
from dala.gpu.compute.engines.webgpu.wgsl.loads import Reading, unravel, vector
from dala.gpu.compute.engines.webgpu.wgsl.names import indented, text_of
from dala.gpu.compute.engines.webgpu.wgsl.shader import TABLE_QUADS
from dala.gpu.compute.lang.ir import LOADED


class Quads(Reading):
    """Writes entry points, and those of four positions."""

    #: Whether ``main`` calls ``kernel`` in a loop.
    looped = False

    # the kernel

    def kind(self, i: int) -> str:
        """Return the kind of an argument."""
        return self.program.args[i].kind

    def result_type(self) -> str:
        """Return the type that ``kernel`` returns."""
        return vector(LOADED[self.program.out.dtype], self.channels)

    def signature(self) -> list[str]:
        """Return the parameters of ``kernel``: loaded arguments, neighbors, positions."""
        names = [(i, self.values[i]) for i in self.passed]
        names += [(i, name) for (i, _, _), name in self.near.items()]
        loaded = []
        for i, name in names:
            arg = self.program.args[i]
            channels = 1 if arg.kind == "element" else arg.channels
            loaded.append(f"{name}: {vector(LOADED[arg.dtype], channels)}")
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
            *indented(lines),
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
            return [f"output[{index}] = {self.helped('pack_u8', value)};"]
        if self.channels == 1 or self.stored(-1).startswith("vec4"):
            return [f"output[{index}] = {value};"]
        lines = [f"let result = {value};"]
        for c in range(self.channels):
            place = f"{index} * {self.channels}u + {c}u"
            lines.append(f"output[{place}] = result.{'xyzw'[c]};")
        return lines

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
        head = f"fn at(e: u32) -> {self.result_type()} {{"
        self.functions.append(f"{head}\n{text_of(lines)}\n}}")
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
        for i in self.passed:
            name = self.values[i]
            if self.in_quads(i):
                index = "i" if i in self.aliased else self.index(i, walked, 4)
                load = self.four(i, index)
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
        together = {i for i in self.passed if self.in_quads(i)}
        for i in sorted(together):
            more, parts = self.four_pixels(i)
            lines += more
            for k in range(4):
                calls[k][self.values[i]] = parts[k]
        if not self.positions and len(together) == len(self.passed):
            return lines + self.results(calls) + self.store_four()
        if self.looped:  # load positions and arguments with other strides for each pixel
            each = ["let ek = e + k;", *self.where("ek"), *self.gather("ek", together)]
            return lines + self.results_in_loop(calls, each) + self.store_four()
        for k in range(4):
            lines += [
                f"var r{k}: {self.result_type()};",
                "{",
                f"    let e{k} = min(e + {k}u, {self.count()} - 1u);",
                *indented([*self.where(f"e{k}"), *self.gather(f"e{k}", together)]),
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
            entry = self.helped("pack_u8", self.call(**{self.values[i]: "vec4<i32>(i32(n))"}))
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
        # Not in a loop of one turn, with which SwiftShader compiles `gamma` for 20 s.
        turns = f"for (var n = lane; n < 256u; n += {self.workgroup}u)"
        head = "{ let n = lane;" if self.workgroup == 256 else f"{turns} {{"
        return self.main([
            f"{head} table[n] = {entry}; }}",
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
            *indented(each),
            f"    r[k] = {call or self.call(**named)};",
            "}",
            *(f"let r{k} = r[{k}];" for k in range(4)),
        ]

    def four_pixels(self, i: int) -> tuple[list[str], list[str]]:
        """Return lines that load four neighboring pixels of an argument, and their expressions."""
        arg, name = self.program.args[i], self.values[i]
        n = arg.channels
        if arg.dtype == "u8" and n == 4:
            words = self.names.new(f"{name}_words")
            pixels = [self.helped("unpack_u8", f"{words}.{c}") for c in "xyzw"]
            return [f"let {words} = {self.fetch(i, 'i')};"], pixels
        lines, numbers = [], []
        for k in range(n):
            four = name if n == 1 else self.names.new(f"{name}{k}")
            load = self.four(i, "i" if n == 1 else f"i * {n}u + {k}u")
            lines.append(f"let {four} = {load};")
            numbers += [f"{four}.{c}" for c in "xyzw"]
        if n == 1:
            return lines, numbers
        type_ = vector(LOADED[arg.dtype], n)
        return lines, [f"{type_}({', '.join(numbers[k * n : k * n + n])})" for k in range(4)]

    def store_four(self) -> list[str]:
        """Return lines that store r0 to r3; a vec4 beyond the end is not written."""
        n, u8 = self.channels, self.program.out.dtype == "u8"
        if u8 and n == 4:
            packed = ", ".join(self.helped("pack_u8", f"r{k}") for k in range(4))
            return [f"output[i] = vec4<u32>({packed});"]
        numbers = [f"r{k}" if n == 1 else f"r{k}.{c}" for k in range(4) for c in "xyzw"[:n]]
        type_ = vector(LOADED[self.program.out.dtype], 4)
        lines = []
        for k in range(n):
            value = f"{type_}({', '.join(numbers[k * 4 : k * 4 + 4])})"
            value = self.helped("pack_u8", value) if u8 else value
            place = "i" if n == 1 else f"i * {n}u + {k}u"
            line = f"output[{place}] = {value};"
            if k > 0:
                fours = self.member("fours", lambda g: -(-g.count * n // 4))
                line = f"if ({place} < {fours}) {{ {line} }}"
            lines.append(line)
        return lines
