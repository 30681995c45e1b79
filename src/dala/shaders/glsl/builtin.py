"""The built-in functions of GLSL: their types, and their names in the kernel language."""

from __future__ import annotations

from typing import Final, NamedTuple


class Builtin(NamedTuple):
    """A function of numbers and vectors.

    ``takes`` has a letter for each argument: F for floats, N for floats or ints, I for ints, B for
    bools, all of the size of the widest; V for a vector as it is, M for a matrix, 1 for one number.
    ``gives`` is "same", "float", "bool", "int", "uint", "one bool" or "vec3".
    """

    text: str
    takes: tuple[str, ...]
    gives: str = "same"


def _rows(gives: str, **rows: str) -> dict[str, Builtin]:
    """Return functions from ``name="argument letters, or two forms"``."""
    return {name: Builtin(name, tuple(takes.split("|")), gives) for name, takes in rows.items()}


BUILTINS: Final[dict[str, Builtin]] = {
    **_rows(
        "same",
        radians="F", degrees="F", sin="F", cos="F", tan="F", asin="F", acos="F", sinh="F",
        cosh="F", tanh="F", asinh="F", acosh="F", atanh="F", pow="FF", exp="F", log="F",
        exp2="F", log2="F", sqrt="F", inversesqrt="F", floor="F", ceil="F", fract="F", round="F",
        roundEven="F", trunc="F", abs="N", sign="N", min="NN", max="NN", clamp="NNN",
        mod="FF", mix="FFF", step="FF", smoothstep="FFF", normalize="F", reflect="FF",
        refract="FF1", faceforward="FFF", atan="F|FF",
    ),
    **_rows("float", length="F", distance="FF", dot="FF", determinant="M"),
    **_rows("vec3", cross="FF"),
    **_rows("bool", lessThan="NN", lessThanEqual="NN", greaterThan="NN", greaterThanEqual="NN",
            equal="AA", notEqual="AA", isnan="F", isinf="F"),
    **_rows("one bool", any="B", all="B"),
    **_rows("matrix", inverse="M", matrixCompMult="MM"),
    **_rows("turned", transpose="M"),
    **_rows("outer", outerProduct="FF"),
    **_rows("one uint", packUnorm2x16="F", packSnorm2x16="F", packHalf2x16="F"),
    **_rows("vec2", unpackUnorm2x16="I", unpackSnorm2x16="I", unpackHalf2x16="I"),
    **_rows("same", modf="FF"),
    **_rows("int", floatBitsToInt="F"),
    **_rows("uint", floatBitsToUint="F"),
    **_rows("floats", intBitsToFloat="I", uintBitsToFloat="I"),
}  # fmt: skip

#: Functions of images, with a letter for each argument after the image: p for a place, x for one in
#: pixels, i for ints, q for one that is divided by its last number; l for a level of the mipmaps, b
#: for what is added to it (it is ignored), g for a derivative of the place, o for an offset.
TEXTURES: Final = {
    "texture": "pb", "textureLod": "pl", "textureGrad": "pgg", "texelFetch": "il",
    "textureOffset": "pob", "textureLodOffset": "plo", "textureGradOffset": "pggo",
    "texelFetchOffset": "ilo", "textureProj": "qb", "textureProjLod": "ql",
    "textureProjGrad": "qgg", "textureProjOffset": "qob", "textureProjLodOffset": "qlo",
    "textureProjGradOffset": "qggo", "textureSize": "l",
    "texture2D": "pb", "texture2DLod": "pl", "texture2DLodEXT": "pl", "texture2DRect": "x",
    "texture2DProj": "qb", "texture2DProjLod": "ql", "texture2DGradEXT": "pgg",
    "IMG_PIXEL": "x", "IMG_NORM_PIXEL": "p", "IMG_THIS_PIXEL": "", "IMG_THIS_NORM_PIXEL": "",
    "IMG_SIZE": "",
}  # fmt: skip

DERIVATIVES: Final = frozenset({"dFdx", "dFdy", "fwidth"})

#: Reads of images, for each edge.
_READS: Final = {
    "texture": "def NAME(img: Image, p):\n    return img.sample_uv(p.x, 1.0 - p.y, EDGE).rgba\n",
    "texel": "def NAME(img: Image, p):\n"
    "    return img.sample(p.x - 0.5, img.height - p.y - 0.5, EDGE).rgba\n",
    "lod": "def NAME(img: Image, p, level):\n"
    "    return img.sample_uv(p.x, 1.0 - p.y, EDGE, lod=level).rgba\n",
    "grad": "def NAME(img: Image, p, a, b):\n"
    "    size = vec2(f32(img.width), f32(img.height))\n"
    "    level = log2(max(length(a * size), length(b * size)))\n"
    "    return img.sample_uv(p.x, 1.0 - p.y, EDGE, lod=level).rgba\n",
}

#: Functions that a translation may need, as kernel text, by name.
HELPERS: Final = {
    f"{name}_{edge}": text.replace("NAME", f"{name}_{edge}").replace("EDGE", f"edge='{edge}'")
    for edge in ("clamp", "repeat", "mirror")
    for name, text in _READS.items()
} | {
    "fetch_": "def fetch_(img: Image, p):\n"
    "    y = f32(img.height - 1 - p.y)\n"
    "    return img.sample(f32(p.x), y, filter='nearest', edge=(0.0, 0.0, 0.0, 0.0)).rgba\n",
    "fetchlod_": "def fetchlod_(img: Image, p, level):\n"
    "    w, h = max(img.width >> level, 1), max(img.height >> level, 1)\n"
    "    u, v = (p.x + 0.5) / w, 1.0 - (p.y + 0.5) / h\n"
    "    return img.sample_uv(u, v, filter='nearest', lod=f32(level)).rgba\n",
    "this_": "def this_(img: Image):\n"
    "    y, x = position()\n"
    "    h, w = shape()\n"
    "    return img.sample_uv((x + 0.5) / w, (y + 0.5) / h).rgba\n",
    "quotient_": "def quotient_(a, b):\n"
    "    q = a // b\n"
    "    return q + where(lessThan(a ^ b, 0), where(equal(q * b, a), 0, 1), 0)\n",
    "rest_": "def rest_(a, b):\n"
    "    r = a % b\n"
    "    return r - where(lessThan(a ^ b, 0), where(equal(r, 0), 0, b), 0)\n",
    "derive_": "def derive_(there, here, sign):\n"
    "    d = (there - here) * sign\n"
    "    return where(isnan(d), 0.0, d)\n",
}
