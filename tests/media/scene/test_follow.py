"""Nodes that follow targets: geometry with known places, lost targets, seeking, files."""

import math

import numpy as np
import pytest

from dala.errors import ModelError, ParameterError, SceneFileError
from dala.media.scene import Scene, load_scene, scene_to_dict
from dala.media.scene.follow.follower import Affine, Sighting, in_real_time

GRAY = np.full((20, 40, 3), 128, np.uint8)


class Known:
    """A target whose places are known: by the number of the frame, or one for all."""

    def __init__(self, video, places, turns=False):
        self.video, self.places, self.turns = video, places, turns
        self.asked = []

    def find(self, shown, wait):
        self.asked.append((shown.key, wait))
        if isinstance(self.places, Exception):
            raise self.places
        return self.places.get(shown.key) if isinstance(self.places, dict) else self.places

    def saved(self):
        return None


class Group:
    def __init__(self, video, frames):
        self.video, self.frames = video, frames

    def ids(self, shown, wait):
        return sorted(self.frames[shown.key])

    def one(self, id):
        places = {k: found[id] for k, found in enumerate(self.frames) if id in found}
        return Known(self.video, places)


@pytest.fixture
def scene():
    with Scene(200, 100, device="cpu", fps=10) as made:
        yield made


def video(scene, count=1, **properties):
    return scene.add_video([GRAY + k for k in range(count)], fps=10, **properties)


def near(*numbers):
    return pytest.approx(numbers if len(numbers) > 1 else numbers[0], abs=1e-6)


def test_affine_maps():
    first, then = Affine(0, 2, -3, 0, 5, 7), Affine(1, 0.5, 0, 2, -1, 4)
    both = then.after(first)
    assert both.point(3, 4) == near(*then.point(*first.point(3, 4)))
    assert both.inverse().point(*both.point(3, 4)) == near(3, 4)


@pytest.mark.parametrize(
    ("properties", "wanted"),
    [
        ({}, (10, 5)),
        ({"position": (7, 9)}, (17, 14)),
        ({"size": (80, 20)}, (20, 5)),
        ({"scale": 2.0, "position": (40, 20), "anchor": "center"}, (20, 10)),
        ({"rotation": 90, "position": (50, 50)}, (45, 60)),
        ({"size": (40, 40), "fit": "contain"}, (10, 15)),
        ({"size": (20, 20), "fit": "cover"}, (0, 5)),
        ({"crop": (5, 0, 20, 20), "size": (40, 40)}, (10, 10)),
        ({"size": (60, 40), "fit": "none"}, (20, 15)),
    ],
)
def test_places_are_mapped_as_the_video_is(scene, properties, wanted):
    dot = scene.add_overlay(color="red", size=(2, 2))
    scene.follow(dot, Known(video(scene, **properties), Sighting(10, 5)))
    scene.render(0)
    assert dot.position == near(*wanted)
    assert dot.visible


def test_a_pixel_of_the_video_is_where_the_node_is(scene):
    """The drawn picture, not the formula, says where a pixel of the video is."""
    frame = np.zeros((20, 40, 3), np.uint8)
    frame[11:14, 28:31] = 255
    group = scene.add_group(position=(90, 30), anchor="center", rotation=20, scale=1.5)
    node = group.add_video(
        [frame], position=(100, 50), anchor="center", size=(60, 50), fit="cover", rotation=-50
    )
    dot = scene.add_overlay(color="red", size=(2, 2))
    scene.follow(dot, Known(node, Sighting(29.5, 12.5)))
    picture = np.asarray(scene.render(0))[..., 2].astype(float)  # the dot itself is red
    ys, xs = np.nonzero(picture > 100)
    dot_x, dot_y = dot.position
    assert abs(xs.mean() + 0.5 - dot_x) < 0.6
    assert abs(ys.mean() + 0.5 - dot_y) < 0.6


def test_nodes_in_groups(scene):
    group = scene.add_group(position=(20, 10), scale=2.0, canvas=(50, 25))
    dot = group.add_overlay(color="red", size=(2, 2))
    scene.follow(dot, Known(video(scene), Sighting(30, 16)))
    scene.render(0)
    assert dot.position == near(5, 3)


def test_bones_turn_and_scale(scene):
    bar = scene.add_overlay(color="red", size=(50, 10))
    target = Known(video(scene, size=(80, 40), rotation=30), Sighting(20, 10, 8, 0, 45), turns=True)
    scene.follow(bar, target)
    scene.render(0)
    assert bar.rotation == near(75)
    assert bar.scale * 50 == near(16)
    scene.follow(bar, target, scale=0.5, angle=-90)
    scene.render(0)
    assert bar.rotation == near(345)
    assert bar.scale * 50 == near(8)
    bar.update(scale=3.0, rotation=5.0)
    scene.follow(bar, target, scale=False, rotate=False)
    scene.render(0)
    assert (bar.scale, bar.rotation) == (3.0, 5.0)


