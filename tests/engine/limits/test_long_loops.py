"""Long loops give the same result on every engine, or are refused: nothing is cut silently.

llvmpipe ends all loops of an invocation after 65,535 iterations in total.
"""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.gpu.compute import buffer, kernel
from dala.gpu.compute.engines import auto
from dala.gpu.compute.engines.webgpu import dispatcher

counting = kernel(
    """
def counting(x, *, n: int = 1):
    total = x
    for _ in range(n):
        total = total + 1
    return total
""",
    name="long_counting",
)
by_data = kernel(
    """
def by_data(x):
    total = 0
    for _ in range(x):
        total = total + 1
    return total
""",
    name="long_by_data",
)
leaving = kernel(
    """
def leaving(x, *, n: int = 1):
    total = 0
    for i in range(0, n, 2):
        if i > x:
            break
        for _ in range(3):
            total = total + 1
    return total
""",
    name="long_leaving",
)
of_pixels = kernel(
    """
def of_pixels(px: Pixel, *, n: int = 1):
    total = 0
    for i in range(n):
        total = total + i % 2
    v = float(total) / 50000.0
    return rgba(v, px.g, px.b, px.a)
""",
    name="long_of_pixels",
)


def engine_of(dala_device):
    return auto.get(dala_device)


def ends_early(dala_device):
    return getattr(engine_of(dala_device), "loops_end_early", 0)


def test_sixty_thousand_iterations_at_every_position(dala_device):
    a = buffer([0, 1, 2, 3, 4, 5, 6], dtype="s32", device=dala_device)
    assert counting(a, n=60_000).read_list() == [60_000 + k for k in range(7)]
    b = buffer([60_000, 5, 61_000, 1, 64_000], dtype="s32", device=dala_device)
    assert by_data(b).read_list() == [60_000, 5, 61_000, 1, 64_000]


def test_more_iterations_are_made_or_refused(dala_device):
    if dala_device == "reference":
        pytest.skip("takes seconds in NumPy")
    a = buffer([0, 7], dtype="s32", device=dala_device)
    b = buffer([3, 200_000], dtype="s32", device=dala_device)
    if ends_early(dala_device):
        for run in (lambda: counting(a, n=200_000), lambda: by_data(b)):
            with pytest.raises(dala.DeviceError, match="ends all loops of an invocation after 655"):
                run()
    else:
        assert counting(a, n=200_000).read_list() == [200_000, 200_007]
        assert by_data(b).read_list() == [3, 200_000]
    assert by_data(buffer([3], dtype="s32", device=dala_device)).read_list() == [3]


def test_leaving_a_long_loop_is_not_cutting_it(dala_device):
    a = buffer([10, 11, 5_000, 0], dtype="s32", device=dala_device)
    expected = [18, 18, 7_503, 3]
    assert leaving(a, n=2_000_000_000).read_list() == expected


def test_long_loops_over_pixels(dala_device):
    picture = np.arange(5 * 6 * 4, dtype=np.uint8).reshape(5, 6, 4)
    expected = picture.copy()
    expected[..., 0] = 128
    run = of_pixels(buffer(picture, dtype="u8", device=dala_device), n=50_000)
    np.testing.assert_array_equal(run.numpy(), expected)


def test_both_adapters_of_mesa_end_loops_early(dala_device):
    engine = engine_of(dala_device)
    if "llvmpipe" not in str(engine.info()["name"]):
        pytest.skip("not llvmpipe")
    assert ends_early(dala_device) == 65_535


def test_work_in_pieces_gives_the_same_result(dala_device, monkeypatch):
    if not dala_device.startswith("webgpu"):
        pytest.skip("other engines end kernels in the middle")
    monkeypatch.setattr(dispatcher, "MAX_WORK", 1000)
    monkeypatch.setattr(dispatcher, "MAX_SOFTWARE_WORK", 1000)
    monkeypatch.setattr(dispatcher, "FIRST_PIECE", 1)
    made = []
    plain = dispatcher.Dispatcher._check_flag
    monkeypatch.setattr(
        dispatcher.Dispatcher, "_check_flag", lambda *a: (made.append(1), plain(*a))[1]
    )
    for dtype in ("f32", "s32", "u32"):
        made.clear()
        a = buffer(np.arange(20_000), dtype=dtype, device=dala_device)
        np.testing.assert_array_equal(counting(a, n=10).numpy(), np.arange(20_000) + 10)
        assert len(made) > 1
    picture = np.arange(70 * 90 * 4, dtype=np.uint32).astype(np.uint8).reshape(70, 90, 4)
    expected = picture.copy()
    expected[..., 0] = np.round(500 / 50_000 * 255)
    made.clear()
    run = of_pixels(buffer(picture, dtype="u8", device=dala_device), n=1000)
    np.testing.assert_array_equal(run.numpy(), expected)
    assert len(made) > 1


def test_deadlines_hold_between_pieces(dala_device, monkeypatch):
    if not dala_device.startswith("webgpu"):
        pytest.skip("other engines end kernels in the middle")
    monkeypatch.setattr(dispatcher, "PIECE_SECONDS", 0.0)  # pieces of one workgroup
    monkeypatch.setattr(dispatcher, "FIRST_PIECE", 1)
    a = buffer(np.full(1 << 20, 1000), dtype="s32", device=dala_device)
    with dala.limits(time=0.05), pytest.raises(dala.CommandTimeout, match="long_by_data: ended"):
        by_data(a)
    assert by_data(buffer([3], dtype="s32", device=dala_device)).read_list() == [3]
