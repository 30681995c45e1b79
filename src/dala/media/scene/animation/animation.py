"""Animations: node properties as functions of the scene's time.

An :class:`Animation` defines the value of a property at each time. It does not depend on frames:
the value at a time is the same at any frame rate, in a file or live, forwards or backwards. The
:class:`Animator` of a scene sets the properties when the scene's time changes.
"""

from __future__ import annotations

import math
import weakref
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Protocol

from dala import forks
from dala.errors import DalaError, ParameterError
from dala.media.scene.animation import keyframes as k
from dala.media.scene.animation.keyframes import AnimatedValue, Keyframe
from dala.media.sources.easing import EasingLike

if TYPE_CHECKING:
    from dala.media.scene.nodes.property_types import Value

#: Ended animations of a property that are kept in case the scene's time goes back.
_KEPT: Final = 64
_UNSET: Final = object()


class Animatable(Protocol):
    """An object with properties that can be animated, such as a node."""

    def get(self, name: str) -> Value:
        """Return the value of a property."""

    def set(self, name: str, value: Value) -> None:
        """Set a property, or raise an error."""


class Followed(Protocol):
    """An input that an animation follows instead of time, such as the level of a sound."""

    def at(self, time: float) -> float:
        """Return a number from 0 to 1 for a time of the scene."""


class Animation(k.KeyframeCurve):
    """The animation of a property from one value to another, or through keyframes.

    Args:
        node: the node, or another object with ``get`` and ``set``.
        property: name of the property.
        from_: the first value; by default the current one.
        to: the last value.
        duration: seconds of one run. With keyframes, by default the time of the last one.
        easing: an easing function, see the module ``easing``. With keyframes, that of every part
            without one of its own.
        delay: seconds before the first run; until then the property has its first value.
        repeat: number of further runs; -1 for no end.
        yoyo: whether every second run goes backwards.
        on_end: called once by the render call after the last run has ended, with the animation if
            it takes an argument.
        keyframes: ``(seconds, value)`` or ``(seconds, value, easing)`` in order, instead of
            ``from_`` and ``to``; the easing applies up to the next keyframe. Two keyframes at the
            same time are a jump.
        start: the scene's time that ``delay`` counts from; by default the time of adding.
        by: what the animation follows instead of time, such as ``scene.level(music)``: at 0 the
            property has its first value, at 1 its last.

    Raises:
        ParameterError: a number is out of range, or the values are of different kinds.

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
        node: Animatable,
        property: str,
        from_: AnimatedValue | None = None,
        to: AnimatedValue | None = None,
        duration: float | None = None,
        easing: EasingLike = "linear",
        *,
        delay: float = 0.0,
        repeat: int = 0,
        yoyo: bool = False,
        on_end: Callable[..., object] | None = None,
        keyframes: Sequence[Keyframe] | None = None,
        start: float | None = None,
        by: Followed | None = None,
    ) -> None:
        now = node.get(property)
        if by is not None:
            duration = _check_by(by, duration, delay, repeat, yoyo)
        if keyframes is None:
            frames = k.two_keyframes(property, now if from_ is None else from_, to, duration)
        elif from_ is not None or to is not None:
            raise ParameterError(f"{k.CALL}: give keyframes, or from_ and to, not both.")
        else:
            frames = k.check_keyframes(keyframes)
        if on_end is not None and not callable(on_end):
            raise ParameterError.invalid(k.CALL, "on_end", "a function", on_end)
        run = k.check_duration(duration, frames[-1][0])
        is_color = getattr(node, "is_color", None)
        colors = is_color(property) if callable(is_color) else None
        is_held = getattr(node, "is_held", None)
        held = callable(is_held) and is_held(property)
        super().__init__(property, frames, run, easing, repeat, yoyo, colors, held)
        self.check_against(now)
        check = getattr(node, "check", None)
        if callable(check):
            for value in self.values:
                check(property, value)
        self.node = node
        self.easing = easing
        self.delay = k.check_seconds("delay", delay)
        self.keyframes = keyframes
        #: What it follows instead of time; None for time.
        self.by = by
        self.on_end = on_end
        self._set_start(None if start is None else k.check_time("start", start))
        #: The error of the animation or of ``on_end``, if any.
        self.error: Exception | None = None
        self._number = 0
        self._fired = False
        #: Whether a later animation of the property was cancelled while it ran; it has no effect.
        self.muted = False
        self._done = False
        self._animator: weakref.ref[Animator] | None = None

    # facts ------------------------------------------------------------------------------------
    @property
    def from_(self) -> AnimatedValue:
        """The first value, in the form that is set."""
        return self.values[0]

    @property
    def to(self) -> AnimatedValue:
        """The last value, in the form that is set."""
        return self.values[-1]

    # time -------------------------------------------------------------------------------------
    @property
    def done(self) -> bool:
        """True if it has ended at the scene's current time, was cancelled, or has failed."""
        return self._done

    def value_at(self, time: float) -> AnimatedValue:
        """Return the value at a time of the scene."""
        return self._value(float(time))

    def _value(self, time: float, *, inside: bool = False) -> AnimatedValue:
        if self.by is None:
            return self.value(time - self.begin, inside=inside)
        return self.value(min(max(float(self.by.at(time)), 0.0), 1.0), inside=inside)

    def cancel(self) -> None:
        """Stop the animation: the property keeps its value, and ``on_end`` is not called."""
        animator = None if self._animator is None else self._animator()
        if animator is not None:
            animator._cancel(self)
        self._done = True

    def __repr__(self) -> str:
        state = "done" if self._done else f"{self.begin:g} to {self.end:g} s"
        return f"<Animation {self.property!r} {self.from_} to {self.to}, {state}>"

    # inside -----------------------------------------------------------------------------------
    def _set_start(self, start: float | None) -> None:
        #: The scene's time that ``delay`` counts from; None until it is added.
        self.start = start
        #: The scene's time at which the first run begins.
        self.begin = round((start or 0.0) + self.delay, k.DIGITS)
        #: The scene's time at which the last run ends; infinite if it never does.
        length = math.inf if self.by is not None else self.length
        self.end = round(self.begin + length, k.DIGITS)

    def _finish(self) -> None:
        """Call ``on_end``, once."""
        if self._fired or self.on_end is None:
            return
        self._fired = True
        if _takes_one(self.on_end):
            self.on_end(self)
        else:
            self.on_end()


