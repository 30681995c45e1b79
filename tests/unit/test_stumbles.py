"""Advice at what people try first, coming from elsewhere."""

import re

import numpy as np
import pytest

import dala
import dala.media.effects
import dala.media.gpu
from dala.errors import ParameterError
from dala.gpu.compute import Pixel, kernel
from dala.gpu.compute.language import rgba, vec3
from dala.media import Scene


@pytest.mark.parametrize(
    ("module", "name", "advice"),
    [
        (dala.media.gpu, "putText", "scene.add_text("),
        (dala.media.effects, "draw_text", "scene.add_text("),
        (dala.media.gpu, "overlay", "dala.media.effects.overlay"),
        (dala.media.effects, "blur", "dala.media.gpu.blur"),
        (dala.media.gpu, "GaussianBlur", "'gaussian_blur'"),
        (dala.media.gpu, "hqdn3d", "'denoise'"),
    ],
)
def test_names_of_calls(module, name, advice):
    with pytest.raises(AttributeError) as refused:
        getattr(module, name)
    assert advice in str(refused.value)
    assert not hasattr(module, "__wrapped__")


def test_readers():
    clip = dala.samples.video("coffee")
    with dala.media.video.open(clip) as reader:
        for name, advice in (("read", "next(reader, None)"), ("release", "'close'"),
                             ("subclip", "trim="), ("isOpened", "raises")):  # fmt: skip
            with pytest.raises(AttributeError, match=re.escape(advice)):
                getattr(reader, name)
        times = [frame.time for frame in reader]
        assert (len(reader), bool(reader)) == (len(times), True)
        numbers = (np.int64(10), -1, 0)
        assert [reader[n].time for n in numbers] == [times[10], times[-1], times[0]]
        assert next(reader).time == times[1]
        reader.seek("400ms")
        assert float(next(reader).time) == 0.4
        with pytest.raises(IndexError, match=f"has {len(times)} frames"):
            _ = reader[len(times)]
        with pytest.raises(TypeError, match="islice"):
            _ = reader[1:3]


def test_colors_by_name():
    white = np.full((2, 2, 4), 255, np.uint8)
    padded = dala.media.gpu.pad(white, padding=1, fill="orange")
    assert padded[0, 0].tolist() == [255, 165, 0, 255]
    assert (dala.media.gpu.chroma_key(white, key="#fff")[..., 3] == 0).all()

    @kernel
    def tint(px: Pixel, *, color: vec3 = (1.0, 1.0, 1.0)) -> Pixel:
        return rgba(px.rgb * color, px.a)

    tinted = dala.media.gpu.apply(white, tint, color="#08f")
    assert tinted[0, 0].tolist() == [0, 136, 255, 255]
    with pytest.raises(ParameterError, match="Did you mean 'teal'"):
        dala.media.gpu.apply(white, tint, color="taal")


def test_fades_and_groups():
    with Scene(8, 8) as scene:
        with pytest.raises(ParameterError, match=r"scene\.add_animation"):
            scene.add_overlay(color="red", size=(4, 4), fade_in=1)
        with pytest.raises(ParameterError, match=r"group = scene\.add_group"):
            scene.add_group([1, 2])
