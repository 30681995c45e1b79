"""Every engine gives the bytes of the table: the CPU's at each level, WebGPU's on each adapter."""

from __future__ import annotations

import os
from itertools import islice

import pytest

from dala.answers.cases import rows
from dala.answers.table import check
from tests.support.answers import adapters, assert_answers, processors
from tests.support.engines import NO_ADAPTER

#: `make test` runs a third of the rows, `make test-long` all of them.
SHARES = [pytest.param("few"), pytest.param("all", marks=pytest.mark.long)]


@pytest.mark.parametrize("share", SHARES)
def test_reference(share):
    """The table is current: a definition that changes needs `python -m dala.answers.generate`."""
    some = islice(rows(share=share), 0, None, 3 if share == "few" else 1)  # the CPU runs the rest
    found = check(some, "reference")
    wrong = [f"{row.id}: {problem}" for row, problem in found if problem]
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize("share", SHARES)
def test_processor(share):
    assert_answers(processors(every=share == "all"), share)


@pytest.mark.parametrize("share", SHARES)
def test_adapters(share):
    engines = adapters(every=share == "all")
    if not engines:
        if os.environ.get("CI") == "true" or os.environ.get("DALA_REQUIRE_WEBGPU") == "1":
            pytest.fail(NO_ADAPTER)
        pytest.skip(NO_ADAPTER)
    assert_answers(engines, share)
