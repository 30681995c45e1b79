"""Animations: properties of nodes as functions of the scene's time, and who applies them.

An :class:`Animation` says what a property is at each time and knows nothing of frames: any frame
rate, a file or a live show, forwards or backwards, the value at a time is the same. The
:class:`Animator` of a scene sets the properties when the scene's time moves.
"""

from __future__ import annotations

import math
import threading
import weakref
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

from dala.errors import DalaError, ParameterError
from dala.media.scene.animation.easing import Curve
from dala.media.scene.animation.keyframes import (
    CALL,
    DIGITS,
    Course,
    check_duration,
    check_keyframes,
    check_seconds,
    check_time,
    two_keyframes,
)

#: Ended animations of a property that are kept, for when the scene's time goes back.
_KEPT: Final = 64
_UNSET: Final = object()


class Animated(Protocol):
    """What can be animated: nodes of a scene."""

    def get(self, name: str) -> Any:
        """The value of a property."""

    def set(self, name: str, value: Any) -> None:
        """Gives a property a value, or refuses it."""


class Animation:
    """A property on its way: from one value to another, or through keyframes.

    Args:
        node: whose property.
        property: its name.
        from_: the value at first; left out, the one it has now.
        to: the value at last.
        duration: seconds of one run. With keyframes the time of the last one, where left out.
        easing: see the module ``easing``. With keyframes that of every part which has
            none of its own.
        delay: seconds before the first run; until then the property has its first value.
        repeat: how often it runs again; -1 for ever.
        yoyo: every second run goes backwards.
        on_end: called once when the last run has ended, by the render call, with the animation if
            it takes an argument.
        keyframes: ``(seconds, value)`` or ``(seconds, value, easing)`` in order, instead of
            ``from_`` and ``to``; the easing is that of the way to the next. Two at one time are a
            jump.
        start: the scene's time that ``delay`` counts from; left out, that of when it is added.

    Raises:
        ParameterError: a number is out of range, or the values do not go together.

    >>> class Dot:
    ...     x = 0.0
    ...     def get(self, name): return getattr(self, name)
    ...     def set(self, name, value): setattr(self, name, value)
    >>> move = Animation(Dot(), "x", 0, 100, 2, "quad-in", delay=1)
    >>> [move.value_at(t) for t in (0, 1, 2, 3, 99)]
    [0, 0, 25.0, 100, 100]
    """

    def __init__(
        self,
        node: Animated,
        property: str,
        from_: Any = None,
        to: Any = None,
        duration: float | None = None,
        easing: str | Curve | Sequence[Any] = "linear",
        *,
        delay: float = 0.0,
        repeat: int = 0,
        yoyo: bool = False,
        on_end: Callable[..., object] | None = None,
        keyframes: Sequence[Sequence[Any]] | None = None,
        start: float | None = None,
    ) -> None:
        now = node.get(property)
        if keyframes is None:
            frames = two_keyframes(property, now if from_ is None else from_, to, duration)
        elif from_ is not None or to is not None:
            raise ParameterError(f"{CALL}: give keyframes, or from_ and to, not both.")
        else:
            frames = check_keyframes(keyframes)
        if on_end is not None and not callable(on_end):
            raise ParameterError(f"{CALL}: on_end is a function, {on_end!r} came.")
        run = check_duration(duration, frames[-1][0])
        self._course = Course(property, frames, run, easing, repeat, yoyo)
        self._course.check_against(now)
        check = getattr(node, "check", None)
        if callable(check):
            for value in self._course.values:
                check(property, value)
        self.node = node
        self.property = property
        self.easing = easing
        self.delay = check_seconds("delay", delay)
        self.keyframes = keyframes
        self.on_end = on_end
        self._set_start(None if start is None else check_time("start", start))
        #: What went wrong in it or in ``on_end``; None if nothing did.
        self.error: Exception | None = None
        self._number = 0
        self._fired = False
        self._muted = False
        self._done = False
        self._animator: weakref.ref[Animator] | None = None

    # facts ------------------------------------------------------------------------------------
    @property
    def from_(self) -> Any:
        """The first value, in the form that the property gets it."""
        return self._course.values[0]

    @property
    def to(self) -> Any:
        """The last value, in the form that the property gets it."""
        return self._course.values[-1]

    @property
    def duration(self) -> float:
        """Seconds of one run."""
        return self._course.duration

    @property
    def repeat(self) -> int:
        """How often it runs again; -1 for ever."""
        return self._course.repeat

    @property
    def yoyo(self) -> bool:
        """Whether every second run goes backwards."""
        return self._course.yoyo

    # time -------------------------------------------------------------------------------------
    @property
    def done(self) -> bool:
        """True when it has ended at the scene's present time, was cancelled, or has failed."""
        return self._done

    def value_at(self, time: float) -> Any:
        """The value at a time of the scene. Depends on nothing else."""
        return self._course.value(float(time) - self.begin)

    def cancel(self) -> None:
        """Ends it where it is: the property keeps its value, ``on_end`` is not called."""
        animator = None if self._animator is None else self._animator()
        if animator is not None:
            animator._cancel([self])
        self._done = True

    def __repr__(self) -> str:
        state = "done" if self._done else f"{self.begin:g} to {self.end:g} s"
        return f"<Animation {self.property!r} {self.from_} to {self.to}, {state}>"

    # inside -----------------------------------------------------------------------------------
    def _set_start(self, start: float | None) -> None:
        #: The scene's time that ``delay`` counts from; None until it is added.
        self.start = start
        #: The scene's time at which the first run begins.
        self.begin = round((start or 0.0) + self.delay, DIGITS)
        #: The scene's time at which the last run ends; infinite if it runs for ever.
        self.end = round(self.begin + self._course.length, DIGITS)

    def _finish(self) -> None:
        """Calls ``on_end``, once; what goes wrong in it is kept."""
        if self._fired or self.on_end is None:
            return
        self._fired = True
        if _takes_one(self.on_end):
            self.on_end(self)
        else:
            self.on_end()