@dataclass(eq=False, slots=True)
class _Track:
    """The animations of one property of one node, in order of their beginning."""

    node: Animatable
    property: str
    animations: list[Animation] = field(default_factory=list)
    #: The value set last, so that an unchanged value is not set again.
    last: object = _UNSET
    #: From this time on all animations have ended.
    quiet: float = math.inf

    def winner(self, time: float) -> Animation | None:
        """Return the animation that began last; before any has, the one that begins first."""
        first = None
        for animation in reversed(self.animations):
            if not animation.muted:
                if animation.begin <= time:
                    return animation
                first = animation
        return first

    def prune(self, time: float) -> None:
        """Drop ended animations beyond the number that is kept."""
        gone = [a for a in self.animations if a.muted and a.end <= time]
        if len(self.animations) - len(gone) > _KEPT:
            ended = [a for a in self.animations[:-1] if a.end <= time and a._done]
            gone += ended[: len(self.animations) - _KEPT]
        if gone:
            self.animations = [a for a in self.animations if a not in gone]


class Animator:
    """Sets animated properties when the scene's time changes.

    If several animations have the same property, the one that began last applies, and of those
    that began together the one added last. It still applies after its end. Between animations, and
    after them, the property can be set by hand.
    """

    def __init__(self) -> None:
        #: The scene's time at the last call of ``advance``.
        self.time = 0.0
        #: The last error of an animation or its ``on_end``.
        self.error: Exception | None = None
        #: Number of errors.
        self.errors = 0
        #: Returns the time that a node's animations go by; None if it is not there. Set by scenes
        #: with groups that have a time of their own.
        self.local_time: Callable[[object, float], float | None] | None = None
        self._tracks: dict[tuple[int, str], _Track] = {}
        self._count = 0
        self._lock = forks.rlock()

    def __len__(self) -> int:
        """Return the number of animations that have not ended."""
        return sum(1 for animation in self if not animation._done)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Animation]:
        with self._lock:
            found = [a for track in self._tracks.values() for a in track.animations]
        return iter(sorted(found, key=attrgetter("_number")))

    def add(self, animation: Animation) -> Animation:
        """Add an animation. Without a ``start`` of its own it starts at the current time."""
        if not isinstance(animation, Animation):
            raise ParameterError.invalid(k.CALL, "animation", "an Animation", animation)
        with self._lock:
            if animation._animator is not None or animation._done:
                raise ParameterError(
                    f"{k.CALL}: {animation!r} was already added. Create a new one."
                )
            if animation.start is None:
                animation._set_start(self._now(animation.node))
            self._count += 1
            animation._number = self._count
            animation._animator = weakref.ref(self)
            key = (id(animation.node), animation.property)
            track = self._tracks.setdefault(key, _Track(animation.node, animation.property))
            insort(track.animations, animation, key=attrgetter("begin", "_number"))
            track.quiet = math.inf
        return animation

    def advance(self, time: float) -> bool:
        """Set all animated properties for a time; return True if one has changed.

        Then call ``on_end`` of the animations that have ended. Errors of animations are not
        raised: ``error`` has the last one, and ``errors`` counts them.
        """
        if not self._tracks and type(time) is float and math.isfinite(time):
            self.time = time
            return False
        time = k.check_time("time", time)
        with self._lock:
            self.time = time
            changed, ended = self._apply(time)
        if ended:
            for animation in sorted(ended, key=attrgetter("end", "_number")):
                try:
                    animation._finish()
                except Exception as error:
                    self._record_error(animation, error)
            with self._lock:
                changed = self._apply(time)[0] or changed  # on_end may have added animations
        return changed

    def animates(self, node: Animatable, property: str) -> bool:
        """Return True if a property has animations."""
        return (id(node), property) in self._tracks

    def value_at(self, node: Animatable, property: str, time: float) -> AnimatedValue | None:
        """Return the animated value of a property at a time of its node, and set nothing.

        None if it is not animated, or all its animations have ended: then it may be set by hand.
        """
        with self._lock:
            track = self._tracks.get((id(node), property))
            if track is None or track.quiet <= time:
                return None
            winner = track.winner(time)
            return None if winner is None else winner.value_at(time)

    def cancel_all(self, node: Animatable | None = None) -> None:
        """Cancel and drop all animations, or all of one node."""
        with self._lock:
            for key, track in list(self._tracks.items()):
                if node is None or track.node is node:
                    for animation in track.animations:
                        animation._done = True
                    del self._tracks[key]

    # inside -----------------------------------------------------------------------------------
    def _apply(self, time: float) -> tuple[bool, list[Animation]]:
        changed, ended, now = False, [], time
        for key, track in list(self._tracks.items()):
            if self.local_time is not None:
                found = self.local_time(track.node, now)
                if found is None:
                    continue
                time = found
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

    def _now(self, node: Animatable) -> float:
        """Return the time that a node's animations go by; the scene's if the node is not there."""
        local = None if self.local_time is None else self.local_time(node, self.time)
        return self.time if local is None else local

    def _apply_track(self, track: _Track, time: float) -> bool:
        while (winner := track.winner(time)) is not None:
            try:
                value = winner.value_at(time)
                if value == track.last:
                    return False
                try:
                    track.node.set(track.property, value)
                except DalaError:
                    # The easing may overshoot the property's range: clamp it to the keyframes.
                    track.node.set(track.property, winner._value(time, inside=True))
            except Exception as error:
                self._record_error(winner, error)
                winner._done = True
                track.animations.remove(winner)
                continue
            track.last = value
            return True
        return False

    def _cancel(self, animation: Animation) -> None:
        key = (id(animation.node), animation.property)
        with self._lock:
            track = self._tracks.get(key)
            if track is None or animation not in track.animations:
                return
            time = self._now(animation.node)
            if track.winner(time) is animation and animation.begin <= time:
                # Earlier animations must not apply again: the value would jump.
                for other in track.animations[: track.animations.index(animation)]:
                    other.muted = True
            track.animations.remove(animation)
            if not track.animations:
                del self._tracks[key]

    def _record_error(self, animation: Animation, error: Exception) -> None:
        animation.error = self.error = error
        self.errors += 1


def _takes_one(function: Callable[..., object]) -> bool:
    """Return True if a function takes one argument, or if its signature is unknown."""
    from inspect import signature

    try:
        signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def _check_by(by: Followed, duration: float | None, delay: float, repeat: int, yoyo: bool) -> float:
    """Return the duration of a run that follows something else than time: 1."""
    if not callable(getattr(by, "at", None)):
        raise ParameterError.invalid(k.CALL, "by", "a level, as scene.level returns one", by)
    if duration is not None or delay or repeat or yoyo:
        raise ParameterError(
            f"{k.CALL}: with by, the value follows it and not time. Leave out duration, delay, "
            "repeat and yoyo."
        )
    return 1.0
