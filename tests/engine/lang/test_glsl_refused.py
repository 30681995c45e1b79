"""GLSL that is refused: by name and line, and in bounded time."""

from __future__ import annotations

import random
import re
from time import perf_counter

import numpy as np
import pytest

import dala
from dala.errors import DalaError, KernelSyntaxError, KernelTooLarge
from dala.shaders import isf

HEAD = "/*{}*/\n"

REFUSED = {
    "void main() {\n gl_FragColor = textureCube(a, b); }": (3, "textureCube"),
    "uniform samplerCube sky; void main() {}": (2, "cube maps"),
    "uniform float x;\nvoid main() {}": (2, "uniform 'x' is not an input"),
    "void main() {\n\n gl_FragColor = vec3(1); }": (4, "of the type vec4, and it is vec3"),
    "void main() { float x = 1.0\n + true; }": (3, "takes numbers, got bool"),
    "void main() { gl_FragColor.q5 = 1.0; }": (2, "no part 'q5'"),
    "void main() { vec2 v = vec2(1, 2, 3); }": (2, "takes 2 numbers, got 3"),
    "void main() { vec2 v; v[2] = 1.0; }": (2, "index 2 is not below 2"),
    "void main() { for (int i = 0; i < 3; i++)\n float x = dFdx(1.0); }": (3, "dFdx in a loop"),
    "float f(float x) { return f(x); }\nvoid main() { f(1.0); }": (2, "called recursively"),
    "void main() { undefined(1.0); }": (2, "no function 'undefined'"),
    "void main() { gl_FragColour = vec4(1); }": (2, "'gl_FragColour' is not defined"),
    "void main() { const float x = 1.0; x = 2.0; }": (2, "'x' cannot be assigned"),
    "void main() { gl_FragCoord.x = 2.0; }": (2, "cannot be assigned"),
    "void main() { int a[2][2]; }": (2, "arrays of arrays"),
    "void main() { int n = 3; float a[n]; }": (2, "must be a constant"),
    "void main() { float a[1000]; }": (2, "1 to 256 items"),
    "void main() { int x = 1 / 0; }": (2, "divides an int by zero"),
    "void main() { if (1) ; }": (2, "of the type bool"),
    "void main() {\n float x = 1.0 }": (3, "expected ';'"),
    "void main() { float x = (1.0; }": (2, "expected ')'"),
    "varying vec2 at;\nvoid main() { gl_FragColor.xy = at; }": (2, "no vertex shader gives"),
    "void main() { $ }": (2, "'$' is not part of GLSL"),
    "#error stop here\nvoid main() {}": (2, "stop here"),
    "#include <x>\nvoid main() {}": (2, "#include is not supported"),
    "#if 1\nvoid main() {}": (3, "no #endif"),
    "void main() { /* }": (2, "a comment has no end"),
    "void other() {}": (1, "no function main"),
    "#define F(a, b) a\nvoid main() { float x = F(1.0); }": (3, "takes 2 arguments, got 1"),
    "void main() { break; }": (2, "break is outside a loop"),
    "float f() { return; } void main() { f(); }": (2, "returns float"),
    "struct S { float x; }; void main() { S s = S(1.0, 2.0); }": (2, "takes 1 values, got 2"),
    "void main() { sampler2D s; }": (2, "cannot be of type sampler2D"),
    "void main() { float x = " + "(" * 60 + "1.0" + ")" * 60 + "; }": (2, "nested more than 40"),
}  # fmt: skip


@pytest.mark.parametrize("body", REFUSED)
def test_refused_by_name_and_line(body):
    line, words = REFUSED[body]
    with pytest.raises(KernelSyntaxError, match=re.escape(words)) as caught:
        isf(HEAD + body)
    assert caught.value.lineno == line


LARGE = {
    "macros": "\n".join(f"#define A{n + 1} A{n} A{n}" for n in range(60)) + "\nfloat x = A60;",
    "calls of macros": "#define F(x) x x x x\nfloat x = " + "F(" * 300 + "1" + ")" * 300 + ";",
    "structs": "struct S0 { float a, b; };"
    + "".join(f"struct S{n + 1} {{ S{n} a, b; }};" for n in range(40))
    + "S40 s;",
    "arrays": "float x() {" + "".join(f"float a{n}[256];" for n in range(3000)) + "return 1.0; }",
    "blocks": "float x() {" + "{" * 5000 + "}" * 5000 + "return 1.0; }",
    "signs": "float y = " + "-" * 5000 + "1.0;",
    "members": "float y = x" + ".x" * 5000 + ";",
    "text": " " * 70_000,
}


@pytest.mark.parametrize("name", LARGE)
def test_large_texts_are_bounded(name):
    with pytest.raises(KernelSyntaxError) as caught:
        isf(HEAD + LARGE[name] + "void main() { gl_FragColor = vec4(x()); }")
    assert isinstance(caught.value, KernelTooLarge) or name in ("structs", "members")


def test_long_sums_do_not_recurse():
    isf(HEAD + "void main() { float x = 1.0; gl_FragColor = vec4(" + "x + " * 3000 + "x); }")


def test_the_time_of_a_text_is_limited():
    sums = "".join(f"x += sin(x * {n}.0);" for n in range(2000))
    with dala.limits(time=0.05), pytest.raises(DalaError):
        for _ in range(20):
            isf(HEAD + "void main() { float x = 1.0;" + sums + "gl_FragColor = vec4(x); }")


SEED_TEXT = """
#define TWICE(x) ((x) * 2.0)
const float table[3] = float[3](1.0, 2.0, 3.0);
struct Ray { vec3 at; float far; };
uniform float unused;
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
    gl_FragColor = ok ? vec4(r.at, fract(s)) : mix(vec4(p, q), vec4(1.0), smoothstep(0.0, 1.0, s));
}
""".replace("uniform float unused;\n", "")
WORDS = re.findall(r"\w+|[^\w\s]+|\s+", SEED_TEXT)
ODD = ["(", ")", "{", "}", ";", "0xffffffff", "1e999", "[99999]", "?", "vec3", "mat4", "discard"]
ODD += ["return", "struct", "++", "dFdx"]
ODD += ["#if 1\n", "#define A A A\n", "\0", "\ud800", "\xe9", "const"]


def changed(rng):
    words = list(WORDS)
    for _ in range(rng.choice((1, 1, 2, 4, 20))):
        at = rng.randrange(len(words))
        way = rng.random()
        if way < 0.4:
            words[at] = rng.choice([*WORDS, *ODD])
        elif way < 0.6:
            words.insert(at, rng.choice([*WORDS, *ODD]))
        elif way < 0.8:
            del words[at : at + rng.choice((1, 1, 8))]
        else:
            words[at:at] = words[at : at + 20] * rng.choice((1, 20))
    return "".join(words)


@pytest.mark.parametrize("seed", range(4))
def test_changed_texts_run_or_are_refused(seed):
    rng = random.Random(seed)
    begin, ran = perf_counter(), 0
    for _ in range(60):
        try:
            program = isf(HEAD + changed(rng))
            with (
                dala.limits(time=5.0, iterations=1_000_000),
                program.start(3, 2, device="reference") as state,
            ):
                ran += np.asarray(state.render()).shape == (2, 3, 4)
        except DalaError:
            continue
    assert ran > 0
    assert perf_counter() - begin < 300
