"""Events of a surface without a window: posted, handled, taken, awaited; state of pointer, keys."""

import asyncio
import gc
import logging
import threading
import weakref

import numpy as np
import pytest

import dala
from dala.errors import CommandError, FreedError
from dala.gpu.input import inbox as inbox_module
from dala.gpu.input.events import MAX_ITEMS
from dala.gpu.input.inbox import MAX_EVENTS, Inbox
from dala.notices import MediaNotice


@pytest.fixture
def s():
    with dala.gpu.create_surface(64, 48) as made:
        yield made


def move(x, y, **more):
    return {"event_type": "pointer_move", "x": x, "y": y, **more}


def press(x, y, button=1, **more):
    return {"event_type": "pointer_down", "x": x, "y": y, "button": button, **more}


def release(x, y, button=1, **more):
    return {**press(x, y, button, **more), "event_type": "pointer_up"}


def key(name, down=True, **more):
    return {"event_type": "key_down" if down else "key_up", "key": name, **more}


def types(events):
    return [event["event_type"] for event in events]


# taking -----------------------------------------------------------------------------------------
def test_events_are_taken_once_in_order(s):
    for event in (press(1, 2), move(3, 4), release(3, 4), key("a"), {"event_type": "blur"}):
        s.post_event(event)
    found = s.events()
    assert types(found) == ["pointer_down", "pointer_move", "pointer_up", "key_down", "blur"]
    assert [e["buttons"] for e in found[:3]] == [(1,), (1,), ()]
    stamps = [e["time_stamp"] for e in found]
    assert stamps == sorted(stamps)
    assert s.events() == []
    assert list(s.events()) == []


def test_an_event_is_a_copy(s):
    event = press(1, 2, buttons=[1])
    s.post_event(event)
    event["x"] = 9
    assert s.events()[0]["x"] == 1
    assert "time_stamp" not in event


def test_moves_are_merged_and_presses_are_not(s):
    for n in range(100):
        s.post_event(move(n, n))
    s.post_event(press(5, 5))
    for _ in range(3):
        s.post_event({"event_type": "wheel", "dx": 1, "dy": 100, "x": 5, "y": 5})
    for n in range(3):
        s.post_event(key("a", code=f"Key{n}"))
    found = s.events()
    assert types(found) == ["pointer_move", "pointer_down", "wheel"] + ["key_down"] * 3
    assert found[0]["x"] == 99
    assert (found[2]["dx"], found[2]["dy"]) == (3, 300)


def test_moves_with_other_buttons_are_not_merged(s):
    s.post_event(move(1, 1, buttons=[]))
    s.post_event(move(2, 2, buttons=[1]))
    s.post_event(move(3, 3, buttons=[1], modifiers=["Shift"]))
    assert [e["x"] for e in s.events()] == [1, 2, 3]


def test_a_wrong_event_changes_nothing(s):
    s.post_event(press(1, 1))
    for wrong in (press(float("nan"), 1), key(5), {"event_type": "open"}, 7, press(1, 1, 99)):
        with pytest.raises(CommandError, match="post_event: event"):
            s.post_event(wrong)
    assert s.pointer == (1, 1, (1,))
    assert s.keys == set()
    assert types(s.events()) == ["pointer_down"]


@pytest.fixture
def small(monkeypatch):
    """Bounds that a test reaches soon."""
    monkeypatch.setattr(inbox_module, "MAX_EVENTS", 640)


def test_presses_are_kept_up_to_a_high_bound(s, small, caplog):
    assert MAX_EVENTS >= 10_000
    s.events()  # a program that takes events
    for n in range(320):
        s.post_event(press(n, 0))
        s.post_event(move(n, 1))
    for n in range(160):
        s.post_event(key("a", code=str(n)))
    found = s.events()  # moves gave way, presses did not
    assert [e["x"] for e in found if e["event_type"] == "pointer_down"] == list(range(320))
    assert not caplog.records
    for n in range(1280):
        s.post_event(key("a", code=str(n)))
    found = s.events()
    assert 320 < len(found) <= 640
    numbers = [int(e["code"]) for e in found]
    assert numbers == list(range(1280 - len(found), 1280))  # the newest
    assert [r.getMessage() for r in caplog.records] == [
        "More than 640 events waited. The oldest were dropped."
    ]


