"""With a GPU of NVIDIA's: torch, CuPy, JAX and Numba share its memory, and NVDEC decodes to it."""

from __future__ import annotations

import ctypes
import importlib
import subprocess
import sys

import numpy as np
import pytest

import dala
from dala.gpu import compute
from dala.gpu.compute import Pixel, kernel
from dala.gpu.compute.engines import auto
from dala.media import gpu, video

pytestmark = [
    pytest.mark.skipif(
        not any(d.api == "CUDA" for d in dala.devices()), reason="there is no GPU of NVIDIA's"
    ),
    pytest.mark.filterwarnings(r"ignore::DeprecationWarning:numba\..*"),  # of NumPy, in Numba
]
CROSSED = ("uploaded_bytes", "downloaded_bytes")


def library(name):
    """Return an array library if it is installed and finds the GPU."""
    if name != "numba.cuda":
        return pytest.importorskip(name)
    pytest.importorskip("numba")
    found = importlib.import_module(name)
    if not found.is_available():
        pytest.skip("Numba finds no GPU")
    return found


def tensor_of(name, array):
    found = library(name)
    if name == "torch":
        return found.from_numpy(array).cuda()
    if name == "cupy":
        return found.asarray(array)
    if name == "jax":
        return found.device_put(array, found.devices("gpu")[0])
    return found.to_device(array)


def numbers_of(tensor):
    for name in ("cpu", "get", "copy_to_host"):
        if hasattr(tensor, name):
            return np.asarray(getattr(tensor, name)())
    return np.asarray(tensor)


@pytest.fixture
def engine():
    return auto.get("cuda")


@pytest.fixture
def nothing_crosses(engine):
    engine.synchronize()
    before = engine.stats()
    yield
    after = engine.stats()
    assert {k: after[k] - before[k] for k in CROSSED} == dict.fromkeys(CROSSED, 0)


LIBRARIES = ["torch", "cupy", "jax", "numba.cuda"]


@pytest.mark.parametrize("name", LIBRARIES)
def test_tensors_go_in_and_come_out_of_the_same_kind(engine, nothing_crosses, name):
    array = np.random.default_rng(1).integers(0, 256, (64, 96, 4), np.uint8)
    tensor = tensor_of(name, array)
    made = gpu.blur(tensor, radius=3)
    assert type(made) is type(tensor)
    assert np.array_equal(numbers_of(made), gpu.blur(array, radius=3, device="cpu"))

    @kernel
    def half(px: Pixel) -> Pixel:
        return px * 0.5

    with dala.device("cuda"):
        again = half(tensor)
    assert type(again) is type(tensor)
    assert abs(numbers_of(again).astype(int) * 2 - array).max() <= 2


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_memory_is_shared_both_ways(engine, nothing_crosses, name):
    tensor = tensor_of(name, np.array([[-1, 2], [3, -4]], np.float32))
    shared = compute.from_dlpack(tensor, device="cuda")
    compute.relu(shared, shared)
    back = library(name).from_dlpack(shared)
    back += 1
    assert numbers_of(tensor).tolist() == [[1, 3], [4, 1]]
    view = (
        library(name).asarray(shared)
        if name == "cupy"
        else library(name).as_tensor(shared, device="cuda")
    )
    view += 1
    assert numbers_of(tensor).tolist() == [[2, 4], [5, 2]]


def test_streams_are_ordered_without_waiting(engine):
    """Long work of torch before, and after, on a stream of its own: no value is stale."""
    torch = library("torch")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), dala.device("cuda"):
        for turn in range(30):
            x = torch.zeros(1 << 22, device="cuda")
            for _ in range(20):
                x += 1
            y = compute.from_dlpack(x)
            z = torch.from_dlpack(y * 2.0 + float(turn))
            for _ in range(20):
                z += 1
            assert torch.all(z == 60 + turn), turn
            del x, y, z
    del stream


def test_memory_does_not_grow(engine):
    torch = library("torch")
    picture = torch.randint(0, 256, (1080, 1920, 4), dtype=torch.uint8, device="cuda")
    sizes = []
    for turn in range(60):
        picture = gpu.blur(picture, radius=2)
        if turn in (20, 59):
            torch.cuda.synchronize()
            engine.synchronize()
            stats = engine.stats()
            sizes.append(stats["live_bytes"] + stats["pooled_bytes"])
    assert sizes[1] <= sizes[0] + picture.nbytes * 2


def test_a_turned_tensor_is_made_whole_on_the_gpu(engine, nothing_crosses):
    torch = library("torch")
    array = np.random.default_rng(2).integers(0, 256, (3, 50, 70), np.uint8)
    turned = torch.from_numpy(array).cuda().permute(1, 2, 0)
    found = gpu.blur(turned, radius=2)
    assert np.array_equal(
        found.cpu().numpy(),
        gpu.blur(np.ascontiguousarray(array.transpose(1, 2, 0)), radius=2, device="cpu"),
    )


