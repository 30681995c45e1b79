"""Names that an object does not have: advice, and the errors of properties as they are."""

from __future__ import annotations

import numpy as np
import pytest

from dala.gpu import Path, create_surface
from dala.media import Frame, Scene
from dala.media.audio import Audio
from dala.resources import Closing


def frame():
    return Frame.from_array(np.ones((2, 2, 3)))


def picture():
    return Frame.from_array(np.ones((2, 2, 3), np.uint8))


@pytest.mark.parametrize(
    ("made", "name", "advice"),
    [
        (lambda: create_surface(4, 4), "mouse", "Did you mean 'pointer'?"),
        (lambda: create_surface(4, 4), "draw_text", "Did you mean 'text'?"),
        (lambda: Scene(4, 4), "write_videofile", "Did you mean 'render_to'?"),
        (lambda: Scene(4, 4), "_private", ""),
        (lambda: Path(), "moveTo", "Did you mean 'move_to'?"),
        (lambda: Audio([0.0], 8000), "volume", "Did you mean 'gain'?"),
        (picture, "imwrite", "Did you mean 'save'?"),
        (picture, "rotate", "Write dala.media.gpu.rotate(frame)."),
        (picture, "grade", "Write dala.media.effects.grade(frame)."),
    ],
)
def test_a_missing_attribute_has_advice(made, name, advice):
    value = made()
    with pytest.raises(AttributeError) as caught:
        getattr(value, name)
    said = f"{type(value).__name__!r} object has no attribute {name!r}"
    assert str(caught.value) == (f"{said}. {advice}" if advice else said)
    assert not hasattr(value, name)
    assert getattr(value, name, 3) == 3


def test_the_error_of_a_property_is_its_own():
    class Door(Closing):
        def close(self):
            pass

        @property
        def width(self):
            return self.hinge

    with pytest.raises(AttributeError, match="no attribute 'hinge'"):
        Door().width  # noqa: B018
