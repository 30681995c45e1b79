"""Registered kernels: names stay, and what is large is held for the last ones only."""

import gc
import pickle
import sys
import weakref

import pytest

import dala
from dala.errors import LimitExceeded, UnknownKernel
from dala.gpu.compute import Kernel, buffer, kernel
from dala.gpu.compute.call.registry import Registry

kernels = sys.modules[Kernel.__module__]  # a function has the module's name


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Two kernels are held; the names of a test go with it."""
    monkeypatch.setattr(kernels, "_custom", Registry(2))


def register(*names):
    for name in names:
        Kernel.register(name, f"def {name}(x): return x + 1")


def test_names_stay_when_kernels_go():
    gone = weakref.ref(kernel("def first(x, *, n: int = 3):\n    '''Doc.'''\n    return x * n"))
    register("a", "b")
    gc.collect()
    assert gone() is None
    assert {"first", "a", "b"} <= set(dala.gpu.compute.kernels())
    found = kernels.get("first")
    assert (found.name, found.doc, [p.name for p in found.params]) == ("first", "Doc.", ["n"])
    assert found(buffer([2.0], device="reference"), n=5).read_list() == [10.0]
    assert kernels.get("first") is found


def test_a_kernel_that_someone_holds_stays_the_same():
    mine = kernel("def mine(x): return x")
    register("a", "b", "c")
    assert kernels.get("mine") is mine
    again = pickle.loads(pickle.dumps(mine))  # registered, so the name means the copy now
    assert kernels.get("mine") is again


def test_what_a_name_meant_does_not_change():
    """A kernel that calls another one by name calls the one that the name meant then."""
    kernel("def helper(x): return x + 1")
    kernel("def caller(x): return helper(x) * 2")
    kernel("def helper(x): return x + 100")
    register("a", "b")
    gc.collect()
    one = buffer([1.0], device="reference")
    assert kernels.get("caller")(one).read_list() == [4.0]
    assert kernels.get("helper")(one).read_list() == [101.0]


def test_limits_inputs_and_params_stay():
    text = "def slow(x, n):\n    for _ in range(n):\n        x = x + 1\n    return x"
    Kernel.register("slow", text, 1, ["n"], limits=dala.limits(iterations=3))
    register("a", "b")
    gc.collect()
    one = buffer([1.0], device="reference")
    assert kernels.get("slow")(one, n=3).read_list() == [4.0]
    with pytest.raises(LimitExceeded):
        kernels.get("slow")(one, n=4)


def test_functions_and_copies_stay():
    @kernel
    def plus(x):
        return x + 1.0

    Kernel.register("other", plus)
    del plus
    register("a", "b")
    gc.collect()
    one = buffer([1.0], device="reference")
    assert [kernels.get(name)(one).read_list() for name in ("plus", "other")] == [[2.0], [2.0]]


def test_unregistered_names_are_gone():
    register("a", "b", "c")
    for name in ("a", "c"):
        Kernel.unregister(name)
        for call in (Kernel.unregister, kernels.get):
            with pytest.raises(UnknownKernel, match=f"no kernel '{name}'"):
                call(name)
    register("a")
    assert kernels.get("a").name == "a"
