"""The widget of notebooks: the same values as a pipeline, and messages that are checked."""

from __future__ import annotations

import io

import numpy as np
import pytest

from dala.errors import ParameterError, UnknownKernel
from dala.gpu.compute import kernel
from dala.media import gpu
from tests.studio.server.conftest import quarters

pytest.importorskip("anywidget", reason="needs the studio extra")

from dala import studio


@pytest.fixture
def made():
    shown = studio.widget([("blur", {"radius": 4}), "invert"], quarters(), device="cpu")
    yield shown
    shown.close()


def send(made, **content):
    made._receive(made.view, content, [])
    made._worker.submit(lambda: None).result(60)


def test_controls_change_the_picture(made):
    expected = gpu.invert(gpu.blur(quarters(), radius=4, device="cpu"), device="cpu")
    np.testing.assert_array_equal(made.result, expected)
    (radius, *_) = made.view.cards[0]["params"]
    assert radius["name"] == "radius"
    assert radius["value"] == 4
    assert radius["slider"] == [0, 200, 1]
    before = made.view.picture
    send(made, card=0, param="radius", value=9)
    assert made.chain == [("blur", {"radius": 9}), ("invert", {})]
    expected = gpu.invert(gpu.blur(quarters(), radius=9, device="cpu"), device="cpu")
    np.testing.assert_array_equal(made.result, expected)
    assert made.view.picture != before
    from PIL import Image

    shown = np.asarray(Image.open(io.BytesIO(made.view.picture)))
    assert np.abs(shown.astype(int) - expected).mean() < 6


@pytest.mark.parametrize(
    "content",
    [{"card": 0, "param": "radius", "value": 900}, {"card": 7, "param": "radius", "value": 1},
     {"card": 0, "param": "nope", "value": 1}, {"card": 0, "param": "radius", "value": [1, "x"]},
     {"card": 0, "param": "radius", "value": {"a": 1}}, {"card": True}, {}, {"time": "x"}],
)  # fmt: skip
def test_refused_messages_change_nothing(made, content):
    before = made.chain
    send(made, **content)
    assert made.chain == before
    send(made, card=0, param="radius", value=4)
    assert made.view.error == ""


def test_videos_and_kernels(folder):
    half = kernel(
        "def half(px: Pixel, *, k: Within[float, 0, 1] = 0.5): return rgba(px.rgb * k, px.a)"
    )
    made = studio.widget([(half, {"k": 1.0})], folder / "ramp.mp4", device="cpu", width=32)
    try:
        assert made.view.duration == 1.0
        send(made, time=0.5)
        assert abs(int(made.result[3, 3, 0]) - 120) <= 2
        send(made, card=0, param="k", value=0.5)
        assert abs(int(made.result[3, 3, 0]) - 60) <= 2
    finally:
        made.close()
    made.close()


def test_the_notebook_shows_it(made):
    shown = made._repr_mimebundle_()
    bundle = shown[0] if isinstance(shown, tuple) else shown
    assert "application/vnd.jupyter.widget-view+json" in bundle


@pytest.mark.parametrize(
    ("chain", "source", "options", "error"),
    [
        ("blur", quarters(), {}, ParameterError),
        (["blurr"], quarters(), {}, UnknownKernel),
        ([("blur", {"radius": -1})], quarters(), {}, ParameterError),
        (["blur"], "missing.png", {}, FileNotFoundError),
        (["blur"], np.zeros(3), {}, ParameterError),
        (["blur"], quarters(), {"width": 0}, ParameterError),
    ],
)
def test_wrong_arguments(chain, source, options, error):
    with pytest.raises(error):
        studio.widget(chain, source, device="cpu", **options)
