"""Taking it home: what is copied runs as pasted, and gives the values that the studio shows."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from dala.cli import main
from dala.errors import ParameterError
from dala.media import Frame, FramePipeline, audio, load_scene, video
from dala.studio.cards.card import new_card
from dala.studio.home.texts import option
from dala.studio.session import StudioSession
from tests.studio.server.client import Refused
from tests.studio.server.conftest import result

CARDS = [
    {"kind": "filter", "name": "blur", "params": {"radius": 3, "sigma": 1.5}},
    {"kind": "filter", "name": "curves", "params": {"master": [[0, 0], [0.4, 0.6], [1, 1]]}},
    {"kind": "filter", "name": "resize", "params": {"size": [40, None], "method": "area"}},
    {"kind": "filter", "name": "levels", "params": {"gamma": [1.2, 1, 0.9]}},
    {"kind": "filter", "name": "sepia", "params": {"amount": 0.5}},
]


def add(session: StudioSession, cards: list[dict]) -> None:
    for card in cards:
        session.do({"do": "add", **card})


def copied(session: StudioSession, form: str) -> str:
    return session.do({"do": "copy", "as": form})["text"]


def paste(script: str, folder, monkeypatch) -> None:
    """Run a script as it was copied, in a folder."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DALA_DEVICE", "cpu")
    exec(compile(script, "pasted", "exec"), {"__name__": "__main__"})


def test_python_for_a_picture(session, folder, monkeypatch):
    session.do({"do": "open", "path": "quarters.png"})
    overlay = {"picture": str(folder / "quarters.png"), "position": [5, 6]}
    lut = {"lut": str(folder / "swap.cube")}
    kernel = 'def odd(px: Pixel, *, k: Within[float, 0, 1] = 0.5):\n    """A \\"b\\"."""\n'
    kernel += "    return rgba(px.rgb * k, px.a)\n"
    add(session, [
        *CARDS,
        {"kind": "kernel", "text": kernel, "params": {"k": 0.75}},
        {"kind": "filter", "name": "lut_apply", "params": lut},
        {"kind": "filter", "name": "overlay", "params": overlay},
        {"kind": "filter", "name": "invert"},
    ])  # fmt: skip
    session.do({"do": "switch", "card": "c9", "on": False})
    paste(copied(session, "python"), folder, monkeypatch)
    made = np.asarray(Frame.open(folder / "result.png", device="cpu"))
    np.testing.assert_array_equal(made, result(session))


def test_copied_programs_name_files_relatively(session, folder, monkeypatch):
    """To where the studio was started, else to its folder; uploads by their name."""
    (folder / "inner").mkdir(exist_ok=True)
    shutil.copy(folder / "quarters.png", folder / "inner" / "quarters.png")
    session.do({"do": "open", "path": "inner/quarters.png"})
    lut = {"lut": str(folder / "swap.cube")}
    add(session, [{"kind": "filter", "name": "lut_apply", "params": lut}])
    script = copied(session, "python")
    assert 'Frame.open("inner/quarters.png")' in script
    assert '"lut": "swap.cube"' in script
    assert script.startswith(f"# Run it in the folder {folder.name!r}")
    assert str(folder) not in script
    assert str(folder / "inner") in copied(session, "command")  # not where the studio was started
    monkeypatch.chdir(folder)
    assert copied(session, "command") == (
        "dala filter inner/quarters.png result.png --lut_apply lut=swap.cube\n"
    )
    monkeypatch.chdir(folder / "inner")
    script = copied(session, "python")
    assert 'Frame.open("quarters.png")' in script
    assert '"lut": "../swap.cube"' in script
    upload = session.new_result("drop.png")
    shutil.copy(folder / "quarters.png", upload)
    monkeypatch.setattr(session.active.source, "path", str(upload))
    assert 'Frame.open("drop.png")' in copied(session, "python")
    assert "'drop.png' was uploaded" in copied(session, "python")


