"""Slips that would give wrong pictures silently: ranges, folders, lists, letters without a font."""

from __future__ import annotations

import unicodedata
import warnings

import numpy as np
import pytest

import dala.media.gpu as gpu
from dala.errors import FolderGiven
from dala.media import Frame, images
from dala.media.scene import Scene
from dala.media.text import TextStyle, fonts, set_text
from dala.media.text.fonts import faces
from dala.ml.gpu import load_model
from dala.notices import MediaNotice, collected

PHOTO = np.random.default_rng(3).integers(0, 256, (70, 90, 3), np.uint8)


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(images, "_noted", False)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("scale", [1, 0.7])
def test_floats_of_0_to_255_are_noted_once(dtype, scale):
    picture = (PHOTO * scale).astype(dtype)
    with collected() as notices:
        gpu.invert(picture, device="cpu")
        gpu.blur(picture, radius=2, device="cpu")
    assert len(notices) == 1
    assert notices[0].startswith("invert: a float picture is 0 to 1, and this one has values up to")
    assert notices[0].endswith("divide: picture / 255.")


@pytest.mark.parametrize(
    "picture",
    [
        PHOTO,
        PHOTO / np.float32(255),
        (PHOTO > 9).astype(np.float32),
        (PHOTO / 255.0) ** 4 * 20,  # highlights of HDR
        PHOTO - np.float32(128),
        np.full((9, 9), np.nan),
        np.full((9, 9), np.inf, np.float32),
    ],
    ids=["bytes", "floats", "mask", "hdr", "signed", "nan", "inf"],
)
def test_other_pictures_are_not_noted(picture):
    with collected() as notices, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        gpu.invert(picture, device="cpu")
    assert notices == []


@pytest.mark.parametrize(
    ("call", "open_folder"),
    [
        ("Frame.open", Frame.open),
        ("Frame.open", lambda path: gpu_image(path)),
        ("Frame.save", lambda path: Frame.from_array(PHOTO).save(path)),
        ("load_model", load_model),
        ("Scene.save", lambda path: Scene(8, 8).save(path)),
        ("add_svg", lambda path: Scene(8, 8).add_svg(path)),
    ],
)
def test_a_folder_is_refused_by_name(call, open_folder, tmp_path):
    with pytest.raises(FolderGiven, match=f"^{call}: '.*' is a folder. Name a file in it.$") as one:
        open_folder(tmp_path)
    assert isinstance(one.value, IsADirectoryError | ValueError)


def gpu_image(path):
    with Scene(8, 8) as scene:
        scene.add_image(str(path))
        scene.render()


def test_lists_are_taken_where_tuples_are():
    same = [
        (gpu.resize, {"size": (30, 20)}),
        (gpu.crop, {"box": (3, 4, 20, 10)}),
        (gpu.crop, {"size": (20, 10)}),
        (gpu.chroma_key, {"key": (0.0, 1.0, 0.0)}),
        (gpu.white_balance, {"color": (0.9, 1.0, 0.8)}),
    ]
    for filter, params in same:
        known = {name for name in params if name in filter.__signature__.parameters}
        assert known == set(params), filter.__name__
        lists = {name: list(value) for name, value in params.items()}
        np.testing.assert_array_equal(filter(PHOTO, **params), filter(PHOTO, **lists))
    with Scene(40, 30, background=(9, 8, 7)) as one, Scene(40, 30, background=[9, 8, 7]) as two:
        one.add_overlay(color=(200, 100, 50), position=(3, 4), size=(20, 10))
        two.add_overlay(color=[200, 100, 50], position=[3, 4], size=[20, 10])
        np.testing.assert_array_equal(one.render(), two.render())


def test_letters_without_a_font_are_noted_once(monkeypatch):
    fonts.refresh()
    scan = faces.fonts_scan.system_fonts
    monkeypatch.setattr(faces.fonts_scan, "system_fonts", lambda: ())
    emoji, plane = "\U0001f600", "\U0001f680"
    try:
        with collected() as notices:
            set_text(f"Hi {emoji}{plane}", TextStyle(size=20))
            set_text(plane, TextStyle(size=20))
        assert len(notices) == 1
        name = unicodedata.name(emoji)
        assert f"no font here has {emoji!r} ({name}), so a box is drawn" in notices[0]
        assert "fonts-noto-color-emoji" in notices[0]
        with collected() as notices:
            set_text("\u4e2d\u6587", TextStyle(size=20))
        assert len(notices) == 1
        assert "CJK UNIFIED IDEOGRAPH-4E2D" in notices[0]
        with collected() as notices:
            set_text("plain ä", TextStyle(size=20))
        assert notices == []
    finally:
        monkeypatch.setattr(faces.fonts_scan, "system_fonts", scan)
        fonts.refresh()


def test_notices_of_letters_are_warnings():
    fonts.refresh()
    with pytest.warns(MediaNotice, match="no font here has"):
        set_text("\U0001faff", TextStyle(size=20))  # not assigned yet
    set_text("\U000f1234", TextStyle(size=20))  # for private use: some font's own