def test_a_program_that_takes_nothing_is_not_warned(s, small, caplog):
    for n in range(4000):
        s.post_event(key("a", code=str(n)))
    assert len(s._inbox._waiting) <= 640
    assert int(s.events()[-1]["code"]) == 3999
    assert not caplog.records


# state ------------------------------------------------------------------------------------------
def test_pointer_follows(s):
    assert s.pointer == (0, 0, ())
    assert not s.pointer.inside
    s.post_event(move(63.5, 47.5))
    assert (s.pointer.x, s.pointer.y, s.pointer.buttons, s.pointer.inside) == (63.5, 47.5, (), True)
    s.post_event(press(10, 11))
    s.post_event(press(10, 11, 2))
    assert s.pointer.buttons == (1, 2)
    s.post_event(release(70, 11, 1))
    assert s.pointer == (70, 11, (2,))
    assert not s.pointer.inside
    s.post_event(move(5, 5, buttons=[3]))
    assert s.pointer == (5, 5, (3,))
    assert s.pointer.inside
    s.post_event({"event_type": "pointer_leave"})
    assert not s.pointer.inside
    x, y, buttons = s.pointer
    assert (x, y, buttons) == (5, 5, (3,))
    s.resize(4, 4)
    s.synchronize()
    s.post_event({"event_type": "pointer_enter", "x": 4, "y": 1})
    assert not s.pointer.inside


def test_keys_that_are_made_up_are_bounded(s):
    """A page may send any names; each event looks at all that are held."""
    for n in range(3 * MAX_ITEMS):
        s.post_event(key(f"key {n}"))
    assert len(s.keys) == MAX_ITEMS
    assert f"key {3 * MAX_ITEMS - 1}" in s.keys


def test_keys_follow_and_are_cleared_on_blur(s):
    for name in ("a", "Shift", "ArrowLeft"):
        s.post_event(key(name))
    assert s.keys == {"a", "Shift", "ArrowLeft"}
    s.post_event(key("A", False))  # released while Shift is held
    assert s.keys == {"Shift", "ArrowLeft"}
    s.post_event(key("%", code="Digit5"))
    s.post_event(key("5", False, code="Digit5"))
    s.post_event(key("ArrowUp", False))  # pressed elsewhere
    assert s.keys == {"Shift", "ArrowLeft"}
    s.post_event(press(1, 1))
    assert s.events()[-1]["modifiers"] == ("Shift",)
    s.post_event({"event_type": "blur"})
    assert s.keys == frozenset()
    assert s.pointer.buttons == ()


# handlers ---------------------------------------------------------------------------------------
def test_handlers_in_order_and_once(s):
    calls = []

    @s.on("pointer_down")
    def first(event):
        calls.append(("first", event["x"]))

    second = s.on("pointer_down", lambda event: calls.append(("second", event["x"])))
    s.on("pointer_down", second)  # a second time is one
    s.on("*", lambda event: calls.append(("all", event["event_type"])))
    s.post_event(press(4, 4))
    assert calls == [("first", 4), ("second", 4), ("all", "pointer_down")]
    assert types(s.events()) == ["pointer_down"]  # also for those who take it
    assert len(calls) == 3
    s.off("pointer_down", second)
    s.post_event(press(5, 5))
    s.post_event({"event_type": "focus"})
    assert calls[3:] == [("first", 5), ("all", "pointer_down"), ("all", "focus")]
    with pytest.raises(CommandError, match="off: function must be one that was given to on"):
        s.off("pointer_down", second)


def test_propagation_can_be_stopped(s):
    calls = []
    s.on("key_down", lambda event: event.update(stop_propagation=True))
    s.on("key_down", calls.append)
    s.post_event(key("a"))
    assert calls == []


