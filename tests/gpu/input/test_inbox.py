"""The queues of events: bounded, moves merged, presses never lost, whatever happens when."""

from __future__ import annotations

from collections import deque
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from dala.gpu.input import inbox as inbox_module
from dala.gpu.input.inbox import Inbox

#: The bound of the queues, and the presses that wait at most: fewer than it keeps.
BOUND, PRESSES = 16, 13

STEPS = st.lists(
    st.sampled_from(["press", "move", "other move", "wheel", "enter", "call", "take", "take one"]),
    max_size=120,
)


def is_press(event):
    return event["event_type"] == "pointer_down"


@given(STEPS)
def test_bounded_in_order_and_no_press_is_lost(steps):
    inbox, taken, seen, presses, waiting = Inbox(deque()), [], [], 0, 0
    inbox.on("*", seen.append)
    scrolled = newest = 0
    with mock.patch.object(inbox_module, "MAX_EVENTS", BOUND):
        for step in steps:
            newest += 1
            at = {"x": float(newest), "y": 0.0}
            if step == "press" and waiting < PRESSES:
                presses, waiting = presses + 1, waiting + 1
                inbox.put({"event_type": "pointer_down", "button": 1, "number": presses, **at})
            elif step == "move":
                inbox.put({"event_type": "pointer_move", "buttons": (), **at})
            elif step == "other move":  # not merged with the one before
                inbox.put({"event_type": "pointer_move", "buttons": (newest % 64,), **at})
            elif step == "enter":
                inbox.put({"event_type": "pointer_enter", **at})
            elif step == "wheel":
                scrolled += 1
                inbox.put({"event_type": "wheel", "dx": 0.0, "dy": 1.0, **at})
            elif step == "call":
                inbox.dispatch()
            elif step == "take":
                taken += inbox.take()
                waiting = 0
            elif step == "take one" and (event := inbox.take_one()) is not None:
                taken.append(event)
                waiting -= is_press(event)
            assert len(inbox._arrived) <= BOUND
            assert len(inbox._waiting) <= BOUND
        taken += inbox.take()
    for events in (taken, seen):
        assert [event["number"] for event in events if is_press(event)] == [*range(1, presses + 1)]
        places = [event["x"] for event in events]
        assert places == sorted(places)
        assert sum(event.get("dy", 0) for event in events) <= scrolled
    if taken:
        assert (inbox._place.x, taken[-1]["x"]) == (seen[-1]["x"], seen[-1]["x"])  # the newest


@given(st.lists(st.sampled_from(["move", "wheel", "call"]), max_size=60))
def test_moves_in_a_row_are_one_event_and_no_turn_is_lost(steps):
    inbox = Inbox(deque())
    runs, scrolled, before = 0, 0.0, None
    for number, step in enumerate(steps):
        if step == "call":
            inbox.dispatch()
            continue
        runs += step != before
        scrolled, before = scrolled + (step == "wheel"), step
        kind = {"move": "pointer_move", "wheel": "wheel"}[step]
        turn = {"dx": 0.0, "dy": 1.0} if step == "wheel" else {}
        inbox.put({"event_type": kind, "x": float(number), "y": 0.0, **turn})
    taken = inbox.take()
    assert len(taken) == runs  # also across calls of handlers
    assert sum(event.get("dy", 0.0) for event in taken) == scrolled
