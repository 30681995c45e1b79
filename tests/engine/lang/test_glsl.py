"""GLSL, translated to the kernel language: each construct against values computed by hand.

The cases of a group are functions of one shader; pixel k has the result of case k.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dala.shaders import isf

Case = tuple[str, tuple[float, ...]]

#: ``one`` is 1.0 and ``two`` is 2, but no constants.
HEADER = """/*{"INPUTS": [{"NAME": "one", "TYPE": "float", "DEFAULT": 1},
    {"NAME": "two", "TYPE": "long", "DEFAULT": 2}]}*/
"""

GROUPS: dict[str, tuple[str, list[Case]]] = {
    "arithmetic": ("", [
        ("return vec4(7 / two, -7 / two, 7 % 4, -7 % (two + 2));", (3, -3, 3, -3)),
        ("return vec4(7.0 / 2.0, 1 + one, 3 * 0.5, -one);", (3.5, 2, 1.5, -1)),
        ("int i = two; i += 3; i *= 2; i -= 1; i /= 2; return vec4(i, i % 3, i << 2, i >> 1);",
         (4, 1, 16, 2)),
        ("int i = two; return vec4(i | 5, i & 6, i ^ 7, ~i);", (7, 2, 5, -3)),
        ("uint u = 7u; u /= 2u; u <<= 3u; return vec4(u, u % 5u, 0x1Fu, 010);", (24, 4, 31, 8)),
        ("int i = two; int a = i++; int b = ++i; int c = i--; return vec4(a, b, c, i);",
         (2, 4, 4, 3)),
        ("int i = 2147483647; i += two - 1; return vec4(i / 65536, 1 << 31 >> 31, 0, 0);",
         (-32768, -1, 0, 0)),
        ("float x = 1e1; x += .5; x *= 2.; return vec4(x, 1.5e-1, 2.f, 3.);", (21, 0.15, 2, 3)),
        ("return vec4(float(true), float(7u), int(2.9), int(-2.9));", (1, 7, 2, -2)),
        ("return vec4(bool(two), uint(3.7), float(bool(0.0)), (1, 5));", (1, 3, 0, 5)),
        ("return vec4(1.0 / (one - 1.0) > 1e30, isnan(one) == false, isinf(one / 0.0), 1);",
         (1, 1, 1, 1)),
    ]),
    "vectors": ("", [
        ("vec4 v = vec4(1, 2, 3, 4) * one; return v.wzyx;", (4, 3, 2, 1)),
        ("vec4 v = vec4(one); v.xz = vec2(5, 6); v.wy += v.xz; return v;", (5, 7, 6, 6)),
        ("vec3 v = vec3(1, 2, 3) * one; return vec4(v.rg, v.stp.z, v[two]);", (1, 2, 3, 3)),
        ("vec4 v = vec4(0.0); for (int i = 0; i < 4; i++) v[i] = float(i) * one; return v;",
         (0, 1, 2, 3)),
        ("vec2 a = vec2(vec4(1, 2, 3, 4)); return vec4(a, vec2(vec3(5)));", (1, 2, 5, 5)),
        ("ivec3 i = ivec3(vec3(1.9, -1.9, 3)); return vec4(i * two, i.x);", (2, -2, 6, 1)),
        ("bvec2 b = lessThan(vec2(1, 3), vec2(two)); return vec4(b, any(b), all(b));",
         (1, 0, 1, 0)),
        ("return vec4(not(bvec2(true, false)), vec2(1, 2) == vec2(one, 2), vec2(1) != vec2(one));",
         (0, 1, 1, 0)),
        ("return vec4(equal(ivec2(1, two), ivec2(1)), greaterThanEqual(vec2(1, 0), vec2(one)));",
         (1, 0, 1, 0)),
        ("vec2 v = vec2(1, 2); v.yx = v; return vec4(v, -v);", (2, 1, -2, -1)),
        ("return vec4(2.0 * vec2(1, 2) + 1.0, vec2(6, 8) / vec2(2, 4));", (3, 5, 3, 2)),
        ("uvec2 u = uvec2(3, 4) >> 1u; return vec4(u, one > 0.5 ? vec2(1, 2) : vec2(0));",
         (1, 2, 1, 2)),
    ]),
    "matrices": ("mat2 turn(float a) { return mat2(cos(a), sin(a), -sin(a), cos(a)); }\n", [
        ("mat2 m = mat2(1, 2, 3, 4); return vec4(m * vec2(1, one), vec2(1, one) * m);",
         (4, 6, 3, 7)),
        ("mat2 m = mat2(1, 2, 3, 4) * mat2(0, 1, 1, 0) * one; return vec4(m[0], m[1]);",
         (3, 4, 1, 2)),
        ("mat3 m = mat3(2.0); m[1] = vec3(1, 2, 3); m[2][0] = 7.0 * one; return vec4(m[1], "
         "m[2].x);",
         (1, 2, 3, 7)),
        ("mat2 m = mat2(mat3(one)); m += 1.0; m *= 2.0; return vec4(m[0], m[1]);", (4, 2, 2, 4)),
        ("mat2 m = inverse(transpose(mat2(2, 0, 1, 1) * one)); return vec4(m[0], m[1]);",
         (0.5, -0.5, 0, 1)),
        ("vec2 v = vec2(1, 0); v *= turn(radians(90.0) * one); return vec4(v, "
         "determinant(mat2(2)), "
         "matrixCompMult(mat2(3), mat2(2))[0][0]);", (0, -1, 4, 6)),
        ("mat4 m = mat4(vec4(1), vec4(2), vec4(3), vec4(4)); return m * vec4(1, 0, 0, one);",
         (5, 5, 5, 5)),
        ("mat2x3 m = mat2x3(1, 2, 3, 4, 5, 6 * one); vec3 v = m * vec2(1, 2); "
         "return vec4(v, dot(vec2(1), vec3(one) * m));", (9, 12, 15, 21)),
        ("mat3x2 m = transpose(mat2x3(1, 2, 3, 4, 5, 6 * one)); mat2 q = m * mat2x3(one); "
         "return vec4(m[2], q[1]);", (3, 6, 2, 5)),
        ("mat2x4 m = outerProduct(vec4(1, 2, 3, 4), vec2(one, 10)); return m[1] + mat4(m)[3];",
         (10, 20, 30, 41)),
        ("mat2 m = mat2(1); return vec4(m == mat2(one), m != mat2(2), m[two - 2]);", (1, 1, 1, 0)),
    ]),
    "functions": ("", [
        ("return vec4(mod(-1.5 * one, 1.0), fract(-0.25 * one), floor(-1.5), ceil(-1.5));",
         (0.5, 0.75, -2, -1)),
        ("return vec4(mix(1.0, 3.0, 0.25 * one), step(one, 0.5), smoothstep(0.0, 2.0, one), "
         "clamp(5.0 * one, 0.0, 2.0));", (1.5, 0, 0.5, 2)),
        ("return vec4(mix(vec2(1), vec2(2), bvec2(true, false)), sign(-one), trunc(-1.7 * one));",
         (2, 1, -1, -1)),
        ("return vec4(length(vec2(3, 4) * one), distance(vec2(1), vec2(4, 5)), "
         "dot(vec3(1, 2, 3), vec3(one)), normalize(vec2(0, 2)).y);", (5, 5, 6, 1)),
        ("return vec4(cross(vec3(1, 0, 0) * one, vec3(0, 1, 0)), reflect(vec2(1, -1), "
         "vec2(0, 1)).y);",
         (0, 0, 1, 1)),
        ("return vec4(atan(1.0, -one), atan(one), pow(2.0, 3.0 * one), exp2(3.0 * one));",
         (3 * math.pi / 4, math.pi / 4, 8, 8)),
        ("return vec4(log2(8.0 * one), sqrt(9.0 * one), inversesqrt(4.0 * one), exp(one));",
         (3, 3, 0.5, math.e)),
        ("return vec4(asin(one), acos(one), tan(one * 0.5), degrees(one));",
         (math.pi / 2, 0, math.tan(0.5), 180 / math.pi)),
        ("return vec4(min(two, 1), max(vec2(1, 5), 3.0 * one), abs(-two));", (1, 3, 5, 2)),
        ("float w; vec2 q; float f = modf(-2.75 * one, w); vec2 g = modf(vec2(1.5, 0.25), q); "
         "return vec4(f, w, g.x, q.x);", (-0.75, -2, 0.5, 1)),
        ("return vec4(unpackHalf2x16(packHalf2x16(vec2(1.5, -one))), unpackUnorm2x16("
         "packUnorm2x16(vec2(0.0, 2.0 * one))));", (1.5, -1, 0, 1)),
        ("return vec4(packHalf2x16(vec2(one, -2.0)) == 0xc0003c00u, packSnorm2x16(vec2(one, -1.0))"
         " == 0x80017fffu, unpackSnorm2x16(0x80017fffu));", (1, 1, 1, -1)),
        ("return vec4(round(2.4 * one), faceforward(vec2(0, 1), vec2(0, 1), vec2(0, one)), "
         "floatBitsToInt(one) == 0x3f800000);", (2, 0, -1, 1)),
    ]),
    "flow": ("", [
        ("int n = 0; for (int i = 0; i < 10; i++) { if (i == 3) continue; if (i > 6) break; "
         "n += i; } "
         "return vec4(n);", (18, 18, 18, 18)),
        ("int n = 0; int i = 0; while (i < 5) { i++; if (i == two) continue; n += i; } "
         "return vec4(n, i, 0, 0);", (13, 5, 0, 0)),
        ("int i = 0; do { i += two; if (i == 4) continue; } while (i < 7); return vec4(i);",
         (8, 8, 8, 8)),
        ("float s = 0.0; for (float x = 0.0; x <= 1.0; x += 0.25) s += x * one; return vec4(s);",
         (2.5, 2.5, 2.5, 2.5)),
        ("float s = 0.0; for (float x = 1.; x < 5.; x++) s += x; for (int i = 4; i >= 0; i -= 2) "
         "s += float(i); return vec4(s);", (16, 16, 16, 16)),
        ("for (int i = 0; ; i++) { if (i * i > 50 * two) return vec4(i); } return vec4(0);",
         (11, 11, 11, 11)),
        ("int s = 0; for (int i = 0, j = 8; i < j; i++, j--) s += j - i; return vec4(s);",
         (20, 20, 20, 20)),
        ("float r = 0.0; switch (two) { case 1: r = 1.0; break; case 2: r += 2.0; case 3: r "
         "+= 3.0; "
         "break; default: r = 9.0; } return vec4(r);", (5, 5, 5, 5)),
        ("if (one > 2.0) return vec4(1); else if (two == 2) return vec4(2); return vec4(3);",
         (2, 2, 2, 2)),
        ("int i = 0; bool b = false && (i++ > 0); b = one > 2.0 || (i++ == 0); "
         "int k = one > 0.0 ? i++ : (i += 10); return vec4(b, i, k, true ^^ b);", (1, 2, 1, 0)),
        ("int i = 1; int k = i + i++ + i; return vec4(k, i, 0, 0);", (4, 2, 0, 0)),
        ("int n = 0; for (int i = 0; i < 3; i++) for (int j = 0; j < 3; j++) { if (j > i) "
         "break; n++; } "
         "return vec4(n);", (6, 6, 6, 6)),
        ("int i = 5; { int i = 7; i++; } return vec4(i);", (5, 5, 5, 5)),
    ]),
    "types": (
        "struct Ray { vec3 at; float far; };\nstruct Hit { Ray ray; bool near; };\n"
        "const float table[3] = float[3](1.0, 2.0, 4.0);\nfloat counter = 1.0;\nvec2 pairs[2];\n"
        "const int COUNT = 2 + 1;\n"
        "Ray move(Ray r, float by) { r.at += by; r.far *= 2.0; return r; }\n"
        "void both(in float a, out float b, inout vec2 c) { b = a * 2.0; c.y += a; a = 99.0; }\n"
        "float next() { counter += 1.0; return counter; }\n"
        "float pick(float x) { return 1.0; }\nfloat pick(vec2 x) { return 2.0; }\n"
        "float later(float x);\nfloat early(float x) { return later(x) + 1.0; }\n"
        "float later(float x) { return x * 2.0; }\n",
        [
            ("Ray r = Ray(vec3(1, 2, 3) * one, 4.0); r = move(r, 1.0); return vec4(r.at, r.far);",
             (2, 3, 4, 8)),
            ("Hit h = Hit(Ray(vec3(one), 2.0), true); h.ray.at.y = 5.0; Hit k = h; "
             "return vec4(k.ray.at.xy, k.near, k == h);", (1, 5, 1, 1)),
            ("float b; vec2 c = vec2(1); both(3.0 * one, b, c); return vec4(b, c, 0);",
             (6, 1, 4, 0)),
            ("vec4 v = vec4(0); both(one, v.z, v.xy); return v;", (0, 1, 2, 0)),
            ("float a = next() * 10.0 + next(); return vec4(a, counter, 0, 0);", (23, 3, 0, 0)),
            ("return vec4(table[two], table[0], float(table.length()), pick(vec2(1)));",
             (4, 1, 3, 2)),
            ("float a[COUNT]; for (int i = 0; i < COUNT; i++) a[i] = float(i * i) * one; "
             "return vec4(a[0], a[1], a[two], a.length());", (0, 1, 4, 3)),
            ("vec2 a[2] = vec2[](vec2(1, 2), vec2(3, 4)); a[two - 1].y += 5.0; "
             "return vec4(a[0], a[1]);", (1, 2, 3, 9)),
            ("Ray r[2]; r[1] = Ray(vec3(7), one); r[two - 1].at.x = 3.0; int i = 1; "
             "return vec4(r[i].at.xy, r[0].far, r[i].far);", (3, 7, 0, 1)),
            ("pairs[1] = vec2(one, 2); return vec4(pairs[0], pairs[two - 1]);", (0, 0, 1, 2)),
            ("return vec4(early(two), early(one), COUNT, 0);", (5, 3, 3, 0)),
            ("float a[3] = {1.0, 2.0, 3.0}; Ray r = {vec3(1), 2.0}; return vec4(a[2], r.far, "
             "float[2](one, 6.0)[1], 0);", (3, 2, 6, 0)),
        ],
    ),
    "preprocessor": (
        "#define PI 3.0\n#define TWICE(x) ((x) * 2.0)\n#define SUM(a, b) a + \\\n    b\n"
        "#define JOIN(a, b) a ## b\n#define SELF SELF_\n#define SELF_ SELF\n"
        "#if defined(PI) && !defined NONE && (1 + 2 * 2 == 5)\nfloat yes() { return 1.0; }\n"
        "#elif 1\nfloat yes() { return 2.0; }\n#else\nnonsense ' $\n#endif\n"
        "#ifdef NONE\n#error no\n#ifndef PI\n#endif\n#else\n#undef PI\n#define PI 4.0\n#endif\n"
        "#ifdef GL_ES\nprecision highp float;\n#endif\n#pragma anything $ '\n"
        "/* a comment #if 0\n over lines */ float last = 1.0; // #endif\n",
        [
            ("return vec4(yes(), PI, TWICE(PI + 1.0), SUM(1.0, one));", (1, 4, 10, 2)),
            ("float ab = 5.0; return vec4(JOIN(a, b), __VERSION__ >= 300, "
             "TWICE(TWICE(one)), last);",
             (5, 1, 4, 1)),
            ("float SELF = 2.0; return vec4(SELF, __LINE__ > 0, TWICE((1.0, 3.0)), 0);",
             (2, 1, 6, 0)),
        ],
    ),
}  # fmt: skip


def shader(name: str) -> tuple[str, np.ndarray]:
    before, cases = GROUPS[name]
    made = [f"vec4 case{n}() {{ {body} }}" for n, (body, _) in enumerate(cases)]
    calls = [
        f"if (gl_FragCoord.x < {n + 1}.0) {{ gl_FragColor = case{n}(); return; }}"
        for n in range(len(cases))
    ]
    text = f"{HEADER}{before}{chr(10).join(made)}\nvoid main() {{\n{chr(10).join(calls)}\n}}"
    return text, np.array([[result for _, result in cases]], np.float32)


@pytest.mark.parametrize("name", GROUPS)
def test_values(name: str, dala_device: str) -> None:
    text, expected = shader(name)
    width = expected.shape[1]
    with isf(text).start(width, 1, dtype="f32", device=dala_device) as state:
        made = state.render().numpy()
    wrong = ~np.isclose(made, expected, rtol=2e-6, atol=2e-6).all(-1)[0]
    _, cases = GROUPS[name]
    assert not wrong.any(), [(cases[n], made[0, n].tolist()) for n in np.flatnonzero(wrong)]
