"""Each module of these tests starts without threads that earlier ones left to the collector."""

from __future__ import annotations

import gc
import threading

import pytest


@pytest.fixture(scope="module", autouse=True)
def no_threads_of_other_modules() -> None:
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith("dala video"):
            thread.join(30)