def test_stretched_videos_stretch_lengths_and_angles(scene):
    bar = scene.add_overlay(color="red", size=(10, 10))
    target = Known(video(scene, size=(40, 60)), Sighting(20, 10, 10, 0, 45), turns=True)
    scene.follow(bar, target)
    scene.render(0)
    side = 10 * math.sqrt(0.5)
    assert bar.rotation == near(math.degrees(math.atan2(3 * side, side)))
    assert bar.scale * 10 == near(math.hypot(side, 3 * side))


def test_offsets(scene):
    node = video(scene, size=(80, 40))
    dot = scene.add_overlay(color="red", size=(2, 2))
    upright = Known(node, Sighting(10, 10, 4, 6))
    scene.follow(dot, upright, offset=(1, -0.5))
    scene.render(0)
    assert dot.position == near(20 + 8, 20 - 6)
    scene.follow(dot, upright, offset=(1, -2), unit="pixels")
    scene.render(0)
    assert dot.position == near(21, 18)
    turned = Known(node, Sighting(10, 10, 4, 6, 90))
    scene.follow(dot, turned, offset=(1, 0), rotate=True)
    scene.render(0)
    assert dot.position == near(20, 28)


def test_fit_sets_both_sides(scene):
    blur = scene.add_effect("blur", radius=2)
    scene.follow(blur, Known(video(scene, size=(80, 20)), Sighting(10, 10, 8, 6)), fit=True)
    scene.render(0)
    assert blur.size == near(16, 6)
    assert blur.position == near(20, 10)
    assert blur.anchor == (0.5, 0.5)


def test_crops_follow_and_stay_inside(scene):
    node = video(scene, 3, size=(20, 20))
    places = {0: Sighting(20, 10, 4, 5), 1: Sighting(1, 19, 4, 4), 2: Sighting(20, 10, 90, 90)}
    scene.follow(node, Known(node, places), crop=True, scale=2)
    scene.render(0)
    assert node.crop == near(15, 5, 10, 10)
    scene.render(0.1)
    assert node.crop == near(0, 12, 8, 8)
    scene.render(0.2)
    assert node.crop == near(10, 0, 20, 20)
    assert node.position == (0, 0)


def test_lost_targets(scene):
    node = video(scene, 6)
    places = {0: Sighting(10, 5), 4: Sighting(20, 5)}
    dots = {k: scene.add_overlay(color="red", size=(2, 2)) for k in ("hide", "keep", "fade")}
    dots["fade"].opacity = 0.8
    for how, dot in dots.items():
        scene.follow(dot, Known(node, places), lost=how, fade=0.2)
    scene.render(0)
    assert all(dot.visible for dot in dots.values())
    scene.render(0.1)
    assert not dots["hide"].visible
    assert (dots["keep"].visible, dots["keep"].x) == (True, 10)
    assert dots["fade"].opacity == near(0.4)
    scene.render(0.2)
    assert not dots["fade"].visible
    scene.render(0.4)
    assert [d.visible for d in dots.values()] == [True] * 3
    assert dots["fade"].opacity == near(0.8)
    scene.render(0.1)  # back: where it was later says nothing about now
    assert [d.visible for d in dots.values()] == [False] * 3
    assert [d.opacity for d in dots.values()] == [1, 1, near(0.8)] or not dots["fade"].visible


def test_hold(scene):
    dot = scene.add_overlay(color="red", size=(2, 2))
    scene.follow(dot, Known(video(scene, 6), {0: Sighting(10, 5)}), hold=0.2)
    assert [scene.render(k / 10) and dot.visible for k in range(5)] == [1, 1, 1, 0, 0]


def test_own_visibility_is_kept(scene):
    dot = scene.add_overlay(color="red", size=(2, 2), visible=False)
    link = scene.follow(dot, Known(video(scene, 3), {1: Sighting(10, 5)}))
    for k in range(3):
        scene.render(k / 10)
        assert not dot.visible
    dot.visible = True
    scene.render(0.1)
    link.cancel()
    assert dot.visible
    assert "cancelled" in repr(link)


def test_a_target_outside_the_visible_part_is_lost(scene):
    dot = scene.add_overlay(color="red", size=(2, 2))
    scene.follow(dot, Known(video(scene, crop=(0, 0, 20, 20)), Sighting(30, 5)))
    scene.render(0)
    assert not dot.visible


def test_presentations_do_not_wait(scene):
    target = Known(video(scene, 2), Sighting(1, 1))
    scene.follow(scene.add_overlay(color="red", size=(2, 2)), target)
    scene.render(0)
    with in_real_time():
        scene.render(0.1)
    scene.play(None, 0.1)
    assert target.asked == [(0, True), (1, False), (0, False)]


