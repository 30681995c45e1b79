"""What notebooks show of our objects, and where Frame.show shows a frame."""

from __future__ import annotations

import base64
import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import dala
from dala import notebook
from dala.gpu import compute, create_surface
from dala.media import Frame, Scene
from dala.ml.results import (
    Detection,
    Detections,
    Keypoint,
    Matte,
    Pose,
    Poses,
    Scores,
    Segmentation,
    Tensors,
)
from tests.support.engines import dala_device, engine_id, pytest_generate_tests

__all__ = ["dala_device", "engine_id", "pytest_generate_tests"]

Image = pytest.importorskip("PIL.Image")

PHOTO = np.random.default_rng(5).integers(0, 256, (12, 17, 4), dtype=np.uint8)


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)))


def picture_in(html):
    return pixels(base64.b64decode(re.search(r'base64,([^"]+)"', html)[1]))


# buffers --------------------------------------------------------------------------------------
def test_buffers_as_numbers_and_pictures(engine_id):
    small = compute.buffer([[1.0, 2.0], [3.0, -4.5]])
    assert small._repr_png_() is None
    assert "[[ 1.   2. ]\n [ 3.  -4.5]]</pre>" in small._repr_html_()
    assert small._repr_html_().startswith("<pre>&lt;Buffer f32 (2, 2) on ")
    picture = compute.from_array(PHOTO)
    assert picture._repr_html_() is None
    np.testing.assert_array_equal(pixels(picture._repr_png_()), PHOTO)
    light = compute.from_array(PHOTO[..., :3].astype(np.float32) / 255)
    np.testing.assert_array_equal(pixels(light._repr_png_()), PHOTO[..., :3])
    doubled = small * 2  # an expression
    assert "-9." in doubled._repr_html_()


def test_buffers_that_show_nothing_do_not_raise():
    with dala.device("cpu"):
        picture, small = compute.from_array(PHOTO), compute.buffer([1.0])
        transient = compute.buffer_zeros((4,), transient=True)
    picture.free()
    small.free()
    for shown in (picture, small, transient):
        assert shown._repr_png_() is None
        assert shown._repr_html_() is None


def test_large_buffers_are_abridged_or_not_read(monkeypatch):
    with dala.device("cpu"):
        assert len(compute.buffer_zeros((500, 500))._repr_html_()) < 1000
        strange = np.full((9, 9, 3), np.nan, np.float32)
        strange[0, 0] = (np.inf, -np.inf, 2.0)
        shown = pixels(compute.from_array(strange)._repr_png_())
        assert shown[0, 0].tolist() == [255, 0, 255]
        assert not shown[1:].any()
        monkeypatch.setattr(notebook, "MAX_BYTES", 100)
        assert compute.from_array(PHOTO)._repr_png_() is None
        assert compute.buffer_zeros((26,))._repr_html_() is None
        assert compute.buffer_zeros((25,))._repr_html_() is not None


# helpers --------------------------------------------------------------------------------------
def test_pictures_are_shrunk_by_means():
    big = np.zeros((2049, 6, 3), np.uint8)
    big[:, :3] = 200
    small = notebook.shrunk(big)
    assert small.shape == (683, 2, 3)
    assert small[:, 0].min() == 200
    assert small[:, 1].max() == 0
    assert pixels(notebook.picture_png(big)).shape == (683, 2, 3)
    assert notebook.shrunk(PHOTO) is PHOTO
    assert notebook.shrunk(np.zeros((1, 5000), np.uint8)).shape == (1, 1000)


def test_text_is_escaped_and_bounded():
    evil = "<script>alert(1)</script>" * 10000
    for html in (notebook.html_text(evil), notebook.html_table([evil], [[evil]] * 90, 90)):
        assert "<script" not in html
        assert len(html) < 200_000
    assert "... 40 more" in notebook.html_table(["a"], [["b"]] * 90, 90)
    assert notebook.html_text("a\nb") == "<pre>a\nb</pre>"


# pipelines, surfaces, scenes ------------------------------------------------------------------
def test_pipelines_show_their_plan():
    with dala.device("cpu"):
        a, b = compute.buffer([-1.0, 2.0]), compute.buffer_zeros(2)
        p = compute.Pipeline().add(
            {"op": "run_kernel", "kernel": "relu", "inputs": [a], "output": b}
        )
        html = p._repr_html_()
        assert "pipeline on cpu: 1 stage in 1 pass" in html
        assert "stage 0: relu" in html
        assert b.read_list() == [0.0, 0.0]  # it did not run
        p.close()
        assert "closed" in p._repr_html_()
        again = compute.Pipeline().add(
            {"op": "run_kernel", "kernel": "relu", "inputs": [a], "output": b}
        )
        a.free()
        assert again._repr_html_().startswith("<pre>")


def test_surfaces_show_what_was_drawn_and_keep_their_errors():
    s = create_surface(9, 8)
    s.fill_rect(1, 1, 3, 3, "red")
    s.blit(7, 0, 0)
    np.testing.assert_array_equal(pixels(s._repr_png_())[2, 2], (255, 0, 0, 255))
    with pytest.raises(dala.DalaError, match="there is no sprite 7"):
        s.synchronize()
    seen = []
    s.with_pixels(lambda _: seen.append(s._repr_png_()))  # it would wait for itself
    assert seen == [None]
    s.close()
    assert s._repr_png_() is None


