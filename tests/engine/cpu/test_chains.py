"""Chains on the CPU engine: several stages in one pass over the image."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dala
from dala.gpu.compute.engines.base import Link, Task, Tensor
from dala.gpu.compute.engines.cpu.cache import ObjectCache
from dala.gpu.compute.engines.cpu.engine import CPUEngine
from dala.gpu.compute.engines.cpu.jit import Jit
from dala.gpu.compute.engines.cpu.loops import plan as cpu_rows_plan
from dala.gpu.compute.engines.cpu.loops.chain import make_chain, stage_by_stage
from dala.gpu.compute.engines.cpu.threads import ThreadPool
from tests.support.cpu_programs import NUMPY, X86, engine, store, tiny_tiles
from tests.support.row_programs import (
    SOURCES,
    blur,
    fixed,
    image_of,
    programs_of,
)

__all__ = ["engine", "tiny_tiles"]

STAGES = (
    "stencil", "alike", "mixed", "bytes", "table", "mixed stencil", "place", "shared work", "two",
)  # fmt: skip


@st.composite
def chains(draw):
    """Generate chains: links over one image size, each reading any earlier image."""
    height, width = draw(st.integers(1, 60)), draw(st.sampled_from([1, 7, 16, 33, 70, 150]))
    shape = (height, width, 4)
    dtype = draw(st.sampled_from(["u8", "u8", "f32"]))
    count = draw(st.integers(1, 5))
    outside = draw(st.integers(1, 2))
    links, values, stores = [], (), outside
    for i in range(count):

        def source(i=i):
            if i and draw(st.booleans()):
                return -1 - draw(st.integers(0, i - 1))
            return -i if i and draw(st.booleans()) else draw(st.integers(0, outside - 1))

        kept = None
        if draw(st.integers(0, 4)) == 0:
            kept, stores = stores, stores + 1
        name = draw(st.sampled_from((*STAGES, "blur", "blur")))
        if name == "blur":
            work, sources = blur(shape, dtype, draw(st.integers(0, 6)), 1.5), (source(),)
        else:
            text, inputs, params = SOURCES[name]
            work, own = programs_of(text, shape, dtype, inputs, params)
            values += own
            sources = tuple(source() for _ in range(inputs))
        links.append(Link(work, sources, Tensor(shape, dtype), kept))
    return links, values, outside, stores


def run_chain(engine, runner, links, values, outside, stores):
    """Return the output and all stored outputs."""
    shape, dtype = links[-1].out.shape, links[-1].out.dtype
    given = [store(engine, image_of(shape, dtype, i)) for i in range(outside)]
    blank = np.full(shape, 0xA5, NUMPY[dtype])
    given += [store(engine, blank) for _ in range(stores - outside)]
    out = store(engine, blank)
    runner(given, out, values)
    return [
        np.frombuffer(engine.download(s), NUMPY[dtype]).reshape(shape)
        for s in (out, *given[outside:])
    ]


@pytest.mark.parametrize("space", [cpu_rows_plan.MAX_STACK, 30_000])
def test_chains_equal_their_stages(engine, tiny_tiles, monkeypatch, space):
    """Chains equal their stages exactly, also with little stack, which makes tiles narrow."""
    monkeypatch.setattr(cpu_rows_plan, "MAX_STACK", space)
    ran = []

    @fixed(30)
    @given(chains())
    def check(drawn):
        links, values, outside, stores = drawn
        tensors = [Tensor(links[-1].out.shape, links[-1].out.dtype)] * stores
        runner = make_chain(engine, links, tensors)
        if runner is None:
            assert space < cpu_rows_plan.MAX_STACK or len(links) > 3
            return
        got = run_chain(engine, runner, links, values, outside, stores)
        expected = run_chain(engine, stage_by_stage(engine, links), links, values, outside, stores)
        for a, b in zip(got, expected, strict=True):
            assert np.array_equal(a, b)
        ran.append(len(links))

    check()
    assert len(ran) >= 15


def three(shape=(50, 90, 4)):
    """Return blur -> a stencil like sharpen -> a program like brightness."""
    tensor = Tensor(shape, "u8")
    stencil, first = programs_of(SOURCES["stencil"][0], shape, "u8")
    alike, second = programs_of(SOURCES["alike"][0], shape, "u8")
    links = [
        Link(blur(shape, "u8", 3, 1.5), (0,), tensor),
        Link(stencil, (-1,), tensor),
        Link(alike, (-2,), tensor),
    ]
    return links, first + second, tensor


def test_chain_is_one_pass(engine, tiny_tiles, monkeypatch):
    links, values, tensor = three()
    jobs = []
    run_job = engine.threads.run
    monkeypatch.setattr(engine.threads, "run", lambda *given: (jobs.append(1), run_job(*given))[1])
    allocated = []
    allocate = engine.allocate
    runner = engine.chain(links, [tensor])
    given, out = (
        store(engine, image_of(tensor.shape, "u8")),
        store(engine, image_of(tensor.shape, "u8")),
    )
    monkeypatch.setattr(
        engine, "allocate", lambda n, *, zero: (allocated.append(n), allocate(n, zero=zero))[1]
    )
    runner([given], out, values)
    assert jobs == [1]
    assert allocated == []
    stage_by_stage(engine, links)([given], out, values)
    assert jobs == [1] * 4
    assert len(allocated) == 2


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_do_not_depend_on_threads(threads, tiny_tiles):
    links, values, tensor = three((120, 70, 4))
    alone = CPUEngine(threads=ThreadPool(3))
    several = CPUEngine(threads=ThreadPool(threads))
    results = [
        run_chain(e, e.chain(links, [tensor]), links, values, 1, 1)[0] for e in (alone, several)
    ]
    assert np.array_equal(*results)


def test_output_that_overlaps_an_input(engine, tiny_tiles):
    """No tile may read what another has written."""
    links, values, tensor = three()
    runner = engine.chain(links, [tensor])
    a = image_of(tensor.shape, "u8")
    apart, same = store(engine, a), store(engine, a)
    runner([store(engine, a)], apart, values)
    runner([same], same, values)
    assert bytes(engine.download(same)) == bytes(engine.download(apart))


def test_same_links_with_more_inputs(engine):
    """The same links with more inputs have another job layout."""
    links, values, tensor = three()
    expected = run_chain(engine, engine.chain(links, [tensor]), links, values, 1, 1)[0]
    for count in (2, 3):
        runner = engine.chain(links, [tensor] * count)
        assert np.array_equal(run_chain(engine, runner, links, values, count, count)[0], expected)


def test_chains_with_loops(engine):
    """Each value has its own code, and values that reach too far run stage by stage."""
    shape = (40, 60, 4)
    tensor = Tensor(shape, "u8")
    looped, _ = programs_of(SOURCES["bytes in a loop"][0], shape, "u8")
    links = [Link(looped, (0,), tensor), Link(looped, (-1,), tensor)]
    runner = engine.chain(links, [tensor])
    for values in [(1, 2), (3, 1), (0, 0), (1, 2), (70, 1)]:
        got = run_chain(engine, runner, links, values, 1, 1)[0]
        expected = run_chain(engine, stage_by_stage(engine, links), links, values, 1, 1)[0]
        assert np.array_equal(got, expected)


def test_chains_that_are_refused(engine):
    shape = (8, 8, 4)
    tensor = Tensor(shape, "u8")
    alike, _ = programs_of(SOURCES["alike"][0], shape, "u8")
    leaves, _ = programs_of("def k(img: Image): return img[100, 0]", shape, "u8")
    assert engine.chain([], [tensor]) is None
    assert engine.chain([Link(leaves, (0,), tensor)], [tensor]) is None
    assert engine.chain([Link(alike, (0,), tensor)], [Tensor((8, 9, 4), "u8")]) is None
    other = Task("resize", (tensor,), tensor, (), lambda *_: None)
    assert engine.chain([Link(other, (0,), tensor)], [tensor]) is None


def test_freed_memory_is_refused(engine):
    links, values, tensor = three()
    runner = engine.chain(links, [tensor])
    given, out = (store(engine, image_of(tensor.shape, "u8")) for _ in range(2))
    engine.release(given)
    with pytest.raises(
        dala.FreedError, match=r"^run_kernel: a buffer was freed by another thread\.$"
    ):
        runner([given], out, values)


@pytest.mark.skipif(not X86, reason="x86 CPUs")
@pytest.mark.parametrize(
    ("cpu", "features"),
    [
        ("x86-64", ()),
        ("haswell", ()),
        ("haswell", ("avx2",)),
        ("skylake-avx512", ("avx512f",)),
        ("skylake-avx512", ("avx512f", "avx512bw")),
    ],
    ids=str,
)
def test_older_cpus(cpu, features):
    """Narrow vectors and no fused operations give the same bytes."""
    host = Jit(ObjectCache(None)).features
    needed = {"haswell": "avx2", "skylake-avx512": "avx512bw"}
    if cpu in needed and not host.get(needed[cpu]):
        pytest.skip(f"this machine is no {cpu}")
    compiler = Jit(ObjectCache(None), cpu)
    compiler.features = dict.fromkeys(features, True)
    older = CPUEngine(compiler=compiler, threads=ThreadPool(1))
    wide = CPUEngine(threads=ThreadPool(1))
    links, values, tensor = three((20, 70, 4))
    table, own = programs_of(SOURCES["table"][0], tensor.shape, "u8")
    low, _ = programs_of(SOURCES["bytes"][0], tensor.shape, "u8")
    sums, weights = programs_of(SOURCES["stencil"][0], tensor.shape, "u8")
    mix, _ = programs_of(SOURCES["mixed"][0], tensor.shape, "u8")
    first = len(links[1].work.params)
    given = [(links[0].work, ()), (links[1].work, values[:first]), (links[2].work, values[first:])]
    for work, params in [*given, (table, own), (low, ()), (sums, weights), (mix, ())]:
        alone = [Link(work, (0,), tensor)]
        got, expected = (
            run_chain(e, e.chain(alone, [tensor]), alone, params, 1, 1)[0] for e in (older, wide)
        )
        assert np.array_equal(got, expected)
