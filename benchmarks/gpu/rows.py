"""On a GPU, data resident: operations against torch, and each filter of a 4K frame.

    python3 -m benchmarks.gpu.rows --out PATH           needs numpy and wgpu; torch is the peer
    python3 -m benchmarks.gpu.rows --only matmul,fft    some of the rows
    python3 -m benchmarks.gpu.rows --devices cuda,webgpu    "dala" is the first, a column the other
    python3 -m benchmarks.gpu.rows --small              a dry run on any WebGPU adapter, tiny sizes

Devices and peers run in the same rounds. torch computes in f32 (no TF32). Times are per run, from
many runs between two waits, in one submit where that is possible (``together_ms``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import dala
from benchmarks.gpu.run import CHAIN, Entrant, filter_pipeline, race
from benchmarks.harness import write
from dala.gpu.compute import (
    buffer_zeros,
    device_info,
    from_array,
    gpu_available,
    run_kernel,
)
from dala.gpu.compute.kernel import get

FRAME = (2160, 3840)

#: Filters of a 4K frame and their parameters.
FILTERS: dict[str, dict[str, Any]] = {
    "brightness": {"value": 0.1},
    "gamma": {"value": 0.8},
    "sharpen": {"amount": 0.3},
    "erode": {"radius": 1},
    "dilate": {"radius": 1},
    "median": {"radius": 1},
    "chroma_key": {},
    "denoise": {},
    "beauty": {},
    "vignette": {"amount": 0.5},
}


@dataclass(frozen=True)
class Convolution:
    """A shape of the sweep: images, channels, height, width; outputs and window."""

    name: str
    image: tuple[int, int, int, int]
    outputs: int
    window: int
    stride: int = 1
    groups: int = 1

    @property
    def padding(self) -> int:
        return self.window // 2

    @property
    def weights(self) -> tuple[int, int, int, int]:
        return self.outputs, self.image[1] // self.groups, self.window, self.window


CONVOLUTIONS = [
    Convolution("first 3x3 s2, 1x3x224", (1, 3, 224, 224), 32, 3, 2),
    Convolution("first 7x7 s2, 8x3x224", (8, 3, 224, 224), 64, 7, 2),
    Convolution("1x1, 1x256x56 to 64", (1, 256, 56, 56), 64, 1),
    Convolution("1x1, 8x64x56 to 256", (8, 64, 56, 56), 256, 1),
    Convolution("1x1, 1x320x7 to 1280", (1, 320, 7, 7), 1280, 1),
    Convolution("3x3, 1x64x56 to 64", (1, 64, 56, 56), 64, 3),
    Convolution("3x3, 8x128x28 to 128", (8, 128, 28, 28), 128, 3),
    Convolution("3x3, 1x64x512 to 64", (1, 64, 512, 512), 64, 3),
    Convolution("depthwise 3x3, 1x144x56", (1, 144, 56, 56), 144, 3, 1, 144),
    Convolution("depthwise 3x3 s2, 8x96x112", (8, 96, 112, 112), 96, 3, 2, 96),
    Convolution("3x3 s2, 8x256x28 to 512", (8, 256, 28, 28), 512, 3, 2),
    Convolution("3x3, 1x16x32 to 16", (1, 16, 32, 32), 16, 3),
    Convolution("3x3, 1x3x1024 to 32", (1, 3, 1024, 1024), 32, 3),
    Convolution("5x5, 1x3x1024 to 3", (1, 3, 1024, 1024), 3, 5),
]

#: Batch and length of Fourier transforms.
TRANSFORMS = [
    (16, 1 << 20),
    (1 << 16, 1 << 8),
    (1 << 14, 1 << 10),
    (1 << 12, 1 << 12),
    (1 << 10, 1 << 14),
    (1 << 8, 1 << 16),
    (1 << 6, 1 << 18),
    (4, 1 << 22),
    (1 << 10, 1000),
    (1 << 10, 1009),
    (1 << 8, 1920),
    (16, 65537),
]


class Rows:
    """Pairs of contestants, ours on a device and torch's; ours are checked first."""

    def __init__(self, small: bool, peer: Any, device: str) -> None:
        self.small = small
        self.device = device
        self.torch = peer
        self.rng = np.random.default_rng(3)
        self.engine = buffer_zeros(1, device=device).engine

    def made(self, title: str) -> Iterator[tuple[str, dict[str, Entrant]]]:
        """Yield the rows, with a title of ours."""
        every = self.all()
        while True:
            with dala.device(self.device):
                row = next(every, None)
            if row is None:
                return
            name, made = row
            yield name, {title if who == "dala" else who: e for who, e in made.items()}

    def _ours(self, run: Callable[[], Any]) -> Entrant:
        engine = self.engine
        return Entrant(run, engine.synchronize, engine.batched, profile=engine.profile)

    def _theirs(self, run: Callable[[], Any]) -> Entrant:
        return Entrant(run, self.torch.cuda.synchronize)

    def _on_cuda(self, array: Any) -> Any:
        return self.torch.from_numpy(array).cuda()

    def all(self) -> Iterator[tuple[str, dict[str, Entrant]]]:
        yield from self._matmuls()
        yield from self._convolutions()
        yield from self._transforms()
        yield from self._transpose()
        yield from self._elementwise()
        yield from self._filters()

    def _matmuls(self) -> Iterator[tuple[str, dict[str, Entrant]]]:
        for side in (96,) if self.small else (4096, 1024, 256):
            x, y = (self.rng.normal(0, 1, (side, side)).astype(np.float32) for _ in range(2))
            a, b, out = from_array(x), from_array(y), buffer_zeros((side, side))
            run_kernel("matmul", [a, b], out)
            _close(out.numpy()[-8:], x[-8:].astype(np.float64) @ y, 1e-4 * side**0.5)
            made = {"dala": self._ours(lambda a=a, b=b, o=out: run_kernel("matmul", [a, b], o))}
            if self.torch:
                u, v, w = self._on_cuda(x), self._on_cuda(y), self._on_cuda(x)
                made["torch"] = self._theirs(lambda u=u, v=v, w=w: self.torch.mm(u, v, out=w))
            yield f"matmul {side}", made

    def _convolutions(self) -> Iterator[tuple[str, dict[str, Entrant]]]:
        for c in CONVOLUTIONS[:1] if self.small else CONVOLUTIONS:
            x = self.rng.normal(0, 1, c.image).astype(np.float32)
            w = self.rng.normal(0, 1, c.weights).astype(np.float32)
            a, b = from_array(x), from_array(w)
            params = {"stride": c.stride, "padding": c.padding, "groups": c.groups}
            out = get("conv2d")(a, b, **params)
            made = {
                "dala": self._ours(
                    lambda a=a, b=b, o=out, p=params: run_kernel("conv2d", [a, b], o, p)
                )
            }
            if self.torch:
                u, v = self._on_cuda(x), self._on_cuda(w)
                run = self.torch.nn.functional.conv2d
                expected = run(u, v, **params).cpu().numpy()
                _close(out.numpy(), expected, 1e-4 * w[0].size ** 0.5)
                made["torch"] = self._theirs(lambda u=u, v=v, p=params, run=run: run(u, v, **p))
            yield f"conv2d {c.name}", made

    def _transforms(self) -> Iterator[tuple[str, dict[str, Entrant]]]:
        for batch, length in [(2, 64)] if self.small else TRANSFORMS:
            x = self.rng.normal(0, 1, (batch, length, 2)).astype(np.float32)
            a, out = from_array(x), buffer_zeros(x.shape)
            run = lambda a=a, o=out: run_kernel("fft", [a], o)  # noqa: E731
            run()
            expected = np.fft.fft(x[-1, :, 0] + 1j * x[-1, :, 1].astype(np.float64))
            got = out.numpy()[-1]
            _close(got[:, 0] + 1j * got[:, 1], expected, 2e-6 * length**0.5 * np.log2(length))
            made = {"dala": self._ours(run)}
            if self.torch:
                u = self._on_cuda(x[..., 0] + 1j * x[..., 1])
                v = self.torch.empty_like(u)
                made["torch"] = self._theirs(lambda u=u, v=v: self.torch.fft.fft(u, out=v))
            yield f"fft {batch}x{length}", made

    def _transpose(self) -> Iterator[tuple[str, dict[str, Entrant]]]:
        side = 96 if self.small else 4096
        x = self.rng.normal(0, 1, (side, side)).astype(np.float32)
        a, out = from_array(x), buffer_zeros((side, side))
        run_kernel("transpose", [a], out)
        np.testing.assert_array_equal(out.numpy(), x.T)
        made = {"dala": self._ours(lambda: run_kernel("transpose", [a], out))}
        if self.torch:
            u, v = self._on_cuda(x), self._on_cuda(x)
            made["torch"] = self._theirs(lambda: v.copy_(u.t()))
        yield f"transpose {side}", made

    def _elementwise(self) -> Iterator[tuple[str, dict[str, Entrant]]]:
        n = 1 << (12 if self.small else 26)
        x = self.rng.normal(0, 1, n).astype(np.float32)
        a, out = from_array(x), buffer_zeros(n)
        u = self._on_cuda(x) if self.torch else None
        for name in ("tanh", "sigmoid", "relu", "argmax", "reduce_max"):
            target = out
            if name == "argmax":
                target = buffer_zeros((1,), "s32")
            elif name == "reduce_max":
                target = buffer_zeros((1,))
            made = {
                "dala": self._ours(lambda name=name, t=target: run_kernel(name, [a], t)),
            }
            made["dala"].run()
            if name == "argmax":
                assert target.numpy()[0] == x.argmax()
            if self.torch:
                if name in ("argmax", "reduce_max"):
                    call = self.torch.argmax if name == "argmax" else self.torch.max
                    made["torch"] = self._theirs(lambda call=call: call(u))
                else:
                    v = self.torch.empty_like(u)
                    call = getattr(self.torch, name, None) or self.torch.nn.functional.relu
                    if name == "relu":
                        made["torch"] = self._theirs(lambda v=v: self.torch.clamp_min(u, 0, out=v))
                    else:
                        made["torch"] = self._theirs(lambda call=call, v=v: call(u, out=v))
            yield f"{name} 2^{n.bit_length() - 1}", made

    def _filters(self) -> Iterator[tuple[str, dict[str, Entrant]]]:
        size = (67, 101) if self.small else FRAME
        frame = self.rng.integers(0, 256, (*size, 4), np.uint8)
        cube = np.stack(
            np.meshgrid(*[np.linspace(0, 1, 33, dtype=np.float32)] * 3, indexing="ij"), -1
        )
        stages: dict[str, list[tuple[str, dict[str, Any]]]] = {
            name: [(name, params)] for name, params in FILTERS.items()
        }
        stages["blur r3"] = CHAIN[:1]
        for radius in (20, 40, 60, 200):
            stages[f"blur r{radius}"] = [("blur", {"radius": radius, "sigma": radius / 3})]
        stages["blur, sharpen, brightness"] = CHAIN
        for name, chain in stages.items():
            try:
                pipeline, _ = filter_pipeline(frame, chain, self.engine.id)
            except dala.errors.DalaError as error:
                print(f"  {name}: left out ({error})")
                continue
            made = {"dala": self._ours(pipeline.run)}
            if self.torch and len(chain) == 1 and name.startswith("blur") and name != "blur r200":
                made["torch"] = self._theirs(self._blur(frame, chain[0][1]["radius"]))
            yield f"4K {name}", made
        a, table = from_array(frame), from_array(cube)
        out = buffer_zeros(frame.shape, "u8")
        try:
            run = lambda: run_kernel("lut_apply", [a, table], out)  # noqa: E731
            run()
            yield "4K lut_apply 33", {"dala": self._ours(run)}
        except dala.errors.DalaError as error:
            print(f"  lut_apply: left out ({error})")

    def _blur(self, frame: Any, radius: int) -> Callable[[], Any]:
        """Return torch's blur of f32 planes, without the conversion from bytes: two passes."""
        run = self.torch.nn.functional.conv2d
        planes = self._on_cuda(frame).permute(2, 0, 1)[None].float().contiguous()
        weights = self.torch.rand(4, 1, 1, 2 * radius + 1, device="cuda")
        rows, columns = weights, weights.transpose(2, 3).contiguous()
        return lambda: run(
            run(planes, rows, padding=(0, radius), groups=4), columns, padding=(radius, 0), groups=4
        )


