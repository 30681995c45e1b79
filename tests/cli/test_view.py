"""``dala view``: the frames that a browser gets."""

import threading
import urllib.request

import numpy as np
import pytest
from PIL import Image

from dala import gpu as surfaces
from dala.cli import main
from dala.media import gpu


@pytest.fixture
def shown(monkeypatch):
    """Run the command on a thread; yield its surface and the exit code."""
    monkeypatch.setenv("DALA_BROWSER", "none")
    made, ready, codes = [], threading.Event(), []
    create = surfaces.create_surface

    def noted(*given, **named):
        made.append(create(*given, **named))
        ready.set()
        return made[0]

    monkeypatch.setattr("dala.gpu.create_surface", noted, raising=False)
    threads = []

    def start(*arguments):
        given = ["view", *map(str, arguments), "--show", "browser", "--device", "cpu"]
        threads.append(threading.Thread(target=lambda: codes.append(main(given))))
        threads[0].start()
        assert ready.wait(300)
        return made[0]

    yield start, codes
    for surface in made:
        surface.close()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive()


def frame(surface, after):
    with urllib.request.urlopen(f"{surface.presenter.address}frame?after={after}") as answer:
        return answer.read()


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_picture_with_filter(tmp_path, shown, mode):
    start, codes = shown
    picture = np.random.default_rng(3).integers(0, 256, (24, 32, 4), np.uint8)
    image = Image.fromarray(picture).convert(mode)
    image.save(tmp_path / "in.png")
    surface = start(tmp_path / "in.png", "--sepia")
    expected = gpu.sepia(np.asarray(image), device="cpu")
    got = np.frombuffer(frame(surface, 0), np.uint8).reshape(24, 32, 4)
    if mode == "L":
        expected = np.repeat(expected[..., None], 3, -1)
    assert (got[..., : expected.shape[2]] == expected).all()
    surface.close()
    assert codes in ([], [0])


def test_video(tmp_path, shown):
    pytest.importorskip("av")
    from dala.media import video

    with video.write(tmp_path / "in.mp4", fps=25, options={"crf": 1}) as sink:
        for _ in range(3):
            sink.write(np.full((32, 48, 3), 200, np.uint8))
    start, _ = shown
    surface = start(tmp_path / "in.mp4", "--invert", "--loop")
    got = np.frombuffer(frame(surface, 0), np.uint8).reshape(32, 48, 4)
    assert np.abs(got[..., :3].astype(int) - 55).max() <= 3


def test_a_shader_has_pointer_and_sound(tmp_path, shown):
    pytest.importorskip("av")
    from dala.media import audio

    audio.tone(440, 30.0).save(tmp_path / "tone.flac")
    (tmp_path / "toy.glsl").write_text(
        "void mainImage(out vec4 c, in vec2 p) { c = vec4(iMouse.x / iResolution.x, 1, 0, 1); }"
    )
    start, _ = shown
    surface = start(tmp_path / "toy.glsl", "--sound", tmp_path / "tone.flac")
    event = {"event_type": "pointer_down", "x": 480.0, "y": 9.0, "button": 1, "buttons": (1,)}
    surface.post_event(event)
    while (got := frame(surface, 0))[0] != 128:  # the first frame after the event
        pass
    assert got[:4] == bytes((128, 255, 0, 255))


def test_seconds(tmp_path, monkeypatch):
    monkeypatch.setenv("DALA_BROWSER", "none")
    Image.new("RGB", (8, 8)).save(tmp_path / "in.png")
    assert main(["view", str(tmp_path / "in.png"), "--show", "browser", "--seconds", "0"]) == 0


@pytest.mark.parametrize(("arguments", "message"), [
    (["nowhere.png"], "there is no file 'nowhere.png'"),
    (["nowhere.mp4"], "nowhere.mp4"),
    (["nowhere.png", "--sepai"], "Did you mean 'sepia'?"),
    (["nowhere.png", "--looop"], "Did you mean 'loop'?"),
])  # fmt: skip
def test_errors(capsys, arguments, message):
    try:
        code = main(["view", *arguments, "--device", "cpu"])
    except SystemExit as end:
        code = end.code
    err = capsys.readouterr().err
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
