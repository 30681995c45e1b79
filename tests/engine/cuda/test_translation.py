"""WGSL as LLVM: its meaning on the processor, and PTX for GPUs."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from dala.errors import DeviceError
from dala.gpu.compute.engines.cpu.cache import ObjectCache
from dala.gpu.compute.engines.webgpu.cuda import ptx as ptx_module
from dala.gpu.compute.engines.webgpu.cuda.module import WgslModule
from dala.gpu.compute.engines.webgpu.cuda.ptx import compile_shader
from dala.gpu.compute.engines.webgpu.cuda.target import GpuTarget
from tests.engine.cuda.host import Kernel

HEAD = """
struct Block { scale: f32, offset: vec3<f32>, last: u32, }
@group(0) @binding(0) var<storage, read> a: array<i32>;
@group(0) @binding(1) var<storage, read_write> b: array<i32>;
@group(0) @binding(2) var<uniform> p: Block;
"""


def run(body: str, numbers: list[int], before: str = "", count: int = 8) -> list[int]:
    """Return what a shader of one workgroup of 8 writes."""
    text = f"""{HEAD}{before}
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}"""
    a = np.array(numbers, np.int32)
    b = np.zeros(count, np.int32)
    block = struct.pack("<f12x3fI", 2.0, 1.0, 2.0, 3.0, 7)
    packed = struct.pack("<QQQQ", a.ctypes.data, a.nbytes, b.ctypes.data, b.nbytes) + block
    Kernel(text)((1, 1), packed)
    return b.tolist()


LEAST = -(2**31)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("b[i] = a[i] / a[7 - i];", [7, 6, 2, 1, 0, 0, 0, 0]),
        ("b[i] = 9 / (a[0] - 7);", [9] * 8),
        ("b[i] = 9 % (a[0] - 7);", [0] * 8),
        (f"b[i] = ({LEAST} + a[7]) / (a[6] - 2);", [LEAST] * 8),
        ("b[i] = 1 << (u32(a[0]) + 26u);", [2] * 8),
        ("b[i] = a[i + 100u];", [0] * 8),
        ("b[i] = i32(f32(a[i]) * 1e30f);", [2**31 - 1] * 7 + [0]),
        ("b[i] = i32(u32(f32(-a[i])));", [0] * 8),
        ("b[i] = select(a[i], -a[i], a[i] % 2 == 0);", [7, -6, 5, -4, 3, -2, 1, 0]),
        ("if (i < 3u && a[i] > 5) { b[i] = 1; } else if (i == 7u) { b[i] = 2; }",
            [1, 1, 0, 0, 0, 0, 0, 2]),
        ("var t = 0; for (var k = 0; k < a[i]; k++) { if (k == 5) { break; } if (k % 2 == 0) "
            "{ continue; } t += k; } b[i] = t;", [4, 4, 4, 4, 1, 1, 0, 0]),
        ("var t = a[i]; while (t > 3) { t -= 3; } b[i] = t;", [1, 3, 2, 1, 3, 2, 1, 0]),
        ("var t = 0; loop { if (t >= a[i]) { break; } t += 2; } b[i] = t;",
            [8, 6, 6, 4, 4, 2, 2, 0]),
        ("switch a[i] { case 7, 6: { b[i] = 1; } case 5: { b[i] = 2; } default: { b[i] = 3; } }",
            [1, 1, 2, 3, 3, 3, 3, 3]),
        ("let v = vec4<i32>(a[0], a[1], a[2], a[3]); let w = v.zyx; b[i] = w.x * 100 + w.z;",
            [507] * 8),
        ("var v = vec3<f32>(p.offset); v.y *= p.scale; b[i] = i32(v.x + v.y + v.z);", [8] * 8),
        ("b[i] = bitcast<i32>(1.0f);", [0x3F800000] * 8),
        ("var t = array<i32, 3>(4, 5, 6); t[i] = 9; b[i] = t[0] * 100 + t[1] * 10 + t[2];",
            [956, 496, 459, 459, 459, 459, 459, 459]),
        ("b[i] = i32(arrayLength(&a)) + i32(p.last);", [15] * 8),
        ("b[i] = i32(round(f32(a[i]) * 0.5f));", [4, 3, 2, 2, 2, 1, 0, 0]),
    ],
)  # fmt: skip
def test_statements_and_operators(body, expected):
    assert run(body, [7, 6, 5, 4, 3, 2, 1, 0]) == expected


def test_functions_structures_and_constants():
    before = """
    const SIZE = 2u + 1u;
    const TABLE = array<i32, 3>(10, 20, 30);
    struct Pair { low: i32, high: vec2<i32>, }
    fn pair(x: i32) -> Pair { return Pair(x, vec2<i32>(x * 2, x * 3)); }
    fn total(q: Pair) -> i32 { var sum = q.low; sum += q.high.x + q.high.y; return sum; }
    """
    body = "b[i] = total(pair(a[i])) + TABLE[i % SIZE];"
    assert run(body, [1] * 8, before) == [16, 26, 36, 16, 26, 36, 16, 26]


def test_private_variables_belong_to_an_invocation():
    before = """
    var<private> left: i32;
    fn spend(x: i32) -> i32 { left -= x; if (left < -100) { left = 0; } return left; }
    """
    body = "left += 10; b[i] = spend(a[i]) + spend(1) * 100;"
    assert run(body, [0, 1, 2, 3, 4, 5, 6, 7], before) == [910, 809, 708, 607, 506, 405, 304, 203]


def test_workgroups_wait_and_begin_with_zeros():
    before = """
    var<workgroup> shared_sum: atomic<u32>;
    var<workgroup> line: array<i32, 8>;
    """
    body = """
    line[i] = a[i] + i32(atomicLoad(&shared_sum));
    workgroupBarrier();
    for (var step = 1u; step < 8u; step *= 2u) {
        let other = line[(i + step) % 8u];
        workgroupBarrier();
        line[i] += other;
        workgroupBarrier();
    }
    atomicAdd(&shared_sum, 1u);
    workgroupBarrier();
    b[i] = line[i] * 10 + i32(atomicLoad(&shared_sum));
    """
    assert run(body, [1, 2, 3, 4, 5, 6, 7, 8], before) == [368] * 8


# PTX ---------------------------------------------------------------------------------------------

SUM = f"""{HEAD}
@compute @workgroup_size(8, 4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
    b[id.x] = bitcast<i32>(f32(a[id.x]) * p.scale + p.offset.x / p.scale + sqrt(p.offset.y));
}}"""


@pytest.mark.parametrize("capability", [75, 90, 120])
def test_ptx(capability):
    ptx = compile_shader(SUM, "all", capability).ptx
    assert f".target sm_{min(capability, 90)}" in ptx
    assert "mul.rn.f32" in ptx
    assert "div.rn.f32" in ptx
    assert "sqrt.rn.f32" in ptx
    assert "fma" not in ptx
    assert ".ftz" not in ptx
    assert "fma.rn.f32" in compile_shader(SUM, "none", capability).ptx


def test_ptx_is_kept_on_disk(tmp_path, monkeypatch):
    made: list[str] = []
    compiled = ptx_module._compiled
    monkeypatch.setattr(ptx_module, "_disk", lambda: ObjectCache(tmp_path / "objects"))
    monkeypatch.setattr(
        ptx_module, "_compiled", lambda text, *how: made.append(text) or compiled(text, *how)
    )
    first = compile_shader(SUM, "all", 75)
    assert compile_shader(SUM, "all", 75) == first
    assert len(made) == 1
    assert compile_shader(SUM, "all", 90).ptx != first.ptx
    assert compile_shader(SUM, "none", 75).ptx != first.ptx
    (damaged, *_) = (tmp_path / "objects").glob("*.o")
    damaged.write_bytes(damaged.read_bytes()[:-3] + b"xyz")
    for capability, checks in ((75, "all"), (90, "all"), (75, "none")):
        compile_shader(SUM, checks, capability)
    assert len(made) == 4


def test_shaders_of_other_kinds_are_refused_by_name_and_place():
    for text, expected in (
        (SUM.replace("sqrt(", "sinh("), "got 'sinh'"),
        (SUM.replace("vec3<f32>", "texture_2d<f32>"), "got 'texture_2d'"),
        (SUM.replace("p.scale +", "nothing +"), "got 'nothing'"),
        (SUM + "\n§", "got '§'"),
    ):
        with pytest.raises(DeviceError, match=expected):
            compile_shader(text, "all", 90)


def test_loops_that_ask_for_it_are_unrolled():
    text = """
        @group(0) @binding(0) var<storage, read_write> out: array<u32>;
        @group(0) @binding(1) var<storage, read> a: array<u32>;
        struct Block { count: u32 }
        @group(0) @binding(2) var<uniform> p: Block;
        @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3<u32>) {
            var sum = 0u;
            for (var k = 0u; k < p.count; k += 1u) { sum += a[k]; }
            out[id.x] = sum;
        }
    """
    for head, hints in (("", 0), ("// Loops are unrolled for CUDA.\n", 1)):
        assert WgslModule(head + text, GpuTarget(), clamped=False).llvm().count("!llvm") == hints
        assert "main" in compile_shader(head + text, "none", 75).ptx
