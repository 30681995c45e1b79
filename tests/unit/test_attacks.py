"""Attacks through kernel text: untrusted text can compute numbers and nothing else."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from dala.errors import DalaError, KernelSyntaxError, ShapeMismatch
from dala.gpu.compute import Kernel, buffer, kernel, kernels

BODIES = {
    "import by function": "__import__('os').system('touch {canary}')",
    "open a file": "open('{canary}', 'w')",
    "eval": "eval('1+1')",
    "exec": "exec('x = 1')",
    "compile": "compile('1', 'f', 'eval')",
    "getattr": "getattr(x, 'r')",
    "globals": "globals()['os']",
    "locals": "locals()",
    "vars": "vars()",
    "dunder attribute": "x.__class__",
    "dunder chain": "x.__class__.__mro__[1].__subclasses__()",
    "dunder through a tuple": "().__class__.__bases__[0]",
    "dunder through a number": "(1).__class__",
    "dunder name": "__builtins__",
    "function attribute": "sin.__globals__",
    "math escape": "math.__loader__",
    "math unknown": "math.factorial(x)",
    "method call": "x.tobytes()",
    "format trick": "'{{0.__class__}}'.format(x)",
    "f-string": "f'{{x.__class__}}'",
    "text": "'hello'",
    "bytes": "b'hello'",
    "list as the result": "[x, x]",
    "dict": "{{1: x}}[1]",
    "set": "{{x}}",
    "list comprehension": "[y for y in range(10)][0]",
    "dict comprehension": "{{y: y for y in range(3)}}[0]",
    "generator": "sum(y for y in range(10))",
    "lambda": "(lambda y: y)(x)",
    "walrus": "(y := x)",
    "star": "max(*x)",
    "double star": "max(**x)",
    "await": "await x",
    "yield": "(yield x)",
    "unknown function": "frobnicate(x)",
    "unknown name": "os",
    "print": "print(x)",
    "input": "input()",
    "type": "type(x)",
    "id": "id(x)",
    "breakpoint": "breakpoint()",
    "call of a call": "sin(x)(x)",
    "call of a subscript": "x[0](1)",
    "huge power": "x + 9 ** 9 ** 9 ** 9",
    "huge shift": "x + (1 << 10 ** 9)",
    "huge integer": "x + " + "9" * 400,
    "constant division by zero": "x + 1 / 0",
    "complex": "x + 1j",
    "ellipsis": "...",
    "none": "None",
    "slice": "x[1:2]",
    "matmul": "x @ x",
    "is": "x is x",
    "in": "x in x",
    "nested brackets": "(" * 5000 + "x" + ")" * 5000,
    "nested minus": "-" * 5000 + "x",
    "long sum": " + ".join(["x"] * 5000),
    "range outside a loop": "range(3)",
}

TEXTS = {
    "import": "import os\ndef f(x): return x",
    "from import": "from os import system\ndef f(x): return x",
    "import inside": "def f(x):\n    import os\n    return x",
    "code at the top": "print('hello')\ndef f(x): return x",
    "assignment at the top": "y = 3\ndef f(x): return x",
    "no function": "x + 1",
    "empty": "",
    "class": "class f:\n    pass",
    "class inside": "def f(x):\n    class A: pass\n    return x",
    "async": "async def f(x): return x",
    "decorator that runs": "@open('{canary}', 'w').write\ndef f(x): return x",
    "default that runs": "def f(x, *, y=open('{canary}', 'w')): return x",
    "annotation that runs": "def f(x: open('{canary}', 'w')): return x",
    "star args": "def f(*x): return 1",
    "keyword args": "def f(**x): return 1",
    "while else": "def f(x):\n    while x > 0:\n        x = x - 1\n    else:\n        x = 1\n"
    "    return x",
    "try": "def f(x):\n    try:\n        return x\n    except Exception:\n        return x",
    "with": "def f(x):\n    with open('{canary}') as g:\n        return x",
    "raise": "def f(x):\n    raise ValueError\n    return x",
    "assert": "def f(x):\n    assert x\n    return x",
    "del": "def f(x):\n    del x\n    return 1",
    "global": "def f(x):\n    global y\n    y = x\n    return x",
    "match": "def f(x):\n    match x:\n        case 1:\n            return x\n    return x",
    "for over a list": "def f(x):\n    for i in [1, 2]:\n        x = x + i\n    return x",
    "for else": "def f(x):\n    for i in range(3):\n        x = x + i\n    else:\n        x = 1\n"
    "    return x",
    "store into an array": "def f(a: Array):\n    a[0] = 1\n    return 1",
    "assign an attribute": "def f(px: Pixel):\n    px.red = 1\n    return px",
    "assign a component twice": "def f(px: Pixel):\n    px.rr = (1, 2)\n    return px",
    "list too long": "def f(x):\n    t = [" + "1, " * 300 + "]\n    return t[0]",
    "list of different things": "def f(x):\n    t = [1, (1, 2)]\n    return t[0]",
    "a tuple as the result": "def f(x):\n    return ((x, x, x), (x, x, x))",
    "text as a number": "def f(x):\n    return sqrt('x')",
    "statement without effect": "def f(x):\n    x + 1\n    return x",
    "no return": "def f(x):\n    y = x",
    "no return in one branch": "def f(x):\n    if x > 0:\n        return x",
    "return nothing": "def f(x):\n    return",
    "syntax error": "def f(x: return x",
    "null byte": "def f(x):\n    return x\0",
    "recursion": "def f(x): return f(x)",
    "unset variable": "def f(x):\n    if x > 0:\n        y = x\n    return y",
    "dunder argument": "def f(__x): return __x",
    "too much text": "def f(x):\n" + "    x = x + 1\n" * 10000 + "    return x",
}


def attacks() -> list[tuple[str, str]]:
    found = [(name, "def f(x):\n    return " + body) for name, body in BODIES.items()]
    return found + list(TEXTS.items())


@pytest.mark.parametrize(("name", "text"), attacks(), ids=[n for n, _ in attacks()])
def test_attack_is_refused(name, text, tmp_path):
    canary = tmp_path / "canary"
    if "{canary}" in text or "{{" in text:
        text = text.replace("{canary}", str(canary)).replace("{{", "{").replace("}}", "}")
    before = set(sys.modules), kernels()
    with pytest.raises(KernelSyntaxError) as caught:
        made = Kernel.register("attack", text)
        made(buffer([1.0, 2.0], device="reference"))  # some need the dtypes
    error = caught.value
    assert isinstance(error, SyntaxError)
    assert isinstance(error, DalaError)
    assert error.lineno is not None
    assert error.lineno >= 1
    assert not canary.exists()
    new = {m for m in set(sys.modules) - before[0] if not m.startswith("dala")}
    assert new <= {"unicodedata", "importlib.readers"}  # the second reads our own prelude
    if "attack" in kernels():
        Kernel.unregister("attack")


def test_refused_kernel_is_not_registered():
    with pytest.raises(KernelSyntaxError):
        Kernel.register("leftover", "def leftover(x): return open(x)")
    assert "leftover" not in kernels()


def test_growth_through_helpers_is_bounded():
    text = "def h0(x): return x * x + 1\n"
    for level in range(1, 20):
        text += f"def h{level}(x): return h{level - 1}(x) + h{level - 1}(x)\n"
    Kernel.register("bomb", text)
    with pytest.raises(KernelSyntaxError, match="more than 20,000 operations"):
        kernel("def fuse(x): return bomb(x)")(buffer([1.0], device="reference"))
    Kernel.unregister("bomb")
    Kernel.unregister("fuse")


def test_recursive_kernels_are_refused():
    Kernel.register("ping", "def ping(x): return x")
    Kernel.register("pong", "def pong(x): return ping(x)")
    Kernel.register("ping", "def ping(x): return pong(x)")
    # A declaration refers to the kernels that existed when it was made, so there is no recursion.
    assert Kernel.register("ring", "def ring(x): return ping(x)")(
        buffer([3.0], device="reference")
    ).read_list() == [3.0]
    for name in ("ping", "pong", "ring"):
        Kernel.unregister(name)


MESSAGES = [
    (
        "def f(x):\n    y = [i for i in x]\n    return y",
        "kernel 'f', line 2: comprehensions are not part of the language\n"
        "    y = [i for i in x]\n"
        "        ^\n"
        "Write a for loop.",
    ),
    (
        "def f(x):\n    return smothstep(0, 1, x)",
        "kernel 'f', line 2: the language has no function 'smothstep'\n"
        "    return smothstep(0, 1, x)\n"
        "           ^\n"
        "Did you mean 'smoothstep'?",
    ),
    (
        "def f(x, *, amount=1.0):\n    return x * amuont",
        "kernel 'f', line 2: the name 'amuont' is not defined\n"
        "    return x * amuont\n"
        "               ^\n"
        "Did you mean 'amount'?",
    ),
    (
        "def f(x):\n    while x > 0:\n        x = x - 1\n    else:\n        x = 1\n    return x",
        "kernel 'f', line 5: while ... else is not part of the language\n"
        "    x = 1\n"
        "    ^\n"
        "Remove the else.",
    ),
    (
        "def f(x):\n    return x.__class__",
        "kernel 'f', line 2: the language has no attribute '__class__'\n"
        "    return x.__class__\n"
        "           ^\n"
        "Pixels have .r .g .b .a (and .rgb); arrays .shape; images .width and .height.",
    ),
    (
        "def f(x):\n    if x > 0:\n        return x",
        "kernel 'f', line 1: not every path through the function returns a value\n"
        "    def f(x):\n"
        "    ^\n"
        "End it with return value.",
    ),
]


@pytest.mark.parametrize(
    ("text", "problem", "advice"),
    [
        ("def f(px: Pixel):\n    vec3 c = px.rgb;\n    return c", "a type before a name", "Write"),
        ("def f(x):\n    float y = 1.0\n    return y", "a type before a name", "x: float = 0.5"),
        ("vec4 f(vec2 p) {\n  return p;\n}", "a function of GLSL", "Write def name(x):"),
        ("def f(x):\n    return x && 1", "&& or ||", "'and', 'or', 'not'"),
        ("def f(x):\n    return x > 1 ? 1 : 0", "? :", "a if condition else b"),
        ("def f(x):\n    x++\n    return x", "++ or --", "x += 1"),
        ("def f(x):\n    return float2(x, x).x", "no function 'float2'", "Write vec2(...)."),
        ("def f(x):\n    return saturate(x)", "no function 'saturate'", "clamp(x, 0.0, 1.0)"),
        ("def f(x):\n    return fragCoord.x", "'fragCoord' is not defined", "y, x = position()"),
        ("def f(x):\n    return true", "'true' is not defined", "Write True."),
        ("def f(a: Array):\n    return a[3 / 2]", "an index requires integers", "divided by //"),
        ("def f(x):\n    for i in range(3 / 2):\n        x += i\n    return x",
         "a range requires integers", "divided by //"),
    ],
)  # fmt: skip
def test_habits_of_other_languages_have_advice(text, problem, advice):
    with pytest.raises(KernelSyntaxError) as caught:
        kernel(text)(buffer([1.0], device="reference"), out=buffer([1.0], device="reference"))
    assert problem in str(caught.value)
    assert advice in str(caught.value)


def test_a_forgotten_annotation_is_named():
    picture = np.zeros((4, 6, 3), np.uint8)
    with pytest.raises(ShapeMismatch) as caught:
        kernel("def plain(px):\n    return rgba(px, px, px)")(picture)
    assert str(caught.value) == (
        "plain: px must be declared as a picture, because the kernel computes pixels, "
        "got (4, 6, 3). Write px: Pixel, or px: Image to read its neighbors."
    )


@pytest.mark.parametrize(("text", "message"), MESSAGES)
def test_message_shows_line_caret_and_advice(text, message):
    with pytest.raises(KernelSyntaxError) as caught:
        Kernel.register("f", text)
    assert str(caught.value) == message


def test_function_error_names_file_and_line():
    with pytest.raises(KernelSyntaxError) as caught:

        @kernel
        def bad(x):
            return x.nothing

    assert caught.value.filename == __file__
    assert caught.value.text is not None
    assert "return x.nothing" in caught.value.text
    with open(__file__, encoding="utf-8") as file:
        assert "return x.nothing" in file.readlines()[caught.value.lineno - 1]
