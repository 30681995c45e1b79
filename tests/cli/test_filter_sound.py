"""``dala filter`` and the sound of videos: copied, unless it is asked to change it."""

import av
import numpy as np
import pytest

from dala.media import audio, video
from tests.cli.test_filter import fails, works


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    audio.tone(1000, 2, amplitude=0.05, layout="stereo").save(folder / "tone.m4a")
    with video.write(folder / "in.mp4", fps=5, audio_from=folder / "tone.m4a") as sink:
        for level in range(10):
            sink.write(np.full((32, 48, 3), level * 20, np.uint8))
    video.write(folder / "mute.mp4", [np.zeros((32, 48, 3), np.uint8)] * 2, fps=5)
    return folder / "in.mp4"


def packets(path):
    with av.open(str(path)) as container:
        return [bytes(p) for p in container.demux(audio=0) if p.size]


def sound(path):
    with audio.open(path) as reader:
        return reader.codec, reader.read()


def test_sound_is_copied_unless_asked(clip, tmp_path):
    works(clip, tmp_path / "same.mp4", "--invert")
    assert packets(tmp_path / "same.mp4") == packets(clip)


def test_shaders_hear_it(clip, tmp_path):
    """A tone as loud as it is long; a video without sound is silent."""
    shader = tmp_path / "loud.fs"
    shader.write_text(
        """/*{"INPUTS": [{"NAME": "inputImage", "TYPE": "image"}, {"NAME": "wave", "TYPE": "audio"}]
        }*/
        void main() {
            float most = 0.0;
            for (int i = 0; i < 256; i++)
                most = max(most, abs(IMG_NORM_PIXEL(wave, vec2(float(i) / 256.0, 0.5)).r - 0.502));
            gl_FragColor = vec4(vec3(most * 8.0), 1.0);
        }"""
    )
    for name, heard in ((clip, True), (clip.parent / "mute.mp4", False)):
        works(name, tmp_path / "made.mp4", "--shader", str(shader))
        with video.open(tmp_path / "made.mp4") as reader:
            levels = [np.asarray(frame)[..., :3].mean() for frame in reader]
        assert (min(levels) > 30) == heard, levels


def test_volume(clip, tmp_path):
    works(clip, tmp_path / "loud.mp4", "--invert", "--volume", "4")
    works(clip, tmp_path / "quiet.mkv", "--invert", "--volume=-6dB")
    _, before = sound(clip)
    codec, loud = sound(tmp_path / "loud.mp4")
    assert codec == "aac"
    assert float(loud.duration) == pytest.approx(2, abs=0.03)
    assert loud[0.5:1.5].rms == pytest.approx(4 * before[0.5:1.5].rms, rel=0.02)
    codec, quiet = sound(tmp_path / "quiet.mkv")
    assert codec == "aac"
    assert quiet[0.5:1.5].rms == pytest.approx(before[0.5:1.5].rms * 0.501, rel=0.02)


def test_loudness_and_fades(clip, tmp_path):
    works(clip, tmp_path / "a.mp4", "--invert", "--loudness", "-16", "--audio-fade", "0.5,1")
    works(clip, tmp_path / "b.webm", "--invert", "--loudness=-20")
    _, found = sound(tmp_path / "b.webm")
    assert found.loudness().integrated == pytest.approx(-20, abs=0.3)
    _, faded = sound(tmp_path / "a.mp4")
    assert faded[0.6:0.9].loudness().momentary == -np.inf  # too short to measure
    full = faded[0.6:0.9].rms
    assert faded[0.2:0.3].rms == pytest.approx(full / 2, rel=0.1)
    assert faded[1.45:1.55].rms == pytest.approx(full / 2, rel=0.1)


def test_mistakes(clip, tmp_path, capsys):
    out = tmp_path / "out.mp4"
    for options, text in (
        (("--volume", "loud"), "must be a factor from 0 to 1000"),
        (("--loudness", "3"), "must be from -70 to 0 LUFS"),
        (("--audio-fade", "1,2,3"), "must be seconds"),
        (("--volume", "2", "--no-audio"), "--no-audio drops the sound"),
    ):
        assert text in fails(capsys, clip, out, "--invert", *options)
    mute = clip.with_name("mute.mp4")
    assert "has no sound" in fails(capsys, mute, out, "--invert", "--volume", "2")
    gif = tmp_path / "out.gif"
    assert "that becomes a video" in fails(capsys, clip, gif, "--invert", "--volume", "2")
    assert not out.exists()
    assert not gif.exists()
