"""The skipped tests of a run, summed up by reason at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest


def by_reason(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Return a line for each reason, the most frequent first.

    >>> class Report:
    ...     longrepr = ("test_a.py", 3, "Skipped: no GPU")
    >>> by_reason([Report(), Report()])
    ['   2  no GPU']
    """
    found: Counter[str] = Counter()
    for report in reports:
        where = report.longrepr
        text = where[2] if isinstance(where, tuple) else str(where)
        found[text.removeprefix("Skipped: ")] += 1
    return [f"{count:4}  {reason}" for reason, count in sorted(found.items(), key=_most_first)]


def _most_first(row: tuple[str, int]) -> tuple[int, str]:
    return -row[1], row[0]


class SkipReport:
    """A plugin of pytest that prints the reasons."""

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        reports = terminalreporter.stats.get("skipped", [])
        if reports:
            terminalreporter.section(f"{len(reports)} skipped, by reason")
            for line in by_reason(reports):
                terminalreporter.write_line(line)
