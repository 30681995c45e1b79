"""Shape nodes: the same bytes as a surface draws, animation, anchors, scene files."""

from __future__ import annotations

import numpy as np
import pytest

import dala
from dala.errors import ParameterError, SceneFileError
from dala.gpu import LinearGradient, Path, RadialGradient, create_surface
from dala.media.scene import Scene, load_scene, scene_to_dict

STAR = Path.star(60, 50, 40)


def drawn(draw, width: int = 120, height: int = 100, background: str = "black") -> np.ndarray:
    with create_surface(width, height) as s:
        s.clear(background)
        draw(s)
        return s.to_array()


@pytest.fixture
def scene(device):
    with Scene(120, 100, device=device) as made:
        yield made


@pytest.fixture(params=["reference", "cpu", "webgpu"])
def device(request):
    if request.param not in {d.backend for d in dala.devices()} | {"reference"}:
        pytest.skip("no such device")
    return request.param


def test_a_shape_has_the_bytes_of_a_surface(scene) -> None:
    node = scene.add_shape(STAR, fill="#f80")
    assert np.array_equal(np.asarray(scene.render()), drawn(lambda s: s.fill(STAR, "#f80")))
    node.update(fill=None, stroke="#08fc", width=7, join="round")
    wanted = drawn(lambda s: s.stroke(STAR, "#08fc", 7, join="round"))
    assert np.array_equal(np.asarray(scene.render()), wanted)
    node.update(stroke="white", dash=(9, 4), cap="round", trim=(0.25, 0.75))
    wanted = drawn(
        lambda s: s.stroke(
            STAR.trim(0.25, 0.75), "white", 7, join="round", cap="round", dash=(9, 4)
        )
    )
    assert np.array_equal(np.asarray(scene.render()), wanted)


def test_place_scale_and_rotation_are_drawn_not_resampled(scene) -> None:
    path = Path.rect(-20, -10, 40, 20)
    node = scene.add_shape(path, fill="white", x=50.3, y=40.7, rotation=30, scale=1.5)
    wanted = drawn(
        lambda s: s.fill(path.transform((50.3, 40.7), 30, 1.5), "white"),
    ).astype(int)
    shown = np.asarray(scene.render()).astype(int)
    assert np.abs(shown - wanted).max() <= 1  # the points are rounded once more
    assert node.box == pytest.approx((20.3, 25.7, 60, 30))
    node.position = (60.6, 40.7)
    wanted = drawn(lambda s: s.fill(path.transform((60.6, 40.7), 30, 1.5), "white")).astype(int)
    assert np.abs(np.asarray(scene.render()).astype(int) - wanted).max() <= 1


def test_anchors_and_named_positions_are_those_of_the_box() -> None:
    with Scene(120, 100, device="cpu") as scene:
        node = scene.add_shape(Path.star(0, 0, 20), fill="white", position="center")
        left, top, width, height = node.box
        assert (left + width / 2, top + height / 2) == pytest.approx((60, 50), abs=0.5)
        circle = Path.circle(500, 500, 10)
        far = scene.add_shape(circle, fill="red", position=(30, 30), anchor="center")
        assert far.box == (20, 20, 20, 20)
        stroked = scene.add_shape(
            circle, stroke="red", width=4, position=(30, 30), anchor="top-left"
        )
        assert stroked.box == (30, 30, 24, 24)
        frame = np.asarray(scene.render())
        assert frame[29, 29].tolist() == [255, 0, 0, 255]
        scene.grid([far], columns=1)
        assert far.box == (10, 0, 100, 100)


def test_a_line_grows_and_paths_morph() -> None:
    with Scene(120, 100, device="cpu") as scene:
        line = scene.add_shape(Path.polyline([(10, 50), (110, 50)]), stroke="white", width=2)
        scene.add_animation(line, "trim", (0, 0), (0, 1), 1, "linear")
        for time, end in ((0.25, 35), (0.5, 60), (1.0, 110)):
            row = np.asarray(scene.render(time))[50, :, 0]
            assert np.nonzero(row)[0].tolist() == list(range(10, end))
    with Scene(120, 100, device="cpu") as scene:
        first, last = Path.rect(0, 0, 20, 20), Path.rect(60, 40, 40, 40)
        box = scene.add_shape(first, fill="red", id="box")
        scene.add_animation(box, "path", first, last, 2, "linear")
        scene.add_animation(box, "fill", "red", "blue", 2, "linear")
        scene.render(1)
        assert box.path == first.morph(last, 0.5)
        assert box.fill == (128, 0, 128, 255)
        with pytest.raises(ParameterError, match="paths of the same commands"):
            scene.add_animation(box, "path", first, STAR, 1)


