"""Parsing of WGSL bindings, without a device."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dala.errors import ShaderError
from dala.gpu.shaders.wgsl import ShaderBinding, Wgsl, explain, reflect

PIXELS = "@group(0) @binding(0) var<storage, read_write> pixels: array<u32>;\n"
MAIN = "@compute @workgroup_size(8)\nfn main() {}\n"

#: Whitespace and comments between two tokens of WGSL.
gaps = st.lists(
    st.sampled_from(
        [" ", "\n", "\t", "// @compute fn no()\n", "/* var<uniform> x: f32; */", "/*/**/*/"]
    ),
    min_size=1,
    max_size=3,
).map("".join)
kinds = st.sampled_from(
    [
        ("uniform", "uniform"),
        ("storage", "read-only-storage"),
        ("storage , read", "read-only-storage"),
    ]
)


@given(
    numbers=st.lists(st.integers(1, 999), unique=True, max_size=5),
    data=st.data(),
)
def test_declarations_with_comments_and_whitespace(numbers, data):
    text, want = [PIXELS], [ShaderBinding(0, "pixels", "storage")]
    for n in numbers:
        written, kind = data.draw(kinds)
        number = data.draw(st.sampled_from([str(n), f"{n}u", f"{n}i", hex(n)]))
        words = ["@group(0)", f"@binding({number})"]
        if data.draw(st.booleans()):
            words.reverse()
        words += ["var", f"<{written}>", f"v{n}", ":", "vec4f", ";"]
        text.append("".join(w + data.draw(gaps) for w in words))
        want.append(ShaderBinding(n, f"v{n}", kind))
    order = data.draw(st.permutations(range(len(text))))
    source = "".join(text[i] for i in order) + data.draw(gaps) + MAIN
    assert reflect(source, "s") == Wgsl(source, "main", tuple(sorted(want, key=lambda b: b.index)))


@given(st.text("@group(0)bindvar<st,e>:;u32[]{}fn/*\n compute", max_size=120))
@settings(max_examples=300)
def test_any_text_is_parsed_or_refused(text):
    try:
        found = reflect(PIXELS + text + MAIN, "s").bindings[0]
    except ShaderError as error:
        found, said = None, str(error)
    if found is None:
        assert said.startswith("shader 's'")
    else:
        assert found == ShaderBinding(0, "pixels", "storage")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (MAIN, "shader 's': the shader does not bind the pixels. Declare"),
        (PIXELS, "shader 's': the shader has no function with @compute"),
        (
            PIXELS + MAIN.replace("main", "a") + MAIN.replace("main", "b"),
            "several functions have @compute (a, b); name one of them main",
        ),
        (
            PIXELS.replace("read_write", "read") + MAIN,
            "line 1: binding 0 is the pixels: var<storage, read_write> pixels: array<u32>\n"
            "    @group(0) @binding(0) var<storage, read> pixels: array<u32>;\n"
            "                                             ^",
        ),
        (
            PIXELS + "@group(0) @binding(2) var t: texture_2d<f32>;\n" + MAIN,
            "line 2: t is neither var<uniform> nor var<storage>",
        ),
        (PIXELS + "@group(1) @binding(2) var<uniform> u: f32;\n" + MAIN, "u is in group 1"),
        (PIXELS + "@binding(2) var<uniform> u: f32;\n" + MAIN, "u needs both @group(0) and"),
        (
            PIXELS + "@group(0) @binding(N) var<uniform> u: f32;\n" + MAIN,
            "must be integer literals, got 'N'",
        ),
        (
            PIXELS + "@group(0) @binding(2) var<storage, read_write> u: array<f32>;\n" + MAIN,
            "u is writable, but only the pixels at binding 0 may be; write var<storage, read>",
        ),
        (PIXELS * 2 + MAIN, "line 2: binding 0 is already pixels"),
        (PIXELS + MAIN + "\0", "line 4: the source has a NUL character"),
        (PIXELS + MAIN + " " * (1 << 20), "at most 1048576 characters, got"),
        (PIXELS + MAIN + "const a = " + "-" * 501 + "1;", "line 4: more than 500 operators"),
        (PIXELS + MAIN + "const a = " + "f(1+" * 251, "line 4: more than 500 operators"),
    ],
)
def test_refused_declarations(source, says):
    with pytest.raises(ShaderError) as caught:
        reflect(source, "s")
    assert says in str(caught.value)


def test_allowed_nesting():
    table = "const t = array<f32, 9000>(" + "-0.5, " * 9000 + ");\n"
    many = "fn g() { " + "if a < b { c = -d; } else { e = f(1); } " * 2000 + "}\n"
    for text in (table, many, "const a = " + "1+" * 400 + "1;", "(" * 400 + ")" * 400):
        assert reflect(PIXELS + text + MAIN, "s").entry == "main"


def test_main_is_the_entry_point_among_several():
    source = PIXELS + MAIN + "@workgroup_size(1) @compute fn other() {}"
    assert reflect(source, "s").entry == "main"
    assert reflect(source.replace("@compute @w", "@w"), "s").entry == "other"


def test_unknown_compiler_messages():
    wgsl = reflect(PIXELS + MAIN, "s")
    assert str(explain("", wgsl)) == "shader 's': the compiler refused it"
    said = "Validation Error\n\nCaused by:\n  In wgpuDeviceCreateComputePipeline\n    No room\n"
    assert str(explain(said, wgsl)) == "shader 's': No room"