def test_scenes_show_the_last_frame_and_render_nothing():
    with Scene(16, 9, background="navy", device="cpu") as scene:
        scene.add_overlay(id="<b>", color="white", size=(4, 4), z_index=3)
        html = scene._repr_html_()
        assert "img" not in html
        assert "<td>&lt;b&gt;</td><td>overlay</td><td>0, 0</td><td>3</td>" in html
        frame = scene.render()
        html = scene._repr_html_()
        np.testing.assert_array_equal(picture_in(html), np.asarray(frame))
        assert scene.frame_count == 1
    assert "closed" in scene._repr_html_()


def test_frames_and_texts():
    frame = Frame.from_array(PHOTO, device="cpu")
    np.testing.assert_array_equal(pixels(frame._repr_png_()), PHOTO)
    frame.close()
    assert frame._repr_png_() is None
    from dala.media.text import TextStyle, set_text

    text = set_text("Hi", TextStyle(size=20))
    np.testing.assert_array_equal(pixels(text._repr_png_()), text.pixels)


# results of models ----------------------------------------------------------------------------
def test_results_of_models():
    found = Detections([Detection((1, 2, 30.4, 40), "<dog>", 0.8)])
    assert "<td>&lt;dog&gt;</td><td>0.80</td><td>1, 2, 30, 40</td>" in found._repr_html_()
    assert "nothing found" in Detections()._repr_html_()
    poses = Poses([Pose((Keypoint("nose", 4, 5, 0.9),), 0.7), Pose((), 0.1)])
    assert "<td>person, 1 of 1 keypoints</td><td>0.70</td><td>4, 5, 4, 5</td>" in (
        poses._repr_html_()
    )
    scores = Scores([0.1, 0.7, 0.2], ["cat", "dog", "fox"])
    assert scores._repr_html_().index("dog") < scores._repr_html_().index("fox")
    assert scores[1:2]._repr_html_() is None
    tensors = Tensors(y=np.zeros((1, 3), np.float32))
    assert "<td>y</td><td>(1, 3)</td><td>float32</td>" in tensors._repr_html_()


def test_masks_of_models():
    from dala.ml.results.draw import palette

    classes = np.zeros((8, 9), np.uint8)
    classes[2:, 3:] = 1
    shown = Segmentation(classes, ("background", "a&b"), {})._repr_html_()
    picture = picture_in(shown)
    assert tuple(picture[5, 5]) == palette(1)
    assert not picture[0].any()
    assert "a&amp;b</td><td>50.0%" in shown
    alpha = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    np.testing.assert_array_equal(pixels(Matte(alpha)._repr_png_()), np.rint(alpha * 255))
    assert Segmentation(np.zeros((0, 4), np.uint8), (), {})._repr_html_() is None


# Frame.show -----------------------------------------------------------------------------------
@pytest.fixture
def headless(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")


def test_show_without_a_display_writes_a_file_and_says_so(headless, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Frame.from_array(PHOTO, device="cpu").show()
    said = capsys.readouterr().err
    (path,) = re.findall(r"^dala: Frame.show: there is no display; the frame is in (.*)\n$", said)
    np.testing.assert_array_equal(np.asarray(Image.open(path)), PHOTO)


@pytest.mark.parametrize("shape", [(6, 8), (6, 8, 3), (6, 8, 4)])
@pytest.mark.parametrize("interactive", [False, True])
def test_show_in_a_browser(shape, interactive, monkeypatch):
    from dala.gpu import Surface
    from dala.media.pictures import viewer

    monkeypatch.setenv("DALA_BROWSER", "none")
    monkeypatch.setattr(viewer, "_interactive", lambda: interactive)
    seen = []

    def wait(surface, timeout=None):
        seen.append(surface.to_array())
        raise KeyboardInterrupt

    monkeypatch.setattr(Surface, "wait_closed", wait)
    given = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    Frame.from_array(given, device="cpu").show("browser")
    if interactive:
        (kept,) = viewer._kept
        seen.append(kept.to_array())
        assert not kept.presenter.closed
        kept.close()
        viewer._kept.clear()
    wanted = given if given.ndim == 3 else np.dstack([given] * 3)
    np.testing.assert_array_equal(seen[0][..., : wanted.shape[2]], wanted)


def test_a_window_that_cannot_be_opened_becomes_a_page(monkeypatch, capsys):
    from dala.media.pictures import viewer

    tried = []

    def present(pixels, kind, title):
        tried.append(kind)
        if kind == "window":
            raise dala.DeviceUnavailable("no driver.")

    monkeypatch.setattr(viewer, "_present", present)
    monkeypatch.setattr(viewer, "default_kind", lambda: "window")
    frame = Frame.from_array(PHOTO, device="cpu")
    frame.show()
    assert tried == ["window", "browser"]
    assert "no window: no driver. The frame is shown in the browser" in capsys.readouterr().err
    with pytest.raises(dala.DeviceUnavailable, match="no driver"):
        frame.show("window")
    with pytest.raises(dala.ParameterError, match="where must be 'window', 'browser'"):
        frame.show("paper")
    frame.close()
    with pytest.raises(dala.FreedError):
        frame.show()


@pytest.mark.skipif(os.name != "posix", reason="pseudo terminals are Unix's")
def test_show_in_a_terminal():
    import pty

    program = (
        "import numpy as np, dala\n"
        "p = np.full((4, 4, 3), (250, 0, 9), np.uint8)\n"
        "dala.media.Frame.from_array(p, device='cpu').show()\n"
    )
    away = {"DISPLAY", "WAYLAND_DISPLAY"}
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={k: v for k, v in os.environ.items() if k not in away},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    said = done.communicate()[1].decode()
    assert done.returncode == 0, said
    assert "there is no display; the frame is shown in the terminal" in said
    assert b"38;2;250;0;9;48;2;250;0;9m" in shown
