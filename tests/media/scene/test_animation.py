"""Animations: values over time, keyframes, runs, precedence, ends, cancelling, errors."""

from __future__ import annotations

import gc
import weakref

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dala.errors import ParameterError
from dala.media.scene.animation.animation import Animation, Animator
from dala.media.sources.easing import EASINGS, easing


class Dot:
    """A node with properties that are checked."""

    def __init__(self):
        self.values = {
            "x": 0.0, "opacity": 1.0, "position": (0.0, 0.0), "color": (0, 0, 0, 255),
            "width": None, "visible": True, "shadow": (0, 0, 0, "black"),
        }  # fmt: skip
        self.log = []

    def get(self, name):
        if name not in self.values:
            raise ParameterError(f"no property {name!r}")
        return self.values[name]

    def set(self, name, value):
        if name == "opacity" and not 0 <= value <= 1:
            raise ParameterError(f"opacity must be from 0 to 1, got {value}")
        self.values[name] = value
        self.log.append((name, value))


@pytest.fixture
def dot():
    return Dot()


def at(animation, *times):
    return [animation.value_at(t) for t in times]


# values -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", EASINGS)
def test_from_to_follows_the_easing(dot, name):
    made = Animation(dot, "x", 10, 30, 4, name)
    for t in (0.5, 1.0, 2.5, 3.9):
        assert made.value_at(t) == pytest.approx(10 + 20 * easing(name)(t / 4), abs=1e-6)
    assert at(made, -5, 0, 4, 99) == [10, 10, 30, 30]


def test_from_defaults_to_the_current_value(dot):
    dot.values["x"] = 8.0
    made = Animation(dot, "x", to=10, duration=1)
    dot.values["x"] = 3.0
    assert at(made, 0, 0.5, 1) == [8.0, 9.0, 10]


@given(
    frames=st.lists(
        st.tuples(st.integers(0, 100_000), st.floats(-1e6, 1e6)),
        min_size=1,
        unique_by=lambda f: f[0],
    ),
    delay=st.integers(0, 1000),
    name=st.sampled_from(EASINGS),
)
def test_keyframes_are_exact(frames, delay, name):
    frames = [(t / 1000, value) for t, value in sorted(frames)]
    made = Animation(Dot(), "x", keyframes=frames, easing=name, delay=delay / 100, start=0.3)
    for t, value in frames:
        assert made.value_at(0.3 + delay / 100 + t) == value
    assert made.value_at(-1) == frames[0][1]
    assert made.value_at(2000) == frames[-1][1]


def test_easing_of_a_keyframe_applies_up_to_the_next(dot):
    made = Animation(
        dot, "x", keyframes=[(1, 0), (2, 10, "quad-in"), (4, 50, "steps(2)"), (6, 70), (6, 100)]
    )
    assert at(made, 0, 1.5, 2, 3, 4, 4.9, 5, 5.9) == [0, 5, 10, 20, 50, 50, 60, 60]
    assert at(made, 5.999999, 6, 7) == [60, 100, 100]  # two at one time: a jump
    odd = Animation(dot, "x", keyframes=[(0, 0), (1, 10), (2, 20)], easing="steps(2, jump-start)")
    assert at(odd, 0, 0.1, 1, 1.1) == [0, 5, 10, 15]  # where a curve does not begin at 0


@given(
    duration=st.integers(1, 5000),
    repeat=st.integers(0, 5),
    yoyo=st.booleans(),
    run=st.integers(0, 5),
    part=st.floats(0.001, 0.999),
)
@example(duration=10, repeat=5, yoyo=True, run=3, part=0.5)  # 0.3 / 0.1 falls short of 3
@example(duration=100, repeat=1, yoyo=True, run=4, part=0.5)
@example(duration=100, repeat=2, yoyo=True, run=4, part=0.5)
def test_runs(duration, repeat, yoyo, run, part):
    duration = duration / 100
    made = Animation(Dot(), "x", 0, 1, duration, repeat=repeat, yoyo=yoyo, delay=0.1)
    value = made.value_at(0.1 + (run + part) * duration)
    back = yoyo and run % 2 == 1
    if run <= repeat:
        assert value == pytest.approx(1 - part if back else part, abs=1e-6)
    else:
        assert value == (0 if yoyo and repeat % 2 else 1)
    if 0 < run <= repeat:  # where one run ends the next begins
        assert made.value_at(0.1 + run * duration) == (run % 2 if yoyo else 0)


