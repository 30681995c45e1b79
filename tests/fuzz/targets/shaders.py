"""Shaders: ISF files, Shadertoy texts, and vertex shaders, translated to kernels."""

from __future__ import annotations

import random
import re

import dala
from dala.errors import CommandTimeout
from dala.gpu.compute.passes.program import KernelProgram
from dala.shaders import isf, shadertoy
from tests.fuzz.target import Target, digest

FILTER = """/*{"ISFVSN": "2", "DESCRIPTION": "d", "INPUTS": [
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
TOY = """
vec2 turned(vec2 p, float t) { return mat2(cos(t), -sin(t), sin(t), cos(t)) * p; }
void mainImage(out vec4 o, in vec2 p) {
    vec2 uv = turned(p / iResolution.xy, iTime), q = iMouse.xy;
    o = vec4(0.5 + 0.5 * cos(uv.xyx + vec3(0, 2, 4)), 1.0) + texture(iChannel0, uv);
    for (int i = 0; i < 4; ++i) { uint u = uint(i) << 2u; o.x += float(u ^ 0x1Fu) * q.x; }
}"""
WORDS = """
#define F(a) a a a a;F(F(F(1)));#define A A;#undef F;#if;#ifdef A;#elif 1;#else;#endif;##;\\
;for(;;);while(true);do ;switch(1);case 0:;default:;break;;continue;;return;;discard;;if(;else
float ;int ;uint ;bool ;vec2 ;vec4 ;mat4 ;sampler2D ;struct S {;const ;inout ;uniform ;in ;void
1e999;2147483648;0xFFFFFFFFu;1.;.5;07;-0.0;1/0;%;<<;>>=;?;:;++;--;^^;&&;{;};[;];(;);,;.;.xyzw;[999]
texture(;dFdx(;fwidth(;inverse(;mod(;pow(;clamp(;atan(;IMG_PIXEL(;IMG_SIZE(;gl_FragColor;gl_FragCoord
PASSINDEX;TIME;RENDERSIZE;isf_FragNormCoord;lambda;__class__;import;é;"PASSES": [;"INPUTS": [;NaN
"TYPE": "audioFFT";"IMPORTED": {"x": {"PATH": "x"}};"WIDTH": "9**9";/*;*/;//;null;1e400;"DEFAULT":
"""
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


class Shaders(Target):
    """Texts of shaders from strangers: the header, the passes, the preprocessor, the translation.

    The first byte says what a text is. A zero byte is before the vertex shader.
    """

    name = "shaders"
    words = tuple(word.encode() for word in re.split(r"[;\n]", WORDS) if word)

    def seeds(self) -> list[bytes]:
        vertex = "\0varying vec2 v;void main() { isf_vertShaderInit(); v = RENDERSIZE; }"
        return [f"i{FILTER}".encode(), f"t{TOY}".encode(), f"i{FILTER}{vertex}".encode()]

    def input(self, seed: int, number: int) -> bytes:
        """Change tokens rather than bytes, mostly: more texts pass the parser."""
        if number % 4 == 0:
            return super().input(seed, number)
        rng = random.Random(f"shaders:{seed}:{number}")
        tokens = TOKEN.findall(rng.choice(self.corpus).decode("utf-8", "replace"))
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = rng.randrange(len(tokens) + 1)
            kind = rng.randrange(4)
            if kind == 0:
                del tokens[at : at + rng.choice((1, 1, 3, 9))]
            elif kind == 1:
                tokens.insert(at, rng.choice(self.words).decode())
            elif kind == 2:
                tokens[at:at] = tokens[at : at + rng.choice((3, 9, 30))]
            elif tokens:
                tokens[at : at + 1] = [rng.choice(tokens)]
        return "".join(tokens).encode()

    def read(self, data: bytes) -> str:
        kind, text = data[:1], data[1:].decode("utf-8", "surrogateescape")
        fragment, _, vertex = text.partition("\0")
        try:
            with dala.limits(time=20):
                made = (
                    isf(fragment, vertex=vertex)
                    if kind == b"i"
                    else shadertoy(fragment, channels=["a"])
                )
        except CommandTimeout:
            raise AssertionError("it took 20 s to translate") from None
        return _told(made)


def _told(program: KernelProgram) -> str:
    return f"{len(program.passes)} {digest(repr(program.params).encode())} {program.inputs}"
