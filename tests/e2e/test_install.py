"""The wheel and the source distribution, each installed into an environment of its own."""

from __future__ import annotations

import email
import email.policy
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile

import pytest

import dala
from dala.extras import EXTRAS

ROOT = pathlib.Path(__file__).parents[2]

#: Runs in the fresh environment: a kernel, a filter, a surface, package data, the command line.
PROGRAM = """
import importlib.resources, pathlib, sys
import numpy as np
import dala
from dala.gpu.compute import buffer, kernel
from dala.media import gpu

assert pathlib.Path(dala.__file__).is_relative_to(sys.prefix), dala.__file__
dala.use("cpu")
twice = kernel("def twice(x): return 2 * x")
assert twice(buffer([1.0, 2.0])).read_list() == [2.0, 4.0]
assert gpu.invert(np.full((2, 2, 3), 55, np.uint8))[0, 0, 0] == 200
with dala.gpu.create_surface(8, 8) as surface:
    surface.clear("red")
    assert surface.get_pixels()[:4] == bytes((255, 0, 0, 255))
package = importlib.resources.files("dala")
assert package.joinpath("py.typed").is_file()
assert dala.samples.photo("chelsea").shape == (300, 451, 3)
answers = dala.selftest("cpu", only=["invert"])
assert answers.ok and answers.devices[0].rows == 15
assert any(p.name.endswith(".wgsl") for p in pathlib.Path(dala.__file__).parent.rglob("*"))
print("works")
"""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["*.whl", pytest.param("*.tar.gz", marks=pytest.mark.long)])
def test_installs_and_works(distributions, tmp_path, pattern):
    (file,) = distributions.glob(pattern)
    home = tmp_path / "env"
    venv.create(home, with_pip=False)
    scripts = home / ("Scripts" if sys.platform == "win32" else "bin")
    python = scripts / "python"
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # Dependencies come from the environment of the tests: what is tested here is our package.
    paths = {"base": str(home), "platbase": str(home)}
    site = pathlib.Path(sysconfig.get_path("purelib", "venv", vars=paths))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            str(file),
        ],
        check=True,
        capture_output=True,
        cwd=tmp_path,
        env=clean,
    )
    done = subprocess.run(
        [python, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=clean,
    )
    assert (done.returncode, done.stdout) == (0, "works\n"), done.stderr
    shown = subprocess.run(
        [scripts / "dala", "info"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=clean,
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("Dala ")


def test_the_metadata(distributions):
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        (name,) = (n for n in file.namelist() if n.endswith(".dist-info/METADATA"))
        text = file.read(name)
    found = email.message_from_bytes(text, policy=email.policy.default)
    assert found["Name"] == "dala-gpu"
    assert found["Summary"].startswith("A portable GPU stack for realtime media")
    urls = dict(line.split(", ") for line in found.get_all("Project-URL"))
    assert {"Repository", "Documentation", "Changelog", "Issues"} <= set(urls)
    assert {*EXTRAS, "docs", "dev"} == set(found.get_all("Provides-Extra"))
    for extra, (_, packages) in EXTRAS.items():
        needed = {
            re.split(r"[<>=; \[]", line)[0]
            for line in found.get_all("Requires-Dist")
            if re.search(rf"extra == .{extra}.", line)
        }
        within = {"studio": ("media",), "batch": ("media",), "cluster": ("media", "batch")}
        others = [EXTRAS[name][1] for name in within.get(extra, ())]
        assert needed == {*packages}.union(*others)


def test_pictures_and_links_of_the_readme_survive_on_an_index(distributions):
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"][
        "Repository"
    ]
    clone = (ROOT / "README.md").read_text(encoding="utf-8")
    (wheel,) = distributions.glob("*.whl")
    (archive,) = distributions.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as file:
        (name,) = (n for n in file.namelist() if n.endswith(".dist-info/METADATA"))
        readmes = [file.read(name)]
    with tarfile.open(archive) as file:
        (name,) = (n for n in file.getnames() if n.endswith("/PKG-INFO"))
        readmes.append(file.extractfile(name).read())
    for data in readmes:
        text = email.message_from_bytes(data).get_payload(decode=True).decode("utf-8")
        targets = re.findall(r"\]\(([^)\s]+)\)", text)
        assert len(targets) == len(re.findall(r"\]\(([^)\s]+)\)", clone)) > 20
        for target in targets:
            assert target.startswith("https://"), target
            if target.startswith(repository):
                path = target.removeprefix(repository).split("/", 3)[3].partition("#")[0]
                assert (ROOT / path).exists(), target
        pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
        assert pictures
        assert all("/raw/v" in picture for picture in pictures)
        # Code is as it was.
        assert re.findall("```.*?```", text, re.S) == re.findall("```.*?```", clone, re.S)


def test_wheels_are_reproducible(distributions, tmp_path):
    """From the checkout, and from the unpacked source distribution with its times: equal bytes."""
    (first,) = distributions.glob("*.whl")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / first.name).read_bytes() == first.read_bytes()


def test_files_name_the_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (\S+)$", citation, re.M)[1] == dala.__version__
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)$", changes, re.M)[1] == dala.__version__


def test_what_is_shipped(distributions):
    (wheel,) = distributions.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "dala/py.typed" in names
    photos = [n for n in zipfile.ZipFile(wheel).infolist() if n.filename.endswith(".jpg")]
    assert len(photos) == 3
    assert sum(photo.file_size for photo in photos) < 300_000
    assert not [n for n in names if n.startswith(("tests", "benchmarks", "docs"))]
    (archive,) = distributions.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        held = {n.partition("/")[2] for n in source.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"} <= held
