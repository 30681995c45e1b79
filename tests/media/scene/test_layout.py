"""Named positions, layouts and boxes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dala.errors import ParameterError
from dala.media import Scene
from dala.media.scene.boxes import cells

PHOTO = np.zeros((20, 40, 3), np.uint8)


@pytest.fixture
def scene():
    with Scene(400, 300, device="reference") as made:
        yield made


@pytest.mark.parametrize(
    ("name", "corner"),
    [
        ("top-left", (10, 10)), ("top", (180, 10)), ("top-right", (350, 10)),
        ("left", (10, 140)), ("center", (180, 140)), ("right", (350, 140)),
        ("bottom-left", (10, 270)), ("bottom", (180, 270)), ("bottom-right", (350, 270)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("anchor", ["top-left", "center", (0.25, 1)])
def test_named_positions(scene, name, corner, anchor):
    node = scene.add_image(PHOTO, position=name, margin=10, anchor=anchor)
    assert node.box == pytest.approx((*corner, 40, 20))


def test_named_position_in_a_group(scene):
    group = scene.add_group(canvas=(100, 100), position=(50, 50))
    assert group.add_image(PHOTO, position="bottom-right").box == (60, 80, 40, 20)


def test_side_by_side_stack_and_grid(scene):
    nodes = [scene.add_image(PHOTO) for _ in range(3)]
    nodes[1].anchor = "center"
    assert scene.side_by_side(nodes, gap=20) == [n.box for n in nodes]
    assert [n.box for n in nodes] == [(0, 0, 120, 300), (140, 0, 120, 300), (280, 0, 120, 300)]
    scene.stack(nodes, 30)
    assert [n.box for n in nodes] == [(0, 0, 400, 80), (0, 110, 400, 80), (0, 220, 400, 80)]
    scene.grid(nodes, gap=10, fit="cover")
    assert [n.box for n in nodes] == [(0, 0, 195, 145), (205, 0, 195, 145), (103, 155, 195, 145)]
    assert {n.fit for n in nodes} == {"cover"}
    assert scene.grid(4) == [
        (0, 0, 200, 150), (200, 0, 200, 150), (0, 150, 200, 150), (200, 150, 200, 150),
    ]  # fmt: skip
    assert nodes[2].box == (0, 150, 200, 150)
    scene.side_by_side([n.id for n in nodes[:2]], area=(100, 50, 200, 100))
    assert nodes[0].box == (100, 50, 100, 100)
    with pytest.raises(ParameterError, match="do not fit"):
        scene.stack(nodes, gap=200)


@given(
    st.integers(1, 40), st.integers(1, 10), st.integers(99, 3000), st.integers(99, 3000),
    st.floats(0, 1),
)  # fmt: skip
@example(24, 10, 1737, 99, 0.0)  # ends that lie on half a pixel
def test_cells_are_inside_the_area_and_disjoint(count, columns, width, height, gap):
    gap = gap * min(width / columns, height / count) / 2
    found = cells(count, columns, (5.0, 7.0, width, height), gap)
    assert len(found) == count
    for left, top, w, h in found:
        assert left >= 5 - 1e-6
        assert left + w <= 5 + width + 1e-6
        assert top >= 7 - 1e-6
        assert top + h <= 7 + height + 1e-6
        assert left % 1 == top % 1 == w % 1 == h % 1 == 0
    assert max(c[2] for c in found) - min(c[2] for c in found) <= 1
    assert max(c[3] for c in found) - min(c[3] for c in found) <= 1
    for i, (ax, ay, aw, ah) in enumerate(found):
        for bx, by, bw, bh in found[i + 1 :]:
            apart = ax + aw <= bx + 1e-6 or bx + bw <= ax + 1e-6
            assert apart or ay + ah <= by + 1e-6 or by + bh <= ay + 1e-6


def test_adjacent_cells_leave_no_seam(scene):
    scene.grid([scene.add_overlay(color="white") for _ in range(7)], columns=7)
    assert (np.asarray(scene.render()) == 255).all()


def test_scale_is_about_the_anchor(scene):
    node = scene.add_image(PHOTO, position=(100, 100), anchor="center", scale=2)
    assert node.box == (60, 80, 80, 40)
    node.scale = 0.5
    assert node.box == (90, 95, 20, 10)


def test_text_is_wrapped_to_its_cell(scene):
    node = scene.add_text("several words that are wrapped", size=20)
    wide = node.box[2]
    scene.side_by_side([scene.add_image(PHOTO), node])
    assert wide > 200
    assert node.box == (200, 0, 200, 300)
