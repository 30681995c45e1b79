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
    **_rows("matrix", transpose="M", inverse="M", matrixCompMult="MM"),
    **_rows("int", floatBitsToInt="F"),
    **_rows("uint", floatBitsToUint="F"),
    **_rows("floats", intBitsToFloat="I", uintBitsToFloat="I"),
}  # fmt: skip

#: Functions of images, and how many arguments they take at most.
TEXTURES: Final = {
    "texture2D": 3, "texture": 3, "texture2DRect": 2, "texture2DLod": 3, "textureLod": 3,
    "texelFetch": 3, "textureSize": 2, "texture2DLodEXT": 3, "textureGrad": 4,
    "IMG_PIXEL": 2, "IMG_NORM_PIXEL": 2, "IMG_THIS_PIXEL": 1, "IMG_THIS_NORM_PIXEL": 1,
    "IMG_SIZE": 1,
}  # fmt: skip

DERIVATIVES: Final = frozenset({"dFdx", "dFdy", "fwidth"})

#: Functions that a translation may need, as kernel text, by name.
HELPERS: Final = (
    {
        f"texture_{edge}": f"def texture_{edge}(img: Image, p):\n"
        f"    return img.sample_uv(p.x, 1.0 - p.y, edge='{edge}').rgba\n"
        for edge in ("clamp", "repeat", "mirror")
    }
    | {
        f"texel_{edge}": f"def texel_{edge}(img: Image, p):\n"
        f"    return img.sample(p.x - 0.5, img.height - p.y - 0.5, edge='{edge}').rgba\n"
        for edge in ("clamp", "repeat", "mirror")
    }
    | {
        "fetch_": "def fetch_(img: Image, p):\n"
        "    return img.sample(f32(p.x), f32(img.height - 1 - p.y), filter='nearest').rgba\n",
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
)
