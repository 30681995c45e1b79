"""Advice at what people try first, coming from elsewhere."""

import pytest

import dala.media.effects
import dala.media.gpu
from dala.errors import ParameterError
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


def test_fades_and_groups():
    with Scene(8, 8) as scene:
        with pytest.raises(ParameterError, match=r"scene\.add_animation"):
            scene.add_overlay(color="red", size=(4, 4), fade_in=1)
        with pytest.raises(ParameterError, match=r"group = scene\.add_group"):
            scene.add_group([1, 2])
