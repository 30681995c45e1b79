"""Views of far more elements than there is memory are refused before they are copied.

A view of ``np.broadcast_to`` takes no memory itself; a copy of these would take terabytes, and ends
in a MemoryError at once.
"""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu import compute, create_surface
from dala.gpu.compute.kernels.filter import FILTERS
from dala.media import Frame, Scene, audio, effects, gpu, video
from dala.ml import preprocess
from tests.faults.operations import NEEDED, OF_TWO, WITH_MODEL

SIDE = 10**7
KINDS = [np.uint8, np.float32, np.float64, np.uint16, np.bool_, np.int64]
SMALL = np.zeros((16, 16, 3), np.uint8)
NAMES = [name for name in gpu.filters() if name not in WITH_MODEL]


@pytest.fixture(autouse=True, scope="module")
def on_the_cpu():
    with dala.device("cpu"):
        yield


def huge(kind=np.uint8, channels=3):
    return np.broadcast_to(kind(0), (SIDE, SIDE, channels))


def filter_call(name):
    return getattr(gpu, name, None) or getattr(effects, name)


def refused(call, *args, **kwargs):
    with pytest.raises(dala.DalaError):
        call(*args, **kwargs)


@pytest.mark.parametrize("name", NAMES)
def test_pictures_and_parameters_of_filters(name, tmp_path):
    call, needed = filter_call(name), NEEDED.get(name, lambda _: {})(tmp_path)
    second = (SMALL,) if name in OF_TWO else ()
    for kind in (np.uint8, np.float64):
        refused(call, huge(kind), *second, **needed)
    refused(call, SMALL[:, ::2], *(SMALL[:, ::2] for _ in second), **{**needed, "no_such": huge()})
    if second:
        refused(call, SMALL, huge(), **needed)
    for parameter in FILTERS[name].parameters:
        if parameter.type != "picture" or not second:
            for kind in (np.uint8, np.float32):
                refused(call, SMALL, *second, **{**needed, parameter.name: huge(kind)})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "call",
    [
        compute.from_array, compute.buffer, compute.from_dlpack, Frame.from_array,
        lambda x: compute.add(compute.buffer([1.0]), x),
        lambda x: compute.buffer([1.0]).write(x),
        lambda x: preprocess(x, size=(8, 8)),
        lambda x: audio.Audio(np.broadcast_to(x[0, 0], (SIDE**2, 3)), 48000),
    ],
    ids=["from_array", "buffer", "from_dlpack", "frame", "add", "write", "preprocess", "audio"],
)  # fmt: skip
def test_arrays(call, kind):
    refused(call, huge(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_scenes_and_surfaces(kind, tmp_path):
    with Scene(16, 16) as scene, create_surface(8, 8) as surface:
        refused(scene.add_image, huge(kind))
        refused(surface.set_pixels, huge(kind))
        refused(surface.load_image, 1, huge(kind, 4), SIDE, SIDE)
        refused(surface.load_sprite, 1, huge(kind, 4), SIDE, SIDE)
        refused(surface.with_pixels, lambda pixels: huge(kind))
        refused(video.write, tmp_path / "a.mp4", [huge(kind)], fps=25)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_models(kind):
    pytest.importorskip("onnxruntime")
    from dala.ml.gpu import load_model

    with load_model("blazeface", provider="cpu") as model:
        refused(model.predict, huge(kind))
        refused(model.predict, huge(kind)[None])
        refused(model.run, huge(kind)[None])
