"""``dala.limits``: validation, nesting, threads and tasks."""

from __future__ import annotations

import asyncio
import threading
from time import monotonic

import pytest

import dala
from dala import budget
from dala.offload import LoopWorker


def test_limits_are_values():
    made = dala.limits(time=2, iterations=1e6, memory=2**30)
    assert (made.time, made.iterations, made.memory) == (2.0, 1_000_000, 2**30)
    assert isinstance(made.iterations, int)
    assert made == dala.Limits(2.0, 1_000_000, 2**30)
    assert hash(made) == hash(dala.limits(2.0, 10**6, 2**30))
    with pytest.raises(AttributeError):
        made.time = 3


@pytest.mark.parametrize("name", ["time", "iterations", "memory"])
@pytest.mark.parametrize("value", [0, -1, "2", True, float("nan"), [1], float("-inf")])
def test_wrong_limits_are_refused(name, value):
    with pytest.raises(dala.ParameterError, match=rf"^dala.limits: {name} must be a positive"):
        dala.limits(**{name: value})


@pytest.mark.parametrize("name", ["iterations", "memory"])
def test_counts_are_whole(name):
    with pytest.raises(dala.ParameterError, match="must be a positive number"):
        dala.limits(**{name: 1.5})


def test_there_are_no_limits_outside_of_blocks():
    assert budget.current() == dala.Limits()
    assert budget.deadline() is None
    budget.check_deadline("call")


def test_the_tighter_limit_holds():
    with dala.limits(time=1000, iterations=10):
        outer = budget.deadline()
        with dala.limits(time=2000, iterations=20, memory=5):
            assert budget.current() == dala.Limits(1000.0, 10, 5)
            assert budget.deadline() == outer
        with dala.limits(time=10, iterations=5):
            assert budget.current() == dala.Limits(10.0, 5, None)
            assert budget.deadline() < outer
        assert budget.current() == dala.Limits(1000.0, 10)
    assert budget.current() == dala.Limits()


def test_a_block_ends_with_an_error_and_can_be_entered_again():
    block = dala.limits(iterations=3)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), block, block:
            assert budget.current().iterations == 3
            raise ZeroDivisionError
        assert budget.current() == dala.Limits()


def test_the_deadline_counts_from_the_beginning_of_the_block():
    block = dala.limits(time=100)
    before = monotonic()
    with block:
        assert before + 100 <= budget.deadline() <= monotonic() + 100
    with dala.limits(time=1e300):  # longer than the system can wait
        budget.check_deadline("call")


def test_a_deadline_that_has_passed():
    with dala.limits(time=1e-9):
        while monotonic() < budget.deadline():
            pass
        with pytest.raises(dala.CommandTimeout, match=r"^call: ended after the 1e-09 s of") as info:
            budget.check_deadline("call")
    assert (info.value.call, info.value.argument, info.value.got) == ("call", "time", 1e-9)
    assert isinstance(info.value, TimeoutError)


def test_a_block_belongs_to_its_thread_and_can_be_applied_on_another():
    seen = []

    def look(scope):
        seen.append(budget.current().memory)
        with budget.applied(scope):
            seen.append((budget.current().memory, budget.deadline()))
        seen.append(budget.current().memory)

    with dala.limits(memory=7, time=50):
        thread = threading.Thread(target=look, args=(budget.capture(),))
        thread.start()
        thread.join()
        assert seen == [None, (7, budget.deadline()), None]


def test_workers_of_asyncio_have_the_limits_of_their_caller():
    worker = LoopWorker("test")

    async def child():
        with dala.limits(iterations=2):
            await asyncio.sleep(0)
            return (await worker.run(budget.current)).iterations

    async def main():
        with dala.limits(iterations=9):
            task = asyncio.create_task(child())
            own = await worker.run(budget.current)
            return own.iterations, await task, budget.current().iterations

    assert asyncio.run(main()) == (9, 2, 9)
