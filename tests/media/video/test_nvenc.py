"""Frames in a GPU's memory are encoded there; the processor's memory is the GPU's here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dala.gpu.compute.engines import instances
from dala.gpu.compute.engines.webgpu.cuda import dlpack, sharing
from dala.media import Frame, gpu, video
from dala.media.video import writer
from dala.media.video.output import opening
from dala.media.video.output.nvenc import gpu_picture
from dala.notices import MediaNotice
from tests.engine.cuda.conftest import engine

__all__ = ["engine"]

CROSSED = ("uploaded_bytes", "downloaded_bytes")


@pytest.fixture
def device(engine, monkeypatch):
    monkeypatch.setitem(instances.by_name, "cuda:7", engine)
    monkeypatch.setattr(dlpack, "CUDA", 1)  # the number of the host's memory
    monkeypatch.setattr(sharing, "ordinal_of", lambda engine: 0)
    return engine


def pictures():
    rng = np.random.default_rng(6)
    small = rng.integers(0, 256, (8, 12, 4), np.uint8) | np.uint8([0, 0, 0, 255])
    return [np.roll(small, n, 1).repeat(8, 0).repeat(8, 1) for n in range(6)]


@pytest.mark.parametrize("copy", [True, False])
def test_a_picture_is_the_memory_of_its_frame(device, copy):
    frame = Frame.from_array(pictures()[0], device="cuda:7").to("nv12")
    wanted = frame.numpy().copy()
    before = device.stats()
    picture = gpu_picture(frame, "cuda:7", copy=copy)
    after = device.stats()
    assert [after[k] - before[k] for k in CROSSED] == [0, 0]
    luma, pairs = picture.planes
    assert pairs.buffer_ptr - luma.buffer_ptr == 96 * 64  # as the encoder expects it
    assert np.array_equal(picture.to_ndarray(format="nv12"), wanted)
    if copy:
        frame.pixels.write(np.zeros_like(wanted))
    frame.pixels.free()
    Frame.from_array(pictures()[1], device="cuda:7").to("nv12")  # may get memory that is free
    assert np.array_equal(picture.to_ndarray(format="nv12"), wanted)


@pytest.fixture
def stand_in(monkeypatch):
    """Let x264 take the place of NVENC."""
    monkeypatch.setattr(
        writer, "on_gpu",
        lambda choice, device, size: replace(choice, pixel_format="nv12", device=device),
    )  # fmt: skip
    monkeypatch.setattr(opening, "hardware_device", lambda kind: None)


def test_no_picture_crosses_on_its_way_into_a_file(device, stand_in, tmp_path):
    frames = [Frame.from_array(p, device="cuda:7") for p in pictures()]
    device.synchronize()
    before = device.stats()
    with video.write(tmp_path / "gpu.mp4", fps=24, codec="libx264") as sink:
        for frame in frames:
            sink.write(gpu.blur(frame, radius=1))
    after = device.stats()
    up, down = (after[k] - before[k] for k in CROSSED)
    assert (up, down < 64) == (0, True)  # the least alpha, of a few frames
    with video.write(tmp_path / "cpu.mp4", fps=24, codec="libx264", pixel_format="nv12",
            device="cpu") as sink:  # fmt: skip
        for picture in pictures():
            sink.write(gpu.blur(picture, radius=1, device="cpu"))
    made, wanted = (
        [f.pixels.numpy() for f in video.open(tmp_path / name, device="cpu")]
        for name in ("gpu.mp4", "cpu.mp4")
    )
    assert len(made) == 6
    assert all(np.array_equal(a, b) for a, b in zip(made, wanted, strict=True))


@pytest.mark.parametrize("codec", ["h264_nvenc", "hevc_nvenc", "av1_nvenc"])
def test_nvenc_takes_frames_of_a_gpu(monkeypatch, codec):
    plain = opening.EncoderChoice(codec, {"cq": "20"}, "yuv420p")
    asked = []
    monkeypatch.setattr(opening, "refusal", lambda choice, size: asked.append((choice, size)))
    made = opening.on_gpu(plain, "cuda:0", (64, 48))
    assert made == opening.EncoderChoice(codec, {"cq": "20"}, "nv12", "cuda:0")
    assert asked == [(made, (64, 48))]
    for other, device in (
        (plain, "cpu"), (replace(plain, pixel_format="p010le"), "cuda:0"),
        (replace(plain, name="libx264"), "cuda:0"),
    ):  # fmt: skip
        assert opening.on_gpu(other, device, (64, 48)) is other
    monkeypatch.setattr(opening, "refusal", lambda choice, size: "no chip")
    said = f"frames of cuda:0 are downloaded for {codec}: no chip"
    with pytest.warns(MediaNotice, match=said):
        assert opening.on_gpu(plain, "cuda:0", (64, 48)) is plain
