"""Frame pipelines: results, fusion, order, memory."""

from __future__ import annotations

import gc
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dala
from dala.errors import FreedError, ParameterError, ShapeMismatch, UnknownKernel, UnknownParameter
from dala.gpu.compute import from_array, kernel
from dala.media import Frame, FramePipeline, gpu
from dala.media.filters import executor, plans
from dala.media.gpu import process_frame, start_pipeline, stop_pipeline

RNG = np.random.default_rng(21)
PHOTO = RNG.integers(0, 256, (20, 30, 4), dtype=np.uint8)
LIST = [
    ("blur", {"radius": 2, "sigma": 1.2}),
    ("sharpen", {"amount": 0.3}),
    ("brightness", {"value": 0.1}),
    "invert",
]


def one_by_one(photo, filters):
    for item in filters:
        name, params = (item, {}) if isinstance(item, str) else item
        photo = plans.apply(photo, None, None, name, params, None, None)
    return photo


def assert_near(got, want, stages):
    """Fused stages may differ by one 8-bit step each."""
    assert got.shape == want.shape
    assert np.abs(got.astype(int) - want.astype(int)).max(initial=0) <= stages


def buffers():
    gc.collect()
    found = dala.diagnostics()["objects"]["buffer"]
    return found["count"], found["bytes"]


def test_start_process_stop(engine_id):
    ctx = start_pipeline(30, 20)
    got = process_frame(ctx, PHOTO.tobytes(), LIST)
    assert type(got) is bytes
    assert_near(np.frombuffer(got, np.uint8).reshape(PHOTO.shape), one_by_one(PHOTO, LIST), 4)
    stop_pipeline(ctx)
    stop_pipeline(ctx)
    with pytest.raises(FreedError, match="stopped"):
        process_frame(ctx, PHOTO, LIST)


def test_a_list_is_one_fused_pipeline(engine_id):
    with FramePipeline(30, 20) as p:
        assert_near(p.process(PHOTO, LIST), one_by_one(PHOTO, LIST), 4)
        assert "4 stages" in p.explain()
        if engine_id == "cpu":
            assert p.passes == 1
        p.process(PHOTO, [("brightness", {"value": 0.1}), "invert", "sepia"])
        assert p.passes == 1


def test_filter_list_may_change_between_frames(engine_id):
    lists = [
        LIST,
        [],
        ["grayscale"],
        [("blur", {"radius": 2})],  # the default sigma, not that of the previous list
        [("blur", {"radius": 2, "sigma": 0.6})],
        LIST[:2],
        [("resize", {"size": (15, 10)}), "invert"],
        [("chroma_key", {"key": (0.1, 0.8, 0.1)}), ("brightness", {"value": 0.1})],
        ["median"], ["sepia"], ["invert"], LIST,
    ]  # fmt: skip
    with FramePipeline(30, 20) as p:
        for chosen in [*lists, *lists]:
            want = one_by_one(PHOTO, chosen)
            assert_near(p.process(PHOTO, chosen), want, len(chosen))
        assert len(p._executor._chains) == executor.MAX_CHAINS


def test_changed_parameters_reuse_the_pipeline(engine_id):
    with FramePipeline(30, 20) as p:
        made = set()
        for n in range(6):
            chosen = [
                ("blur", {"radius": 1 + n % 3, "sigma": 1.0}),
                ("gamma", {"value": 1 + n / 5}),
            ]
            assert_near(p.process(PHOTO, chosen), one_by_one(PHOTO, chosen), 2)
            made.add(id(p._executor._chains[next(iter(p._executor._chains))]))
        assert len(p._executor._chains) == len(made) == 1


def test_parameters_changed_in_place(engine_id):
    key = [0.1, 0.8, 0.1]
    matrix = np.array([[1.0, 0, 2], [0, 1, 0]])
    fill = [0.0, 0.5, 1.0, 1.0]
    chosen = [("warp_affine", {"matrix": matrix, "fill": fill}), ("chroma_key", {"key": key})]
    with FramePipeline(30, 20) as p:
        for n in range(3):
            key[n], fill[0] = 0.5, n / 3
            want = gpu.warp_affine(PHOTO, matrix=matrix.copy(), fill=tuple(fill))
            assert_near(p.process(PHOTO, chosen), gpu.chroma_key(want, key=tuple(key)), 2)
        matrix[1, 2] = 3
        want = gpu.warp_affine(PHOTO, matrix=matrix.copy(), fill=tuple(fill))
        assert_near(p.process(PHOTO, chosen), gpu.chroma_key(want, key=tuple(key)), 2)


