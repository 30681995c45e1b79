"""Stored scenes: every engine renders them within 2 of 255."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import dala
from dala.media import Scene
from tests.media.scene import scene_pictures
from tests.media.scene.scene_catalogue import FOLDER, FREETYPE, SCENES, frames, show

pytest.importorskip("freetype")
pytest.importorskip("font_source_sans_pro")
image = pytest.importorskip("PIL.Image")

#: Where differences are kept for looking at.
FAILED = pathlib.Path("out") / "scene-differences"


def read(name: str) -> np.ndarray:
    with image.open(FOLDER / f"{name}.png") as stored:
        return np.array(stored.convert("RGBA"))


def apart(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Return the difference of pictures per pixel: of alpha, and over black and white.

    A color counts as much as its alpha lets it be seen: with 8 of 255 one step of alpha moves it
    by 30 without being visible.
    """
    far = np.abs(got[..., 3].astype(float) - want[..., 3])
    for ground in (0, 255):
        seen = [
            ground + (picture[..., :3].astype(float) - ground) * (picture[..., 3:] / 255)
            for picture in (got, want)
        ]
        far = np.maximum(far, np.abs(seen[0] - seen[1]).max(axis=2))
    return far


def keep(name: str, got: np.ndarray, want: np.ndarray, far: np.ndarray) -> pathlib.Path:
    """Save the result, the stored picture and their difference side by side."""
    FAILED.mkdir(parents=True, exist_ok=True)
    parts = [scene_pictures.on_checks(got), scene_pictures.on_checks(want)]
    parts.append(np.dstack([np.clip(far * 32, 0, 255).astype(np.uint8)] * 3))
    path = FAILED / f"{name}.png"
    image.fromarray(np.concatenate(parts, axis=1)).save(path)
    return path


def assert_equal(name: str, got: np.ndarray, want: np.ndarray) -> None:
    """Assert that pictures have the same bytes."""
    assert got.shape == want.shape
    if not np.array_equal(got, want):
        far = apart(got, want)
        path = keep(name, got, want, far)
        y, x = np.unravel_index(far.argmax(), far.shape)
        pytest.fail(
            f"{name}: {(got != want).any(axis=2).sum()} pixels differ, most at "
            f"({x}, {y}): got {got[y, x].tolist()}, {want[y, x].tolist()} is stored; see {path}"
        )


@pytest.mark.third
@pytest.mark.parametrize("name", SCENES)
def test_scene_matches_the_stored_picture(engine_id: str, name: str) -> None:
    """If one is changed on purpose: python -m tests.media.scene.scene_pictures, and look at it."""
    import freetype

    want = read(name)
    if SCENES[name].text and freetype.version() != FREETYPE:
        with dala.device("reference"):
            drawn = show(name)
        assert (apart(drawn, want) > 32).mean() < 0.01
        want = drawn  # letters are another version's; engines still have to agree
    assert_equal(f"{name}-{engine_id}", show(name), want)


@pytest.mark.parametrize("name", [name for name, item in SCENES.items() if len(item.times) > 1])
def test_frames_do_not_depend_on_earlier_ones(engine_id: str, name: str) -> None:
    """Incremental rendering equals full rendering."""
    for time, frame in zip(SCENES[name].times, frames(name), strict=True):
        alone = show(name, (time,))
        assert_equal(f"{name}-{engine_id}-{time}", frame, alone)


def test_every_scene_is_stored_and_every_stored_picture_has_a_scene() -> None:
    assert {path.stem for path in FOLDER.glob("*.png")} == set(SCENES)
    assert len(SCENES) >= 20


def test_every_node_type_has_a_stored_scene() -> None:
    from dala.media.scene.file.schema import type_names
    from dala.media.scene.nodes.registry import NODE_TYPES

    seen = {"animation"}
    for item in SCENES.values():
        with Scene(**item.options, device="null") as scene:
            item.build(scene)
            seen |= {node.type for node in scene.nodes.values()}
    heard = {name for name, cls in NODE_TYPES.items() if not cls.DRAWN}
    assert seen == set(type_names()) - heard


def test_differences_are_detected_and_saved(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    want = read("half_white")
    got = want.copy()
    got[3, 5, 0] += 3
    with pytest.raises(pytest.fail.Exception, match=r"1 pixels differ, most at \(5, 3\)"):
        assert_equal("half_white", got, want)
    with image.open(FAILED / "half_white.png") as kept:
        shown = np.asarray(kept)
    assert shown.shape == (want.shape[0], 3 * want.shape[1], 3)
    assert np.argwhere(shown[:, 2 * want.shape[1] :].any(axis=2)).tolist() == [[3, 5]]


def test_large_and_small_picture_in_the_first_frame(engine_id: str) -> None:
    """The upload of one is not overwritten by the other before it is used."""
    large = np.random.default_rng(5).integers(0, 256, (512, 512, 4), dtype=np.uint8)
    large[..., 3] = 255
    small = np.full((16, 16, 4), (250, 120, 0, 255), np.uint8)
    with Scene(512, 512) as scene:
        scene.add_image(large)
        scene.add_image(small, position=(100, 200))
        got = np.array(scene.render())
    large[200:216, 100:116] = small
    np.testing.assert_array_equal(got, large)


def test_backdrop_effect_over_transparency_follows_its_properties(engine_id: str) -> None:
    """Change box, opacity, corners, blend and backdrop, one after another."""

    def build(changes: int) -> np.ndarray:
        with Scene(48, 32, background="transparent") as scene:
            bar = scene.add_overlay(color=(200, 40, 40, 150), position=(4, 8), size=(36, 12))
            effect = scene.add_effect("invert", position=(10, 4), size=(24, 20))
            top = scene.add_overlay(color="gold", position=(20, 10), size=(4, 4))
            steps = (
                lambda: effect.update(opacity=0.5),
                lambda: effect.update(corner_radius=8),
                lambda: effect.update(blend="multiply"),
                lambda: effect.update(blend="over"),
                lambda: effect.update(x=14.5),
                lambda: top.update(x=24),
                lambda: bar.update(y=12),
                lambda: effect.update(visible=False),
                lambda: effect.update(visible=True),
                lambda: setattr(scene, "background", "navy"),
                lambda: setattr(scene, "background", (0, 0, 80, 90)),
            )
            found = []
            for number, step in enumerate(steps, 1):
                if changes < 0:
                    scene.render()
                step()
                if changes in (-1, number):
                    found.append(np.array(scene.render()))
                if number == changes:
                    break
            return np.array(found)

    gradually = build(-1)
    for number, frame in enumerate(gradually, 1):
        np.testing.assert_array_equal(frame, build(number)[0], err_msg=str(number))


def test_backdrop_effect_replaces_a_translucent_backdrop(engine_id: str) -> None:
    with Scene(8, 4, background="transparent") as scene:
        scene.add_overlay(color=(200, 40, 100, 128), size=(8, 4))
        scene.add_effect("invert", position=(4, 0), size=(4, 4))
        got = np.array(scene.render())
    assert (got[:, :4] == (200, 40, 100, 128)).all()
    assert (got[:, 4:] == (55, 215, 155, 128)).all()
