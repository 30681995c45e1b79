"""Changed constants of fast forms are noticed by the table.

A constant that no row notices needs a row (``dala/answers/settings.py``), or, if its change cannot
alter a byte, an entry in ``HARMLESS`` of ``tests/support/mutations.py``. Many of the rest choose
between forms that are equal, round a tie that no picture has, or read more than is used.
"""

from __future__ import annotations

import pytest

from dala.answers.cases import names
from tests.support.engines import targets
from tests.support.mutations import (
    ENGINES,
    FORMS,
    HARMLESS,
    chosen,
    files,
    hashed,
    kept,
    mutants,
)


def test_forms_are_found():
    for place, (device, only) in FORMS.items():
        assert (ENGINES / place).exists()
        assert device in ("cpu", "webgpu")
        assert set(only) <= set(names())
    assert all(any(mutants(file)) for file in FORMS if file.endswith(".py"))


def test_harmless_constants_exist():
    known = {name for file in files() for m in mutants(file) for name in m.names}
    assert HARMLESS.keys() <= known
    assert all(HARMLESS.values())


def test_a_mutant_changes_one_constant(tmp_path):
    from tests.support.mutations import tree

    mutant = next(mutants("cpu/ops/neighborhood.py"))
    made = tree(tmp_path, mutant) / "dala" / "gpu" / "compute" / "engines" / mutant.file
    ours = (ENGINES / mutant.file).read_text().splitlines()
    changed = made.read_text().splitlines()
    different = [n for n, (a, b) in enumerate(zip(ours, changed, strict=True), 1) if a != b]
    assert different == [mutant.line]
    assert mutant.new in changed[mutant.line - 1]
    assert (made.parent / "lut.py").samefile(ENGINES / "cpu" / "ops" / "lut.py")


#: Forms that `make test` tries, chosen by a hash, and how many of the constants of each.
SOME = sorted((f for f in FORMS if f.startswith("cpu/ops/") and f.endswith(".py")), key=hashed)
TRIES = 4


@pytest.mark.parametrize("file", SOME[:2])
def test_a_handful(file):
    """One of a few constants at least; ``test_every_constant`` asks for all."""
    some = chosen(file, TRIES)
    assert len(kept(file, some, all_levels=False)) < len(some), "\n".join(map(str, some))


@pytest.mark.long
@pytest.mark.parametrize("file", files())
def test_every_constant(file):
    """Three of four at least; the others are printed, for someone to look at."""
    if files()[file][0] == "webgpu" and targets().get("webgpu", "") is None:
        pytest.skip("WebGPU has no adapter here")
    every = [m for m in mutants(file) if not m.harmless]
    found = kept(file, every)
    assert 4 * len(found) <= len(every), "\n".join(map(str, found))
