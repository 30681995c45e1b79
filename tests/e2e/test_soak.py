"""The soak of ``benchmarks/soak.py``: a short one, its check, and ten minutes in the long tests."""

import pytest

from benchmarks import soak
from dala.media import Frame

pytest.importorskip("av")
pytest.importorskip("onnxruntime")


def rows(memory):
    flat = {"threads": 4.0, "descriptors": 9.0, "objects": 3.0}
    return [{"memory MB": value, **flat} for value in memory]


def test_growth_is_found():
    assert soak.leaks(rows([100.0 + (n % 7) for n in range(400)])) == []
    assert soak.leaks(rows([100.0 + min(n, 100) for n in range(400)])) == []  # caches fill
    grown = soak.leaks(rows([100.0 + 0.5 * n for n in range(400)]))
    assert grown == ["memory MB grew by 50.0, at most 24"]


def test_every_use_once(tmp_path):
    samples = soak.run(0.001)
    assert samples == [] or set(samples[0]) == set(soak.ALLOWED)
    soak.plot(rows([50.0, 60.0, 55.0]), 1, tmp_path / "plot.png")
    with Frame.open(tmp_path / "plot.png") as picture:
        assert (picture.width, picture.height) == (900, 670)


@pytest.mark.long
def test_soak():
    assert soak.leaks(soak.run(10)) == []