def test_endless_repeat(dot):
    made = Animation(dot, "x", 0, 90, 0.3, repeat=-1)
    assert made.end == float("inf")
    assert at(made, 0.1, 300000.1) == pytest.approx([30, 30], abs=1e-4)
    assert made.value_at(0.3 * 7) == 0


def test_duration_of_zero(dot):
    made = Animation(dot, "x", 1, 2, 0, delay=1)
    assert at(made, 0.999, 1, 2) == [1, 2, 2]


def test_types_of_values(dot):
    assert Animation(dot, "position", (0, 10), [4, 20], 1).value_at(0.25) == (1.0, 12.5)
    assert Animation(dot, "color", "black", "#ff8000", 1).value_at(0.5) == (128, 64, 0, 255)
    assert Animation(dot, "color", to=(0, 0, 200), duration=1).value_at(0.5) == (0, 0, 100, 255)
    fade = Animation(dot, "color", "transparent", "red", 1)  # no dark on the way
    assert at(fade, 0, 0.25, 0.5, 1) == [
        (0, 0, 0, 0), (255, 0, 0, 64), (255, 0, 0, 128), (255, 0, 0, 255),
    ]  # fmt: skip
    beyond = Animation(dot, "color", "black", "white", 1, "back-out")
    assert beyond.value_at(0.7) == (255, 255, 255, 255)
    shadow = Animation(dot, "shadow", (0, 0, 4, "black"), (8, 2, 4, "white"), 2)
    assert shadow.value_at(1) == (4.0, 1.0, 4.0, (128, 128, 128, 255))
    seen = Animation(dot, "visible", keyframes=[(0, False), (1, True), (2, False)])
    assert at(seen, 0.9, 1, 1.9, 2) == [False, True, True, False]


@given(times=st.lists(st.floats(-10, 30), min_size=2, max_size=20))
def test_the_order_of_frames_does_not_matter(times):
    """The value at a time does not depend on earlier frames."""

    def scene():
        dot, animator = Dot(), Animator()
        animator.add(Animation(dot, "x", 0, 100, 3, "bounce", delay=2))
        animator.add(Animation(dot, "x", 100, 50, 3, delay=8, repeat=3, yoyo=True))
        animator.add(Animation(dot, "position", keyframes=[(0, (0, 0)), (9, (1, 5), "sine")]))
        return dot, animator

    dot, animator = scene()
    for t in times:
        animator.advance(t)
    alone, other = scene()
    other.advance(times[-1])
    assert dot.values == alone.values


# the animator -----------------------------------------------------------------------------------
def test_advance_sets_properties_and_returns_changes(dot):
    animator = Animator()
    made = animator.add(Animation(dot, "x", 0, 10, 1, delay=1))
    assert animator.advance(0) is True  # its first value, which it has from now on
    assert animator.advance(0.5) is False
    assert animator.advance(1.5) is True
    assert (dot.values["x"], made.done, len(animator)) == (5.0, False, 1)
    assert animator.advance(1.5) is False
    assert animator.advance(7) is True
    assert (dot.values["x"], made.done, len(animator)) == (10, True, 0)
    dot.set("x", 3.0)  # what has ended leaves the property alone
    assert animator.advance(8) is False
    assert dot.values["x"] == 3.0
    assert animator.advance(1.25) is True  # and is there again when time goes back
    assert (dot.values["x"], made.done, len(animator)) == (2.5, False, 1)


def test_animation_starts_when_added(dot):
    animator = Animator()
    animator.advance(5)
    made = animator.add(Animation(dot, "x", 0, 10, 1, delay=0.5))
    assert (made.start, made.begin, made.end) == (5, 5.5, 6.5)
    fixed = animator.add(Animation(dot, "opacity", 0, 1, 1, start=2))
    assert fixed.end == 3


def test_last_added_animation_wins(dot):
    animator = Animator()
    animator.add(Animation(dot, "x", 0, 100, 10))
    animator.advance(2)
    assert dot.values["x"] == 20
    animator.add(Animation(dot, "x", 0, -10, 2))
    animator.advance(3)
    assert dot.values["x"] == -5
    animator.advance(9)  # it keeps the property after its end
    assert dot.values["x"] == -10


def test_entry_and_exit_added_at_once_in_any_order(dot):
    for order in (1, -1):
        animator = Animator()
        ways = [("opacity", 0, 1, 1, 0), ("opacity", 1, 0, 1, 5)][::order]
        for name, from_, to, duration, delay in ways:
            animator.add(Animation(dot, name, from_, to, duration, delay=delay))
        seen = []
        for t in (0, 0.5, 3, 5.25, 7):
            animator.advance(t)
            seen.append(dot.values["opacity"])
        assert seen == [0, 0.5, 1, 0.75, 0]