def test_shapes_without_area_show_nothing() -> None:
    with Scene(32, 32, device="cpu") as scene:
        node = scene.add_shape(Path(), fill="white")
        for change in (
            {}, {"path": Path().move_to(4, 4)}, {"path": Path.circle(16, 16, 8), "scale": 0},
            {"scale": 1, "trim": (0.5, 0.5)}, {"trim": (0.7, 0.2)},
            {"trim": (0, 1), "position": (500, 500)}, {"position": (-1e6, 0)},
        ):  # fmt: skip
            node.update(**change)
            assert not np.asarray(scene.render())[..., :3].any()
        node.position = (0, 0)
        assert np.asarray(scene.render())[16, 16, 0] == 255
        vertical = scene.add_shape(Path.polyline([(4, 0), (4, 32)]), stroke="white", width=2)
        assert vertical.box == (3, -1, 2, 34)
        assert np.asarray(scene.render())[2, 4, 0] == 255


def test_huge_shapes_draw_only_what_is_near() -> None:
    with Scene(64, 64, device="cpu") as scene:
        node = scene.add_shape(Path.rect(-1e6, -1e6, 2e6, 2e6), fill="lime", scale=100)
        assert (np.asarray(scene.render()) == (0, 255, 0, 255)).all()
        assert node.content().picture.width <= 64 + 2 * 64


def test_shapes_have_shadows_filters_and_groups() -> None:
    with Scene(64, 64, device="cpu") as scene:
        group = scene.add_group(x=10, y=10)
        disk = group.add_shape(Path.circle(20, 20, 8), fill="red", shadow=(4, 4, 0, "white"))
        frame = np.asarray(scene.render())
        assert frame[30, 30].tolist() == [255, 0, 0, 255]
        assert frame[38, 38].tolist() == [255, 255, 255, 255]
        disk.shadow = None
        scene.add_effect("invert", disk)
        assert np.asarray(scene.render())[30, 30].tolist() == [0, 255, 255, 255]


def test_scene_files_have_path_data(tmp_path) -> None:
    with Scene(120, 100, device="cpu") as scene:
        node = scene.add_shape(
            STAR, fill="red", stroke="#00ff0080", width=3.5, trim=(0, 0.5), dash=[3, 2], id="star"
        )
        scene.add_shape("M0 0L10 0L5 8Z", x=4)
        scene.add_animation(node, "trim", (0, 0), (0, 1), 1, "linear")
        scene.add_animation(node, "path", STAR, STAR.transform(scale=0.5), 1, "linear")
        scene.save(tmp_path / "scene.json")
        first = scene_to_dict(scene)["nodes"][0]
        assert first["path"] == STAR.to_svg()
        assert (first["stroke"], first["width"], first["dash"]) == ("#00ff0080", 3.5, [3, 2])
        with load_scene(tmp_path / "scene.json", device="cpu") as loaded:
            for time in (0.0, 0.5, 1.0):
                shown = np.asarray(loaded.render(time))
                assert np.array_equal(shown, np.asarray(scene.render(time)))
    data = {"dala": 2, "width": 9, "height": 9, "nodes": [{"type": "shape", "path": "M0 0L"}]}
    with pytest.raises(SceneFileError, match=r"nodes\[0\].path: .* a number at character 5"):
        load_scene(data, device="cpu")


def test_gradients_are_those_of_surfaces_and_move(tmp_path) -> None:
    first = LinearGradient((20, 0), (100, 0), [(0, "red"), (1, "blue")])
    last = LinearGradient((40, 0), (120, 0), [(0.5, "lime"), (1, "blue")])
    glow = RadialGradient((60, 50), 40, [(0, "white"), (1, "#0000")], spread="reflect")
    with Scene(120, 100, device="cpu") as scene:
        node = scene.add_shape(STAR, fill=first, stroke=glow, width=6, id="star")

        def both(s) -> None:
            s.fill(STAR, first)
            s.stroke(STAR, glow, 6)

        found, wanted = np.asarray(scene.render()).astype(int), drawn(both).astype(int)
        assert np.abs(found - wanted).max() <= 2  # blended with each other, then with the scene
        node.stroke = None
        found = np.asarray(scene.render())
        assert np.array_equal(found, drawn(lambda s: s.fill(STAR, first)))
    with Scene(120, 100, device="cpu") as scene:
        node = scene.add_shape(STAR, fill=first, width=6, id="star")
        scene.add_animation(node, "fill", first, last, 1, "linear")
        between = LinearGradient((30, 0), (110, 0), [(0.25, (128, 128, 0)), (1, "blue")])
        shown = np.asarray(scene.render(0.5)).astype(int)
        assert np.abs(shown - drawn(lambda s: s.fill(STAR, between))).max() <= 2
        node.stroke = glow
        scene.save(tmp_path / "scene.json")
        with load_scene(tmp_path / "scene.json", device="cpu") as loaded:
            for time in (0.0, 0.25, 1.0):
                shown = np.asarray(loaded.render(time))
                assert np.array_equal(shown, np.asarray(scene.render(time)))
        with pytest.raises(ParameterError, match="gradients of one kind"):
            scene.add_animation(node, "fill", first, glow, 1)
        with pytest.raises(ParameterError, match="gradients of one kind"):
            scene.add_animation(node, "fill", first, "red", 1)
    for gradient in (
        {"kind": "square"}, {"kind": "linear", "matrix": [1] * 6, "stops": []},
        {"kind": "linear", "matrix": [1e99] * 6, "stops": [[0, "red"]]},
        {"kind": "linear", "matrix": [1] * 6, "stops": [[0, "red"]], "path": "/etc/passwd"},
    ):  # fmt: skip
        node = {"type": "shape", "path": "M0 0L9 0L9 9Z", "fill": gradient}
        with pytest.raises(SceneFileError, match=r"nodes\[0\].fill"):
            load_scene({"dala": 2, "width": 9, "height": 9, "nodes": [node]}, device="cpu")