def test_error_of_a_handler_is_reported_and_stops_nothing(s, caplog):
    calls = []

    @s.on("key_down")
    def fails(event):
        raise ZeroDivisionError("of mine")

    s.on("key_down", calls.append)
    with caplog.at_level(logging.ERROR, "dala"):
        s.post_event(key("a"))
    assert len(calls) == 1
    (error,) = s.errors
    assert "fails of a key_down event failed: ZeroDivisionError: of mine" in str(error)
    (record,) = caplog.records
    assert record.exc_info[0] is ZeroDivisionError  # with its traceback
    s.get_pixels()  # is not raised elsewhere


def test_events_made_by_handlers_come_next_time(s):
    seen = []

    @s.on("key_down")
    def again(event):
        seen.append(event["key"])
        s.post_event(key(event["key"] + "x"))

    s.post_event(key("a"))
    assert seen == ["a"]
    s.events()
    s.events()
    assert seen == ["a", "ax", "axx"]


@pytest.mark.parametrize("wrong", [5, "draw"])
def test_wrong_handlers(s, wrong):
    with pytest.raises(CommandError, match="on: function must be a plain function"):
        s.on("key_down", wrong)
    with pytest.raises(CommandError, match="on: event_type must be one of"):
        s.on("keydown", print)
    with pytest.raises(CommandError, match=r"Did you mean 'key_down'\?"):
        s.on("keydown")

    async def handler(event):
        pass

    with pytest.raises(CommandError, match=r"Coroutines can await s.next_event\(\)"):
        s.on("key_down", handler)


def test_handlers_do_not_keep_the_surface():
    def opened():
        s = dala.gpu.create_surface(4, 4)
        s.on("key_down", lambda event: s.clear("red"))
        return weakref.ref(s), s._renderer._thread

    gone, thread = opened()
    gc.collect()
    assert gone() is None
    thread.join(60)
    assert not thread.is_alive()


# closing ----------------------------------------------------------------------------------------
def test_close_is_the_last_event():
    s = dala.gpu.create_surface(4, 4)
    seen = []
    s.on("close", lambda event: seen.append(s.get_pixels()))  # the surface can still be read
    s.clear("red")
    s.close()
    assert seen == [b"\xff\x00\x00\xff" * 16]
    for call in (s.events, lambda: s.pointer, lambda: s.keys, lambda: s.post_event(key("a"))):
        with pytest.raises(FreedError, match="the surface was destroyed"):
            call()
    s.close()
    assert len(seen) == 1


def test_a_handler_of_close_may_close():
    s = dala.gpu.create_surface(4, 4)
    s.on("close", lambda event: s.close())
    s.post_event({"event_type": "close"})
    assert s.closed


# asyncio ----------------------------------------------------------------------------------------
def test_next_event_waits(s):
    async def program():
        waiting = asyncio.ensure_future(s.next_event())
        await asyncio.sleep(0)
        assert not waiting.done()
        threading.Thread(target=s.post_event, args=(key("a"),)).start()
        assert (await waiting)["key"] == "a"
        s.post_event(key("b"))
        s.post_event(key("c"))
        assert [(await s.next_event())["key"] for _ in range(2)] == ["b", "c"]

    asyncio.run(program())


def test_a_canceled_wait_loses_no_event(s):
    async def program():
        waiting = asyncio.ensure_future(s.next_event())
        await asyncio.sleep(0)
        s.post_event(key("a"))
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert [e["key"] for e in s.events()] == ["a"]
        assert s._inbox._sleepers == []

    asyncio.run(program())


def test_async_for_ends_with_the_surface(s):
    async def program():
        seen = []
        s.post_event(key("a"))
        async for event in s.events():
            seen.append(event["event_type"])
            if len(seen) == 1:
                threading.Thread(target=s.post_event, args=(key("b"),)).start()
            elif len(seen) == 2:
                s.close()
        return seen

    assert asyncio.run(program()) == ["key_down", "key_down", "close"]


def test_waiting_when_the_surface_is_closed(s):
    async def program():
        waiting = asyncio.ensure_future(s.next_event())
        await asyncio.sleep(0)
        s.close()
        assert (await waiting)["event_type"] == "close"
        with pytest.raises(FreedError, match="next_event: the surface was destroyed"):
            await s.next_event()

    asyncio.run(program())