def test_a_device_that_was_closed_leaves_the_next_one_alone():
    """What is dropped after its context was destroyed is not released in the next context."""
    code = """if True:
        import numpy as np
        from dala.gpu.compute import from_array, relu
        from dala.gpu.compute.engines import auto, instances
        kept = []
        for turn in range(4):
            engine = auto.get("cuda")
            made = [from_array(np.full(1 << 20, n, np.float32), device="cuda") for n in range(8)]
            for b in made:
                relu(b, b)
            kept.clear()
            assert [b.numpy()[5] for b in made] == list(range(8)), turn
            kept += made
            instances.close_all()
        print("done")
    """
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr


# videos ------------------------------------------------------------------------------------------
CODECS = {
    "h264": ("libx264", "yuv420p"), "hevc": ("libx265", "yuv420p"), "hevc10": ("libx265",
    "yuv420p10le"), "vp9": ("libvpx-vp9", "yuv420p"), "av1": ("libsvtav1", "yuv420p"),
    "av110": ("libsvtav1", "yuv420p10le"),
    "hevc 444": ("libx265", "yuv444p"), "hevc10 444": ("libx265", "yuv444p10le"),
}  # fmt: skip


#: The numbers of codecs in NVIDIA's decoder.
NUMBERS = {"h264": 4, "hevc": 8, "vp9": 10, "av1": 11}


def decodes(engine, name):
    """Return whether the GPU's decoder knows a codec, as it says itself."""
    codec, _, kind = name.partition(" ")
    bits = 10 if codec.endswith("10") else 8
    number = NUMBERS[codec.removesuffix("10")]
    facts = (ctypes.c_uint32 * 32)(number, 3 if kind == "444" else 1, bits - 8)
    engine.sharing.enter(engine)
    assert ctypes.CDLL("libnvcuvid.so.1").cuvidGetDecoderCaps(facts) == 0
    return bool(bytes(facts)[24])


def clip(path, codec, pixels, size=(640, 352), count=30):
    av = pytest.importorskip("av")
    rng = np.random.default_rng(4)
    base = rng.integers(0, 256, (size[1] // 8, size[0] // 8, 3), np.uint8).repeat(8, 0).repeat(8, 1)
    with av.open(str(path), "w") as sink:
        stream = sink.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt = *size, pixels
        for turn in range(count):
            frame = av.VideoFrame.from_ndarray(np.roll(base, turn * 4, 1), "rgb24")
            sink.mux(stream.encode(frame))
        sink.mux(stream.encode(None))
    return path


@pytest.mark.parametrize("name", CODECS)
def test_nvdec_equals_the_software_path(engine, tmp_path, name):
    if not decodes(engine, name):
        pytest.skip(f"this GPU has no decoder for {name}")
    path = clip(tmp_path / "clip.mkv", *CODECS[name])
    with video.open(path, device="cpu") as reader:
        wanted = [(f.time, f.pixels.numpy().copy()) for f in reader]
    before = engine.stats()
    with video.open(path, device="cuda") as reader:
        frames = list(reader)
        assert reader.notices == ()
        reader.seek(0.4)
        sought = next(reader)
    after = engine.stats()
    assert {k: after[k] - before[k] for k in CROSSED} == dict.fromkeys(CROSSED, 0)
    assert len(frames) == len(wanted) == 30
    for frame, (time, pixels) in zip(frames, wanted, strict=True):
        assert frame.time == time
        assert abs(frame.pixels.numpy().astype(int) - pixels).max() <= 1
    assert sought.time == wanted[10][0]


def test_decoded_pictures_become_tensors_and_nothing_crosses(engine, tmp_path, nothing_crosses):
    torch = library("torch")
    path = clip(tmp_path / "clip.mp4", "libx264", "yuv420p", (1920, 1080), 20)
    sums = []
    with video.open(path, device="cuda") as reader:
        for frame in reader:
            for name, params in (("blur", {"radius": 3}), ("sharpen", {}), ("contrast",
                {"value": 0.1}), ("saturation", {"value": 0.2}), ("vignette", {})):  # fmt: skip
                frame = getattr(gpu, name)(frame, **params)
            sums.append(torch.from_dlpack(frame.pixels).float().mean())
        assert reader.notices == ()
    assert torch.stack(sums).isfinite().all()
    assert len(sums) == 20


def test_what_nvdec_does_not_decode_falls_back_with_a_notice(engine, tmp_path):
    path = clip(tmp_path / "clip.mkv", "ffv1", "yuv420p")
    said = "it is decoded on the CPU"
    with pytest.warns(UserWarning, match=said), video.open(path, device="cuda") as reader:
        assert len(list(reader)) == 30
