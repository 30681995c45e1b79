"""Budgets of iterations for WGSL: runaway shaders end, others are not changed."""

from __future__ import annotations

import re

import pytest

import dala
from dala import gpu
from dala.gpu.shaders.dispatch import wgsl_available
from dala.gpu.shaders.metering import metered
from dala.gpu.shaders.wgsl import reflect, without_comments

PIXELS = "@group(0) @binding(0) var<storage, read_write> pixels: array<u32>;\n"
MAIN = "@compute @workgroup_size(64)\nfn main(@builtin(global_invocation_id) at: vec3<u32>) {\n"

needs_wgsl = pytest.mark.skipif(not wgsl_available(), reason="WebGPU has no adapter here")


def shader(body):
    return PIXELS + MAIN + "  if (at.x >= arrayLength(&pixels)) { return; }\n" + body + "\n}\n"


def metered_source(source, limit=10):
    return metered(source, without_comments(source), 7, limit)


def test_every_loop_counts():
    source = shader(
        "var n = 0u;\n"
        "for (var i = 0u; i < (3u + n); i++) { n += i; } // for { while {\n"
        "while n < 100u { n += 7u; } /* loop { */\n"
        "loop { n += 1u; if (n > 200u) { break; } continuing { n += 1u; } }\n"
        "let forever = n; let looped = forever;\n"
    )
    made = metered_source(source)
    assert made.count("dala_left -= 1;") == 3
    assert made.count("\n") == source.count("\n") + 3
    assert "var<private> dala_left: i32 = 10;" in made
    assert "@binding(7) var<storage, read_write> dala_over" in made
    assert metered_source(shader("let looped = 1;")) is None


def test_names_of_the_shader_are_not_reused():
    made = metered_source(shader("var dala_left = 1000000; loop { dala_left += 1; }"))
    assert re.search(r"loop \{ dala_left1 -= 1;", made)


@pytest.mark.parametrize("end", ["\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029"])
def test_comments_do_not_hide_loops(end):
    source = PIXELS + "// x" + end + "fn f() { loop { } }\n" + MAIN + "}"
    assert reflect(source, "s", 5).metered is not None


RUNAWAYS = [
    "loop { pixels[at.x] += 1u; if (pixels[at.x] == 0xffffffffu && at.x > 999u) { break; } }",
    "for (var i = 0u; i < 1u; i += 0u) { pixels[at.x] += 1u; }",
    "while true { pixels[at.x] += 1u; }",
    "for (var i = 0u; i < 4000000000u; i++) { for (var j = 0u; j < 4000000000u; j++) "
    "{ pixels[at.x] += j; } }",
]


@needs_wgsl
@pytest.mark.parametrize("body", RUNAWAYS)
def test_a_runaway_ends(body):
    with dala.limits(iterations=1000), gpu.create_surface(4, 2) as s:
        s.clear("red")
        s.dispatch_compute(shader(body))
        with pytest.raises(dala.LimitExceeded, match="source: iterations must be at most 1000"):
            s.synchronize()
        assert s.get_pixels() == b"\xff\x00\x00\xff" * 8  # no pixel has changed
        s.dispatch_compute(shader("pixels[at.x] = 0xff00ff00u;"))
        assert s.get_pixels() == b"\x00\xff\x00\xff" * 8


@needs_wgsl
def test_a_runaway_ends_by_default():
    with gpu.create_surface(1, 1) as s:
        s.load_shader("spin", shader("loop { pixels[0] += 1u; }"))
        s.dispatch_compute("spin")
        with pytest.raises(dala.LimitExceeded, match=r"spin: iterations must be at most \d+"):
            s.synchronize()


@needs_wgsl
def test_a_budget_is_for_one_invocation():
    body = "for (var i = 0u; i < 20u; i++) { pixels[at.x] += 1u; }"
    with dala.limits(iterations=20), gpu.create_surface(8, 4) as s:
        s.clear("black")
        s.dispatch_compute(shader(body))
        assert s.get_pixels() == b"\x14\x00\x00\xff" * 32
    with dala.limits(iterations=19), gpu.create_surface(8, 4) as s:
        s.dispatch_compute(shader(body))
        with pytest.raises(dala.LimitExceeded, match="at most 19"):
            s.synchronize()


@needs_wgsl
def test_loops_with_barriers_run():
    source = (
        PIXELS
        + "var<workgroup> shared_sum: array<u32, 64>;\n"
        + "@compute @workgroup_size(64)\n"
        + "fn main(@builtin(local_invocation_index) lane: u32) {\n"
        + "  shared_sum[lane] = lane; workgroupBarrier();\n"
        + "  for (var step = 32u; step > 0u; step /= 2u) {\n"
        + "    if (lane < step) { shared_sum[lane] += shared_sum[lane + step]; }\n"
        + "    workgroupBarrier();\n  }\n"
        + "  if (lane == 0u) { pixels[0] = shared_sum[0]; }\n}\n"
    )
    with gpu.create_surface(1, 1) as s:
        s.dispatch_compute(source)
        assert int.from_bytes(s.get_pixels(), "little") == 63 * 64 // 2


@needs_wgsl
def test_errors_show_the_source_as_it_was_given():
    body = "for (var i = 0u; i < 3u; i++) { let x: u32 = 1.5; }"
    with gpu.create_surface(1, 1) as s:
        s.dispatch_compute(shader(body))
        with pytest.raises(dala.ShaderError) as info:
            s.synchronize()
    assert body in str(info.value)
    assert "dala_left" not in str(info.value)
    assert info.value.column == body.index("let x") + len("let ") or info.value.column > 30
