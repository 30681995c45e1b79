"""Kernel text: parsed, checked and specialized; nothing of it is executed as Python."""

from __future__ import annotations

import random
import re

from dala.gpu.compute import kernel
from dala.gpu.compute.lang.frontend import Signature, specialize
from dala.gpu.compute.lang.ir import Arg
from tests.fuzz.target import Target
from tests.support.programs import random_program

REALS = ("f32", "f64")
INTS = ("s32", "u32", "s64", "u8")

WORDS = (
    "if x > 1.0:\n        ",
    "else:\n        ",
    "elif n < 3:\n        ",
    "for i in range(n):\n        ",
    "range(2147483647)",
    "range(5, -5, -2)",
    "break",
    "continue",
    "return ",
    "return x\n",
    "pass",
    "while True:",
    "import os",
    "lambda: 0",
    "__class__",
    "[0]",
    "[dx, dy]",
    "(1.0, 2.0)",
    ".rgb",
    ".shape",
    "position()",
    "Pixel",
    "Image",
    "Array",
    "Within[int, 0, 4]",
    "*, k=3",
    "**",
    "//",
    "%",
    "<<",
    ">>",
    "~",
    " not ",
    " and ",
    " or ",
    " if x else ",
    "==",
    "!=",
    "1e400",
    "-0.0",
    "nan",
    "inf",
    "2147483648",
    "18446744073709551615",
    "0x7fffffff",
    "sqrt(",
    "pow(",
    "clamp(",
    "select(",
    "min(",
    "dot(",
    "length(",
    "u8(",
    "u32(",
    "s64(",
    "f64(",
    "int(",
    "bool(",
    "like(",
    "rgba(",
    "vec3(",
    "smoothstep(",
    "step(",
    "isnan(",
    "é",
    "\u2028",
    "\ud800",
    "\0",
    "'text'",
    "\t",
    "\\\n",
    "# ",
    "'''",
    "f'{x}'",
    "@kernel\n",
    "def g(x):\n    return x\n",
    ":=",
    "->",
    ";",
    "\r",
    "lambda",
)

PICTURE = """def blur(img: Image, px: Pixel, table: Array, *, r: int = 1, tint=(1.0, 0.5, 0.0)):
    y, x = position()
    total = px.rgb * 0.5
    for dy in range(-r, r + 1):
        for dx in range(-1, 2):
            total += img[dx, dy].rgb * table[dx + 1]
    if total.r > 0.5 and x < img.width:
        return rgba(total * vec3(tint), px.a)
    return rgba(total, 1.0)
"""
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


class Kernels(Target):
    """Kernel text from strangers."""

    name = "kernels"
    words = tuple(word.encode("utf-8", "surrogatepass") for word in WORDS)

    def seeds(self) -> list[bytes]:
        texts = [random_program(n, REALS[n % 2], INTS[n // 2 % 4]).source for n in range(24)]
        return [text.encode() for text in (*texts, PICTURE)]

    def input(self, seed: int, number: int) -> bytes:
        """Change tokens rather than bytes, mostly: more texts pass the parser."""
        if number % 4 == 0:
            return super().input(seed, number)
        rng = random.Random(f"kernels:{seed}:{number}")
        if rng.randrange(3):
            text = rng.choice(self.corpus).decode("utf-8", "replace")
        else:
            text = random_program(
                rng.randrange(1 << 30), rng.choice(REALS), rng.choice(INTS)
            ).source
        tokens = TOKEN.findall(text)
        for _ in range(rng.choice((0, 1, 1, 2, 4))):
            at = rng.randrange(len(tokens) + 1)
            kind = rng.randrange(5)
            if kind == 0:
                del tokens[at : at + rng.choice((1, 1, 3, 9))]
            elif kind == 1:
                tokens.insert(at, rng.choice(WORDS))
            elif kind == 2 and at < len(tokens):
                tokens[at] = rng.choice((rng.choice(tokens), rng.choice(WORDS)))
            elif kind == 3:
                tokens[at:at] = tokens[at : at + rng.choice((3, 9, 30))]
            elif tokens:
                tokens[at:at] = [rng.choice(tokens)]
        return "".join(tokens).encode("utf-8", "surrogatepass")

    def read(self, data: bytes) -> str:
        decl = kernel(text_of(data)).decl
        args = []
        for arg in decl.args:
            if arg.kind in ("pixel", "image"):
                args.append(Arg(arg.name, arg.kind, "u8", 3, 4))
            else:
                args.append(Arg(arg.name, arg.kind, arg.dtype or "f32", 1))  # type: ignore[arg-type]
        rank = 3 if decl.pixels else 1
        numbers = tuple((p.name, "float") for p in decl.generic)
        return specialize(decl, Signature(tuple(args), None, rank, 4, numbers)).key


def text_of(data: bytes) -> str:
    """Return the text of an input: also lone surrogates, which strings may hold."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")
