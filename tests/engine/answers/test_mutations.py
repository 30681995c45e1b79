"""Changed constants of fast forms are noticed by the table.

A constant that no row notices needs a row (``dala/answers/settings.py``), or, if its change cannot
alter a byte, an entry in ``HARMLESS`` of ``tests/support/mutations.py``.
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
    is_noticed,
    mutants,
)


def test_forms_are_found():
    for place, (device, only) in FORMS.items():
        assert (ENGINES / place).exists()
        assert device in ("cpu", "webgpu")
        assert set(only) <= set(names())
    assert all(any(mutants(file)) for file in FORMS if file.endswith(".py"))


def test_harmless_constants_exist():
    every = [m for file in files() for m in mutants(file)]
    known = {m.name for m in every} | {f"{m.file}: {m.scope}" for m in every}
    assert HARMLESS.keys() <= known
    assert all(HARMLESS.values())


def test_a_mutant_changes_one_constant(tmp_path):
    from tests.support.mutations import tree

    mutant = next(mutants("cpu/ops/median.py"))
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


@pytest.mark.parametrize("file", SOME[:3])
def test_a_handful(file):
    """One of a few constants at least; ``test_every_constant`` asks for all."""
    assert any(map(is_noticed, chosen(file, TRIES))), "\n".join(map(str, chosen(file, TRIES)))


@pytest.mark.long
@pytest.mark.parametrize("file", files())
def test_every_constant(file):
    if files()[file][0] == "webgpu" and targets().get("webgpu", "") is None:
        pytest.skip("WebGPU has no adapter here")
    kept = [str(m) for m in mutants(file) if not m.harmless and not is_noticed(m)]
    assert not kept, "\n".join(kept)