class _Track:
    """The animations of one property of one node, in the order in which they begin."""

    __slots__ = ("animations", "last", "node", "property", "quiet")

    def __init__(self, node: Animated, property: str) -> None:
        self.node = node
        self.property = property
        self.animations: list[Animation] = []
        #: What was set last, so that nothing is set again that has not changed.
        self.last: Any = _UNSET
        #: From this time on all have ended and are set.
        self.quiet = math.inf

    def winner(self, time: float) -> Animation | None:
        """The last that has begun; before any has, the first to begin."""
        first = None
        for animation in reversed(self.animations):
            if not animation._muted:
                if animation.begin <= time:
                    return animation
                first = animation
        return first

    def prune(self, time: float) -> None:
        """Forgets what has ended and will hardly be asked for again."""
        gone = [a for a in self.animations if a._muted and a.end <= time]
        if len(self.animations) - len(gone) > _KEPT:
            ended = [a for a in self.animations[:-1] if a.end <= time and a._done]
            gone += ended[: len(self.animations) - _KEPT]
        if gone:
            self.animations = [a for a in self.animations if a not in gone]


class Animator:
    """Sets what is animated when the scene's time moves.

    Where several animations are of one property, the one that began last has it, and of those that
    began together the one added last; it keeps it after its end. Between animations, and after
    them, a property may be set by hand.
    """

    def __init__(self) -> None:
        #: The scene's time it was last advanced to.
        self.time = 0.0
        #: What went wrong last in an animation or its ``on_end``.
        self.error: Exception | None = None
        #: How often something went wrong.
        self.errors = 0
        self._tracks: dict[tuple[int, str], _Track] = {}
        self._count = 0
        self._lock = threading.RLock()

    def __len__(self) -> int:
        """How many are waiting or running."""
        return sum(1 for animation in self if not animation._done)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Animation]:
        with self._lock:
            found = [a for track in self._tracks.values() for a in track.animations]
        return iter(sorted(found, key=_by_number))

    def add(self, animation: Animation) -> Animation:
        """Takes an animation in; without a ``start`` of its own it starts at the present time."""
        if not isinstance(animation, Animation):
            raise ParameterError(f"{CALL}: an Animation is expected, {animation!r} came.")
        with self._lock:
            if animation._animator is not None or animation._done:
                raise ParameterError(f"{CALL}: {animation!r} was added before. Make a new one.")
            if animation.start is None:
                animation._set_start(self.time)
            self._count += 1
            animation._number = self._count
            animation._animator = weakref.ref(self)
            key = (id(animation.node), animation.property)
            track = self._tracks.setdefault(key, _Track(animation.node, animation.property))
            insort(track.animations, animation, key=_by_begin)
            track.quiet = math.inf
        return animation

    def advance(self, time: float) -> bool:
        """Goes to a time of the scene, forwards or backwards; True if a property has changed.

        Then calls ``on_end`` of those that have ended. Nothing that goes wrong in an animation is
        raised: ``error`` has it, and ``errors`` counts.
        """
        if not self._tracks and type(time) is float and math.isfinite(time):
            self.time = time
            return False
        time = check_time("time", time)
        with self._lock:
            self.time = time
            changed, ended = self._apply(time)
        if ended:
            for animation in sorted(ended, key=_by_end):
                try:
                    animation._finish()
                except Exception as error:
                    self._note(animation, error)
            with self._lock:
                changed = self._apply(time)[0] or changed  # what they may have added
        return changed

    def cancel_all(self, node: Animated | None = None) -> None:
        """Cancels all of a node, or all; and forgets those that have ended."""
        with self._lock:
            found = [a for a in self if node is None or a.node is node]
            for animation in found:
                animation._done = True
            for key, track in list(self._tracks.items()):
                if node is None or track.node is node:
                    del self._tracks[key]

    # inside -----------------------------------------------------------------------------------
    def _apply(self, time: float) -> tuple[bool, list[Animation]]:
        changed, ended = False, []
        for key, track in list(self._tracks.items()):
            if track.quiet <= time:
                continue
            changed = self._apply_track(track, time) or changed
            for animation in track.animations:
                animation._done = animation.end <= time
                if animation._done and not animation._fired and animation.on_end is not None:
                    ended.append(animation)
            track.prune(time)
            track.quiet = max((a.end for a in track.animations), default=math.inf)
            if track.quiet > time:
                track.quiet = math.inf
            if not track.animations:
                del self._tracks[key]
        return changed, ended

    def _apply_track(self, track: _Track, time: float) -> bool:
        while (winner := track.winner(time)) is not None:
            try:
                value = winner.value_at(time)
                if value == track.last:
                    return False
                try:
                    track.node.set(track.property, value)
                except DalaError:
                    # An easing may lead beyond what a property can be: then only as far as it can.
                    track.node.set(
                        track.property, winner._course.value(time - winner.begin, inside=True)
                    )
            except Exception as error:
                self._note(winner, error)
                winner._done = True
                track.animations.remove(winner)
                continue
            track.last = value
            return True
        return False

    def _cancel(self, animations: list[Animation]) -> None:
        with self._lock:
            for animation in animations:
                key = (id(animation.node), animation.property)
                track = self._tracks.get(key)
                if track is None or animation not in track.animations:
                    continue
                if track.winner(self.time) is animation and animation.begin <= self.time:
                    # Those it had taken the property from do not get it back: it would jump.
                    for other in track.animations[: track.animations.index(animation)]:
                        other._muted = True
                track.animations.remove(animation)
                if not track.animations:
                    del self._tracks[key]

    def _note(self, animation: Animation, error: Exception) -> None:
        animation.error = self.error = error
        self.errors += 1


def _by_number(animation: Animation) -> int:
    return animation._number


def _by_begin(animation: Animation) -> tuple[float, int]:
    return animation.begin, animation._number


def _by_end(animation: Animation) -> tuple[float, int]:
    return animation.end, animation._number


def _takes_one(function: Callable[..., object]) -> bool:
    """Whether it can be called with one argument; what cannot be told of is called with one."""
    from inspect import signature

    try:
        signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:
        return True
    return True