def test_frame_sizes(engine_id):
    with FramePipeline(30, 20) as p:
        for photo in (PHOTO[:7, :9], PHOTO[..., :3], PHOTO[..., 0], PHOTO[:1, :1]):
            assert_near(p.process(photo, LIST), one_by_one(photo, LIST), 4)
        part = np.ascontiguousarray(PHOTO[:5, :6])
        got = p.process(part.tobytes(), ["invert"], width=6, height=5)
        assert got == gpu.invert(part).tobytes()
        with pytest.raises(
            ShapeMismatch,
            match=r"at most 30 x 20 .*start_pipeline\(31, 20",
        ):
            p.process(np.zeros((20, 31, 4), np.uint8), LIST)


def test_kinds_of_frames(engine_id):
    image = pytest.importorskip("PIL.Image")
    with FramePipeline(30, 20) as p:
        want = np.array(p.process(PHOTO, LIST))
        frame = p.process(Frame.from_array(PHOTO, pts=9), LIST)
        assert (frame.pts, frame.device) == (9, p.device)
        np.testing.assert_array_equal(frame.numpy(), want)
        again = p.process(frame, ["invert"])
        np.testing.assert_array_equal(frame.numpy(), want)
        np.testing.assert_array_equal(again.numpy(), gpu.invert(want))
        np.testing.assert_array_equal(p.process(from_array(PHOTO), LIST).numpy(), want)
        np.testing.assert_array_equal(np.asarray(p.process(image.fromarray(PHOTO), LIST)), want)
        light = (PHOTO / np.float32(255)).astype(np.float32)
        np.testing.assert_allclose(
            p.process(light, LIST), one_by_one(light, LIST), atol=2e-5, rtol=0
        )


def test_second_pictures_tables_and_custom_kernels(engine_id):
    badge = RNG.integers(0, 256, PHOTO.shape, dtype=np.uint8)
    other = from_array(badge[::-1].copy())
    halve = kernel("def halve(px: Pixel, *, by=2.0): return rgba(px.rgb / by, px.a)")
    with FramePipeline(30, 20) as p:
        for over in (badge, badge[:, ::-1], other):
            got = p.process(PHOTO, ["invert", ("overlay_alpha", {"over": over, "opacity": 0.5})])
            want = gpu.overlay_alpha(gpu.invert(PHOTO), np.asarray(over), opacity=0.5)
            assert_near(got, want, 2)
        curve = np.linspace(1, 0, 9, dtype=np.float32)[:, None].repeat(3, 1)
        assert_near(p.process(PHOTO, [("lut_apply", {"lut": curve})]), gpu.invert(PHOTO), 1)
        for own in ("halve", halve):
            got = p.process(PHOTO, [(own, {"by": 4.0})])
            assert_near(got[..., :3], np.floor(PHOTO[..., :3] / 4 + 0.5), 1)


# memory -------------------------------------------------------------------------------------------
def test_steady_state_allocates_nothing(engine_id):
    with FramePipeline(30, 20) as p:
        for n in range(4):
            got = p.process(PHOTO, [("blur", {"radius": 2, "sigma": 1.0 + n})])
        before = buffers()
        for n in range(20):
            got = p.process(PHOTO, [("blur", {"radius": 2, "sigma": 1.0 + n / 9})])
        assert buffers() == before
        assert got.shape == PHOTO.shape


def test_memory_of_results_is_reused_on_the_cpu():
    big = RNG.integers(0, 256, (500, 600, 4), dtype=np.uint8)
    with FramePipeline(600, 500, device="cpu") as p:
        places = set()
        for _ in range(12):
            got = p.process(big, LIST)
            places.add(got.__array_interface__["data"][0])
        assert len(places) == 2  # the current result and the next
        out = np.empty_like(big)
        p.process(big, LIST, out=out)
        tracemalloc.start()
        try:
            for _ in range(5):
                assert p.process(big, LIST, out=out) is out
                got = p.process(big, LIST)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < big.nbytes // 4


