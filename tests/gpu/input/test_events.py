"""Events as dictionaries: what is accepted, refused and merged."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dala.errors import CommandError
from dala.gpu.input.events import (
    EVENT_TYPES,
    FIELDS,
    MAX_ITEMS,
    MAX_NUMBER,
    checked_event,
    merged,
)

#: The events that rendercanvas and jupyter_rfb name, and those that they lack.
NAMES = {
    "pointer_down", "pointer_move", "pointer_up", "pointer_enter", "pointer_leave", "double_click",
    "wheel", "key_down", "key_up", "char", "resize", "focus", "blur", "close", "drop",
}  # fmt: skip

numbers = st.floats(-1e6, 1e6)
VALUES = {
    **dict.fromkeys(("time_stamp", "x", "y", "dx", "dy"), numbers),
    **dict.fromkeys(("width", "height", "pixel_ratio"), st.floats(0.1, 1e5)),
    **dict.fromkeys(("button", "ntouches"), st.integers(0, MAX_ITEMS - 1)),
    **dict.fromkeys(("key", "code"), st.text(min_size=1, max_size=20)),
    **dict.fromkeys(("data", "text"), st.text(max_size=50)),
    "buttons": st.lists(st.integers(0, 8), unique=True),
    "modifiers": st.lists(st.sampled_from(["Shift", "Control", "Alt", "Meta"]), unique=True),
    "files": st.lists(st.text(min_size=1, max_size=9), unique=True, max_size=9),
    "touches": st.dictionaries(
        st.integers(-5, 999),
        st.fixed_dictionaries({"x": numbers, "y": numbers, "pressure": numbers}),
    ),
}


def event_of(name):
    kind = EVENT_TYPES[name]
    return st.fixed_dictionaries(
        {"event_type": st.just(name), **{field: VALUES[field] for field in kind.required}},
        optional={field: VALUES[field] for field in kind.optional},
    )


events = st.sampled_from(sorted(EVENT_TYPES)).flatmap(event_of)


def test_the_names_are_those_of_the_specification():
    assert set(EVENT_TYPES) == NAMES
    assert {f for kind in EVENT_TYPES.values() for f in (*kind.required, *kind.optional)} | {
        "time_stamp"
    } == set(FIELDS)


@given(events)
def test_valid_events_keep_their_values(event):
    found = checked_event("post_event", event)
    assert math.isfinite(found.pop("time_stamp"))
    assert {k: list(v) if isinstance(v, tuple) else v for k, v in found.items()} == event


@given(events, st.data())
def test_one_wrong_value_refuses_the_event(event, data):
    kind = EVENT_TYPES[event["event_type"]]
    fields = (*kind.required, *kind.optional, "time_stamp")
    field = data.draw(st.sampled_from(fields))
    wrong = data.draw(
        st.sampled_from([None, math.nan, math.inf, -math.inf, 1e300, object(), b"x", {1: 2}, [[]]])
    )
    with pytest.raises(CommandError) as caught:
        checked_event("post_event", {**event, field: wrong})
    assert caught.value.argument == f"event[{field!r}]"


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (None, "event must be a dict with 'event_type', got None"),
        ({}, "event_type must be one of 'pointer_down', 'pointer_move'"),
        ({"event_type": "pointer_dwon", "x": 1, "y": 2}, "Did you mean 'pointer_down'?"),
        ({"event_type": "pointer_down", "x": 1}, "must be a pointer_down with 'y'"),
        ({"event_type": "key_down"}, "must be a key_down with 'key'"),
        ({"event_type": "key_down", "key": ""}, "must be a str of 1 to 64 characters, got ''"),
        ({"event_type": "key_up", "key": "a", "modifiers": ["Hyper"]}, "modifier keys of 'Shift'"),
        ({"event_type": "wheel", "dy": True}, "must be a finite number, got True"),
        ({"event_type": "wheel", "dy": MAX_NUMBER * 2}, "must be a finite number"),
        ({"event_type": "resize", "width": 0, "height": 4}, "must be a number above 0, got 0"),
        (
            {"event_type": "pointer_up", "x": 0, "y": 0, "touches": {"a": {"x": 1, "y": 1}}},
            "a dict of ids",
        ),
        ({"event_type": "pointer_up", "x": 0, "y": 0, "buttons": "12"}, "at most 64 buttons"),
        ({"event_type": "pointer_up", "x": 0, "y": 0, "buttons": [1] * 65}, "at most 64 buttons"),
        ({"event_type": "drop", "files": ["x" * 5000]}, "at most 64 names of files"),
    ],
)
def test_errors_name_the_field(event, message):
    with pytest.raises(CommandError) as caught:
        checked_event("post_event", event)
    assert message in str(caught.value)


def test_numbers_of_numpy_and_names_of_json_are_taken():
    event = {"event_type": "pointer_down", "x": np.float32(1.5), "y": np.int64(2), "button": 1.0}
    event["touches"] = {"7": {"x": 1, "y": 2}}
    found = checked_event("post_event", event)
    assert (found["x"], found["y"], found["button"]) == (1.5, 2.0, 1)
    assert type(found["x"]) is type(found["y"]) is float
    assert type(found["button"]) is int
    assert found["touches"] == {7: {"x": 1.0, "y": 2.0, "pressure": 0.0}}


def test_own_fields_are_kept_except_of_strangers():
    event = {"event_type": "focus", "mine": 5}
    assert checked_event("post_event", event)["mine"] == 5
    assert set(checked_event("page", event, strict=True)) == {"event_type", "time_stamp"}


@given(st.lists(events, max_size=12))
def test_merging_loses_no_press_and_no_scrolling(made):
    queue = []
    for event in (checked_event("post_event", each) for each in made):
        one = merged(queue[-1], event) if queue else None
        queue[-1:] = [one] if one is not None else [*queue[-1:], event]

    def still(events):
        return [e for e in events if e["event_type"] not in ("pointer_move", "wheel", "resize")]

    def scrolled(events):
        wheels = [e for e in events if e["event_type"] == "wheel"]
        return [sum(e.get(f, 0.0) for e in wheels) for f in ("dx", "dy")]

    checked = [checked_event("post_event", each) for each in made]
    for a, b in zip(still(queue), still(checked), strict=True):
        assert {**a, "time_stamp": 0} == {**b, "time_stamp": 0}
    assert scrolled(queue) == pytest.approx(scrolled(checked), rel=1e-9, abs=1e-3)
    if made and made[-1]["event_type"] == "pointer_move":
        assert (queue[-1]["x"], queue[-1]["y"]) == (made[-1]["x"], made[-1]["y"])
