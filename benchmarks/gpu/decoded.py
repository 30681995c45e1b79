"""Decoded pictures that stay on the GPU: NVDEC, five filters, a torch tensor.

    python3 -m benchmarks.gpu.decoded --out PATH      needs PyAV and torch; others are peers
    python3 -m benchmarks.gpu.decoded --size 1280x720 another size than 3840x2160

The clip is made first. Rounds are interleaved. The driver counts the bytes of buffers that cross
the host; with ``cuda`` they must be none.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
import torch

from benchmarks.gpu.frames import FILTERS
from benchmarks.harness import write
from dala.gpu.compute.engines import auto
from dala.media import FramePipeline, video
from dala.media.video.decoding.nvdec import options_for

CROSSED = ("uploaded_bytes", "downloaded_bytes")


def make(path: Path, size: tuple[int, int], count: int) -> None:
    """Write a clip of moving blocks, H.264."""
    rng = np.random.default_rng(4)
    rows, columns = size[1] // 40, size[0] // 40
    base = rng.integers(0, 256, (rows, columns, 3), np.uint8).repeat(40, 0).repeat(40, 1)
    with av.open(str(path), "w") as sink:
        options = {"preset": "ultrafast", "crf": "20"}
        stream = sink.add_stream("libx264", rate=30, options=options)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        for turn in range(count):
            sink.mux(stream.encode(av.VideoFrame.from_ndarray(np.roll(base, turn * 8, 1), "rgb24")))
        sink.mux(stream.encode(None))


def ours(path: Path, device: str, hwaccel: str | None = None) -> int:
    """Decode, filter and make tensors of a clip; return the number of frames."""
    count = 0
    with video.open(path, device=device, hwaccel=hwaccel) as reader:
        pipeline = None
        for frame in reader:
            if pipeline is None:
                pipeline = FramePipeline(frame.width, frame.height, device=device)
            made = pipeline.process(frame, FILTERS)
            last = torch.from_dlpack(made.pixels)
            count += 1
        if pipeline is not None:
            pipeline.close()
    torch.cuda.synchronize()
    assert last.is_cuda == device.startswith("cuda")
    return count


def decoded_only(path: Path) -> int:
    """Decode a clip to CUDA's memory, RGBA."""
    with video.open(path, device="cuda") as reader:
        count = sum(1 for _ in reader)
    auto.get("cuda").synchronize()
    return count


def packets_only(path: Path) -> int:
    """Decode a clip by NVDEC through PyAV alone, and keep nothing."""
    from av.codec.hwaccel import HWAccel

    hardware = HWAccel("cuda", **options_for(auto.get("cuda"), False))  # in the context of dala
    with av.open(str(path), hwaccel=hardware) as source:
        return sum(1 for _ in source.decode(video=0))


def torchcodec(path: Path) -> Iterable[Any]:
    """Yield the frames of a clip as torchcodec decodes them: planes on the GPU."""
    from torchcodec.decoders import VideoDecoder

    return iter(VideoDecoder(str(path), device="cuda"))


def pynvvideocodec(path: Path) -> Iterable[Any]:
    """Yield the frames of a clip as PyNvVideoCodec decodes them: planes on the GPU."""
    import PyNvVideoCodec as nvc  # noqa: N813

    planes = nvc.OutputColorType.RGBP
    found = nvc.SimpleDecoder(str(path), gpu_id=0, use_device_memory=True, output_color_type=planes)
    return map(torch.from_dlpack, found)


def theirs(frames: Iterable[Any], filtered: bool) -> int:
    """Take the frames of another decoder, with or without torch's blur and contrast."""
    count = 0
    kernel = torch.ones(3, 1, 7, 7, device="cuda") / 49
    for last in frames:
        if filtered:
            x = torch.nn.functional.conv2d(last.float()[None] / 255, kernel, padding=3, groups=3)
            last = (torch.clamp(x * 1.1 - 0.05, 0, 1) * 255).byte()
        count += 1
    torch.cuda.synchronize()
    assert last.is_cuda
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out")
    parser.add_argument("--size", default="3840x2160")
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    width, height = map(int, args.size.split("x"))
    path = Path(tempfile.mkdtemp()) / "clip.mp4"
    make(path, (width, height), args.count)
    runs: dict[str, Callable[[], int]] = {
        "PyAV, NVDEC alone": lambda: packets_only(path),
        "dala cuda, NVDEC to RGBA": lambda: decoded_only(path),
        "dala cuda, NVDEC to five filters to a tensor": lambda: ours(path, "cuda"),
        "dala cpu, software to five filters": lambda: ours(path, "cpu"),
        **{
            f"{peer.__name__}{', blur and contrast' * filtered}": partial(
                lambda peer, filtered: theirs(peer(path), filtered), peer, filtered
            )
            for peer in (torchcodec, pynvvideocodec)
            for filtered in (False, True)
        },
    }
    refused: dict[str, str] = {}
    for name, run in list(runs.items()):
        try:
            run()
        except Exception as error:
            refused[name] = f"{type(error).__name__}: {error}"
            print(f"{name:48} cannot run: {refused[name][:200]}")
            del runs[name]
    engine = auto.get("cuda")
    times: dict[str, list[float]] = {name: [] for name in runs}
    crossed = dict.fromkeys(runs, 0)
    for _ in range(args.rounds):
        for name, run in runs.items():
            before = engine.stats()
            start = time.perf_counter()
            count = run()
            seconds = time.perf_counter() - start
            after = engine.stats()
            crossed[name] = sum(after[k] - before[k] for k in CROSSED)
            assert count == args.count, (name, count)
            times[name].append(seconds)
    rows: dict[str, Any] = {}
    for name, seen in times.items():
        best, middle = min(seen), statistics.median(seen)
        rows[name] = {
            "fps": args.count / best,
            "median_fps": args.count / middle,
            "crossed_bytes": crossed[name],
        }
        print(f"{name:48} {args.count / best:8.1f} frames/s, {crossed[name]:,} bytes crossed")
    for name, row in rows.items():
        if name.startswith("dala cuda") and row["crossed_bytes"]:
            raise AssertionError(f"{name}: {row['crossed_bytes']} bytes crossed the host")
    if args.out:
        found = {"size": args.size, "rows": rows, "refused": refused}
        write("gpu_decoded", found, ("numpy", "av", "torch"), args.out)


if __name__ == "__main__":
    main()
