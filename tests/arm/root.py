"""An arm64 root in ``build/arm``: Debian's Python, wheels for aarch64, and QEMU to run them.

Nothing is installed and no rights are needed: apt-get gets its own lists and its own state, and
packages and wheels are only unpacked. A root that is complete is used again; ``make clean`` and a
change of what is listed here remove it.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
ARM = REPOSITORY / "build" / "arm"
ROOT = ARM / "root"
SITE = ARM / "site"
QEMU = ARM / "qemu-aarch64-static"
BYTECODE = ARM / "bytecode"
RESULTS = ARM / "results"
READY = ARM / "ready"

PACKAGES = ("python3:arm64", "libstdc++6:arm64")
#: Requirements of pyproject.toml that the tests of the CPU engine need.
WHEELS = ("numpy", "llvmlite", "hypothesis", "pillow", "pytest")
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux2014_aarch64")
_PLAIN = "fp asimd aes pmull sha1 sha2 crc32 atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp"
#: Processors: what QEMU calls them, and the features and the part that LLVM reads in /proc/cpuinfo.
PROCESSORS = {
    "neoverse-n1": ("neoverse-n1", _PLAIN, "0xd0c"),  # NEON
    "neoverse-v1": ("max,sve-default-vector-length=32", f"{_PLAIN} sve i8mm bf16 rng", "0xd40"),
}


class Unavailable(Exception):
    """The root cannot be made here; the text says why."""


def is_ready() -> bool:
    """Return whether the root is complete, and made as this file says."""
    return READY.exists() and READY.read_text() == _recipe()


def prepare() -> None:
    """Make the root if it is not complete; raises Unavailable where that cannot be done."""
    with _alone():
        if is_ready():
            return
        if platform.machine() != "x86_64" or sys.platform != "linux":
            raise Unavailable("needs Linux on x86-64, where Debian's QEMU runs ARM code")
        for tool in ("apt-get", "dpkg-deb"):
            if shutil.which(tool) is None:
                raise Unavailable(f"needs {tool}, as the root is made of Debian's packages")
        shutil.rmtree(ARM / "apt", ignore_errors=True)
        for made in (ROOT, SITE, BYTECODE, RESULTS):
            shutil.rmtree(made, ignore_errors=True)
        say("arm: downloading Debian's packages for arm64, and QEMU (80 MB)")
        _unpack(_download())
        say("arm: downloading wheels for aarch64 (70 MB)")
        version = _add_processors()
        _install_wheels(version)
        _compile_bytecode(version)
        READY.write_text(_recipe())
        say(f"arm: ready: Python {version}")


def environment() -> dict[str, str]:
    """Return the variables for ARM processes: what names the machine's own Python is left out."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "DALA_", "PYTEST"))}
    for name in ("CI", "LD_LIBRARY_PATH", "LD_PRELOAD", "VIRTUAL_ENV"):
        kept.pop(name, None)
    return kept | {
        "PYTHONPATH": os.pathsep.join(map(str, (REPOSITORY / "src", REPOSITORY, SITE))),
        "PYTHONPYCACHEPREFIX": str(BYTECODE),
        "XDG_CACHE_HOME": str(ARM / "cache"),
    }


