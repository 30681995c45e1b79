"""The drawing calls in machine code: they are their careful twins in Python, only quicker."""

from __future__ import annotations

import gc
import inspect
import os
import pickle
import subprocess
import sys
import threading
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dala import gpu
from dala.errors import CommandError, FreedError
from dala.gpu import calls, command
from dala.gpu.draw import Surface, create_surface

pytestmark = pytest.mark.skipif(
    not calls.known_interpreter(), reason="another interpreter: the calls are in Python here"
)

NUMBERS = st.one_of(
    st.integers(-10, 100),
    st.sampled_from([2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32 - 1, 2**32]),
    st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), 2**100, -(2**100)]),
    st.sampled_from([True, 1.0, 1.5, "1", None, np.int32(3), np.uint8(7), float("nan")]),
)
COLORS = st.one_of(
    st.sampled_from(["red", "Red ", "#123", "#12345678", "rad", (1, 2, 3), (1, 2, 3, 4), (1, 2)]),
    st.sampled_from([[1, 2, 3], (1.0, 2, 3), (256, 0, 0), None, 7, (1, [2], 3), b"abcd", ()]),
)


class Queue:
    """A surface's queue without its thread: what calls put is kept."""

    def __init__(self, surface):
        self.renderer = surface._renderer
        self.here, self.go_on = self.renderer.pause()
        assert self.here.wait(10)

    def __enter__(self):
        return self

    def taken(self):
        items = self.renderer._items
        found, items[:] = list(items), []
        return found

    def __exit__(self, *_):
        self.taken()
        self.go_on.set()


@pytest.fixture(scope="module")
def s():
    with create_surface(8, 8) as made:
        yield made


def outcome(call, *arguments, **named):
    try:
        return call(*arguments, **named)
    except Exception as error:
        return type(error), str(error).replace("Surface.", "")


@pytest.fixture(scope="module", autouse=True)
def installed():
    """Also where nothing is on disk yet: then they come later by themselves."""
    if not inspect.isbuiltin(gpu.fill_rect):
        calls.Late(sys.modules["dala.gpu.draw"], Surface).install()


def test_they_are_installed():
    for name in calls.CALLS:
        assert inspect.isbuiltin(getattr(gpu, name)), name
        assert inspect.ismethoddescriptor(Surface.__dict__[name]), name
    assert command.join is not None


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_a_call_puts_the_bytes_that_encode_gives_or_fails_as_it_does(s, data):
    name = data.draw(st.sampled_from(sorted(calls.CALLS)))
    layout = command.LAYOUTS[command.OPCODES[calls.CALLS[name]]]
    arguments = [
        data.draw(COLORS if kind == "rgba" else NUMBERS, label=field)
        for field, kind in layout.fields
    ]
    want = outcome(getattr(command, f"encode_{calls.CALLS[name]}"), *arguments)
    for way in (lambda *a: getattr(gpu, name)(s, *a), getattr(s, name)):
        with Queue(s) as queue:
            came = outcome(way, *arguments)
            put = queue.taken()
        if isinstance(want, bytes):
            assert (came, put) == (None, [want])
        else:
            assert (came, put) == (want, [])


def test_keywords_and_wrong_counts_are_pythons(s):
    with Queue(s) as queue:
        gpu.fill_rect(s, 1, 2, 3, 4, color="red")
        gpu.fill_rect(s=s, x=1, y=2, w=3, h=4, color="red")
        s.fill_rect(1, 2, 3, h=4, color="red")
        s.fill_rect(x=1, y=2, w=3, h=4, color="red")
        assert queue.taken() == 4 * [command.encode_fill_rect(1, 2, 3, 4, "red")]
        for call, arguments in product((gpu.fill_rect, s.fill_rect), ((), (1,), range(7))):
            with pytest.raises(TypeError, match=r"fill_rect\(\)"):
                call(*arguments)
        for count in (30, 31, 32, 100):
            with pytest.raises(TypeError, match="takes 6 positional"):
                s.fill_rect(*range(count))
        many = {f"k{n}": n for n in range(50)}
        for call in (lambda **k: gpu.fill_rect(s, **k), s.fill_rect):
            with pytest.raises(TypeError):
                call(**many)
        assert queue.taken() == []


def test_what_is_no_surface_and_a_surface_of_ones_own(s):
    for wrong in (None, 3, "s", object(), Surface):
        with pytest.raises(CommandError, match="fill_rect: the first argument is a Surface"):
            gpu.fill_rect(wrong, 1, 2, 3, 4, "red")
    with pytest.raises(TypeError, match="'fill_rect'"):
        Surface.fill_rect(3, 1, 2, 3, 4, "red")

    class Own(Surface):
        def fill_rect(self, *arguments):
            super().fill_rect(*arguments)

    with Own(2, 1) as own:
        gpu.fill_rect(own, 0, 0, 1, 1, "red")
        own.fill_rect(1, 0, 1, 1, "lime")
        assert own.get_pixels() == b"\xff\0\0\xff\0\xff\0\xff"


