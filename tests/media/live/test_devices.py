"""Sound devices of Linux: where ALSA finds its configuration, and PulseAudio for real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dala.media import microphone
from dala.media.video.decoding import devices
from dala.media.video.decoding.devices import Microphone
from tests.media.live.receivers import PATIENCE, program, until


def test_alsa_finds_the_configuration_of_the_system(tmp_path):
    """The ALSA of PyAV's wheel would look where it was built."""
    assert devices.alsa_configuration(tmp_path / "none", tmp_path / "usr") == {}
    configuration = tmp_path / "alsa.conf"
    configuration.touch()
    plugins = tmp_path / "usr" / "lib" / "x86_64-linux-gnu" / "alsa-lib"
    plugins.mkdir(parents=True)
    found = devices.alsa_configuration(configuration, tmp_path / "usr")
    assert found == {"ALSA_CONFIG_PATH": str(configuration), "ALSA_PLUGIN_DIR": str(plugins)}


def test_the_choice_of_the_user_is_kept(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("ALSA_CONFIG_PATH", "/mine")
    monkeypatch.setenv("ALSA_PLUGIN_DIR", "/plugins")
    devices.microphone_source(Microphone(0, "default", "default"), {})
    assert (os.environ["ALSA_CONFIG_PATH"], os.environ["ALSA_PLUGIN_DIR"]) == ("/mine", "/plugins")


def test_a_sound_server_without_a_card(tmp_path, monkeypatch):
    nowhere = tmp_path / "none"
    assert not devices.has_sound_server({}, nowhere, nowhere)
    assert devices.has_sound_server(
        {"PULSE_SERVER": "unix:/mnt/wslg/PulseServer"}, nowhere, nowhere
    )
    for place in ("run/pulse/native", "run/pipewire-0", ".asoundrc", "asound.conf"):
        folder = tmp_path / place.replace("/", "-")
        (folder / place).parent.mkdir(parents=True)
        (folder / place).touch()
        assert devices.has_sound_server({"XDG_RUNTIME_DIR": str(folder / "run")}, folder, folder)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(devices, "_ALSA", nowhere)
    monkeypatch.setattr(devices, "has_sound_server", lambda *given: True)
    assert microphone.list() == [Microphone(0, "default", "default")]
    monkeypatch.setattr(devices, "has_sound_server", lambda *given: False)
    assert microphone.list() == []


@pytest.mark.long  # a daemon, in real time
def test_a_tone_through_pulseaudio_and_back(tmp_path):
    """``play`` and ``microphone.open`` with sounddevice, PyAV's ALSA and a sound server."""
    pytest.importorskip("sounddevice", exc_type=OSError)
    server, control = program("pulseaudio"), program("pactl")
    (tmp_path / ".asoundrc").write_text(
        "pcm.!default { type pulse }\nctl.!default { type pulse }\n"
    )
    socket = tmp_path / "native"
    env = {
        **os.environ, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path),
        "PULSE_SERVER": f"unix:{socket}", "PYTHONPATH": os.pathsep.join(sys.path),
    }  # fmt: skip
    tmp_path.chmod(0o700)
    process = subprocess.Popen(
        [
            server, "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no",
            "-L", f"module-native-protocol-unix socket={socket} auth-anonymous=1",
            "-L", "module-null-sink sink_name=null rate=48000",
        ],
        env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        answers = [control, "info"]
        until(lambda: not subprocess.run(answers, env=env, capture_output=True).returncode, "start")
        made = subprocess.run(
            [sys.executable, "-m", "tests.media.live.loopback"],
            env=env, cwd=Path(__file__).parents[3], capture_output=True, text=True,
            timeout=3 * PATIENCE,
        )  # fmt: skip
    finally:
        process.terminate()
        process.wait(PATIENCE)
    assert made.returncode == 0, made.stderr[-2000:]
    found = json.loads(made.stdout.splitlines()[-1])
    assert found["microphones"] == ["default"]
    assert found["notices"] == []
    # At first the sound is stretched by up to 1% until it is in time.
    assert found["heard"] == pytest.approx(1000, rel=0.015)