def test_overshoot_is_clamped_to_the_property(dot):
    """An easing that overshoots is clamped to the range of the property."""
    animator = Animator()
    animator.add(Animation(dot, "opacity", 0, 1, 1, "back-out"))
    for i in range(11):
        animator.advance(i / 10)
    assert animator.error is None
    assert max(value for _, value in dot.log) == 1
    assert len([v for _, v in dot.log if v == 1]) > 2


# ends ----------------------------------------------------------------------------------------
def test_on_end_is_called_once(dot):
    animator, seen = Animator(), []
    late = animator.add(Animation(dot, "x", 0, 1, 2, on_end=seen.append))
    soon = animator.add(Animation(dot, "x", 0, 1, 1, on_end=lambda: seen.append("soon")))
    animator.advance(0.9)
    assert seen == []
    animator.advance(5)  # both in one frame: in the order in which they end
    assert seen == ["soon", late]
    for t in (0, 5, 6):
        animator.advance(t)
    assert seen == ["soon", late]
    assert soon.done


def test_on_end_sees_the_last_value_and_may_add_animations(dot):
    animator, seen = Animator(), []

    def then():
        seen.append(dot.values["x"])
        animator.add(Animation(dot, "x", 100, 200, 1))

    animator.add(Animation(dot, "x", 0, 10, 1, on_end=then))
    animator.advance(1)
    assert seen == [10]
    assert dot.values["x"] == 100  # in the same frame
    animator.advance(1.5)
    assert dot.values["x"] == 150