def test_words_jump_and_dashes_march(tmp_path) -> None:
    """Every property is animated; keyframes of paths, gradients and words are saved."""
    wide, tall = Path.rect(10, 20, 60, 10), Path.rect(10, 20, 10, 60)
    paints = [LinearGradient((0, 0), (x, 0), [(0, "red"), (1, "blue")]) for x in (60, 90)]
    with Scene(120, 100, device="cpu") as scene:
        node = scene.add_shape(wide, fill=paints[0], id="box")
        scene.add_animation(node, "path", keyframes=[(0, wide), (1, tall), (2, wide)])
        scene.add_animation(node, "fill", keyframes=[(0, paints[0]), (1, paints[1])])
        line = scene.add_shape(wide, stroke="white", width=4, dash=(6, 6), miter=1, id="line")
        scene.add_animation(line, "offset", 0, 12, 1)
        scene.add_animation(line, "join", keyframes=[(0, "miter"), (0.5, "round")])
        scene.add_animation(line, "cap", "butt", "round", 1)
        year = scene.add_text("red", size=12, id="year")
        scene.add_animation(year, "text", keyframes=[(n, f"{2000 + n}") for n in range(3)])
        scene.save(tmp_path / "scene.json")
        scene.render(0.25)
        assert (line.offset, line.join, line.cap, year.text) == (3, "miter", "butt", "2000")
        wanted = drawn(lambda s: s.stroke(wide, "white", 4, dash=(6, 6), offset=3, miter=1))
        node.visible = year.visible = False
        assert np.array_equal(np.asarray(scene.render(0.25)), wanted)
        node.visible = year.visible = True
        scene.render(1.5)
        assert (line.join, line.cap, year.text) == ("round", "round", "2001")
        with load_scene(tmp_path / "scene.json", device="cpu") as loaded:
            for time in (0.0, 0.5, 1.0, 2.5):
                shown = np.asarray(loaded.render(time))
                assert np.array_equal(shown, np.asarray(scene.render(time)))
        with pytest.raises(
            ParameterError, match="join must be one of 'miter', 'round', 'bevel', got 'sharp'"
        ):
            scene.add_animation(line, "join", "miter", "sharp", 1)
        with pytest.raises(ParameterError, match="text must be a str, got 5"):
            scene.add_animation(year, "text", "4", 5, 1)


def test_what_is_refused() -> None:
    with Scene(32, 32, device="cpu") as scene:
        for given, message in (
            ({"path": 3}, "add_shape: path must be a Path or SVG path data, got 3"),
            ({"path": "M0 x"}, "add_shape: data must have a number at character 3"),
            ({"path": STAR, "width": -1}, "add_shape: width must be"),
            ({"path": STAR, "trim": (0, 2)}, "add_shape: trim must be"),
            ({"path": STAR, "trim": 0.5}, "add_shape: trim must be"),
            ({"path": STAR, "cap": "pointed"}, "add_shape: cap must be"),
            ({"path": STAR, "dash": (-1,)}, "add_shape: dash must be a list of lengths"),
            ({"path": STAR, "height": 3}, "has no property 'height'"),
        ):
            with pytest.raises(ParameterError, match=message):
                scene.add_shape(**given)
        with pytest.raises((ParameterError, TypeError), match="path"):
            scene.add_shape()
        assert not list(scene.nodes)
