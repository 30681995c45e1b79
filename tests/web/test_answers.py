"""Exported filters in a browser give the bytes of the table of answers."""

from typing import Any

import numpy as np
import pytest

import dala.web
from dala.answers.cases import Row
from dala.answers.run import compare
from dala.answers.table import checksum, stored
from tests.support.web import WebPage

#: Filters and settings: one of each kind of shader.
SOME = (
    "invert/default",
    "contrast/max",
    "gamma/max",
    "saturation/min",
    "hue/max",
    "posterize/default",
    "grayscale/default",
    "erode/radius=2",
    "median/default",
    "blur/radius=2",
    "box_blur/default",
    "sharpen/default",
    "levels/max",
    "equalize/default",
    "flip/default",
    "pad/default",
    "resize/default",
    "warp_affine/default",
)
#: Those whose bytes differ there; one that no longer does fails.
DIFFERENT = (
    "blur/radius=2",
    "sharpen/default",
    "resize/default",
    "warp_affine/default",
)


@pytest.mark.parametrize("some", SOME)
def test_bytes(web: WebPage, some: str) -> None:
    name, setting = some.split("/")
    params: dict[str, Any] = Row(name, setting, "rgba", "photo").parameters()
    folder = f"answer-{SOME.index(some)}"
    dala.web.export([(name, params)], web.folder / folder)
    problems = []
    for picture in ("random", "photo"):
        row = Row(name, setting, "rgba", picture)
        got = web.run(folder, np.ascontiguousarray(row.source()))
        if checksum(got) != stored()[row.id]:
            problems.append(f"{row.id}: {compare(got, row.run('reference'))}")
    if some in DIFFERENT:
        assert problems, "equal now: remove it from DIFFERENT"
    else:
        assert not problems, "\n".join(problems)
