"""Values that nobody should pass: each call refuses them with an error of ours, or takes them."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import dala
from dala.gpu import compute, create_surface
from dala.gpu.compute.kernels.filter import FILTERS
from dala.media import Frame, Scene, audio, effects, gpu, load_lut, video
from dala.ml import preprocess
from tests.faults.operations import NEEDED, OF_TWO, WITH_MODEL

PIXELS = np.random.default_rng(0).integers(0, 255, (16, 16, 3)).astype(np.uint8)
SHARES = (PIXELS / 255).astype(np.float32)
NAMES = [name for name in gpu.filters() if name not in WITH_MODEL]

#: Arrays of other dtypes, layouts and shapes.
ARRAYS = {
    "big endian floats": SHARES.astype(">f4"),
    "big endian integers": PIXELS.astype(">u2"),
    "half": SHARES.astype(np.float16),
    "long double": SHARES.astype(np.longdouble),
    "complex": PIXELS.astype(np.complex64),
    "objects": PIXELS.astype(object),
    "dates": PIXELS.astype("M8[s]"),
    "times": PIXELS.astype("m8[s]"),
    "text": PIXELS.astype(str),
    "byte strings": PIXELS.astype("S3"),
    "records": np.zeros((16, 16), [("r", "u1"), ("g", "u1"), ("b", "u1")]),
    "masked": np.ma.masked_array(PIXELS, PIXELS > 100),
    "matrix": PIXELS[..., 0].view(np.matrix),
    "reversed": PIXELS[::-1, ::-1],
    "by columns": np.asfortranarray(PIXELS),
    "overlapping": np.lib.stride_tricks.as_strided(PIXELS, (8, 8, 3), (3, 3, 1)),
    "unaligned": np.frombuffer(b"x" + SHARES.tobytes(), np.uint8)[1:].view(np.float32),
    "no rows": PIXELS[:0],
    "no columns": PIXELS[:, :0],
    "no channels": PIXELS[..., :0],
    "one number": np.array(5),
    "one axis": PIXELS[0, 0],
    "four axes": PIXELS[None],
    "two channels": np.zeros((4, 4, 2), np.uint8),
    "one channel": PIXELS[..., :1],
    "unsigned": PIXELS.astype(np.uint32),
    "nan": np.full((4, 4, 3), np.nan, np.float32),
    "infinite": np.full((4, 4, 3), np.inf, np.float32),
    "too large": np.full((4, 4, 3), 1e300),
    "one pixel": PIXELS[:1, :1],
}
#: Things that are no arrays.
THINGS = {
    "list": PIXELS[:2, :2].tolist(),
    "ragged": [[1], [1, 2]],
    "none": None,
    "number": 5,
    "word": "a.png",
    "dict": {},
    "set": {1},
    "iterator": iter([1]),
    "view": memoryview(PIXELS),
    "bytearray": bytearray(PIXELS.tobytes()),
    "type": int,
}
VALUES = ARRAYS | THINGS


@contextlib.contextmanager
def ours():
    with contextlib.suppress(dala.DalaError, FileNotFoundError), np.errstate(all="ignore"):
        yield


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_filters(name, tmp_path):
    call = getattr(gpu, name, None) or getattr(effects, name)
    needed = NEEDED.get(name, lambda _: {})(tmp_path)
    second = (PIXELS,) if name in OF_TWO else ()
    params = [p.name for p in FILTERS[name].parameters if p.type != "picture" or not second]
    for value in VALUES.values():
        with ours():
            call(value, *second, **needed, device="cpu")
        if second:
            with ours():
                call(PIXELS, value, **needed, device="cpu")
        for param in params:
            with ours():
                call(PIXELS, *second, **{**needed, param: value}, device="cpu")


CALLS = {
    "from_array": lambda x: compute.from_array(x, device="cpu"),
    "buffer": lambda x: compute.buffer(x, device="cpu"),
    "from_dlpack": lambda x: compute.from_dlpack(x, device="cpu"),
    "add": lambda x: compute.add(compute.buffer([1.0, 2.0], device="cpu"), x),
    "matmul": lambda x: compute.matmul(compute.buffer([1.0, 2.0], device="cpu"), x),
    "write": lambda x: compute.buffer([1.0, 2.0], device="cpu").write(x),
    "index": lambda x: compute.buffer([1.0, 2.0], device="cpu")[x],
    "frame": Frame.from_array,
    "preprocess": lambda x: preprocess(x, size=(8, 8), device="cpu"),
    "audio": lambda x: audio.Audio(x, 48000),
    "rate": lambda x: audio.Audio(np.zeros(100, np.float32), x),
    "video": video.open,
    "table": load_lut,
    "time": lambda x: dala.limits(time=x),
    "memory": lambda x: dala.limits(memory=x),
    "device": dala.device,
    "scene": lambda x: Scene(x, x).close(),
    "surface": lambda x: create_surface(x, x).close(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_calls(call):
    for value in VALUES.values():
        with ours():
            call(value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", VALUES.values(), ids=list(VALUES))
def test_objects(value, tmp_path):
    path = tmp_path / "a.mp4"
    with create_surface(8, 8) as surface, Scene(16, 16) as scene:
        for call in (
            scene.add_image,
            scene.add_text,
            scene.add_video,
            surface.set_pixels,
            surface.submit,
            surface.clear,
            lambda x: surface.load_image(1, x, 16, 16),
            lambda x: surface.load_sprite(1, x, 4, 4),
            lambda x: surface.with_pixels(lambda pixels: x),
            lambda x: surface.fill_rect(x, x, x, x, x),
            lambda x: surface.blit(x, x, x),
            lambda x: video.write(path, x, fps=25),
            lambda x: video.write(path, [x], fps=25),
            lambda x: video.write(path, [PIXELS], fps=x),
        ):
            with ours():
                call(value)


def test_pointers_are_no_pixels():
    with create_surface(8, 8) as surface, pytest.raises(dala.CommandError):
        surface.load_sprite(1, np.array([[object()] * 2]), 2, 2)
