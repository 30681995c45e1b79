"""The number of faults that a run injected, by the kind of operation, in one line at its end."""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    faults, operations = Counter[str](), Counter[str]()
    for report in terminalreporter.getreports("passed"):
        for name, count in getattr(report, "user_properties", ()):
            if name.startswith("faults of ") and report.when == "call":
                kind = name.removeprefix("faults of ")
                faults[kind] += int(str(count))
                operations[kind] += 1
    if faults:
        counts = [f"{kind}: {faults[kind]} in {operations[kind]}" for kind in sorted(faults)]
        terminalreporter.write_line(
            f"faults: {faults.total()} in {operations.total()} operations ({', '.join(counts)})"
        )
