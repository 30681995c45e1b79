"""GLSL from strangers: ISF files and Shadertoy texts, parsed and translated."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import dala
from dala.shaders import isf, shadertoy
from tests.fuzz.mutate import mutate
from tests.fuzz.target import Target, digest

HEAD = b"""/*{"INPUTS": [{"NAME": "inputImage", "TYPE": "image"},
{"NAME": "level", "TYPE": "float", "MIN": 0, "MAX": 2, "DEFAULT": 1},
{"NAME": "mode", "TYPE": "long", "VALUES": [0, 1], "DEFAULT": 0}],
"PASSES": [{"TARGET": "kept", "PERSISTENT": true, "FLOAT": true}, {}]}*/"""

BODY = b"""
#define TWICE(x) ((x) * 2.0)
const float table[3] = float[3](1.0, 2.0, 3.0);
struct Ray { vec3 at; float far; };
vec2 turn(vec2 p, float a) { return mat2(cos(a), sin(a), -sin(a), cos(a)) * p; }
void both(inout float a, out vec2 b) { b = vec2(a++, --a); if (b.x > 1.0) return; a *= 2.0; }
void main() {
    vec2 p = gl_FragCoord.xy / RENDERSIZE.xy - 0.5, q;
    float s = 0.0; Ray r = Ray(vec3(p, 1.0), 2.0);
    for (int i = 0; i < 3; i++) { if (i == 1) continue; s += table[i] * TWICE(r.far); }
    for (float x = 0.0; x < 1.0; x += 0.5) { p = turn(p, s); }
    int k = int(s); while (k > 2) { k /= 2; } do { k--; } while (k > 0);
    switch (k) { case 0: s += 1.0; break; default: s = mod(s, 1.0); }
    both(s, q); r.at.xz += q.yx; bool ok = s > 0.5 && (k++ < 3) || any(lessThan(q, p));
    vec4 c = IMG_NORM_PIXEL(inputImage, q) + texture(kept, p) * dFdx(s) * level;
    if (PASSINDEX == 1 && mode > 0) discard;
    gl_FragColor = ok ? vec4(r.at, fract(s)) : mix(c, vec4(1.0), smoothstep(0.0, 1.0, s));
}
"""

TOY = b"""
float hash(vec2 p) { return fract(sin(dot(p, vec2(12.9898, 78.233))) * 43758.5453); }
mat3 look(vec3 a) { vec3 w = normalize(a), u = normalize(cross(w, vec3(0, 1, 0)));
    return mat3(u, cross(u, w), w); }
float map(in vec3 p) { p.xz = mod(p.xz, 4.0) - 2.0; return length(p) - 1.0; }
void mainImage(out vec4 fragColor, in vec2 fragCoord) {
    vec2 uv = (2.0 * fragCoord - iResolution.xy) / iResolution.y;
    vec3 ro = vec3(0.0, 0.0, -iTime), rd = look(vec3(uv, 1.0)) * normalize(vec3(uv, 1.5));
    float t = 0.0, d;
    for (int i = 0; i < 32; ++i) { d = map(ro + t * rd); if (d < 1e-3 || t > 20.) break; t += d; }
    vec3 col = texture(iChannel0, uv).rgb + vec3(hash(uv)) * float(iFrame & 1);
    fragColor = vec4(mix(col, vec3(0.2, 0.5, 1.0), exp(-0.1 * t)), 1.0);
}
"""

FILTER = b"""/*{"ISFVSN": "2", "DESCRIPTION": "d", "INPUTS": [
 {"NAME": "inputImage", "TYPE": "image"},
 {"NAME": "gain", "TYPE": "float", "MIN": 0, "MAX": 2, "DEFAULT": 1.5},
 {"NAME": "mode", "TYPE": "long", "VALUES": [0, 1], "LABELS": ["a", "b"]},
 {"NAME": "tint", "TYPE": "color", "DEFAULT": [1, 0, 0, 1]}, {"NAME": "at", "TYPE": "point2D"},
 {"NAME": "on", "TYPE": "bool"}],
 "PASSES": [{"TARGET": "kept", "PERSISTENT": true, "WIDTH": "floor($WIDTH/2.0)"}, {}]}*/