# threads ----------------------------------------------------------------------------------------
def test_events_from_many_threads(s):
    def post(thread):
        for n in range(500):
            s.post_event(key(f"{thread}", code=f"{thread} {n}"))

    threads = [threading.Thread(target=post, args=(n,)) for n in range(4)]
    seen = []
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        seen += s.events()
    seen += s.events()
    assert len(seen) == 2000
    for n in range(4):
        assert [e["code"] for e in seen if e["key"] == f"{n}"] == [f"{n} {i}" for i in range(500)]


def test_a_full_inbox_is_cheap(monkeypatch):
    monkeypatch.setattr(inbox_module, "MAX_EVENTS", 64)
    inbox = Inbox([])
    made = []
    original = Inbox._make_room
    monkeypatch.setattr(
        Inbox, "_make_room", lambda self, queue: (made.append(1), original(self, queue))
    )
    for n in range(6400):
        inbox.put({"event_type": "key_down", "key": "a", "code": str(n)})
    assert len(made) <= 6400 // 7  # room is made for several at once


# properties -------------------------------------------------------------------------------------
def test_properties_without_a_window(s):
    assert (s.title, s.cursor, s.fullscreen, s.clipboard, s.scale) == (
        "dala", "default", False, "", 1.0,
    )  # fmt: skip
    s.title, s.cursor, s.fullscreen, s.clipboard = "mine", "ew_resize", True, "text"
    assert (s.title, s.cursor, s.fullscreen, s.clipboard) == ("mine", "ew-resize", True, "text")
    for name, wrong, expected in [
        ("title", 5, "a str"), ("cursor", "hand", "one of 'default'"), ("cursor", None, "one of"),
        ("fullscreen", 1, "True or False"), ("clipboard", b"", "a str of at most"),
        ("clipboard", "x" * 70000, "a str of at most"),
    ]:  # fmt: skip
        with pytest.raises(CommandError, match=f"{name} must be {expected}"):
            setattr(s, name, wrong)
    with pytest.raises(AttributeError):
        s.scale = 2.0


def test_steer_is_checked():
    for wrong in ("second", True, None):
        with pytest.raises(CommandError, match="steer must be 'first' or 'all' or 'none'"):
            dala.gpu.create_surface(4, 4, show="browser", steer=wrong)


def test_pixels_are_drawn_where_the_pointer_is(s):
    s.on("pointer_down", lambda e: s.fill_rect(int(e["x"]), int(e["y"]), 2, 2, "red"))
    s.clear("black")
    s.post_event(press(10, 20))
    red = np.argwhere(s.to_array()[..., 0] == 255)
    assert red.min(0).tolist() == [20, 10]
    assert red.max(0).tolist() == [21, 11]


def test_a_presenter_that_cannot_says_so(s):
    class Shown:
        kind, closed, polled = "terminal", False, False

        def set_property(self, name, value):
            return False

        def close(self):
            pass

    s.presenter = Shown()
    with pytest.warns(MediaNotice, match="fullscreen: show='terminal' cannot change it"):
        s.fullscreen = True


def test_properties_set_before_the_window_and_with_each_frame(s, monkeypatch):
    """A program that ``dala view`` runs has its window only in ``run``."""
    told = []

    class Shown:
        kind, closed, polled = "window", False, False

        def set_property(self, name, value):
            told.append((name, value))
            return True

        def poll(self):
            pass

        def close(self):
            pass

    def draw(s, dt):
        s.cursor = "none"
        if s.stats["frames"] == 3:
            s.stop()

    monkeypatch.setenv("DALA_SHOW", "window")
    monkeypatch.setattr(type(s), "_show", lambda self, show: setattr(self, "presenter", Shown()))
    s.title, s.cursor, s.fullscreen = "mine", "none", True
    s.run(draw, fps=1000)
    assert sorted(told, key=str) == [("cursor", "none"), ("fullscreen", True)]
