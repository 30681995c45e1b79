"""A lost device is reported, and the next call opens a new one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dala.gpu.shaders.dispatch import wgsl_available

# In a process of its own: other tests keep buffers on these devices.
LOSING = '''
import dala
from dala import gpu
from dala.gpu.compute import buffer, kernel, relu, submit
from dala.gpu.compute.engines import auto

count = kernel("def count(x, *, n: int = 3):\\n    for _ in range(n): x = x + 1.0\\n    return x")
FILL = """
@group(0) @binding(0) var<storage, read_write> pixels: array<u32>;
@compute @workgroup_size(1)
fn main() { for (var i = 0u; i < 2u; i++) { pixels[i] = 0xff0000ffu; } }
"""


def lose():
    engine = auto.get("webgpu")
    engine.owner.call(engine.device.native.destroy)  # the closest to a device loss
    return engine


def reports(call):
    try:
        call()
    except dala.DeviceLostError as error:
        assert "was lost" in str(error), error
        return
    raise SystemExit("no DeviceLostError")


dala.use("webgpu")
a = buffer([-1.0, 2.0])
lost = lose()
reports(a.read_list)
assert lost.lost
reports(lambda: relu(a).read_list())
b = buffer([-1.0, 2.0])
assert auto.get("webgpu") is not lost
assert relu(b).read_list() == [0.0, 2.0]

lose()
command = {"op": "run_kernel", "kernel": count, "inputs": [b], "output": b}
reports(lambda: submit(command).result(60))
c = buffer([1.0])
submit({**command, "inputs": [c], "output": c}).result(60)
assert c.read_list() == [4.0]

with dala.limits(iterations=2):  # waits for the device
    lose()
    reports(lambda: count(c, n=9).read_list())
    assert count(buffer([1.0]), n=2).read_list() == [3.0]

with gpu.create_surface(2, 1) as s:
    s.dispatch_compute(FILL)
    s.synchronize()
    s.clear("black")
    lose()
    s.dispatch_compute(FILL)
    reports(s.synchronize)
    assert s.get_pixels() == bytes([0, 0, 0, 255] * 2)
    s.dispatch_compute(FILL)
    assert s.get_pixels() == bytes([255, 0, 0, 255] * 2)
print("recovered")
'''


@pytest.mark.skipif(not wgsl_available(), reason="WebGPU has no adapter here")
def test_a_lost_device_is_reported_and_replaced():
    done = subprocess.run(
        [sys.executable, "-c", LOSING], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.stdout, done.returncode) == ("recovered\n", 0), done.stderr