def test_kept_results_do_not_change(engine_id):
    image = pytest.importorskip("PIL.Image")
    with FramePipeline(30, 20) as p:
        kept = [p.process(PHOTO, [("brightness", {"value": n / 20})]) for n in range(8)]
        views = [p.process(PHOTO, [("brightness", {"value": n / 20})])[3:, ::2] for n in range(8)]
        frames = [
            p.process(Frame.from_array(PHOTO), [("brightness", {"value": n / 20})]).numpy()
            for n in range(8)
        ]
        pillows = [
            p.process(image.fromarray(PHOTO), [("brightness", {"value": n / 20})]) for n in range(8)
        ]
    gc.collect()
    for n in range(8):
        want = gpu.brightness(PHOTO, value=n / 20)
        np.testing.assert_array_equal(kept[n], want)
        np.testing.assert_array_equal(views[n], want[3:, ::2])
        np.testing.assert_array_equal(frames[n], want)
        np.testing.assert_array_equal(np.asarray(pillows[n]), want)


def test_closing_frees_everything(engine_id):
    before = buffers()
    p = FramePipeline(30, 20)
    for chosen in (LIST, ["invert"], LIST[:3]):
        p.process(PHOTO, chosen)
    list(p.stream([PHOTO] * 4, LIST))
    assert buffers() > before
    p.close()
    assert buffers() == before
    assert "closed" in repr(p)
    p = FramePipeline(30, 20)
    p.process(PHOTO, LIST)
    del p
    assert buffers() == before


# streams ------------------------------------------------------------------------------------------
def test_stream_keeps_order(engine_id):
    photos = [np.full((6, 8, 4), n, np.uint8) for n in range(17)]
    for workers in (1, 2, 3):
        with FramePipeline(8, 6) as p:
            got = [f[0, 0, 0] for f in p.stream(photos, ["invert"], workers=workers)]
            assert got == [255 - n for n in range(17)]
            assert len(list(p.stream(iter(photos), ["invert"], workers=workers))) == 17


def test_filter_list_of_a_stream_may_change():
    with FramePipeline(30, 20, device="cpu") as p:
        got = list(p.stream([PHOTO] * 5, lambda n: [("brightness", {"value": n / 10})]))
        for n in range(5):
            np.testing.assert_array_equal(got[n], gpu.brightness(PHOTO, value=n / 10, device="cpu"))


def test_stream_reads_few_frames_ahead_and_overlaps():
    taken = []

    def frames():
        for n in range(10):
            taken.append(n)
            yield PHOTO

    met = threading.Barrier(2)

    def filters(number):
        if number < 2:
            met.wait(timeout=20)  # fails unless both run at the same time
        return ["invert"]

    with FramePipeline(30, 20, device="cpu") as p:
        results = p.stream(frames(), filters, workers=2)
        assert taken == []
        next(results)
        assert taken == [0, 1, 2]
        results.close()
        assert not [t for t in threading.enumerate() if t.name.startswith("dala-frames")]


def test_stream_raises_errors_in_order():
    def broken():
        yield PHOTO
        yield PHOTO
        raise OSError("the camera is gone")

    with FramePipeline(30, 20, device="cpu") as p:
        got = []
        with pytest.raises(OSError, match="camera"):
            got.extend(p.stream(broken(), ["invert"]))
        assert len(got) == 2
        wrong = [PHOTO, np.zeros((50, 50, 4), np.uint8), PHOTO]
        results = p.stream(wrong, ["invert"])
        np.testing.assert_array_equal(next(results), gpu.invert(PHOTO, device="cpu"))
        with pytest.raises(ShapeMismatch, match="50 x 50"):
            next(results)
        with pytest.raises(StopIteration):
            next(results)


