"""Every public operation with faults: each call across the border fails once.

An operation is made to fail at its first such call (allocations, files, sockets, threads,
compilers, devices, codecs, pictures, models, fonts), then at its second, until it succeeds. Each
time the error is one of ours, nothing is left behind, nothing hangs, and the next call works.
"""

from __future__ import annotations

import warnings

import pytest

import dala
from dala.gpu import create_surface
from dala.gpu.compute import buffer, buffer_zeros
from dala.media import gpu
from tests.support import borders, faults
from tests.support.engines import dala_device, pytest_generate_tests

__all__ = ["dala_device", "pytest_generate_tests"]

pytest.importorskip("av")
pytest.importorskip("onnxruntime")

from tests.faults import commands
from tests.faults import operations as all_operations

COMPUTE, MEDIA, SURFACES = (
    {each.__name__: each for each in group}
    for group in (all_operations.COMPUTE, all_operations.MEDIA, all_operations.SURFACES)
)
COMMANDS = [name for name, arguments in commands.COMMANDS.items() if arguments is not None]
FILTERS = [name for name in gpu.filters() if name not in all_operations.WITH_MODEL]

#: Faults that may change a result, with the reason.
EXEMPT = {
    "codec: decode in dala.media.video.decoding.decoder": (
        "a damaged video is salvaged: what can be decoded is shown or written, with a notice"
    ),
}

#: Few calls, and quick.
CHEAP = ("buffers", "kernels", "streams", "tables", "models")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("DALA_BROWSER", "none")
    (tmp_path / "files").mkdir()
    with warnings.catch_warnings(action="ignore"):
        yield


@pytest.fixture(autouse=True, scope="module")
def rewritten():
    yield
    borders.restore()


@pytest.fixture
def drive(tmp_path, request, record_property):
    name = request.node.callspec.params["name"]
    groups = {"surfaces": SURFACES, "media": MEDIA, "compute": COMPUTE, "filters": FILTERS}
    kind = next((kind for kind, names in groups.items() if name in names), "commands")
    if "commands" in request.node.originalname:  # some are named as filters are
        kind = "commands"

    def drive(operation, device="cpu", exempt=None):
        with dala.device(device):
            found = faults.drive(operation, tmp_path / "files", exempt=exempt)
        record_property(f"faults of {kind}, {device}", len(found))
        return found

    return drive


@pytest.mark.parametrize("name", CHEAP)
def test_faults(name, drive):
    assert drive({**COMPUTE, **MEDIA}[name])


@pytest.mark.long
@pytest.mark.parametrize("name", [*SURFACES, *MEDIA])
def test_all_faults(name, drive):
    assert drive({**SURFACES, **MEDIA}[name], exempt=EXEMPT)


@pytest.mark.long
@pytest.mark.parametrize("name", FILTERS)
def test_faults_in_filters(name, drive):
    assert drive(all_operations.filter_operation(name))


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_faults_in_commands(name, drive, monkeypatch):
    monkeypatch.setenv("DALA_DEVICE", "cpu")
    found = drive(commands.command_operation(name), exempt=EXEMPT)
    assert found or name in ("kernels", "models")


@pytest.mark.long
@pytest.mark.parametrize("name", COMPUTE)
def test_faults_on_every_engine(dala_device, name, drive):
    found = drive(COMPUTE[name], dala_device)
    assert found or dala_device in ("cpu", "reference")


def test_faults_are_found(unsanitized):
    """The driver itself: it sees leaks, wrong errors and wrong results."""
    with faults.failing(1, "allocation") as fault, pytest.raises(dala.BufferTooLarge):
        buffer_zeros((4,), device="cpu")
    assert fault.where.startswith("allocation: zeros in dala.gpu.compute.engines.cpu.memory:")
    with faults.failing(1, "thread") as fault, pytest.raises(dala.DeviceError, match="thread"):
        create_surface(2, 2)
    assert fault.where.startswith("thread: start in dala.forks:")


def test_leaks_are_found(unsanitized, tmp_path, monkeypatch):
    monkeypatch.setattr(faults, "PATIENCE", 0.1)
    kept = []

    def leaks(folder):
        try:
            return buffer([1.0], device="cpu").read_list()
        except dala.DalaError:
            kept.append(buffer_zeros((2,), device="reference"))
            raise

    with pytest.raises(AssertionError, match=": left State"):
        faults.drive(leaks, tmp_path)