@contextmanager
def _alone() -> Iterator[None]:
    """Two processes never make the root at the same time."""
    try:
        import fcntl
    except ImportError:
        raise Unavailable("needs Linux on x86-64, where Debian's QEMU runs ARM code") from None
    ARM.mkdir(parents=True, exist_ok=True)
    with open(ARM / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _recipe() -> str:
    """Return all that the root depends on; paths in it are absolute."""
    return repr((ARM, PACKAGES, PLATFORMS, PROCESSORS, _requirements()))


def _requirements() -> list[str]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    listed = {text for listed in (project["dependencies"], *extras) for text in listed}
    return sorted(text for text in listed if text.lower().startswith(WHEELS))


def _download() -> list[Path]:
    """Download packages, with all that they depend on, by apt-get with state of its own."""
    apt = ARM / "apt"
    archives = apt / "cache" / "archives"
    for folder in (apt / "state" / "lists" / "partial", archives / "partial"):
        folder.mkdir(parents=True, exist_ok=True)
    (apt / "status").write_text("")  # nothing is installed: dependencies are all downloaded
    (apt / "apt.conf").write_text(
        f'Dir::State "{apt}/state";\nDir::State::status "{apt}/status";\n'
        f'Dir::Cache "{apt}/cache";\nAPT::Sandbox::User "";\n'
        'APT::Architectures { "amd64"; "arm64"; };\nAcquire::Languages "none";\n'
        'Acquire::http::Timeout "20";\nAcquire::https::Timeout "20";\n'
    )
    env = os.environ | {"APT_CONFIG": str(apt / "apt.conf"), "LC_ALL": "C"}
    _call(["apt-get", "--quiet", "update"], env=env)
    get = ["apt-get", "--quiet", "--yes", "--no-install-recommends", "--download-only"]
    _call([*get, "install", *PACKAGES, "qemu-user-static:amd64"], env=env)
    return sorted(archives.glob("*.deb"))


def _unpack(packages: Sequence[Path]) -> None:
    ROOT.mkdir()
    for package in packages:
        if package.name.endswith("_arm64.deb"):
            _call(["dpkg-deb", "--extract", str(package), str(ROOT)])
        elif package.name.startswith("qemu-user-static"):
            unpacked = ARM / "unpacked"
            _call(["dpkg-deb", "--extract", str(package), str(unpacked)])
            shutil.move(unpacked / "usr" / "bin" / QEMU.name, QEMU)
            shutil.rmtree(unpacked)
    shutil.rmtree(ARM / "apt")


def python(processor: str) -> Path:
    """Return what runs ARM's Python: a script that Python takes for itself.

    Tests that start ``sys.executable`` so start ARM's Python too.
    """
    return ROOT / "usr" / "bin" / f"python-{processor}"


def _add_processors() -> str:
    """Write what runs Python on each processor; return Python's version, such as 3.11."""
    binary = (ROOT / "usr" / "bin" / "python3").resolve()
    for name, (cpu, features, part) in PROCESSORS.items():
        view = ARM / name  # the root with another /proc/cpuinfo
        shutil.rmtree(view, ignore_errors=True)
        (view / "proc").mkdir(parents=True)
        for entry in ROOT.iterdir():
            (view / entry.name).symlink_to(entry)
        lines = f"CPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: {part}\n\n"
        text = f"processor\t: 0\nFeatures\t: {features}\n{lines}"
        (view / "proc" / "cpuinfo").write_text(text)
        script = python(name)
        command = f'"{QEMU}" -cpu {cpu} -L "{view}" -0 "{script}" "{binary}" "$@"'
        script.write_text(f"#!/bin/sh\nexec {command}\n")
        script.chmod(0o755)
        _call([str(script), "-c", "import ctypes, sqlite3, ssl"], env=environment())
    return binary.name.removeprefix("python")


def _install_wheels(version: str) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    platforms = [f"--platform={name}" for name in PLATFORMS]
    options = ["--only-binary=:all:", f"--python-version={version}", "--target", str(SITE)]
    _call([*pip, *options, *platforms, *_requirements()])


def _compile_bytecode(version: str) -> None:
    """Compile on this machine's Python if it has the same version: ARM's is 20 times slower."""
    if f"{sys.version_info.major}.{sys.version_info.minor}" != version:
        return
    stdlib = ROOT / "usr" / "lib" / f"python{version}"
    folders = (stdlib, SITE, REPOSITORY / "src", REPOSITORY / "tests")
    command = [sys.executable, "-m", "compileall", "-q", *map(str, folders)]
    env = os.environ | {"PYTHONPYCACHEPREFIX": str(BYTECODE)}
    subprocess.run(command, env=env, capture_output=True)  # some of their files are not meant to


def _call(command: Sequence[str], env: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise Unavailable(
            f"{' '.join(command)} failed: {' / '.join(said)}\n"
            "Debian's packages for arm64 and wheels are downloaded once: is their mirror in reach?"
        )


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
