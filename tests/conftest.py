"""What holds for all tests: fixed examples, and errors for modules that cannot be imported.

``--doctest-ignore-import-errors`` is meant for modules of extras that are not installed. It also
skips a test module with a broken import, whose tests would then silently not run.
"""

import gc
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent

# The same examples in each run, and no judgment by time: machines may be busy.
settings.register_profile(
    "fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fixed")

# A shell that starts the tests in the background leaves SIGINT ignored, also in their processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="module")
def settled_heap() -> None:
    """Leave what is alive before a module's tests out of their garbage collections.

    Thousands of collected tests and all imported modules make a full collection take most of a
    second, and tests that count objects make dozens of them.
    """
    kernels = sys.modules.get("dala.gpu.compute.kernel")
    if kernels is not None:
        for kernel in kernels.builtins().values():
            kernel._plans.clear()  # they keep code for every shape, 2 MB each on llvmpipe
    gc.collect()
    gc.freeze()


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
