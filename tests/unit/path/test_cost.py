"""What paths of strangers may cost: to measure and to cut them."""

from types import SimpleNamespace

import numpy as np
import pytest

import dala
from dala import budget
from dala.errors import CommandTimeout, ParameterError
from dala.gpu import Path
from dala.gpu.path import curves


def test_curves_far_from_zero_are_measured_once(monkeypatch):
    """Their halves never agree to the last digit: each halving would double the curves."""
    measured = []
    quadrature = curves._quadrature

    def counted(cubics):
        measured.append(len(cubics))
        assert sum(measured) < 10_000
        return quadrature(cubics)

    monkeypatch.setattr(curves, "_quadrature", counted)
    far = [
        (107541252.286839, 107541245.0685833), (107541244.8020738, 107541261.8234324),
        (107541200.095508, 107541180.977707), (107541200.095508, 107541180.977707),
    ]  # fmt: skip
    assert curves.curve_lengths(np.array([far]))[0] == pytest.approx(96, abs=9)


@pytest.mark.parametrize("count", [3000])
def test_measuring_and_cutting_look_at_the_deadline(monkeypatch, count):
    looks = []

    def read():
        looks.append(1)
        return 0.0

    path = Path.svg("M0 0" + "C1 2 3 4 5 6" * count)
    monkeypatch.setattr(budget, "clock", SimpleNamespace(monotonic=read))
    with dala.limits(time=1):
        path.trim(0.0, 0.001)
    assert len(looks) > count
    monkeypatch.undo()
    with dala.limits(time=1e-9), pytest.raises(CommandTimeout, match="Path"):
        path.reversed().trim(0.25, 0.75)


@pytest.mark.filterwarnings("error")
def test_arcs_without_bounds_are_refused():
    with pytest.raises(ParameterError, match="coordinates"):
        Path.svg("M0 0" + "a1e-300 1e9 45 1 1 1e-300 1" * 2)