def _close(got: Any, expected: Any, tolerance: float) -> None:
    off = float(np.abs(got - expected).max())
    if not off <= tolerance:
        raise AssertionError(f"off by {off}, allowed {tolerance}")


def _peer() -> Any:
    try:
        import torch
    except ModuleNotFoundError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    return torch


def main(
    rounds: int = 5, *, small: bool = False, out: str | None = None, only: str = "",
    devices: str = "gpu",
) -> None:  # fmt: skip
    """Run on the GPU; report and stop if there is none."""
    if not gpu_available() and not small:
        print("no GPU here: nothing measured (a dry run: python -m benchmarks.gpu.rows --small)")
        return
    ours = ["webgpu" if small else name for name in devices.split(",")]
    dala.use(ours[0])
    names = [name for name in only.split(",") if name]
    results: dict[str, Any] = {}
    print(f"data resident on {device_info()['name']}; milliseconds per run")
    peer = None if small else _peer()
    titles = ["dala", *ours[1:]]
    made = [Rows(small, None if n else peer, ours[n]).made(title) for n, title in enumerate(titles)]
    for rows in zip(*made, strict=True):
        name = rows[0][0]
        if names and not any(part in name for part in names):
            continue
        row = race({who: e for _, each in rows for who, e in each.items()}, 1 if small else rounds)
        best = {who: min(r["min_ms"], r.get("together_ms", 1e9)) for who, r in row.items()}
        results[name] = {**row, "best_ms": best}
        if "torch" in best:
            results[name]["of_torch"] = best["torch"] / best["dala"]
        cells = [f"{who} {ms:8.4f}" for who, ms in best.items()]
        cells += [f"device {r['device_ms']:8.4f}" for r in row.values() if "device_ms" in r]
        print(f"  {name:34s} {'  '.join(cells)}", flush=True)
    if out is not None or not (small or names):
        write("gpu_rows", results, ("torch",), out)


def _command(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.rows")
    parser.add_argument("--out", help="where the JSON goes")
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--devices", default="gpu", help="columns, separated by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="tiny sizes, any WebGPU adapter")
    options = parser.parse_args(arguments)
    given = {"small": options.small, "out": options.out, "only": options.only}
    main(options.rounds, devices=options.devices, **given)


if __name__ == "__main__":
    _command(sys.argv[1:])