def test_a_kernel_with_a_mistake_is_not_copied_silently(session, folder, tmp_path, monkeypatch):
    good = "def half(px: Pixel): return rgba(px.rgb * 0.5, px.a)"
    session.do({"do": "open", "sample": "coffee"})
    add(session, [{"kind": "kernel", "text": good}])
    bad = good.replace("0.5", "half")
    session.do({"do": "kernel", "card": "c1", "text": bad})
    with pytest.raises(ParameterError, match=r"'half' does not compile \(line 1: ") as refused:
        copied(session, "python")
    assert refused.value.argument == "last_good"
    script = session.do({"do": "copy", "as": "python", "last_good": True})["text"]
    assert good in script
    paste(script, tmp_path, monkeypatch)
    made = np.asarray(Frame.open(tmp_path / "result.png", device="cpu"))
    np.testing.assert_array_equal(made, result(session))
    add(session, [{"kind": "kernel", "text": bad}])
    with pytest.raises(ParameterError, match="switch its card off") as refused:
        session.do({"do": "copy", "as": "python", "last_good": True})
    assert refused.value.argument is None
    session.do({"do": "switch", "card": "c2", "on": False})
    session.do({"do": "kernel", "card": "c1", "text": good})
    assert good in copied(session, "python")


def test_python_for_a_kernel_file_and_models(session, folder, tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    session.do({"do": "open", "sample": "astronaut"})
    add(session, [
        {"kind": "filter", "name": "flip"},
        {"kind": "model", "name": "faces", "params": {"score": 0.6}},
        {"kind": "filter", "name": "resize", "params": {"size": [128, 128]}},
    ])  # fmt: skip
    paste(copied(session, "python"), tmp_path, monkeypatch)
    made = np.asarray(Frame.open(tmp_path / "result.png", device="cpu"))
    np.testing.assert_array_equal(made, result(session))


def frames_of(path) -> list[np.ndarray]:
    with video.open(path, device="cpu") as reader:
        return [np.array(frame.numpy()) for frame in reader]


def test_python_and_rendering_of_a_video(session, folder, monkeypatch):
    session.do({"do": "open", "path": "ramp.mp4"})
    add(session, [{"kind": "filter", "name": "invert"}])
    paste(copied(session, "python"), folder, monkeypatch)
    pasted = frames_of(folder / "result.mp4")
    assert len(pasted) == 10
    reports = []
    monkeypatch.setattr(session, "broadcast", reports.append)
    session.do({"do": "render", "path": str(folder / "rendered.mp4"), "options": {"crf": 20}})
    session.jobs.wait()
    assert reports[-1]["job"]["state"] == "done"
    assert reports[-1]["job"]["done"] == 10
    rendered = frames_of(folder / "rendered.mp4")
    for a, b in zip(pasted, rendered, strict=True):
        np.testing.assert_array_equal(a, b)
    shown = result(session, 0.5).astype(int)
    assert np.abs(rendered[5].astype(int) - shown).max() <= 3


def test_python_for_a_scene(session, folder, monkeypatch):
    data = {"dala": 2, "width": 32, "height": 32, "fps": 5, "duration": 0.6, "nodes": [
        {"type": "overlay", "color": "#c02040", "size": [16, 32]}]}  # fmt: skip
    (folder / "home.json").write_text(json.dumps(data))
    session.do({"do": "open", "path": "home.json"})
    paste(copied(session, "python"), folder, monkeypatch)
    plain = frames_of(folder / "result.mp4")
    assert len(plain) == 3
    add(session, [{"kind": "filter", "name": "invert"}])
    paste(copied(session, "python"), folder, monkeypatch)
    inverted = frames_of(folder / "result.mp4")
    assert np.abs(inverted[1].astype(int) - result(session).astype(int)).mean() < 4
    assert "dala compose" in copied(session, "command")
    session.do({"do": "node_set", "node": "n1", "property": "color", "value": "red"})
    for form in ("python", "command"):
        with pytest.raises(ParameterError, match="Save it"):
            copied(session, form)
    session.do({"do": "remove", "card": "c1"})
    assert '"red"' in copied(session, "scene")


def test_the_command_line(session, folder, tmp_path, monkeypatch, capsys):
    session.do({"do": "open", "path": "quarters.png"})
    overlay = {"picture": str(folder / "quarters.png"), "position": [5, 6]}
    add(session, [*CARDS, {"kind": "filter", "name": "overlay", "params": overlay}])
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(copied(session, "command"))
    assert program == "dala"
    assert main([*words, "--device", "cpu"]) == 0
    made = np.asarray(Frame.open(tmp_path / "result.png", device="cpu"))
    np.testing.assert_array_equal(made, result(session))


def test_every_value_has_a_form_on_the_command_line():
    from dala.cli.common import chain
    from dala.media.filters.declarations import declared, filter_names
    from dala.studio.catalogue.parameters import plain

    for name in filter_names():
        params = {
            p.name: plain(p.default)
            for p in declared()[name].parameters
            if p.default is not None and plain(p.default) is not None
        }
        needed = {p.name for p in declared()[name].parameters if p.required}
        if needed:
            continue  # those need files or sizes
        words = option(new_card("c1", "filter", name, params))
        found, values = chain.parse(name, words[1] if len(words) > 1 else "")
        assert found == name
        assert {k: plain(v) for k, v in values.items()} == params


def test_the_command_line_of_a_kernel(session, tmp_path, monkeypatch):
    session.do({"do": "open", "path": "quarters.png"})
    add(session, [{"kind": "kernel", "name": "color"}, {"kind": "filter", "name": "invert"}])
    monkeypatch.chdir(tmp_path)
    text = copied(session, "command").replace("\ndala ", f"\n{sys.executable} -m dala ")
    assert "--kernel tint_" in text
    subprocess.run(["sh", "-c", text], check=True, cwd=tmp_path, timeout=120)
    assert (tmp_path / "result.png").stat().st_size > 0


def test_what_has_no_form_is_refused_by_name(session):
    session.do({"do": "open", "sample": "coffee"})
    with pytest.raises(ParameterError, match="not a file"):
        copied(session, "command")
    session.do({"do": "open", "path": "quarters.png"})
    with pytest.raises(ParameterError, match="the chain is empty"):
        copied(session, "command")
    add(session, [{"kind": "kernel", "name": "color"}])
    with pytest.raises(ParameterError, match="no kernel 'tint'"):
        copied(session, "scene")
    add(session, [{"kind": "model", "name": "faces"}])
    with pytest.raises(ParameterError, match="models are not part of exported pages: Faces"):
        session.do({"do": "export"})
    with pytest.raises(ParameterError, match="as must be one of"):
        copied(session, "haiku")


def test_a_camera(session, tmp_path, monkeypatch, capsys):
    session.do({"do": "open", "camera": "test"})
    add(session, [{"kind": "filter", "name": "invert"}])
    script = copied(session, "python").replace("reader.fps * 10", "3")
    paste(script, tmp_path, monkeypatch)
    assert len(frames_of(tmp_path / "result.mp4")) == 3
    _, *words = shlex.split(copied(session, "command"))
    words[words.index("--seconds") + 1] = "0.2"
    assert main([*words, "--device", "cpu"]) == 0
    assert list((tmp_path / "hls").iterdir())
    monkeypatch.setattr(session.active.source, "camera", 2)
    assert copied(session, "command") == "dala view 2 --invert\n"
    assert "camera.open(2)" in copied(session, "python")


def test_a_scene_of_a_chain(session, folder, tmp_path):
    session.do({"do": "open", "path": "quarters.png"})
    add(session, [
        {"kind": "filter", "name": "sepia", "params": {"amount": 0.5}},
        {"kind": "filter", "name": "invert"},
    ])  # fmt: skip
    (tmp_path / "made.json").write_text(copied(session, "scene"))
    with load_scene(tmp_path / "made.json", "cpu") as scene:
        made = np.asarray(scene.render(0))
    np.testing.assert_array_equal(made[..., :3], result(session))


def test_rendering_is_reported_and_downloaded(server, page, folder):
    page.ask("open", path=str(folder / "quarters.png"))
    page.ask("add", kind="filter", name="invert")
    job = page.ask("render", format="png")["job"]
    done = page.message("job", lambda j: j["id"] == job and j["state"] != "running")
    assert done["state"] == "done"
    status, headers, body = server.get(f"/{done['download']}")
    assert status == 200
    assert "quarters-studio.png" in headers["content-disposition"]
    made = np.asarray(Frame.open(io.BytesIO(body), device="cpu"))
    from tests.studio.server.conftest import quarters

    np.testing.assert_array_equal(made, 255 - quarters())
    assert server.get("/download/other")[0] == 404
    for wrong in ({"format": "exe"}, {"format": "mp4"}, {"options": {"crf": 99}},
                  {"options": {"threads": 1}}, {"path": str(folder / "quarters.png")},
                  {"path": str(folder / "x.sh")}):  # fmt: skip
        with pytest.raises(Refused):
            page.ask("render", **wrong)


@pytest.mark.parametrize("cards", [[], [{"kind": "filter", "name": "invert"}]])
def test_the_sound_of_a_scene_is_rendered(session, folder, cards):
    audio.tone(440, 0.6).save(folder / "tone.wav")
    data = {"dala": 2, "width": 32, "height": 32, "fps": 5, "duration": 0.6, "nodes": [
        {"type": "overlay", "color": "#c02040", "size": [32, 32]},
        {"type": "audio", "source": "tone.wav", "volume": 0.5}]}  # fmt: skip
    (folder / "heard.json").write_text(json.dumps(data))
    session.do({"do": "open", "path": "heard.json"})
    add(session, cards)
    name = f"heard{len(cards)}.mkv"
    session.do({"do": "render", "path": str(folder / name)})
    session.jobs.wait()
    with audio.open(folder / name) as sound:
        samples = sound.read().numpy()
    assert 0.3 < np.abs(samples).max() < 0.55
    assert len(frames_of(folder / name)) == 3


def test_only_the_loop_is_rendered(session, folder):
    session.do({"do": "open", "path": "ramp.mp4"})
    with pytest.raises(ParameterError, match="Mark a part"):
        session.do({"do": "render", "loop": True})
    session.do({"do": "loop", "from": 0.3, "to": 0.7})
    with pytest.raises(ParameterError, match="no loop that can become a video"):
        session.do({"do": "render", "loop": True, "format": "png"})
    add(session, [{"kind": "filter", "name": "invert"}])
    session.do({"do": "render", "loop": True, "path": str(folder / "looped.mkv")})
    session.jobs.wait()
    levels = [int(f[5, 5, 0]) for f in frames_of(folder / "looped.mkv")]
    assert np.abs(np.array(levels) - (255 - np.array([80, 100, 120, 140]))).max() <= 3


def test_the_loop_of_a_scene_has_its_sound(session, folder):
    audio.concat(audio.silence(0.5), audio.tone(440, 0.5)).save(folder / "late.wav")
    data = {"dala": 2, "width": 32, "height": 32, "fps": 10, "duration": 1, "nodes": [
        {"type": "overlay", "color": "#c02040", "size": [32, 32]},
        {"type": "audio", "source": "late.wav"}]}  # fmt: skip
    (folder / "late.json").write_text(json.dumps(data))
    session.do({"do": "open", "path": "late.json"})
    session.do({"do": "loop", "from": 0.5, "to": 0.8})
    session.do({"do": "render", "loop": True, "path": str(folder / "late.mkv")})
    session.jobs.wait()
    assert len(frames_of(folder / "late.mkv")) == 3
    with audio.open(folder / "late.mkv") as sound:
        heard = sound.read().numpy()
    assert np.abs(heard[4000:5000]).max() > 0.5
    assert abs(heard.shape[0] - 0.3 * 48000) < 3000


def test_rendering_is_cancelled(session, folder, monkeypatch):
    session.do({"do": "open", "path": "ramp.mp4"})
    reports = []
    begun = __import__("threading").Event()

    def report(message):
        reports.append(message)
        begun.set()

    monkeypatch.setattr(session, "broadcast", report)
    from dala.studio.home import rendering

    monkeypatch.setattr(
        rendering, "_with_time", lambda made, frame: (begun.wait(20), made)[1]
    )  # so that it cannot end first
    begun.clear()
    job = session.do({"do": "render", "path": str(folder / "never.mp4")})["job"]
    session.do({"do": "cancel", "job": job})
    begun.set()
    session.jobs.close()
    assert reports[-1]["job"]["state"] == "cancelled"
    assert not (folder / "never.mp4").exists()
    with pytest.raises(ParameterError, match="id of a job"):
        session.do({"do": "cancel", "job": "j99"})


def test_export_as_a_page(server, page, folder):
    pytest.importorskip("wgpu")
    page.ask("open", path=str(folder / "quarters.png"))
    page.ask("view", width=64, height=48, codec="rgba")
    page.ask("add", kind="filter", name="invert")
    page.picture()
    job = page.ask("export")["job"]
    done = page.message("job", lambda j: j["id"] == job and j["state"] != "running")
    assert done["state"] == "done", done
    _, headers, body = server.get(f"/{done['download']}")
    assert headers["content-disposition"].endswith('.zip"')
    names = zipfile.ZipFile(io.BytesIO(body)).namelist()
    assert {"index.html", "chain.json", "dala.js"} <= set(names)


def test_effects_of_a_scene_are_exported(session, folder):
    data = {"dala": 2, "width": 32, "height": 32, "nodes": [
        {"type": "overlay", "id": "box", "color": "#c02040", "size": [16, 16]},
        {"type": "effect", "id": "soft", "filter": "blur", "input": "box"},
        {"type": "effect", "filter": "vignette", "start": 1}]}  # fmt: skip
    (folder / "effects.json").write_text(json.dumps(data))
    session.do({"do": "open", "path": "effects.json"})
    rows = {row["type"] + row["name"]: row["id"] for row in session.state()["scene"]["nodes"]}
    done = []
    session.broadcast = done.append

    def exported(**values) -> tuple[dict, list[str]]:
        session.do({"do": "export", **values})
        session.jobs.wait()
        job = done[-1]["job"]
        assert job["state"] == "done", job
        archive = zipfile.ZipFile(session.downloads[job["download"].partition("/")[2]])
        return json.loads(archive.read("chain.json")), job["notes"]

    with pytest.raises(ParameterError, match="several places: 'box'"):
        session.do({"do": "export"})
    chain, _ = exported(node=rows["overlaybox"])
    assert "radius" in json.dumps(chain["controls"])
    chain, notes = exported(node=rows["effectvignette"])
    assert "softness" in json.dumps(chain["controls"])
    assert any("start or an end" in note for note in notes)
    session.do({"do": "node_remove", "node": rows["effectvignette"]})
    chain, _ = exported()  # the only effects, as edited
    assert "radius" in json.dumps(chain["controls"])
    session.do({"do": "add", "kind": "filter", "name": "sepia"})
    chain, _ = exported()  # a chain comes first
    assert "radius" not in json.dumps(chain["controls"])
    session.do({"do": "open", "path": "quarters.png"})
    with pytest.raises(ParameterError, match="no scene"):
        session.do({"do": "export", "node": "n1"})


def test_a_preset_can_be_exported(session, tmp_path):
    from dala.web import read_chain

    session.do({"do": "open", "path": "quarters.png"})
    add(session, [*CARDS[:1], {"kind": "kernel", "name": "color"}, *CARDS[1:]])
    session.do({"do": "switch", "card": "c4", "on": False})
    (tmp_path / "preset.json").write_text(copied(session, "preset"))
    from tests.studio.server.conftest import quarters

    with FramePipeline(64, 48, device="cpu") as pipeline:
        made = pipeline.process(quarters(), read_chain(tmp_path / "preset.json"))
    np.testing.assert_array_equal(made, result(session))


def test_a_kernel_is_fused_in_an_exported_page(session):
    from dala import web
    from dala.studio.home.pages import page_chain

    session.do({"do": "open", "path": "quarters.png"})
    add(session, [*CARDS[-1:], {"kind": "kernel", "name": "color"}, *CARDS[-1:]])
    found = page_chain(session.active, None, session.files, "cpu")
    assert web.plan(found.filters).dispatches == 1


def test_as_a_process_from_the_shell(session, tmp_path):
    """The script needs nothing of this process."""
    session.do({"do": "open", "sample": "coffee"})
    add(session, [{"kind": "filter", "name": "resize", "params": {"size": [30, 20]}}])
    environment = {**os.environ, "DALA_DEVICE": "cpu"}
    script = copied(session, "python")
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    made = np.asarray(Frame.open(tmp_path / "result.png", device="cpu"))
    np.testing.assert_array_equal(made, result(session))
