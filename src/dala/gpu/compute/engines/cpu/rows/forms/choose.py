"""The row function of a program, in the form that its facts ask for."""

from __future__ import annotations

from collections.abc import Sequence

from dala.gpu.compute.engines.cpu.llvm.facts import Facts
from dala.gpu.compute.engines.cpu.llvm.text import Module
from dala.gpu.compute.engines.cpu.rows.emit import Machine, Row, Words
from dala.gpu.compute.engines.cpu.rows.forms.mix import mix_functions
from dala.gpu.compute.engines.cpu.rows.forms.sums import sums_functions
from dala.gpu.compute.engines.cpu.rows.forms.table import table_functions


def row_functions(
    module: Module, name: str, facts: Facts, words: Words, machine: Machine, tight: Sequence[bool],
    tight_out: bool,
) -> str:  # fmt: skip
    """The row function of that name, and those it needs."""
    if facts.table:
        return table_functions(module, name, facts, words, machine)
    if facts.sums is not None:
        return sums_functions(module, name, facts, words, machine, tight, tight_out)
    if facts.mix is not None:
        return mix_functions(module, name, facts, words, machine, tight, tight_out)
    return Row(module, name, facts, words, machine.vector, tight, tight_out).text()