#define MIX(a, b) mix(a, b, gain)
#if __VERSION__ > 120 && defined(GL_ES)
const int N = 2 * 3;
#else
const int N = 1;
#endif
struct Light { vec3 at; float power; };
float shared_;
float lit(in Light l, inout vec3 c) {
    for (int i = 0; i < N; i++) { if (i == 3) continue; c += l.at * 0.1; shared_ += 1.0; }
    return dot(c, l.at) > 0.5 ? l.power : -l.power;
}
void main() {
    vec4 c = IMG_THIS_PIXEL(inputImage);
    Light one = Light(vec3(1.0), 2.0);
    float a[3]; a[0] = lit(one, c.rgb);
    mat2 m = mat2(1.0, 2.0, 3.0, 4.0);
    if (PASSINDEX == 0) gl_FragColor = MIX(c, tint) + IMG_NORM_PIXEL(kept, isf_FragNormCoord);
    else { switch (mode) { case 0: c.xy *= m; break; default: discard; } gl_FragColor = c; }
    float d = dFdx(c.y);
    do { c.x += 0.1 + d; } while (c.x < 0.5 && on);
}"""

LISTED = (
    "( ) { } ; , 0xffffffff 1e999 1e-45 .5f 3u [99999] [3] ? : vec2 vec3 vec4 ivec2 uvec3 bvec4 "
    "mat2 mat3 mat4 mat2x3 sampler2D samplerCube discard return break continue struct const in "
    "out inout uniform varying ++ -- += <<= >> ^^ && || ! ~ % == dFdx fwidth textureLod texelFetch "
    "textureSize inverse outerProduct switch case default while do for if else .xyzw .rgb .stpq "
    ".length() gl_FragColor gl_FragCoord TIME iMouse int uint float bool void main true false "
    "highp layout #if #endif #else #elif #undef __LINE__ ## defined"
)
WORDS = LISTED.split()
ODD = (
    "#if 1\n",
    "#define A A A\n",
    "#define B(x) x x\n",
    "\0",
    "\ud800",
    "\xe9",
    "/*",
    "//",
    "\\\n",
)
TOKEN = re.compile(r"\w+|[^\w\s]|\s+")


class Shaders(Target):
    """Texts of shaders, changed in words, in bytes, or written by a grammar."""

    name = "shaders"
    words = tuple(word.encode("utf-8", "surrogatepass") for word in (*WORDS, *ODD))

    def seeds(self) -> list[bytes]:
        return [HEAD + BODY, TOY, FILTER]

    def input(self, seed: int, number: int) -> bytes:
        """Change words, mostly; one in four is changed in bytes, and one in four written anew."""
        rng = random.Random(f"shaders:{seed}:{number}")
        base = rng.choice(self.corpus)
        if number % 4 == 0:
            return mutate(rng, base, self.corpus, self.words)
        if number % 4 == 1:
            return Grammar(rng).text()
        head = base[: base.find(b"*/") + 2] if rng.randrange(4) else b""  # a broken one ends all
        words = TOKEN.findall(base[len(head) :].decode("utf-8", "replace"))
        for _ in range(rng.choice((1, 1, 2, 4, 12))):
            at = rng.randrange(len(words) + 1)
            kind = rng.randrange(5)
            if kind == 0:
                del words[at : at + rng.choice((1, 1, 3, 9))]
            elif kind == 1:
                words.insert(at, f" {rng.choice((*WORDS, *ODD))} ")
            elif kind == 2 and at < len(words):
                words[at] = rng.choice((rng.choice(words), rng.choice(WORDS)))
            elif kind == 3:
                words[at:at] = words[at : at + rng.choice((3, 9, 30))] * rng.choice((1, 1, 5))
            elif words:
                words[at:at] = [rng.choice(words)]
        return head + "".join(words).encode("utf-8", "surrogatepass")

    def read(self, data: bytes) -> object:
        """Translate a text; what comes of it is the parameters and the sources of the passes."""
        text = data.decode("utf-8", "surrogateescape")
        with dala.limits(time=20.0):
            program = shadertoy(text, channels=["film"]) if "mainImage" in text else isf(text)
        made = (p.kernel.decl.source.python for p in program.passes)
        return program.inputs, [p.name for p in program.params], digest("".join(made).encode())


class Grammar:
    """Writes texts whose types mostly fit."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names: list[tuple[str, int]] = [("uv", 2), ("c", 4), ("t", 1)]
        self.count = 0

    def text(self) -> bytes:
        rng = self.rng
        helpers = "".join(self._function(n) for n in range(rng.randrange(3)))
        self.names = [("uv", 2), ("c", 4), ("t", 1)]
        body = "".join(self._statement(3) for _ in range(rng.randrange(1, 8)))
        head = "void mainImage(out vec4 c, in vec2 uv) { c = vec4(0.0); float t = iTime; "
        return f"{helpers}{head}{body}}}".encode()

    def _function(self, number: int) -> str:
        self.names = [("a", 1), ("b", 2)]
        body = "".join(self._statement(1) for _ in range(self.rng.randrange(3)))
        return f"float f{number}(float a, vec2 b) {{ {body} return {self.value(1, 3)}; }}\n"

    def _statement(self, deep: int) -> str:
        rng, kind = self.rng, self.rng.randrange(8)
        outer = list(self.names)
        if deep and kind < 4:
            self.count += 1
            i = f"i{self.count}"
            test = f"{self.value(1, 1)} {rng.choice(('<', '>=', '=='))} {self.value(1, 1)}"
            inner = "".join(self._statement(deep - 1) for _ in range(rng.randrange(1, 4)))
            self.names = outer
            return (
                f"for (int {i} = 0; {i} < {rng.choice(('3', '99999', 'int(t)'))}; {i}++) "
                f"{{ {inner} }} ",
                f"if ({test}) {{ {inner} }} else {{ {inner} }} ",
                f"while ({test}) {{ {inner} {rng.choice(('break;', 'continue;', ''))} }} ",
                f"switch (int({self.value(1, 1)})) {{ case 0: {inner} default: {inner} }} ",
            )[kind]
        size = rng.randrange(1, 5)
        kinds = ("float", "vec2", "vec3", "vec4")
        if kind < 6:
            self.count += 1
            made = f"{kinds[size - 1]} v{self.count} = {self.value(size, 3)}; "
            self.names.append((f"v{self.count}", size))
            return made
        name, size = rng.choice(self.names)
        return f"{name} {rng.choice(('=', '+=', '*=', '/='))} {self.value(size, 3)}; "

    def value(self, size: int, deep: int) -> str:
        """Return an expression of a number of floats."""
        rng = self.rng
        ways: list[Callable[[], str]] = [
            lambda: rng.choice([n for n, s in self.names if s == size] or [self.number(size)]),
            lambda: self.number(size),
        ]
        if deep:
            a = lambda s=size: self.value(s, deep - 1)  # noqa: E731
            ways += [
                lambda: f"({a()} {rng.choice('+-*/')} {a()})",
                lambda: f"{rng.choice(('sin', 'abs', 'fract', 'sqrt', 'exp2', 'floor'))}({a()})",
                lambda: f"{rng.choice(('min', 'max', 'mod', 'pow', 'step', 'atan'))}({a()}, {a()})",
                lambda: f"mix({a()}, {a()}, {a(1)})",
                lambda: f"({a(1)} > {a(1)} ? {a()} : {a()})",
                lambda: f"(-{a()})",
                lambda: f"{a(4)}.{'xyzw'[:size][::-1]}",
                lambda: f"texture(iChannel0, {a(2)}).{'rgba'[:size]}",
            ]
            ways += [lambda: f"dot({a(3)}, {a(3)})", lambda: f"length({a(2)})"] * (size == 1)
            ways += [lambda: f"(mat2({a(4)}) * {a(2)})"] * (size == 2)
        return rng.choice(ways)()

    def number(self, size: int) -> str:
        """Return a constant of a number of floats."""
        one = self.rng.choice(("0.0", "1.0", "0.5", "1e9", "3.0", ".25", "7"))
        return one if size == 1 else f"vec{size}({one})"