def test_a_node_for_each(scene):
    a, b, c = Sighting(5, 5), Sighting(20, 5), Sighting(30, 10)
    frames = [{1: a}, {1: b, 2: c}, {2: a}, {}, {}, {}]
    made = scene.follow_each(
        Group(video(scene, 6), frames),
        lambda id: scene.add_text(f"#{id}", id=f"tag {id}"),
        forget=0.2,
        anchor="bottom",
    )
    scene.render(0)
    assert list(made.nodes) == [1]
    scene.render(0.1)
    assert (scene["tag 1"].x, scene["tag 2"].x) == (20, 30)
    assert scene["tag 2"].anchor == (0.5, 1.0)
    scene.render(0.2)
    assert (scene["tag 1"].visible, scene["tag 2"].x) == (False, 5)
    scene.render(0.4)
    assert list(made.nodes) == [2]
    assert "tag 1" not in scene.nodes
    made.cancel()
    assert "tag 2" not in scene.nodes
    assert not scene.followers


def test_removed_nodes(scene):
    node, dot, other = video(scene), *(scene.add_overlay(color="red", size=(2, 2)) for _ in "ab")
    scene.follow(dot, Known(node, Sighting(1, 1)))
    scene.follow(other, Known(node, None))
    scene.render(0)
    assert not other.visible
    dot.remove()
    assert len(list(scene.followers)) == 1
    node.remove()
    assert not scene.followers
    assert other.visible


def test_errors_of_models_are_raised(scene):
    dot = scene.add_overlay(color="red", size=(2, 2), id="dot")
    scene.follow(dot, Known(video(scene, id="cam"), ModelError("predict: it failed.")))
    with pytest.raises(ModelError, match=r"^Scene.render: 'dot' follows 'cam': it failed"):
        scene.render(0)


def test_refusals(scene):
    node = video(scene)
    dot = scene.add_overlay(color="red", size=(2, 2), id="dot")
    target = Known(node, Sighting(1, 1))
    for options, text in (
        ({"offset": 3}, r"offset must be \(dx, dy\), got 3"),
        ({"unit": "metres"}, "unit must be one of 'size', 'pixels'"),
        ({"scale": -1}, "scale must be a number from 1e-06 to 10000, got -1"),
        ({"rotate": "yes"}, "rotate must be"),
        ({"lost": "explode"}, "lost must be one of 'hide', 'keep', 'fade', got 'explode'"),
        ({"hold": -1}, "hold must be a number of at least 0"),
        ({"anchor": "middle"}, "anchor must be"),
        ({"fit": True, "crop": True}, "crop and fit exclude each other"),
    ):
        with pytest.raises(ParameterError, match=f"^Scene.follow: {text}"):
            scene.follow(dot, target, **options)
    with pytest.raises(ParameterError, match="crop=True needs a node with a size"):
        scene.follow(node, target, crop=True)
    with pytest.raises(ParameterError, match=r"has no scale, as it is of type 'effect'. fit=True"):
        scene.follow(scene.add_effect("blur", radius=1), target, scale=2)
    with pytest.raises(
        ParameterError, match=r"target must be a point, bone or box, such as dala.ml"
    ):
        scene.follow(dot, (3, 4))
    with pytest.raises(ParameterError, match=r"there is no node 'dott'. Did you mean 'dot'"):
        scene.follow("dott", target)
    with pytest.raises(ParameterError, match="make must be a function of the id, got 3"):
        scene.follow_each(Group(node, [{}]), 3)
    with Scene(8, 8, device="cpu") as other, pytest.raises(ParameterError, match="not in this"):
        scene.follow(dot, Known(video(other), Sighting(1, 1)))
    assert not scene.followers


def test_files_name_what_is_followed(tmp_path, scene):
    scene.follow(scene.add_overlay(color="red", size=(2, 2)), Known(video(scene), None))
    with pytest.raises(SceneFileError, match="what it follows cannot be named in a file"):
        scene_to_dict(scene)
    bad = {
        "dala": 2, "width": 8, "height": 8,
        "nodes": [{"type": "overlay", "id": "dot", "color": "red", "size": [2, 2]}],
        "follows": [
            {"node": "dott", "target": {"video": "cam", "model": "blazeface", "point": "nose"}},
            {"node": "dot", "target": {"video": "dot", "model": "blazeface"}, "lost": "no"},
        ],
    }  # fmt: skip
    with pytest.raises(SceneFileError) as caught:
        load_scene(bad)
    assert caught.value.problems == [
        "follows[1].target: must have one of 'point', 'bone' and 'box', got none.",
        "follows[1].lost: must be one of 'hide', 'keep', 'fade', got 'no'.",
        "follows[0].node: there is no node with the id 'dott'. Did you mean 'dot'?",
        "follows[0].target.video: there is no node with the id 'cam'.",
    ]
