"""All shaders become PTX for old, common and new GPUs: nothing runs, so no GPU is needed."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from dala.answers.cases import names, rows
from dala.gpu.compute import buffer, buffer_zeros, run_kernel
from dala.gpu.compute.engines import instances
from dala.gpu.compute.engines.webgpu.cuda import adapters, device
from dala.gpu.compute.engines.webgpu.cuda.ptx import CompiledShader, compile_shader
from tests.engine.cuda.conftest import GPU
from tests.engine.cuda.host import HostApi, compile_for_host

ROOT = files("dala.gpu.compute.engines.webgpu")
#: Copies of textures to the canvas of a page.
BROWSER = {"image_pass.wgsl"}


class IdleApi(HostApi):
    """A GPU that runs nothing."""

    def load(self, ptx: bytes) -> Any:
        return None

    def launch(self, *arguments: object) -> None:
        pass


def calls(where: str) -> None:
    """Run what the filters do not: operations of numbers, by every method."""

    def run(name: str, shape: tuple[int, ...], *inputs: tuple[int, ...], kind="f32", **params):
        made = [buffer(np.ones(size, np.float32), device=where) for size in inputs]
        run_kernel(name, made, buffer_zeros(shape, kind, device=where), params)

    for a, b in (((64, 64), (64, 64)), ((300, 300), (300, 300)), ((1, 70), (70, 50)),
                 ((70, 90), (90, 50)), ((1000, 1000), (1000, 1000))):  # fmt: skip
        run("matmul", (a[0], b[1]), a, b)
    run("matmul", (3, 40, 50), (3, 40, 30), (3, 30, 50))
    run("transpose", (50, 70), (70, 50))
    for name in ("reduce_sum", "reduce_max", "reduce_min"):
        run(name, (1,), (3, 100_000))
    run("argmax", (1,), (3, 100_000), kind="s32")
    for name in ("softmax", "layer_norm"):
        run(name, (30, 1001), (30, 1001), *([(1001,), (1001,)] if name == "layer_norm" else []))
    run("cumsum", (30, 5000), (30, 5000), axis=1)
    run("cumsum", (5000, 30), (5000, 30), axis=0)
    for count in (64, 1024, 4096, 1 << 16, 1 << 18, 100, 1000, 211, 10007):
        run("fft", (4, count, 2), (4, count, 2), complex=True)
        run("fft", (4, count, 2), (4, count), complex=False)
    for size in ((256, 256), (60, 100)):
        run("fft", (*size, 2), (*size, 2), complex=True, axes=2)
        run("ifft", (*size, 2), (*size, 2), axes=2)
    for image, weights in (
        ((1, 3, 64, 64), (8, 3, 3, 3)), ((1, 64, 56, 56), (64, 64, 3, 3)),
        ((1, 64, 56, 56), (64, 64, 1, 1)), ((1, 3, 512, 512), (16, 3, 5, 5)),
        ((2, 16, 20, 20), (32, 16, 3, 3)),
    ):  # fmt: skip
        size = (image[0], weights[0], *image[2:])
        run("conv2d", size, image, weights, padding=weights[2] // 2)
    run("conv2d", (1, 32, 30, 30), (1, 32, 30, 30), (32, 1, 3, 3), padding=1, groups=32)
    run("convolve1d", (1000,), (1000,), (31,))
    run("lut_apply", (8, 8, 3), (8, 8, 3), (4, 4, 4, 3))
    run("histogram", (256,), (300, 300), kind="u32", bins=256)


@pytest.fixture(scope="module")
def shaders() -> dict[tuple[str, str], str]:
    """Return all shaders that the filters and operations make, with what they are checked for."""
    found: dict[tuple[str, str], str] = {}

    def compiled(code: str, checks: str, capability: int) -> CompiledShader:
        found.setdefault((code, checks), code.split("\n", 1)[0])
        return compile_for_host(code, checks, capability)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapters, "CudaApi", lambda ordinal: IdleApi())
        patch.setattr(device, "compile_shader", compiled)
        engine = instances.open_adapter(adapters.describe(7, GPU))
        patch.setitem(instances.by_name, "cuda:7", engine)
        for name in names():
            for row in rows(name, share="few"):
                if row.runs_on("webgpu") and row.picture in ("", "photo"):
                    row.run("cuda:7")
        calls("cuda:7")
        engine.synchronize()
        del instances._by_id["cuda:7"]
        engine.close()
    return found


def test_every_file_is_used(shaders):
    whole = "\n".join(code for code, _ in shaders)
    unused = []
    for folder in (ROOT, *(ROOT / name for name in ("ops", "wgsl", "compose"))):
        for file in folder.iterdir():
            if not file.name.endswith(".wgsl") or file.name in BROWSER:
                continue
            plain = [line.strip() for line in file.read_text().splitlines() if "{{" not in line]
            lines = [line for line in plain if len(line) > 20 and "//" not in line]
            if lines and not any(line in whole for line in lines):
                unused.append(file.name)
    assert unused == []


@pytest.mark.parametrize(("capability", "every"), [(75, 6), (90, 1), (120, 20)])
def test_every_shader_becomes_ptx(shaders, capability, every):
    """PTX for other GPUs differs in little, so only some are compiled for them."""
    assert len(shaders) > 80
    for code, checks in list(shaders)[::every]:
        made = compile_shader(code, checks, capability)
        assert f".target sm_{min(capability, 90)}" in made.ptx
        assert ".entry main" in made.ptx
