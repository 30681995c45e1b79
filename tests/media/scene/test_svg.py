"""SVG nodes: their size, the resolution they are drawn at, scene files."""

from __future__ import annotations

import numpy as np
import pytest

from dala.errors import ParameterError, SceneFileError
from dala.media.pictures.svg import SvgDocument
from dala.media.scene import Scene, load_scene, scene_to_dict

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20">'
DISK = HEAD + '<circle cx="20" cy="10" r="9" fill="gold"/></svg>'


def alpha_of(scene: Scene) -> np.ndarray:
    return np.asarray(scene.render())[..., 3]


@pytest.fixture
def scene():
    with Scene(320, 160, background="transparent", device="cpu") as made:
        yield made


def test_a_node_is_the_drawing_of_its_size(scene) -> None:
    node = scene.add_svg(DISK, width=200, position=(10, 20))
    assert node.box == (10, 20, 200, 100)
    wanted = np.zeros((160, 320, 4), np.uint8)
    wanted[20:120, 10:210] = SvgDocument(DISK, "x").pixels(200)
    wanted[wanted[..., 3] == 0] = 0
    assert np.array_equal(np.asarray(scene.render()), wanted)
    node.height, node.width = 50, None
    assert node.box == (10, 20, 100, 50)
    wanted[:] = 0
    wanted[20:70, 10:110] = SvgDocument(DISK, "x").pixels(100)
    assert np.array_equal(np.asarray(scene.render()), wanted)


def test_scaled_nodes_are_crisp(scene) -> None:
    node = scene.add_svg(DISK, scale=4)
    assert node.box == (0, 0, 160, 80)
    first = alpha_of(scene)[:80, :160].astype(int)
    assert np.array_equal(first, SvgDocument(DISK, "x").pixels(160)[..., 3])
    node.scale = 3  # drawn at 4, shown at 3
    shown = alpha_of(scene)[:60, :120].astype(int)
    exact = SvgDocument(DISK, "x").pixels(120)[..., 3].astype(int)
    assert np.abs(shown - exact).max() < 64
    assert ((shown > 0) & (shown < 255)).sum() < 2 * ((exact > 0) & (exact < 255)).sum()
    node.scale = 0
    assert not alpha_of(scene).any()


def test_the_same_size_is_drawn_once(scene, monkeypatch) -> None:
    sizes = []
    draw = SvgDocument.pixels
    monkeypatch.setattr(
        SvgDocument, "pixels", lambda self, *size: (sizes.append(size), draw(self, *size))[1]
    )
    node = scene.add_svg(DISK)
    for n in range(5):
        node.x = n
        node.rotation = 5 * n
        scene.render()
    assert sizes == [(40, 20)]


def test_scene_files_have_the_file_or_the_text(tmp_path, scene) -> None:
    (tmp_path / "disk.svg").write_text(DISK)
    scene.add_svg(tmp_path / "disk.svg", id="file", width=80)
    scene.add_svg(DISK, id="text", x=100)
    path = tmp_path / "scene.json"
    scene.save(path)
    entries = scene_to_dict(scene, base=tmp_path)["nodes"]
    assert entries[0] == {"type": "svg", "id": "file", "source": "disk.svg", "width": 80}
    assert entries[1]["source"] == DISK + "\n"
    with load_scene(path, device="cpu") as loaded:
        assert np.array_equal(np.asarray(loaded.render()), np.asarray(scene.render()))
        assert scene_to_dict(loaded, base=tmp_path) == scene_to_dict(scene, base=tmp_path)


def test_what_is_refused(tmp_path, scene) -> None:
    hostile = HEAD + '<image href="/etc/passwd"/></svg>'
    for call in (scene.add_svg, lambda text: scene.add_svg(tmp_path / "x.svg")):
        (tmp_path / "x.svg").write_text(hostile)
        with pytest.raises(ParameterError, match=r"^add_svg: .* names something outside it"):
            call(hostile)
    with pytest.raises(FileNotFoundError):
        scene.add_svg(tmp_path / "none.svg")
    with pytest.raises(ParameterError, match="add_svg: svg must be a str or Path, got 3"):
        scene.add_svg(3)
    data = {
        "dala": 2,
        "width": 32,
        "height": 32,
        "nodes": [{"type": "svg", "source": hostile + "\n"}],
    }
    with pytest.raises((SceneFileError, ParameterError), match="names something outside it"):
        load_scene(data, device="cpu")
    assert not list(scene.nodes)
