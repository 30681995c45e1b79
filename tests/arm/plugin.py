"""For pytest on ARM: only the CPU engine's tests, and their results as a file for the summary."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from tests.arm.pieces import LEFT_OUT


class Results:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.passed = 0
        self.failed: list[str] = []
        self.skipped: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        kept, dropped = [], []
        for item in items:
            reason = why_not(item)
            (dropped if reason else kept).append(item)
            if reason and reason != OTHER_ENGINE:
                self.left_out[reason] += 1
        items[:] = kept
        config.hook.pytest_deselected(items=dropped)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)
        elif report.skipped:
            reason = (
                report.longrepr[2] if isinstance(report.longrepr, tuple) else "expected to fail"
            )
            self.skipped[reason.removeprefix("Skipped: ")] += 1
        elif report.when == "call" and report.passed:
            self.passed += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        names = ("passed", "failed", "skipped", "left_out")
        self.path.write_text(json.dumps({name: getattr(self, name) for name in names}))


OTHER_ENGINE = "another engine"


def why_not(item: pytest.Item) -> str:
    """Return why a test is not run on ARM; "" for one that is."""
    call = getattr(item, "callspec", None)
    if call is not None and call.params.get("target", "cpu") != "cpu":
        return OTHER_ENGINE
    name = item.nodeid.partition("[")[0]
    return next((why for start, why in LEFT_OUT.items() if name.startswith(start)), "")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Results(Path(os.environ["ARM_RESULTS"])))
