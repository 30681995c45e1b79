"""Translate calls of GLSL: constructors, functions of the text, built-in ones and images."""

from __future__ import annotations

from typing import Final

from dala.errors import did_you_mean
from dala.shaders.glsl.builtin import BUILTINS, DERIVATIVES, TEXTURES
from dala.shaders.glsl.expressions import GlslExpressions
from dala.shaders.glsl.terms import CASTS, PLACES, Expr, GlslFunction
from dala.shaders.glsl.tree import (
    BOOL,
    FLOAT,
    INT,
    KINDS,
    UINT,
    VEC2,
    VEC4,
    DeclaredName,
    GlslNode,
    GlslType,
)

IVEC2: Final = GlslType("int", 2)


class Calls(GlslExpressions):
    """Translates calls; :class:`GlslWriter` adds statements."""

    # calls ------------------------------------------------------------------------------------
    def _call(self, node: GlslNode) -> Expr:
        kind = node.kind or KINDS.get(node.text)
        if node.text in self.unit.tree.structs and node.text not in self.unit.functions:
            kind = GlslType("struct", struct=node.text)
        if kind is not None and kind.length:
            return self._array(node, kind)
        if kind is not None:
            return self._constructed(node, kind)
        if node.text in self.unit.functions:
            return self._called(node)
        if node.text in TEXTURES:
            return self._texture(node)
        if node.text in DERIVATIVES:
            return self.derivative(node)
        if node.text == "not":
            (inner,) = self.values(node.parts)
            return Expr((f"equal({inner.text}, False)",), inner.kind, depth=inner.depth + 1)
        if node.text not in BUILTINS:
            names = [*self.unit.functions, *BUILTINS, *TEXTURES]
            advice = did_you_mean(node.text, names) or "Declare it before."
            self.fail(node, f"there is no function {node.text!r}", advice)
        return self._builtin(node, self.values(node.parts))

    def need(self, function: GlslFunction, node: GlslNode) -> GlslFunction:
        """Translate a function, if that is not done; return the copy of it to call."""
        if self.loops and PLACES in function.writes:
            self._refuse_loop(node)
        return self.unit.need(function, node)

    def _refuse_loop(self, node: GlslNode) -> None:
        problem = f"{node.text} in a loop: a derivative there has no one value"
        self.fail(node, problem, "Move it out of the loop.")

    def derivative(self, node: GlslNode) -> Expr:
        """Translate a derivative: the value here, against that of the neighbor in the quad.

        Values here are kept in ``g_p``; ``g_a`` and ``g_b`` have those of the neighbors, or NaN.
        """
        given = self.values(node.parts)
        if len(given) != 1 or given[0].kind.base != "float" or given[0].kind.columns:
            self.fail(node, f"{node.text} takes one float or vector", "Convert the argument.")
        if self.loops:
            self._refuse_loop(node)
        made, size = given[0], given[0].kind.size
        site = self.unit.site(node)
        padded = ", ".join([made.text, *["0.0"] * (4 - size)])
        self.emit(f"g_p[{site}] = vec4({padded})" if size < 4 else f"g_p[{site}] = {made.text}")
        across, up = (
            f"{self.helper('derive_')}(g_{side}[{site}], g_p[{site}], g_s.{axis})"
            for side, axis in ("ax", "by")
        )
        text = {"dFdx": across, "dFdy": up, "fwidth": f"(abs({across}) + abs({up}))"}[node.text]
        return Expr((f"{text}.{'xyzw'[:size]}",), made.kind, depth=made.depth + 3)

    def _constructed(self, node: GlslNode, kind: GlslType) -> Expr:
        given = self.values(node.parts)
        if kind.base == "struct":
            members: list[DeclaredName] = self.unit.tree.structs[kind.struct]
            if len(members) != len(given):
                self.fail(node, f"{kind} takes {len(members)} values, got {len(given)}", "")
            parts = [self.fitted(e, m.kind, node) for e, m in zip(given, members, strict=True)]
            return Expr(tuple(t for e in parts for t in e.texts), kind)
        for e in given:
            if e.kind.base not in CASTS or e.kind.length or kind.base not in CASTS:
                self.fail(node, f"{kind}(...) takes numbers, got {e.kind}", "")
        if kind.columns:
            return self._matrix(node, kind, given)
        return self.vector(node, kind, given)

    def _matrix(self, node: GlslNode, kind: GlslType, given: list[Expr]) -> Expr:
        parts = [self.cast(e, "float") for e in given]
        total = sum(e.kind.size * (e.kind.columns or 1) for e in parts)
        one = len(parts) == 1 and (parts[0].kind.scalar or parts[0].kind.columns)
        count = kind.size * kind.columns
        if not one and total != count:
            self.fail(node, f"{kind}(...) takes {count} numbers, got {total}", "")
        text = f"{kind}({', '.join(e.text for e in parts)})"
        return Expr((text,), kind, depth=max(e.depth for e in parts) + 1)

    def _array(self, node: GlslNode, kind: GlslType) -> Expr:
        if kind.length != len(node.parts):
            self.fail(node, f"{kind} takes {kind.length} items, got {len(node.parts)}", "")
        given = [self.fitted(e, kind.item, node) for e in self.values(node.parts)]
        columns = zip(*(e.texts for e in given), strict=True)
        return Expr(tuple(f"[{', '.join(c)}]" for c in columns), kind, depth=2)

    def _called(self, node: GlslNode) -> Expr:
        """Translate a call of a function of the text."""
        given = self.values(node.parts)
        found = self._overload(node, given)
        if found is None:
            if node.text in BUILTINS:
                return self._builtin(node, given)
            kinds = ", ".join(str(e.kind) for e in given)
            self.fail(node, f"no function {node.text} takes ({kinds})", "Convert the arguments.")
        found = self.need(found, node)
        args: list[str] = []
        outs: list[str] = []
        for param, part, expr in zip(found.text.params, node.parts, given, strict=True):
            if param.words & {"out", "inout"}:
                place = self.target(part)
                outs += place.texts
                args += place.texts
            else:
                args += self.fitted(expr, param.kind, part).texts
                self.unit.used.update(expr.texts if expr.kind.base == "sampler" else ())
        for name in found.reads:
            args += self.scopes[0][name].texts
        for name in found.writes:
            outs += self.scopes[0][name].texts
        kind = found.text.kind
        results = () if kind.base == "void" else tuple(e for e, _ in self.leaves(kind))
        text = f"{found.name}({', '.join(args)})"
        self.line = node.line
        if not outs and len(results) == 1:
            return Expr((text,), kind, depth=max([e.depth for e in given], default=0) + 1)
        names = tuple(self.fresh() for _ in results)
        if names or outs:
            self.emit(f"{', '.join([*names, *outs])} = {text}")
        return Expr(names, kind)

    def _overload(self, node: GlslNode, given: list[Expr]) -> GlslFunction | None:
        def cost(f: GlslFunction) -> int:
            total = 0
            for param, e in zip(f.text.params, given, strict=True):
                if e.kind != param.kind:
                    widens = e.kind.base in ("int", "uint") and param.kind.base in ("uint", "float")
                    if not widens or e.kind._replace(base=param.kind.base) != param.kind:
                        return 1000
                    total += 1
            return total

        fits = [f for f in self.unit.functions[node.text] if len(f.text.params) == len(given)]
        best = min(fits, key=cost, default=None)
        return best if best is not None and cost(best) < 1000 else None

    def _builtin(self, node: GlslNode, given: list[Expr]) -> Expr:
        name = node.text
        row = BUILTINS[name]
        takes = next((t for t in row.takes if len(t) == len(given)), None)
        if takes is None:
            self.fail(node, f"{name} takes {len(row.takes[0])} arguments, got {len(given)}", "")
        if name == "mix" and given[2].kind.base == "bool":
            return self._selected(node, given)
        if name == "modf":
            return self._modf(node, given)
        given = self._prepared(node, takes, given)
        shape = max((e.kind for e in given), key=lambda k: (k.columns, k.size))
        if name in ("determinant", "inverse") and shape.columns != shape.size:
            self.fail(node, f"{name} takes square matrices, got {shape}", "")
        for e in given if name != "outerProduct" else ():
            if e.kind != shape and not e.kind.scalar:
                self.fail(node, f"{name} takes values of one size, got {e.kind} and {shape}", "")
        size = {"cross": 3, "packUnorm2x16": 2, "packSnorm2x16": 2, "packHalf2x16": 2}.get(name)
        if size is not None and shape != GlslType("float", size):
            self.fail(
                node, f"{name} takes vectors of {'two' if size == 2 else 'three'}, got {shape}", ""
            )
        text = "atan2" if name == "atan" and len(given) == 2 else row.text
        texts = [e.text for e in given]
        if all(e.value is not None for e in given):
            texts = [f"{CASTS[e.kind.base]}({e.text})" for e in given]
        kind = {
            "float": FLOAT, "bool": GlslType("bool", shape.size), "one bool": BOOL,
            "int": GlslType("int", shape.size), "uint": GlslType("uint", shape.size),
            "floats": GlslType("float", shape.size), "one uint": UINT, "vec2": VEC2,
            "turned": GlslType("float", shape.columns, shape.size),
            "outer": GlslType("float", given[0].kind.size, given[-1].kind.size),
        }.get(row.gives, shape)  # fmt: skip
        depth = max(e.depth for e in given) + 1
        return Expr((f"{text}({', '.join(texts)})",), kind, depth=depth)

    def _prepared(self, node: GlslNode, takes: str, given: list[Expr]) -> list[Expr]:
        found = []
        for letter, e in zip(takes, given, strict=True):
            wrong = e.kind.base not in CASTS or e.kind.length
            if letter in "F1M" and e.kind.base in ("int", "uint"):
                e = self.cast(e, "float")
            wrong = wrong or (letter in "F1M" and e.kind.base != "float")
            wrong = wrong or ((letter == "B") != (e.kind.base == "bool") and letter in "BNI")
            if wrong or bool(e.kind.columns) != (letter == "M"):
                self.fail(node, f"{node.text} does not take {e.kind}", "Convert the argument.")
            found.append(e)
        if takes[0] in "NA" and any(e.kind.base != "bool" for e in found):
            found = self.common(node, *found)
        return found

    def _selected(self, node: GlslNode, given: list[Expr]) -> Expr:
        first, second = self.common(node, given[0], given[1])
        text = f"where({given[2].text}, {second.text}, {first.text})"
        return Expr((text,), first.kind, depth=max(e.depth for e in given) + 1)

    def _modf(self, node: GlslNode, given: list[Expr]) -> Expr:
        (first,) = self._prepared(node, "F", given[:1])
        whole = self.kept(Expr((f"trunc({first.text})",), first.kind))
        first = self.kept(first)
        self.store(self.target(node.parts[1]), self.fitted(whole, given[1].kind, node))
        return Expr((f"({first.text} - {whole.text})",), first.kind, depth=1)

    # images -----------------------------------------------------------------------------------
    def _texture(self, node: GlslNode) -> Expr:
        name, letters = node.text, TEXTURES[node.text]
        given = self.values(node.parts)
        if not 1 <= len(given) <= len(letters) + 1 or given[0].kind.base != "sampler":
            self.fail(node, f"{name} takes an image first", "Pass a sampler2D or an image input.")
        img = given[0].text
        parts = dict(zip(letters, given[1:], strict=False))  # of two derivatives the second
        self.unit.used.add(img)
        level = parts.get("l") if self.unit.levels else None
        level = None if level is not None and level.value == 0 else level
        if name in ("IMG_SIZE", "textureSize"):
            return self._size(img, name, level and self.fitted(level, INT, node).text)
        own = name.startswith("IMG_THIS")
        if (own and self.unit.here) or self._is_here(node):
            return Expr((f"{self.helper('this_')}({img})",), VEC4, depth=1)
        if own:
            at = self._name(GlslNode("name", node.line, text="isf_FragNormCoord"))
        elif len(given) == 1:
            self.fail(node, f"{name} takes a place", "Pass a vec2.")
        else:
            at = given[1]
        at = self._place(node, letters[:1], at)
        if "o" in parts:
            by, size = self.fitted(parts["o"], IVEC2, node), self._size(img, "IMG_SIZE", None)
            by = by if letters[0] == "i" else self.cast(by, "float")
            shift = by.text if letters[0] == "i" else f"{by.text} / {size.text}"
            at = at._replace(texts=(f"({at.text} + {shift})",), depth=at.depth + 2)
        text, more = "texel_" if letters[:1] == "x" else "texture_", ""
        if letters[:1] == "i":
            text = "fetch_" if level is None else "fetchlod_"
            more = f", {self.fitted(level, INT, node).text}" if level is not None else ""
        elif level is not None:
            text, more = "lod_", f", {self.fitted(level, FLOAT, node).text}"
        elif self.unit.levels and "g" in parts:
            first, second = (self.fitted(e, VEC2, node) for e in given[2:4])
            text, more = "grad_", f", {first.text}, {second.text}"
        text += self.unit.edges.get(img, "clamp") if letters[:1] != "i" else ""
        return Expr((f"{self.helper(text)}({img}, {at.text}{more})",), VEC4, depth=at.depth + 1)

    def _size(self, img: str, name: str, level: str | None) -> Expr:
        sides = [f"{img}.width", f"{img}.height"]
        if name == "IMG_SIZE":
            return Expr((f"vec2({', '.join(f'f32({s})' for s in sides)})",), VEC2)
        if level is not None:
            sides = [f"max({s} >> {level}, 1)" for s in sides]
        return Expr((f"ivec2({', '.join(sides)})",), IVEC2)

    def _place(self, node: GlslNode, letter: str, at: Expr) -> Expr:
        """Return the place that an image is read at, as a vector of two."""
        if letter == "i":
            return self.fitted(at, IVEC2, node)
        size = at.kind.size
        if size > 2 and not at.kind.columns:
            at = self.kept(at) if letter == "q" else at
            text = f"{at.text}.xy"
            text = f"({text} / {at.text}.{'xyzw'[size - 1]})" if letter == "q" else text
            at = Expr((text,), GlslType(at.kind.base, 2), depth=at.depth + 1)
        elif letter == "q":
            self.fail(node, f"{node.text} takes a vec3 or vec4", "Its last number divides.")
        if at.kind.scalar:
            at = self.vector(node, VEC2, [at])
        return self.fitted(at, VEC2, node)

    def _is_here(self, node: GlslNode) -> bool:
        """Return whether an image is read at the pixel's own place."""
        if len(node.parts) != 2:
            return False
        place = node.parts[1]
        if place.op == "member" and place.text == "xy":
            place = place.parts[0]
        own = "gl_FragCoord" if node.text in ("IMG_PIXEL", "texture2DRect") else "isf_FragNormCoord"
        return place.op == "name" and place.text == own and own in self.unit.here