# refusals -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("filters", "error", "text"),
    [
        (["blurr"], UnknownKernel, "blur"),
        (["matmul"], UnknownKernel, "is a kernel, but not a filter"),
        ([("blur", {"radus": 3})], UnknownParameter, "radius"),
        ([("blur", {"radius": 999})], ParameterError, "from 0 to 200"),
        ([("blur", 3)], ParameterError, "a name and its parameters"),
        ("blur", ParameterError, "filters must be a list such as"),
        ([("overlay_alpha", {})], ParameterError, "missing required parameter 'over'"),
        (["resize"], ParameterError, "missing required parameter 'size'"),
        ([("grade", {"gama": 2})], UnknownParameter, "gamma"),
    ],
)
def test_errors_leave_the_pipeline_unchanged(filters, error, text):
    with FramePipeline(30, 20, device="cpu") as p:
        p.process(PHOTO, LIST)
        before, chains = buffers(), len(p._executor._chains)
        out = np.zeros_like(PHOTO)
        with pytest.raises(error, match=text):
            p.process(PHOTO, filters, out=out)
        assert not out.any()
        assert (buffers(), len(p._executor._chains)) == (before, chains)
        assert_near(p.process(PHOTO, LIST), one_by_one(PHOTO, LIST), 4)


def test_error_after_valid_frames(engine_id):
    with FramePipeline(30, 20) as p:
        p.process(PHOTO, [("gamma", {"value": 2.0})])
        with pytest.raises(ParameterError):
            p.process(PHOTO, [("gamma", {"value": -2.0})])
        got = p.process(PHOTO, [("gamma", {"value": 2.0})])
        np.testing.assert_array_equal(got, gpu.gamma(PHOTO, value=2.0))


def test_arguments_are_checked():
    for call in (lambda: process_frame(3, PHOTO, LIST), lambda: stop_pipeline(None)):
        with pytest.raises(ParameterError, match="ctx must be the result of start_pipeline"):
            call()
    for size in ((0, 4), (4, -1), (4.5, 4), (True, 4)):
        with pytest.raises(ParameterError, match="start_pipeline"):
            start_pipeline(*size)
    with FramePipeline(4, 4, device="cpu") as p:
        for workers in (0, 1.5, True):
            with pytest.raises(ParameterError, match="workers"):
                p.stream([], [], workers=workers)
        with pytest.raises(ParameterError, match="iterable"):
            p.stream(3, [])


NUMBERS = st.floats(-1, 1, width=32)
STEP = st.one_of(
    st.sampled_from(["invert", "grayscale", "median"]),
    st.tuples(st.just("brightness"), st.fixed_dictionaries({"value": NUMBERS})),
    st.tuples(st.just("saturation"), st.fixed_dictionaries({"value": NUMBERS})),
    st.tuples(st.just("erode"), st.fixed_dictionaries({"radius": st.integers(0, 2)})),
)


@settings(deadline=None, max_examples=12)
@given(lists=st.lists(st.lists(STEP, max_size=3), min_size=1, max_size=3))
def test_filter_lists_match_single_calls(lists):
    photo = PHOTO[:6, :7]
    with dala.device("cpu"), FramePipeline(7, 6) as p:
        for chosen in lists:
            want = one_by_one(photo, chosen)
            # An 8-bit step before saturation is up to two after it.
            assert_near(p.process(photo, chosen), want, 4 * len(chosen))


def test_refused_values_stay_refused(engine_id):
    """Also after an equal value that was taken."""
    with FramePipeline(30, 20) as frames:
        calls = (
            lambda radius: gpu.box_blur(PHOTO, radius=radius),
            lambda radius: frames.process(PHOTO, [("box_blur", {"radius": radius})]),
        )
        for call in calls:
            for taken, refused in ((1, True), (1.0, True), (1, (1,)), (1.0, "1")):
                call(taken)
                with pytest.raises(ParameterError, match="radius must be an int"):
                    call(refused)


def test_zeros_have_their_signs(engine_id):
    """A value is not mistaken for an equal one of the frame before."""
    faded = kernel("def faded(px: Pixel, *, g: float): return vec4(px.rgb * g, 1.0)")
    photo = np.full((2, 2, 4), 0.5, np.float32)
    with FramePipeline(2, 2) as frames:
        for zero in (0.0, -0.0, -0.0, 0, -0.0, np.float32(-0.0), np.float64(0.0)):
            sign = np.signbit(np.float32(zero))
            for made in (
                frames.process(photo, [(faded, {"g": zero})]),
                gpu.apply(photo, faded, g=zero),
            ):
                assert (np.signbit(made[..., :3]) == sign).all()