def test_a_closed_surface_and_one_that_was_never_made():
    s = create_surface(2, 2)
    s.close()
    for call in (s.blit, lambda *a: gpu.blit(s, *a)):
        with pytest.raises(FreedError, match="blit: the surface was destroyed"):
            call(1, 2, 3)
    bare = Surface.__new__(Surface)
    for call in (bare.blit, lambda *a: gpu.blit(bare, *a)):
        with pytest.raises((CommandError, AttributeError)):
            call(1, 2, 3)


def test_a_colour_that_closes_the_surface_while_it_is_looked_up():
    s = create_surface(2, 2)

    class Sly(int):
        def __hash__(self):
            s.close()
            return 1

        __eq__ = int.__eq__

    with pytest.raises(FreedError):
        gpu.fill_rect(s, 0, 0, 1, 1, (Sly(1), 2, 3))


def test_an_interrupt_in_a_colours_hash_is_passed_on(s):
    class Loud(int):
        def __hash__(self):
            raise KeyboardInterrupt

        __eq__ = int.__eq__

    for call in (s.clear, lambda c: gpu.clear(s, c)):
        with pytest.raises(KeyboardInterrupt):
            call((Loud(1), 2, 3))


def test_nothing_is_kept_of_arguments_and_bytes(s):
    number, color, odd = 2**31 - 5, (11, 12, 13, 14), (1.5, [])
    s.fill_rect(number, 1, 1, 1, color)
    things = (number, color, odd, s, gpu.fill_rect)
    with Queue(s) as queue:
        gc.collect()
        before = [sys.getrefcount(thing) for thing in things]
        for _ in range(1000):
            gpu.fill_rect(s, number, 1, 1, 1, color)
            s.fill_rect(1, number, 1, 1, color)
            s.blit(number, 1, 1)
            for wrong in ((number, 1, 1, odd, color), (number, 1, 1, -1, color), (number, odd)):
                with pytest.raises((CommandError, TypeError)):
                    s.fill_rect(*wrong)
        none = sys.getrefcount(None)
        for _ in range(2000):
            gpu.clear(s, color)
            s.clear(color)
        assert abs(sys.getrefcount(None) - none) < 500
        (last,) = queue.taken()[-1:]
        assert sys.getrefcount(last) == 2
        gc.collect()  # errors are in cycles with their frames
        after = [sys.getrefcount(thing) for thing in things]
    assert after == pytest.approx(before, abs=20)


def test_names_documents_signatures_and_pickles():
    for name in calls.CALLS:
        function, method = getattr(gpu, name), getattr(Surface, name)
        assert (function.__name__, function.__module__) == (name, "dala.gpu.draw")
        assert method.__qualname__ == f"Surface.{name}"
        assert len(function.__doc__) > 10
        assert len(method.__doc__) > 10
        assert next(iter(inspect.signature(function).parameters)) == "s"
        assert pickle.loads(pickle.dumps(function)) is function


