"""Filters over planes: as if each frame had been converted, filtered and converted back."""

from __future__ import annotations

import gc
import threading
from fractions import Fraction

import numpy as np
import pytest

import dala
from dala.errors import FreedError, UnknownKernel, VideoError
from dala.gpu.compute.engines.cpu.native import compiled
from dala.media import Frame, FramePipeline, Scene
from dala.media.video.chain import VideoChain

FILTERS = [("blur", {"radius": 3, "sigma": 1.5}), ("contrast", {"value": 0.2}), "sepia"]


def frame(number, format="i420", size=(48, 64), **facts):
    rng = np.random.default_rng(number)
    planes = rng.integers(16, 236, (size[0] * 3 // 2, size[1]), np.uint8)
    facts = {"matrix": "bt601", "range": "limited", **facts}
    return Frame.from_array(planes, format=format, pts=number, time_base=Fraction(1, 25), **facts)


def one_by_one(given, filters):
    """The same in three steps."""
    rgba = given.to("rgba")
    with FramePipeline(256, 256) as pipeline:
        made = pipeline.process(rgba, filters)
        if made.width % 2 or made.height % 2:
            return np.array(made)
        return np.array(made.to("i420", matrix=given.matrix, range=given.range))


@pytest.mark.parametrize(
    ("format", "matrix", "range"),
    [("i420", "bt601", "limited"), ("nv12", "bt709", "full"), ("i420", "bt2020", "limited")],
)
def test_planes_through_filters(engine_id, format, matrix, range):
    given = [frame(n, format, matrix=matrix, range=range) for n in (1, 2, 3)]
    with VideoChain(FILTERS) as chain:
        made = list(chain.stream(given))
        assert chain.device == given[0].device
    for one, got in zip(given, made, strict=True):
        assert (got.format, got.matrix, got.range) == ("i420", matrix, range)
        assert (got.pts, got.time_base) == (one.pts, one.time_base)
        assert np.array_equal(np.array(got), one_by_one(one, FILTERS))


def test_evicted_native_code(monkeypatch):
    """As the oldest is where much has been compiled; chains call what is compiled elsewhere."""
    monkeypatch.setattr(compiled, "MAX_CACHED", 1)
    monkeypatch.setattr(compiled, "_known", {})
    with dala.device("cpu"), VideoChain(FILTERS) as chain, Scene(64, 48) as scene:
        node = scene.add_image(np.full((90, 90, 3), 200, np.uint8), size=(31, 17))
        for n in range(4):
            given = frame(n, "nv12")
            (got,) = chain.stream([given])
            assert np.array_equal(np.array(got), one_by_one(given, FILTERS))
            node.x = n * 1.5
            assert np.asarray(scene.render())[5, 10 + n].tolist() == [200, 200, 200, 255]
            gc.collect()


def test_another_range():
    with dala.device("cpu"), VideoChain(["invert"], range="limited") as chain:
        given = frame(1, range="full")
        (got,) = chain.stream([given])
        assert got.range == "limited"
        with FramePipeline(256, 256) as pipeline:
            wanted = pipeline.process(given.to("rgba"), ["invert"]).to("i420", range="limited")
        assert np.array_equal(np.array(got), np.array(wanted))


def test_results_in_use_are_not_overwritten():
    with dala.device("cpu"), VideoChain(FILTERS) as chain:
        given = [frame(n) for n in range(12)]
        made = list(chain.stream(given))
        for one, got in zip(given, made, strict=True):
            assert np.array_equal(np.array(got), one_by_one(one, FILTERS))


def test_other_sizes_and_other_formats():
    with dala.device("cpu"):
        smaller = [("resize", {"size": (40, 24)})]
        with VideoChain(smaller) as chain:
            (got,) = chain.stream([frame(1)])
            assert (got.format, got.width, got.height) == ("i420", 40, 24)
            assert np.array_equal(np.array(got), one_by_one(frame(1), smaller))
        odd = [("resize", {"size": (40, 25)})]
        with VideoChain(odd) as chain:
            (got,) = chain.stream([frame(1)])
            assert (got.format, got.pts) == ("rgb", 1)
            assert np.array_equal(np.array(got), one_by_one(frame(1), odd)[..., :3])
        rgba = frame(4).to("rgba")
        with VideoChain(FILTERS) as chain:
            mixed = list(chain.stream([frame(4), rgba, frame(5, size=(32, 32))]))
            assert [f.format for f in mixed] == ["i420", "rgba", "i420"]
            assert np.array_equal(np.array(mixed[0]), np.array(mixed[1].to("i420")))
            assert np.array_equal(np.array(mixed[2]), one_by_one(frame(5, size=(32, 32)), FILTERS))


@pytest.mark.parametrize("workers", [1, 3])
def test_order_and_errors(workers):
    def broken():
        yield from (frame(n) for n in range(7))
        raise VideoError("cut off")

    seen = []
    with dala.device("cpu"), VideoChain(["invert"], workers=workers) as chain:
        with pytest.raises(VideoError, match="cut off"):
            for got in chain.stream(broken()):
                assert np.array_equal(np.array(got), one_by_one(frame(got.pts), ["invert"]))
                seen.append(got.pts)
        assert seen == list(range(7))
    assert not [t for t in threading.enumerate() if t.name.startswith("dala-video")]


def test_refusals():
    with dala.device("cpu"):
        with VideoChain(["blurr"]) as chain, pytest.raises(UnknownKernel, match="blur"):
            list(chain.stream([frame(1)]))
        chain.close()
        with pytest.raises(FreedError, match="closed"):
            chain.stream([frame(1)])


# planes to planes ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "filters",
    [
        ["invert"],
        ["saturation", ("gamma", {"value": 1.4})],
        FILTERS,
        [("blur", {"radius": 9, "sigma": 4.0}), "sharpen", "edge_detect"],
        ["median", ("sharpen", {"amount": 0.5})],
    ],
    ids=lambda filters: " > ".join(f if isinstance(f, str) else f[0] for f in filters),
)
@pytest.mark.parametrize("size", [(2, 2), (6, 130), (250, 34), (96, 1090)])
def test_planes_to_planes_equal_the_stages(filters, size):
    """From luma and chroma to luma and chroma, equal to the stages one by one to the bit."""
    with dala.device("cpu"), VideoChain(filters) as chain:
        for format in ("i420", "nv12"):
            given = frame(3, format, size)
            (got,) = chain.stream([given])
            rgb = given.to("rgba")
            with FramePipeline(2048, 2048) as pipeline:
                made = pipeline.process(rgb, filters)
            wanted = made.to("i420", matrix=given.matrix, range=given.range)
            assert np.array_equal(np.array(got), np.array(wanted))