def test_errors_of_on_end_are_kept(dot):
    animator, seen = Animator(), []
    bad = animator.add(Animation(dot, "x", 0, 1, 1, on_end=lambda: 1 // 0))
    animator.add(Animation(dot, "opacity", 0, 1, 1, on_end=lambda: seen.append(1)))
    assert animator.advance(1)
    assert isinstance(bad.error, ZeroDivisionError)
    assert (animator.error, animator.errors, seen) == (bad.error, 1, [1])


def test_failing_animation_ends_and_others_continue(dot):
    animator = Animator()
    bad = animator.add(Animation(dot, "opacity", 1, 3, 1))
    animator.add(Animation(dot, "x", 0, 10, 1))
    for t in (0, 0.5, 1):
        animator.advance(t)
    assert dot.values["x"] == 10
    assert bad.done
    assert "opacity must be from 0 to 1" in str(bad.error)
    assert animator.errors == 1


def test_an_easing_that_fails_later(dot):
    animator = Animator()
    made = animator.add(Animation(dot, "x", 0, 1, 1, lambda t: 1 / (t - 0.25) * 0 + t))
    animator.advance(0.25)
    assert isinstance(made.error, ZeroDivisionError)


# cancelling -------------------------------------------------------------------------------------
def test_cancel_keeps_the_value(dot):
    animator, seen = Animator(), []
    lower = animator.add(Animation(dot, "x", 0, 100, 10, on_end=lambda: seen.append("lower")))
    upper = animator.add(Animation(dot, "x", 0, 50, 10, on_end=lambda: seen.append("upper")))
    animator.advance(1)
    upper.cancel()
    assert upper.done
    assert not lower.done
    animator.advance(2)
    assert dot.values["x"] == 5  # and the one it had won over does not get it back
    animator.advance(20)
    assert dot.values["x"] == 5
    assert seen == ["lower"]
    assert list(animator) == []
    upper.cancel()


def test_cancel_before_it_begins(dot):
    animator = Animator()
    animator.add(Animation(dot, "x", 0, 100, 10))
    later = animator.add(Animation(dot, "x", 0, 50, 1, delay=5))
    animator.advance(1)
    later.cancel()
    animator.advance(6)
    assert dot.values["x"] == 60


def test_cancel_all(dot):
    animator, other = Animator(), Dot()
    made = [animator.add(Animation(dot, name, 0, 1, 4)) for name in ("x", "opacity")]
    animator.add(Animation(other, "x", 0, 1, 4))
    animator.advance(1)
    animator.cancel_all(dot)
    animator.advance(2)
    assert (dot.values["x"], dot.values["opacity"], other.values["x"]) == (0.25, 0.25, 0.5)
    assert [a.done for a in made] == [True, True]
    assert len(animator) == 1
    animator.cancel_all()
    animator.advance(3)
    assert (other.values["x"], len(animator)) == (0.5, 0)


def test_cancelled_animations_release_the_node():
    animator, dot = Animator(), Dot()
    animator.add(Animation(dot, "x", 0, 1, 1))
    animator.advance(2)
    animator.cancel_all(dot)
    gone = weakref.ref(dot)
    del dot
    gc.collect()
    assert gone() is None


def test_number_of_kept_animations_is_bounded(dot):
    animator, ends = Animator(), []
    for i in range(1000):
        animator.add(Animation(dot, "x", 0, i, 0.5, on_end=lambda: ends.append(1)))
        animator.advance(i)
        animator.advance(i + 0.5)
        assert dot.values["x"] == i
    assert len(ends) == 1000
    assert len(list(animator)) <= 64


# errors ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("args", "options", "message"),
    [
        (("size", 0, 1, 1), {}, "no property 'size'"),
        (("x", 0, 1), {}, "duration is missing"),
        (("x", 0, None, 1), {}, "to is missing"),
        (("width", None, 1, 1), {}, "has no value yet"),
        (("x", 0, 1, -1), {}, "duration must be a number of seconds of at least 0, got -1."),
        (("x", 0, 1, float("nan")), {}, "duration must be a number of seconds, got nan."),
        (("x", 0, 1, "2"), {}, "duration must be a number of seconds, got '2'."),
        (("x", 0, 1, 1), {"delay": -1}, "delay must be a number of seconds of at least 0, got -1."),
        (("x", 0, 1, 1), {"repeat": -2}, "or -1 for no end, got -2."),
        (("x", 0, 1, 1), {"repeat": 1.5}, "or -1 for no end, got 1.5."),
        (("x", 0, 1, 0), {"repeat": 1}, "cannot be repeated"),
        (("x", 0, 1, 1), {"on_end": 3}, "on_end must be a function, got 3."),
        (("x", 0, 1, 1), {"start": "now"}, "start must be a number of seconds, got 'now'."),
        (("x", 0, 1, 1, "qaud"), {}, "Did you mean 'quad'"),
        (("x", 0, (1, 2), 1), {}, "all of one kind"),
        (("x", (0, 0), (1, 2), 1), {}, "must be like the current one"),
        (("position", 0, 1, 1), {}, "must be like the current one"),
        (("position", (0, 0, 0), (1, 2, 3), 1), {}, "must be like the current one"),
        (("position", (0, 0), (1, 2, 3), 1), {}, "all of one kind"),
        (("position", "left", (1, 2), 1), {}, "numbers, tuples"),
        (("x", 0, float("inf"), 1), {}, "must be a finite number, got inf."),
        (("color", "rde", "blue", 1), {}, "Did you mean 'red'"),
        (("color", 3, 4, 1), {}, "a value of 'color' must be"),
        (("x", 0, 1, 1), {"keyframes": [(0, 1)]}, "not both"),
        (("x",), {"keyframes": []}, "keyframes must be a list of"),
        (("x",), {"keyframes": {0: 1}}, "keyframes must be a list of"),
        (("x",), {"keyframes": [(0, 1), (2,)]}, "keyframe 1 must be"),
        (("x",), {"keyframes": [(0, 1), (2, None)]}, "keyframe 1 must be"),
        (("x",), {"keyframes": [(0, 1), (2, 1), (1, 1)]}, "number 2 is at 1 s"),
        (("x",), {"keyframes": [(-1, 1)]}, "keyframe 0"),
        (
            ("x",),
            {"keyframes": [(0, 1), (2, 1)], "duration": 1},
            "duration must be at least 2, the time of the last keyframe, got 1.",
        ),
        (("x",), {"keyframes": [(0, 1, "nope")]}, "there is no easing 'nope'"),
    ],
)
def test_invalid_arguments(dot, args, options, message):
    with pytest.raises(ParameterError, match=message):
        Animation(dot, *args, **options)


def test_nodes_may_check_values_beforehand(dot):
    def check(name, value):
        if value > 1:
            raise ParameterError("too much")

    dot.check = check
    Animation(dot, "opacity", 0, 1, 1, "elastic")
    with pytest.raises(ParameterError, match="too much"):
        Animation(dot, "opacity", keyframes=[(0, 0), (1, 2), (2, 0)])


def test_invalid_arguments_of_the_animator(dot):
    animator = Animator()
    made = animator.add(Animation(dot, "x", 0, 1, 1))
    with pytest.raises(ParameterError, match="already added"):
        animator.add(made)
    with pytest.raises(ParameterError, match="animation must be an Animation, got 'x'"):
        animator.add("x")
    with pytest.raises(ParameterError, match="number of seconds"):
        animator.advance(float("nan"))
