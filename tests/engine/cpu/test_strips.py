"""Long programs run as two loops over strips of vectors; results do not change."""

from __future__ import annotations

import pytest

from dala.gpu.compute.engines.cpu.loops import strips
from dala.gpu.compute.engines.cpu.rules.choose import analyze
from dala.gpu.compute.engines.cpu.rules.zero_parameter import ZeroVariant
from dala.gpu.compute.kernel import get
from dala.gpu.compute.lang.ir import Block, Value
from tests.support.row_programs import assert_like_reference, image_of, programs_of


def _chain(length: int) -> tuple[Block, Value]:
    values = [Value("pixel", "f32", (), (0, 0))]
    for _ in range(length):
        values.append(Value("mul", "f32", (values[-1], values[-1])))
    return Block(list(values)), values[-1]


def test_a_long_chain_is_cut_in_the_middle() -> None:
    block, last = _chain(40)
    (middle,) = strips.find_cut(block, [last], set(block.body))
    assert block.body.index(middle) in range(14, 28)
    before = strips.needed_for([middle], block).body
    after = strips.needed_for([last], block, [middle]).body
    assert before + after == block.body


def test_a_short_chain_is_not_cut() -> None:
    block, last = _chain(10)
    assert strips.find_cut(block, [last], set(block.body)) == []


def test_what_both_halves_would_compute_is_not_cut() -> None:
    block, last = _chain(40)
    middle = strips.find_cut(block, [last], set(block.body))[0]
    shared = [v for v in block.body if isinstance(v, Value)][5:19]
    more = last
    for v in shared:
        more = Value("add", "f32", (more, v))
        block.body.append(more)
    assert middle not in strips.find_cut(block, [more], set(block.body))


@pytest.mark.parametrize("width", [1, 511, 512, 2085])
@pytest.mark.parametrize("name", ["chroma_key", "vignette"])
def test_strips_equal_the_reference(name: str, width: int) -> None:
    shape = (3, width, 4)
    program, _ = programs_of(get(name), shape, "u8")
    analysis = analyze(program)
    assert analysis is not None
    if isinstance(analysis.form, ZeroVariant):
        analysis = analysis.form.analysis(analysis)
    stored = [v for c, v in enumerate(analysis.result) if c not in analysis.kept]
    assert strips.find_cut(analysis.block, stored, analysis.varying)
    params = {"despill": 0.0} if name == "chroma_key" else {}
    assert_like_reference(get(name), [image_of(shape, "u8")], shape, "u8", params)
