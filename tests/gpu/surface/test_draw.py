"""The drawing calls: functions and methods put the encoded command into the surface's queue."""

from __future__ import annotations

import inspect
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
from dala.gpu import command, draw, protocol
from dala.gpu.surface import Surface, create_surface
from dala.gpu.vector.shapes import PENS, as_shape, has_fraction

#: The commands of fixed size with fields, other than those that wait or check more.
DRAWING = [
    row
    for row in protocol.COMMANDS
    if row.struct is not None
    and row.fields
    and not row.checked
    and row.name not in ("read_pixels", "resize")
]
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
    """The queue of a surface whose render thread is paused: commands stay in it."""

    def __init__(self, surface):
        self.renderer = surface._renderer
        self.paused, self.resume = self.renderer.pause()
        assert self.paused.acquire(timeout=300)

    def __enter__(self):
        return self

    def taken(self):
        items = self.renderer._items
        found, items[:] = list(items), []
        return found

    def __exit__(self, *_):
        self.taken()
        self.resume.release()


@pytest.fixture(scope="module")
def s():
    with create_surface(8, 8) as made:
        yield made


def outcome(call, *arguments, **named):
    try:
        return call(*arguments, **named)
    except Exception as error:
        return type(error), str(error)


# the protocol table ---------------------------------------------------------------------------
_FILL = {"path": "Path | int", "paint": "Paint", "rule": "str"}
_STROKE = {
    "path": "Path | int", "paint": "Paint", "width": "float", "cap": "str", "join": "str",
    "miter": "float", "dash": "Sequence[float]", "offset": "float",
}  # fmt: skip
_LAYER = {
    "opacity": "float", "blend": "str",
    "shadow": "tuple[float, float, float, ColorLike] | None", "blur": "float",
    "filters": "Sequence[Filter]",
}  # fmt: skip
#: Calls with arguments of their own.
OWN_CALLS = {
    "dispatch_compute": {
        "shader": "str | Kernel | KernelProgram", "params": "BytesLike | Params",
        "workgroups": "tuple[int, int, int]",
    },
    **dict.fromkeys(("fill_path", "fill_shape"), _FILL),
    **dict.fromkeys(("begin_layer", "end_layer"), _LAYER),
    "clip_shape": {"path": "Path", "rule": "str"},
    **dict.fromkeys(("stroke_path", "stroke_shape"), _STROKE),
}  # fmt: skip


def typed(function):
    found = inspect.signature(function).parameters.values()
    return {p.name: str(p.annotation).removeprefix("collections.abc.") for p in found}


@pytest.mark.parametrize("row", protocol.COMMANDS, ids=lambda row: row.name)
def test_encoder_function_and_method_agree_with_the_table(row):
    encoder = getattr(command, f"encode_{row.name}")
    function = getattr(gpu, row.function)
    kinds = {name: kind.python for name, kind in row.kinds.items()}
    called = dict(zip(row.call_arguments, kinds.values(), strict=True))
    if row.name != "dispatch_compute":
        assert typed(encoder) == kinds
    if row.function in PENS:
        called["width"] = "float | None"
    assert typed(function) == {"s": "Surface"} | OWN_CALLS.get(row.name, called)
    assert getattr(draw, row.function) is function is getattr(Surface, row.function)
    assert row.function in gpu.__all__
    assert encoder.__name__ in command.__all__


def test_every_public_encoder_is_in_the_table():
    encoders = {name for name in vars(command) if name.startswith("encode_")}
    assert encoders - {"encode_commands"} == {f"encode_{row.name}" for row in protocol.COMMANDS}


# calls ----------------------------------------------------------------------------------------
def encoded(row, arguments):
    """Return the command that a call queues, where positions of rectangles may be negative."""
    name = row.name.removesuffix("_signed")
    if has_fraction(name, arguments):
        return as_shape(name, arguments)
    if name in ("fill_rect", "set_clip", "draw_round_rect", "fill_round_rect"):
        place = [protocol.as_int(a) for a in arguments[:2]]
        for field, number, value in zip("xy", place, arguments, strict=False):
            if number is None or not -(2**31) <= number < 2**32:
                expected = "an int from -2147483648 to 4294967295"
                raise CommandError.invalid(name, field, expected, value)
        if min(place) < 0 and "round" in name:
            name += "_signed"
            arguments = [*(min(number, 2**31 - 1) for number in place), *arguments[2:]]
        elif min(place) < 0:
            arguments = [*(max(number, 0) for number in place), *arguments[2:]]
            for n, number in enumerate(place):
                size = protocol.as_int(arguments[2 + n])
                if size is not None and 0 <= size < 2**32:
                    arguments[2 + n] = max(size + min(number, 0), 0)
    return getattr(command, f"encode_{name}")(*arguments)


