"""What holds for all tests: fixed examples, and errors for modules that cannot be imported.

``--doctest-ignore-import-errors`` is meant for modules of extras that are not installed. It also
skips a test module with a broken import, whose tests would then silently not run.
"""

import ctypes
import gc
import os
import signal
import sys
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from dala.gpu.compute import params
from tests.support.memory import MemoryReport
from tests.support.skips import SkipReport

TESTS = Path(__file__).parent

#: Bytes of memory from which a process gives GPUs back between modules, and all that it can when it
#: grew by so much since it last did; a worker of `make test` may take 1.5 GB.
MUCH = 800 << 20
GROWN = 100 << 20

# The same examples in each run, and no judgment by time: machines may be busy.
settings.register_profile(
    "fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fixed")

# A shell that starts the tests in the background leaves SIGINT ignored, also in their processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--memory", action="store_true", help="show which modules use most memory")


def pytest_configure(config: pytest.Config) -> None:
    params._reported.append("tests")  # sizes: said once, and to no test
    config.pluginmanager.register(MemoryReport(), "memory-report")
    config.pluginmanager.register(SkipReport(), "skip-report")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave two thirds of wide sweeps, and of what also runs on OpenGL, to `make test-long`.

    The shaders and their order are the same through Vulkan, where all run.
    """
    for item in items:
        wide = "opengl" in item.name or item.get_closest_marker("third")
        if wide and zlib.crc32(item.nodeid.encode()) % 3:
            item.add_marker(pytest.mark.long)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collections: they free nothing, and take a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.fixture(autouse=True, scope="module")
def usual_priority() -> Iterator[None]:
    """Fail if a module leaves this thread with real-time priority, as SVT-AV1 gives it to root.

    Browsers that are started from such a thread inherit it, and keep the machine waiting.
    """
    yield
    if hasattr(os, "sched_getscheduler"):
        assert os.sched_getscheduler(0) not in (os.SCHED_FIFO, os.SCHED_RR)


@pytest.fixture(autouse=True, scope="module")
def no_trace() -> Iterator[None]:
    """Fail if a module leaves a trace that runs: it would record the tests after it."""
    yield
    recorder = sys.modules.get("dala.trace.recorder")
    assert recorder is None or not recorder.tracer.on


@pytest.fixture(autouse=True, scope="module")
def settled_heap() -> None:
    """Leave what is alive before a module's tests out of their garbage collections.

    Thousands of collected tests and all imported modules make a full collection take most of a
    second, and tests that count objects make dozens of them.
    """
    kernels = sys.modules.get("dala.gpu.compute.kernel")
    if kernels is not None:
        for kernel in kernels.builtins().values():
            kernel._plans.clear()  # they keep code for every shape
    gc.collect()
    heap.settle()
    gc.freeze()


class Heap:
    """Gives memory back between modules when there is much; what takes long, where it helps."""

    def __init__(self) -> None:
        self.least = 0  # bytes that stayed when everything was given back

    def settle(self) -> None:
        limit = max(MUCH, self.least + GROWN)
        if resident_bytes() > limit:
            close_gpus()
            trim()
        if resident_bytes() > limit:
            gc.unfreeze()
            gc.collect()  # of all objects, which takes a second or two
            trim()
            self.least = resident_bytes()


heap = Heap()


def resident_bytes() -> int:
    """Return the memory that this process uses; 0 where the system does not tell."""
    if not sys.platform.startswith("linux"):
        return 0
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def close_gpus() -> None:
    """Close all WebGPU devices: software drivers keep up to 400 MB each."""
    instances = sys.modules.get("dala.gpu.compute.engines.instances")
    if instances is None:
        return
    with instances.lock:
        cpu = instances._by_id.get("cpu")
        if cpu is not None:
            cpu._memory.clear()  # up to 256 MB, kept for reuse
        for table in (instances.by_name, instances._by_id):
            for name in [name for name, engine in table.items() if engine.backend == "webgpu"]:
                table.pop(name).close()


def trim() -> None:
    """Return what malloc keeps to the system."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@pytest.fixture(autouse=True)
def kernels_of_one_test() -> Iterator[None]:
    """Forget the kernels that a test registers: the next one finds the same in any order."""
    kernels = sys.modules.get("dala.gpu.compute.kernel")
    if kernels is None:
        yield
        return
    before = set(kernels._custom)
    yield
    for name in set(kernels._custom) - before:
        kernels._custom.remove(name)


@pytest.fixture
def unsanitized(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is reused and native code is unchecked, also with DALA_SANITIZE=1."""
    from dala.gpu.compute.engines.cpu import memory
    from dala.gpu.compute.engines.cpu.native import compiled

    for module in (memory, compiled):
        monkeypatch.setattr(module, "SANITIZE", False)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped and collector.path.is_relative_to(TESTS):
        reason = str(report.longrepr)
        if "unable to import module" in reason:
            report.outcome = "failed"
            report.longrepr = f"{collector.path}: {reason}"
    return report
