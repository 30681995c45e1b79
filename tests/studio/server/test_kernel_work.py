"""Which kernels of a page have limits of their own: by their work for each pixel."""

import pytest

from dala.studio.cards.kernels import compile_kernel
from dala.studio.limits import StudioLimits

LOOP = "    for i in range(1):\n        v = {}\n"


def text(lines: str) -> str:
    return f"def f(px: Pixel):\n    v = px.r\n{lines}    return rgba(v, v, v, 1.0)\n"


@pytest.mark.parametrize(
    "body",
    [
        text(LOOP.format("v * 1.01 + 0.001") * 1000),
        text(LOOP.format("pow(v, 1.3)") * 20),
        text("    v = pow(v, 1.3)\n" * 20),
        text("    for i in range(30):\n" + "        v = v * 1.5 + 0.25\n" * 10),
        "def g(x):\n    for i in range(200):\n        x = x * 1.5 + 0.25\n    return x\n\n"
        "def f(px: Pixel):\n    return rgba(g(px.r), g(px.g), g(px.b), 1.0)\n",
        text("    v = v ** (v + 1.5)\n" * 20),
        text("    v = fbm(px.rgb + v)\n"),
        text("    v = t[int(v * 5.0)]\n").replace(
            "px: Pixel", "px: Pixel, *, t: list[float] = (1.0, 2.0)"
        ),
        text("    while v > 0.5:\n        v = v * 0.5\n"),
    ],
    ids=[
        "a thousand loops of one round",
        "powers in loops",
        "powers",
        "a long body",
        "helpers",
        "operators of powers",
        "noise in octaves",
        "a table that is a parameter",
        "a loop without an end",
    ],
)
def test_much_work_has_the_time_that_is_promised(body: str) -> None:
    made = compile_kernel(body)
    assert made.diagnostics == ()
    limits = made.kernel.limits
    assert (limits.time, limits.memory) == (StudioLimits.kernel_time, StudioLimits.kernel_memory)
    assert (limits.iterations is None) == ("while" not in body)  # where their number is known


def test_unknown_work_has_all_limits() -> None:
    loop = "    for i in range(n):\n        v = v * 1.5 + 0.01\n"
    made = compile_kernel(text(loop).replace("px: Pixel", "px: Pixel, *, n: int = 9"))
    assert made.diagnostics == ()
    assert made.kernel.limits.iterations == StudioLimits.kernel_iterations


@pytest.mark.parametrize(
    "lines",
    [
        "    v = pow(v, 1.3)\n",
        "    v = v % (v + 1.5)\n" * 20,
        "    v = simplex(px.rgb + v)\n",
        "    v = (inverse(mat4(v + 2.0)) * vec4(1.0)).x\n",
        "    t = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]\n    v = t[int(v * 5.0)]\n",
    ],
    ids=["a power", "remainders", "noise", "matrices", "a table"],
)
def test_a_little_work_is_fused_with_its_neighbors(lines: str) -> None:
    """Each takes less than 0.1 s for 16 million pixels on two cores."""
    made = compile_kernel(text(lines))
    assert made.diagnostics == ()
    assert made.kernel.limits is None


def test_a_small_loop_is_fused_with_its_neighbors() -> None:
    loop = "    for i in range(-4, 5):\n        v = v + img[i, 0].r / 9.0\n"
    blur = text(loop).replace("px: Pixel", "img: Image").replace("px.r", "0.0")
    assert compile_kernel(blur).diagnostics == ()
    assert compile_kernel(blur).kernel.limits is None


PASSES = "".join(f"    def p{n}(p{n}: Pixel):\n        return p{n}.rgb + 0.1\n" for n in range(4))
PROGRAM = f"""@program
def f(px: Pixel):
{PASSES}
    def shown(px: Pixel, p3: Pixel):
        return px
"""
HEAD = '{"INPUTS": [{"NAME": "inputImage", "TYPE": "image"}], "PASSES": [{"TARGET": "a"}, {}]}'
SHADER = f"/*{HEAD}*/\nvoid main() {{ gl_FragColor = IMG_THIS_PIXEL(inputImage); }}"


@pytest.mark.parametrize(("text", "count"), [(PROGRAM, 5), (SHADER, 2)])
def test_the_passes_of_a_program_share_the_time_of_a_kernel(text: str, count: int) -> None:
    """Each had the whole of it: 64 of them had the 30 s of the chain."""
    made = compile_kernel(text)
    assert made.diagnostics == ()
    limits = [p.kernel.limits for p in made.kernel.passes]
    assert len(limits) == count
    assert sum(one.time for one in limits) == pytest.approx(StudioLimits.kernel_time)
    assert {one.iterations for one in limits} == {StudioLimits.kernel_iterations}
