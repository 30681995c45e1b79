"""The operations of the kernel IR: kernels compute, and have no access to memory of their own."""

from __future__ import annotations

import re

from dala.gpu.compute.engines.cpu.llvm.emitter import READS
from dala.gpu.compute.engines.cpu.llvm.operations import _WRITERS
from dala.gpu.compute.engines.reference.engine import OPERATIONS
from dala.gpu.compute.lang import ir

#: Every read is of an argument at a clamped place; nothing writes.
READ = ["param", "position", "dim", "element", "pixel", "image", "array"]
COMPUTED = [
    "add",
    "sub",
    "mul",
    "neg",
    "div",
    "idiv",
    "mod",
    "and",
    "or",
    "xor",
    "not",
    "shl",
    "shr",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "min",
    "max",
    "abs",
    "floor",
    "ceil",
    "round",
    "sqrt",
    "exp",
    "log",
    "sin",
    "cos",
    "tan",
    "atan",
    "atan2",
    "pow",
    "isnan",
    "cast",
    "bits",
]


def test_the_table_of_the_ir_lists_these_operations():
    rows = ir.__doc__.split("\n=================")[1].splitlines()[1:]
    heads = [re.split(r"  |      ", row)[0] for row in rows if row[:1].isalpha()]
    named = [op for head in heads for op in head.split()]
    assert sorted(named) == sorted(["const", "get", "select", *READ, *COMPUTED])


def test_the_cpu_emits_these_operations_and_no_others():
    assert sorted(READS) == sorted(READ)
    assert sorted(_WRITERS) == sorted(COMPUTED)


def test_the_reference_defines_these_operations_and_no_others():
    apart = {"cast", "bits"}  # they need the type of the result
    assert sorted(OPERATIONS) == sorted({"select", *COMPUTED} - apart)
