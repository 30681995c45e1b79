"""Threads that give way: those that are named, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from dala.cli import _priority as priority

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux's way")

NICE = """
import os, threading
from dala.cli import priority

def told(number):
    return os.getpriority(os.PRIO_PROCESS, number)

go, there = threading.Event(), threading.Event()
numbers = {}

def wait(name):
    numbers[name] = threading.get_native_id()
    there.set()
    go.wait()

def start(name):
    there.clear()
    thread = threading.Thread(target=wait, args=(name,))
    thread.start()
    there.wait()
    return thread

first = start("before")
preparing = priority.threads()
second = start("after")
priority.give_way(preparing)
print(told(os.getpid()), told(numbers["before"]), told(numbers["after"]))
go.set()
first.join(), second.join()
priority.give_way(preparing)  # one of them has ended
"""


@linux
def test_those_that_are_named_give_way():
    done = subprocess.run([sys.executable, "-c", NICE], capture_output=True, text=True, check=True)
    base = os.getpriority(os.PRIO_PROCESS, 0)
    less = min(max(base, priority.LESS), 19)
    assert done.stdout.split() == [str(less), str(less), str(base)]


@linux
def test_all_threads_are_told():
    assert threading.get_native_id() in priority.threads()


def test_elsewhere_nothing_is_told(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert priority.threads() == []
