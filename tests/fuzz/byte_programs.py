"""Random kernels from pictures of bytes to pictures of bytes, of which the bytes must be equal.

``python -m tests.fuzz.byte_programs 0 500`` prints a checksum of each on the current device, and
for every function how many results of any arguments are not those of the reference engine.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

import dala
from dala.answers.table import checksum
from dala.gpu.compute import from_array, kernel
from dala.gpu.compute.engines.reference.engine import exact_function

UNARY = ("abs({})", "sqrt(abs({}))", "floor({} * 5.0) * 0.2", "fract({} * 3.0)", "exp(-{})",
         "1.0 - {}", "clamp({}, 0.1, 0.8)", "smoothstep(0.2, 0.7, {})", "{} * {}")  # fmt: skip
#: Functions that are each engine's own on GPUs.
OWN = ("sin({} * 6.0) * 0.5", "cos({} * 4.0)", "log(abs({}) + 0.1)", "pow(abs({}), 0.45)",
       "atan2({}, 0.7)", "tanh({})", "tan({})", "atan({} * 3.0)", "pow({}, 3.0)")  # fmt: skip
#: The same, multiplied until a unit in the last place shows.
STEEP = ("fract(sin({} * 12.9898) * 43758.5453)", "fract(cos({}) * 91e3)", "fract(tan({}) * 7e4)",
         "fract(log(abs({}) + 1e-3) * 8e4)", "fract(pow(abs({}), 2.2) * 65e3)",
         "fract(pow({} - amount, 1.7) * 9e3)", "fract(atan({}) * 7e5)",
         "fract(atan2({}, 0.3) * 6e5)", "fract(tanh({}) * 5e5)",
         "fract(f32(sin(f64({})) * 1e6))")  # fmt: skip
BINARY = ("({} + {})", "({} - {})", "({} * {})", "{} / (abs({}) + 0.3)", "min({}, {})",
          "max({}, {})", "({a} if {a} > {b} else {b} * 0.5)")  # fmt: skip


@dataclass
class ByteProgram:
    """A kernel, a picture and its parameter."""

    number: int
    #: Whether to use functions that show the last place of each engine's own.
    steep: bool = False
    source: str = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.number)
        self._window = self._random.random() < 0.5
        self._known = ["amount"]
        lines = [f"def made{self.number}({'img: Image' if self._window else 'px: Pixel'}, *, "
                 "amount: f32 = 0.37):"]  # fmt: skip
        for name in "abc"[: self._random.randint(1, 3)]:
            lines.append(f"    {name} = {self._value(2)}")
            self._known.append(name)
        if self._window and self._random.random() < 0.5:
            lines += ["    s = 0.0", "    for d in range(-2, 3):"]
            lines += [f"        s += img[d, {self._random.choice(('0', 'd', '-d'))}].g * "
                      f"{self._value(1)}"]  # fmt: skip
            self._known.append("s * 0.3")
        center = "img[0, 0]" if self._window else "px"
        colors = ", ".join(self._value(2) for _ in range(3))
        lines.append(f"    return rgba({colors}, {center}.a)")
        self.source = "\n".join(lines)

    def _value(self, depth: int) -> str:
        draw = self._random
        if depth == 0 or draw.random() < 0.2:
            color = f"{self._pixel()}.{draw.choice('rgba')}"
            return draw.choice((color, color, color, draw.choice(self._known), self._number()))
        if draw.random() < 0.35:
            form = draw.choice(UNARY + (STEEP if self.steep else OWN))
            inner = self._value(depth - 1)
            return form.replace("{}", inner)
        form, a, b = draw.choice(BINARY), self._value(depth - 1), self._value(depth - 1)
        return form.format(a, b, a=a, b=b)

    def _pixel(self) -> str:
        if not self._window:
            return "px"
        return f"img[{self._random.randint(-2, 2)}, {self._random.randint(-2, 2)}]"

    def _number(self) -> str:
        return f"{self._random.uniform(-1.5, 1.5):.4f}"

    def run(self) -> np.ndarray:
        """Return the result on the current device."""
        rng = np.random.default_rng(self.number)
        image = rng.integers(0, 256, (29, 41, 3 + self.number % 2), dtype=np.uint8)
        made = kernel(self.source)
        return np.array(made(from_array(image), amount=(self.number % 7) / 5).numpy())


#: Functions with their number of arguments; exp of f32 is written out in programs of bytes.
FUNCTIONS = {"log": 1, "sin": 1, "cos": 1, "tan": 1, "atan": 1, "atan2": 2, "pow": 2, "exp": 1}
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40,
           5e-324, 1e9, -2e9, 1e10, 1e30, -3e38, 2.0**24 + 2, 2.0**53, 255.0, 1 / 255)  # fmt: skip


def arguments(dtype: str, seed: str) -> np.ndarray:
    """Return numbers of any bits, common ones, whole ones and special ones."""
    draw = np.random.default_rng([*seed.encode()])
    anything = draw.integers(0, 256, (2000, np.dtype(dtype).itemsize), np.uint8).view(dtype)
    some = [anything, draw.normal(0, 9, 1500), draw.random(1000), draw.integers(-30, 30, 300)]
    pairs = np.meshgrid(SPECIAL, SPECIAL)["xy".index(seed[-1])]
    with np.errstate(all="ignore"):
        return np.concatenate([a.ravel() for a in (*some, pairs)]).astype(dtype)


def differing(function: str, dtype: str) -> int:
    """Count the results in a program of bytes that are not the reference engine's."""
    given = [arguments(dtype, f"{function} {name}") for name in "xy"[: FUNCTIONS[function]]]
    with np.errstate(all="ignore"):
        wanted = exact_function(function, *given)
    names = "xy"[: len(given)]
    made = kernel(
        f"def same(px: Pixel, w: Array, {', '.join(f'{n}: Array' for n in names)}):\n"
        f"    i = position(1)\n"
        f"    v = {function}({', '.join(f'{n}[i]' for n in names)})\n"
        "    equal = v == w[i] or (isnan(v) and isnan(w[i]))\n"
        "    return rgba(px.rgb, 1.0 if equal else 0.0)"
    )
    picture = np.zeros((1, wanted.size, 4), np.uint8)
    found = made(from_array(picture), *map(from_array, (wanted, *given))).numpy()
    return int(np.count_nonzero(found[..., 3] != 255))


def report(first: int, last: int) -> Iterator[str]:
    """Yield a line for each kernel and each function, on the current device."""
    for number in range(first, last):
        for steep in (False, True):
            yield f"{number} {checksum(ByteProgram(number, steep).run())}"
    for function in FUNCTIONS:
        for dtype in ("f4", "f8")[function == "exp" :]:
            yield f"{function} {dtype} {differing(function, dtype)}"


if __name__ == "__main__":
    with dala.device(sys.argv[3] if len(sys.argv) > 3 else "cpu"):
        for line in report(int(sys.argv[1]), int(sys.argv[2])):
            print(line)  # noqa: T201
