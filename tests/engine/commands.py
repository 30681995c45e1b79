"""Commands that tests of submitting hold back or break."""

from __future__ import annotations

import dataclasses
import threading

import dala
from dala.gpu.compute import (
    Kernel,
)

LONG = 60.0


def spec(kernel, inputs, output, params=None):
    found = {"op": "run_kernel", "kernel": kernel, "inputs": inputs, "output": output}
    return found if params is None else {**found, "params": params}


def hooked(name, inputs, output, before, text="def f(x):\n    return x + 1"):
    """Return a kernel that calls ``before()`` first when it runs on buffers like these."""
    made = Kernel.register(name, text)
    plan = made.plan(inputs, output)[0]

    def run(*args):
        before()
        plan.run(*args)

    (key,) = made._plans
    made._plans[key] = dataclasses.replace(plan, run=run)
    return made


class Gate:
    """A gate that a kernel waits at; tests see when the kernel arrives."""

    def __init__(self):
        self.reached = threading.Semaphore(0)
        self.open = threading.Event()

    def __call__(self):
        self.reached.release()
        assert self.open.wait(LONG)

    def arrived(self):
        assert self.reached.acquire(timeout=LONG)


def broken():
    raise dala.DeviceError("the device is on fire")


async def awaited(command):
    return await command
