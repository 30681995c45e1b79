"""How long kernel text takes to compile, and how that grows with the text.

Texts that once took minutes, copied 5, 10, 20 and 40 times, and the largest that are accepted::

    python -m benchmarks.compile_time            # on the CPU
    python -m benchmarks.compile_time webgpu     # on another device

Figures are CPU seconds of the process: parsing, checking, compiling, and one call on one number.
"""

from __future__ import annotations

import os

os.environ["DALA_CACHE"] = "off"  # before anything is compiled

import sys
import time
from collections.abc import Callable

import dala
from benchmarks.harness import write
from dala.gpu.compute import buffer, kernel

COPIES = (5, 10, 20, 40)

_HELPERS = "\n".join(
    ["def h0(x):", "    return x * 1.5 + 0.25"]
    + [f"def h{n}(x):\n    return h{n - 1}(h{n - 1}(x))" for n in range(1, 14)]
)


def repeated(line: str, count: int, head: str = "def k(x):") -> str:
    """Return the text of a kernel that has a line several times."""
    return "\n".join([head, *[line] * count, "    return x"]) + "\n"


def branches(expression: str) -> Callable[[int], str]:
    """Return a text of ``if`` and ``else`` with a function, by the number of its copies."""
    line = f"    if x > 1:\n        x = {expression}\n    else:\n        x = x * 2"
    return lambda count: repeated(line, count)


#: Texts by number of copies.
GROWING: dict[str, Callable[[int], str]] = {
    "if x > 1: x = sin(x), else: x = x * 2": branches("sin(x)"),
    "the same with cos(x)": branches("cos(x)"),
    "the same with pow(x, 2.2)": branches("pow(x, 2.2)"),
    "the same with log(x)": branches("log(x)"),
    "30 loops of unknown length": lambda count: repeated(
        "    for i in range(m):\n        x = x * 1.5", 30 * count, "def k(x, *, m: int = 3):"
    ),
}
#: Some of the largest texts that are accepted, by what they have.
LARGEST = {
    "16,384 operations of helpers": f"{_HELPERS}\ndef k(x):\n    return h13(x)\n",
    "3,000 powers": repeated("    x = pow(x, 2.2)", 3000),
    "50 powers": repeated("    x = pow(x, 2.2)", 50),
    "1,400 loops": repeated(
        "    for i in range(m):\n        x = x * 1.5", 1400, "def k(x, *, m: int = 3):"
    ),
    "2,500 integer divisions": repeated("    x = 1000 // (x + 3)", 2500),
    "1,000 products and sums": repeated("    x = x * 1.5 + 0.25", 1000),
}


def seconds(text: str) -> float:
    """Return the CPU seconds of making a kernel and of its first call."""
    begin = time.process_time()
    kernel(text)(buffer([1.0]))
    return time.process_time() - begin


def main(device: str = "cpu") -> None:
    """Print and write the table."""
    with dala.device(device):
        kernel("def first(x): return x + 1")(buffer([1.0]))  # loads LLVM or the driver
        growing = {}
        print(f"{'CPU seconds by copies':44}" + "".join(f"{n:8}" for n in COPIES))
        for name, text in GROWING.items():
            growing[name] = {str(n): seconds(text(n)) for n in COPIES}
            print(f"{name:44}" + "".join(f"{s:8.2f}" for s in growing[name].values()), flush=True)
        largest = {}
        print("\nlargest texts")
        for name, text in LARGEST.items():
            largest[name] = seconds(text)
            print(f"{name:44}{largest[name]:8.2f}", flush=True)
    topic = "compile_time" if device == "cpu" else f"compile_time_{device.partition(':')[0]}"
    write(topic, {"growing": growing, "largest": largest}, ())


if __name__ == "__main__":
    main(*sys.argv[1:2])
