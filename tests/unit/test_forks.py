"""The registry of locks and threads: what a forked child finds."""

import gc
import os
import subprocess
import sys
import textwrap
import threading

import pytest

from dala import forks

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")

BEGIN = """
import os, signal, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of forks in processes with threads
from dala import forks

def fork(child):
    '''Run a function in a child and return its exit code; a child that hangs is an error.'''
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        try:
            child()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def hold(*guards):
    '''Hold locks on another thread; return a function that releases them.'''
    held, end = threading.Event(), threading.Event()
    def run():
        for guard in guards:
            guard.acquire()
        held.set()
        end.wait()
        for guard in reversed(guards):
            guard.release()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    held.wait()
    return lambda: (end.set(), thread.join())
"""


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_everything_is_free_in_a_child():
    out = run("""
        lock, again, changed = forks.lock(), forks.rlock(), forks.condition()
        shared = forks.condition(lock)
        event, room, latch = forks.event(), forks.semaphore(2), forks.latch()
        event.set()
        room.acquire(), room.acquire()
        waiter = threading.Thread(target=lambda: changed.acquire() and changed.wait(), daemon=True)
        waiter.start()
        while changed.acquire() and not changed._waiters:
            changed.release()
        changed.release()
        order = []
        forks.in_child(lambda: order.append("first"))
        forks.in_child(lambda: order.append("second"))
        class Pool:
            def reset(self):
                order.append("method")
        kept, dropped = Pool(), Pool()
        forks.in_child(dropped.reset)
        forks.in_child(kept.reset)
        del dropped

        def child():
            assert forks.generation() == 1
            for guard in (lock, again, changed):
                assert guard.acquire(timeout=0), guard
                guard.release()
            with shared:  # over the lock
                assert lock.locked()
            assert event.is_set() and latch.locked()
            assert room.acquire(timeout=0) and room.acquire(timeout=0)
            assert not room.acquire(timeout=0)
            assert order == ["first", "second", "method"], order
            # A waiting thread of the parent does not take the notice of one of the child.
            got = []
            def wait():
                with changed:
                    got.append(changed.wait(20))
            thread = forks.thread(wait, name="waits")
            thread.start()
            while not got:
                with changed:
                    changed.notify()
            assert got == [True]
            assert fork(lambda: print("generation", forks.generation())) == 0

        release = hold(lock, again)
        assert fork(child) == 0
        assert forks.generation() == 0 and order == []
        assert lock.locked() and not room.acquire(timeout=0)
        release()
        assert not lock.locked()
        print("end")
    """)
    assert out == "generation 2\nend\n"


def test_fork_waits_for_native_calls():
    out = run("""
        first, second = forks.native_lock("One"), forks.native_lock("Two")
        release = hold(first)
        threading.Timer(0.2, release).start()
        def child():
            with first, first, second:
                print("usable")
        with second:  # the forking thread may hold some itself
            assert fork(child) == 0
        with first, second:
            pass
        # Threads that hold one while they wait for the other, and forks meanwhile.
        stop = False
        def work(a, b):
            while not stop:
                with a, b:
                    pass
        threads = [threading.Thread(target=work, args=p) for p in ((first, second),) * 2]
        for thread in threads:
            thread.start()
        for _ in range(5):
            assert fork(child) == 0
        stop = True
        for thread in threads:
            thread.join()
    """)
    assert out == "usable\n" * 6


IMPORTING = """
import importlib.abc, importlib.machinery, os, signal, sys, threading
from dala import forks

entered, wanted = threading.Event(), threading.Event()
guard = forks.native_lock("Example")

class Slow(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name != "dala.slow":
            return None
        if PART == "finding":
            entered.set()
            assert wanted.wait(60)  # until the fork waits
        return importlib.machinery.ModuleSpec(name, self)
    def exec_module(self, module):
        if PART != "finding":
            entered.set()
            assert wanted.wait(60)
        with guard:  # a module may call a library
            module.answer = 42

sys.meta_path.insert(0, Slow())
seen = forks._importing
def importing():
    found = seen()
    if found:
        wanted.set()
    return found
forks._importing = importing
forks.IMPORT_SECONDS = 60.0

thread = threading.Thread(target=lambda: __import__("dala.slow"))
if PART == "later":  # it begins when the fork has all locks
    take = forks._take_native_locks
    def taken():
        take()
        if thread.ident is None:
            thread.start()
            assert entered.wait(60)
    forks._take_native_locks = taken
else:
    thread.start()
    assert entered.wait(60)
child = os.fork()
if child == 0:
    signal.alarm(30)
    from dala.slow import answer
    os._exit(answer)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
"""


@pytest.mark.parametrize("part", ["finding", "running", "later"])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_fork_waits_for_imports(part):
    """A module that another thread was importing would never be complete in the child."""
    done = subprocess.run(
        [sys.executable, "-c", f"PART = {part!r}\n{IMPORTING}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")


def test_native_call_that_does_not_end():
    out = run("""
        forks.NATIVE_SECONDS = 0.2
        stuck, fine = forks.native_lock("Stuck"), forks.native_lock("Fine")
        release = hold(stuck)
        def child():
            with fine:
                print("fine")
            with stuck:
                print("never")
        assert fork(child) == 1
        release()
        assert fork(lambda: stuck.__enter__()) == 0
    """)
    assert out == (
        "fine\nDeviceError: Stuck cannot be used in this process: it was forked while another "
        "thread of its parent was in a call that took more than 0.2 s. Start processes with "
        "multiprocessing.get_context('spawn').\n"
    )


def test_registered_objects_are_collected():
    before = len(forks._locks), len(forks._resets), len(forks._native)

    class Pool:
        def __init__(self):
            self.lock, self.native = forks.lock(), forks.native_lock("Example")
            self.changed, self.event = forks.condition(), forks.event()
            forks.in_child(self.reset)

        def reset(self):
            pass

    pools = [Pool() for _ in range(10)]
    assert len(forks._resets) == before[1] + 10
    del pools
    gc.collect()
    assert (len(forks._locks), len(forks._resets), len(forks._native)) == before


def test_locks_are_plain():
    """A wrapper would cost each use."""
    assert type(forks.lock()) is type(threading.Lock())
    assert type(forks.rlock()) is type(threading.RLock())


def test_no_python_code_runs_between_the_lock_of_a_condition_and_its_block():
    changed, ran = forks.condition(), []
    sys.setprofile(lambda frame, event, argument: ran.append(event))
    with changed:  # Ctrl-C in such code would leave the condition locked
        pass
    sys.setprofile(None)
    assert "call" not in ran