@pytest.mark.parametrize("x", [-9, -3, 0, 2])
@pytest.mark.parametrize("y", [-3, 1])
def test_negative_positions_draw_what_is_on_the_surface(x, y):
    """The same as drawing on a larger surface, of which this one is a part."""
    from dala.gpu.raster import Canvas

    with create_surface(8, 8) as s:
        s.fill_rect(x, y, 7, 6, (200, 0, 0, 255))
        s.fill_round_rect(x + 1, y - 2, 9, 8, 3, (0, 200, 0, 128))
        s.draw_round_rect(x, y, 10, 9, 2, (0, 0, 200, 128))
        s.set_clip(x, y, 6, 6)
        s.fill_rect(-(2**31), -(2**31), 2**32 - 1, 2**32 - 1, (9, 9, 9, 50))
        s.clear("white")
        got = s.to_array()
    large = Canvas(40, 40)
    a, b = x + 16, y + 16
    large.run(
        command.encode_fill_rect(a, b, 7, 6, (200, 0, 0, 255))
        + command.encode_fill_round_rect(a + 1, b - 2, 9, 8, 3, (0, 200, 0, 128))
        + command.encode_draw_round_rect(a, b, 10, 9, 2, (0, 0, 200, 128))
        + command.encode_set_clip(a, b, 6, 6)
        + command.encode_clear("white")
    )
    np.testing.assert_array_equal(got, large.pixels[16:24, 16:24])


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_call_queues_the_encoded_bytes_or_raises_the_same_error(s, data):
    row = data.draw(st.sampled_from(DRAWING))
    name = row.function
    arguments = [
        data.draw(COLORS if kind is protocol.rgba else NUMBERS, label=field)
        for field, kind in row.fields
    ]
    want = outcome(encoded, row, arguments)
    for call in (lambda *a: getattr(gpu, name)(s, *a), getattr(s, name)):
        with Queue(s) as queue:
            got = outcome(call, *arguments)
            put = queue.taken()
        if isinstance(want, bytes):
            assert (got, put) == (None, [want])
        else:
            assert (got, put) == (want, [])


def test_keyword_arguments_and_wrong_counts(s):
    with Queue(s) as queue:
        gpu.fill_rect(s, 1, 2, 3, 4, color="red")
        gpu.fill_rect(s=s, x=1, y=2, w=3, h=4, color="red")
        s.fill_rect(1, 2, 3, h=4, color="red")
        s.fill_rect(x=1, y=2, w=3, h=4, color="red")
        assert queue.taken() == 4 * [command.encode_fill_rect(1, 2, 3, 4, "red")]
        for call, arguments in product((gpu.fill_rect, s.fill_rect), ((), (1,), range(7))):
            with pytest.raises(TypeError, match=r"fill_rect\(\)"):
                call(*arguments)
        assert queue.taken() == []


def test_first_argument_must_be_a_surface_and_may_be_a_subclass():
    for wrong in (None, 3, "s", object(), Surface):
        with pytest.raises(CommandError, match="fill_rect: s must be a Surface"):
            gpu.fill_rect(wrong, 1, 2, 3, 4, "red")

    class Own(Surface):
        def fill_rect(self, *arguments):
            super().fill_rect(*arguments)

    with Own(2, 1) as own:
        gpu.fill_rect(own, 0, 0, 1, 1, "red")
        own.fill_rect(1, 0, 1, 1, "lime")
        assert own.get_pixels() == b"\xff\0\0\xff\0\xff\0\xff"


def test_closed_surface():
    s = create_surface(2, 2)
    s.close()
    for call in (s.blit, lambda *a: gpu.blit(s, *a)):
        with pytest.raises(FreedError, match="blit: the surface was destroyed"):
            call(1, 2, 3)


def test_color_whose_hash_closes_the_surface():
    s = create_surface(2, 2)

    class Closing(int):
        def __hash__(self):
            s.close()
            return 1

        __eq__ = int.__eq__

    with pytest.raises(FreedError):
        gpu.fill_rect(s, 0, 0, 1, 1, (Closing(1), 2, 3))


def test_interrupt_in_the_hash_of_a_color_is_passed_on(s):
    class Interrupting(int):
        def __hash__(self):
            raise KeyboardInterrupt

        __eq__ = int.__eq__

    for call in (s.clear, lambda c: gpu.clear(s, c)):
        with pytest.raises(KeyboardInterrupt):
            call((Interrupting(1), 2, 3))


def test_functions_have_docstrings_signatures_and_can_be_pickled():
    for row in DRAWING:
        function = getattr(gpu, row.function)
        assert function.__name__ == row.function
        assert len(function.__doc__) > 10
        assert pickle.loads(pickle.dumps(function)) is function


def test_many_threads_queue_whole_commands():
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


@given(st.lists(st.binary(min_size=1, max_size=70), max_size=40))
@settings(deadline=None)
def test_batch_is_an_opcode_a_count_and_the_commands(items):
    want = b"\x15" + len(items).to_bytes(4, "little") + b"".join(items)
    assert command.encode_batch(items) == command.encode_batch(tuple(items)) == want


LATE = """
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


def test_drawing_at_interpreter_exit_is_refused():
    done = subprocess.run(
        [sys.executable, "-c", LATE], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("FreedError", "")