def test_many_threads_put_whole_commands(s):
    with create_surface(64, 64) as many:

        def work(n):
            for y in range(64):
                for _ in range(40):
                    gpu.fill_rect(many, n * 8, y, 8, 1, (n + 1, y, 7))
                    many.draw_line(n * 8, y, n * 8 + 7, y, (n + 1, y, 9))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pixels = many.to_array()
    y, x = np.mgrid[:64, :64]
    want = np.stack([x // 8 + 1, y, np.full_like(x, 9), np.full_like(x, 255)], 2)
    assert np.array_equal(pixels, want)


# batches --------------------------------------------------------------------------------------
@given(st.lists(st.binary(min_size=1, max_size=70), max_size=40))
@settings(deadline=None)
def test_a_list_of_bytes_is_joined_to_a_batch(items):
    want = b"\x15" + len(items).to_bytes(4, "little") + b"".join(items)
    assert command.join(items) == want
    assert command.encode_batch(items) == command.encode_batch(tuple(items)) == want


@pytest.mark.parametrize("size", [1, 15, 16, 17, 31, 32, 33, 4096, 100_001])
def test_items_of_any_size_are_copied_whole(size):
    item = np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes()
    assert command.join([item, b"\x05", item])[5:] == item + b"\x05" + item


class Text(bytes):
    pass


@pytest.mark.parametrize("odd", [b"", bytearray(b"\x05"), Text(b"\x05"), 5, None, "\x05", [b"a"]])
def test_what_is_not_all_bytes_is_left_to_python(odd):
    for place in range(3):
        items = [b"\x05", b"\x14"]
        items.insert(place, odd)
        assert command.join(items) is None
    for given_ in ((b"\x05",), b"\x05", None, iter([b"\x05"]), {b"\x05": 1}):
        assert command.join(given_) is None


# where they are not ---------------------------------------------------------------------------
PLAIN = """
from dala.gpu import calls
calls.known_interpreter = lambda: False
from dala import gpu
import inspect
with gpu.create_surface(4, 1) as s:
    assert inspect.isfunction(gpu.fill_rect) and inspect.isfunction(gpu.Surface.fill_rect)
    gpu.fill_rect(s, 0, 0, 1, 1, "red")
    s.fill_rect(1, 0, 1, 1, "lime")
    s.batch([gpu.command.encode_fill_rect(2, 0, 1, 1, "blue")])
    print(s.get_pixels().hex())
"""


def test_all_of_it_works_in_python_alone():
    done = subprocess.run(
        [sys.executable, "-c", PLAIN], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == "ff0000ff00ff00ff0000ffff00000000", done.stderr


# where their code is not on disk yet ----------------------------------------------------------
BEGIN = """
import inspect, os, sys, threading, time
from dala import gpu
from dala.gpu import calls, command, create_surface, draw_line, fill_rect
from dala.gpu.compute.engines.cpu.jit import jit

def until(fine):
    end = time.monotonic() + 30
    while not fine():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.001)

def helpers():
    return [t for t in threading.enumerate() if t.name == "dala-calls"]

assert inspect.isfunction(fill_rect) and inspect.isfunction(gpu.Surface.fill_rect)
s = create_surface(64, 64)
s.fill_rect(0, 0, 1, 1, "red")
s.synchronize()
assert jit().compiled == 1 and not helpers()  # what draws, and nothing else
"""
SWITCHED = """
method = s.fill_rect
for n in range(calls.MANY):
    fill_rect(s, n % 64, 0, 1, 1, (1, 2, 3))
s.synchronize()
until(lambda: inspect.isbuiltin(gpu.fill_rect) and inspect.isbuiltin(gpu.draw_line))
until(lambda: not helpers() and command.join is not None)
assert inspect.isfunction(fill_rect) and fill_rect.__doc__ == "A filled rectangle."
assert list(inspect.signature(fill_rect).parameters) == ["s", "x", "y", "w", "h", "color"]
fill_rect(s, 0, 0, 1, 1, (1, 0, 0))
fill_rect(s, x=1, y=0, w=1, h=1, color=[2, 0, 0])
gpu.fill_rect(s, 2, 0, 1, 1, color=(3, 0, 0))
s.fill_rect(3, 0, 1, 1, (4, 0, 0))
method(4, 0, 1, 1, (5, 0, 0))
draw_line(s, 5, 0, 5, 0, (6, 0, 0))
for wrong in ((s, 1), (None, 1, 2, 3, 4, "red"), (s, 1, 2, 3, 4, "rad"), (s, 1, -2, 3, 4, "red")):
    told = []
    for call in (fill_rect, gpu.fill_rect):
        try:
            call(*wrong)
        except Exception as error:
            told.append((type(error), str(error)))
    assert len(told) == 2 and told[0] == told[1], told
print(s.read_pixels(0, 0, 6, 1)[::4].hex())
"""
ENDS = """
for n in range(calls.MANY):
    fill_rect(s, n % 64, 0, 1, 1, (1, 2, 3))
s.synchronize()
print("010203040506")
"""
BATCHES = """
for n in range(2):
    s.batch([command.encode_fill_rect(0, 0, 1, 1, (1, 2, 3))] * (calls.MANY // 2))
until(lambda: inspect.isbuiltin(gpu.fill_rect))
print("010203040506")
"""
FORKED = """
child = os.fork()
if child == 0:
    mine = create_surface(64, 64)
    for n in range(2 * calls.MANY):
        fill_rect(mine, n % 64, 0, 1, 1, (n % 64 + 1, 2, 3))
    done = mine.read_pixels(0, 0, 6, 1)[::4].hex()
    assert not helpers() and inspect.isfunction(gpu.fill_rect) and jit().compiled == 1
    print(done, flush=True)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.parametrize(
    "code", [SWITCHED, ENDS, BATCHES, FORKED], ids=["switched", "ends", "batches", "forked"]
)
def test_they_come_later_where_they_have_to_be_compiled(code, tmp_path):
    if code is FORKED and not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", BEGIN + code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "DALA_CACHE_DIR": str(tmp_path)},
    )
    assert (done.stdout, done.stderr, done.returncode) == ("010203040506\n", "", 0)


LATE = """
import atexit
from dala import gpu
class Late:
    def __del__(self, draw=gpu.fill_rect, s=gpu.create_surface(4, 4)):
        try:
            draw(s, 0, 0, 1, 1, "red")
        except Exception as error:
            print(type(error).__name__)
import sys
sys.late = Late()
"""


def test_drawing_when_the_interpreter_ends_is_refused():
    done = subprocess.run(
        [sys.executable, "-c", LATE], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("FreedError", "")
