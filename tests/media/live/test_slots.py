"""Constant rates from unsteady sources: clocks that run fast and slow, jitter, gaps."""

from __future__ import annotations

import random
from fractions import Fraction
from statistics import fmean

import pytest

from dala.media.live.slots import Backoff, SlotClock

HOUR = 3600


@pytest.mark.parametrize(
    ("rate", "drift"),
    [(Fraction(25), 0.9995), (Fraction(30000, 1001), 1.0005), (Fraction(30), 1.0)],
)
def test_pictures_stay_with_the_sound_for_an_hour(rate, drift):
    """The slots of a camera whose clock is fast or slow stay with our clock, which sound goes by.

    A slot is at most 0.55 of a period away, or 18 ms; averages of minutes stay the same.
    """
    clock, jitter, begin, count = SlotClock(rate), random.Random(5), 1000.0, int(HOUR * rate)
    period, used, last = 1 / float(rate), 0, -1
    offsets = []
    for number in range(count):
        time = number * period  # on the camera's clock
        true = time / drift  # on ours
        slot = clock.slot(time, begin + true + 0.004 + jitter.expovariate(400))
        if slot > last:
            used, last = used + 1, slot
            offsets.append(slot * period - true)
    settled = offsets[int(10 * rate) :]
    assert max(map(abs, settled)) < max(0.018, 0.55 * period) + 0.003
    minutes = [fmean(settled[n : n + 9000]) for n in range(0, len(settled) - 9000, 9000)]
    assert max(minutes) - min(minutes) < 0.005
    assert used == pytest.approx(min(count, count / drift), abs=5)  # what is too many is dropped


def test_jitter_drops_nothing():
    clock, jitter = SlotClock(Fraction(30)), random.Random(1)
    slots = [clock.slot(n / 30, n / 30 + jitter.uniform(0, 0.012)) for n in range(900)]
    assert slots == list(range(900))


def test_frames_without_times_go_by_their_arrival():
    clock = SlotClock(Fraction(10))
    assert [clock.slot(None, t) for t in (7.0, 7.1, 7.2, 7.5, 7.6)] == [0, 1, 2, 5, 6]


def test_a_source_that_leaps_begins_anew():
    clock = SlotClock(Fraction(10))
    for n in range(20):
        clock.slot(n / 10, n / 10)
    assert clock.slot(1000.0, 2.0) == 20
    assert clock.slot(1000.1, 2.1) == 21


def test_a_repeated_slot_is_used_up():
    clock = SlotClock(Fraction(10))
    assert clock.slot(None, 0.0) == 0
    clock.skip(1)
    assert clock.slot(None, 0.11) <= 1  # too late
    assert clock.slot(None, 0.2) == 2


def test_waits_double_up_to_a_limit():
    backoff, elapsed, waits = Backoff(60.0), 0.0, []
    while (wait := backoff.wait(elapsed)) is not None:
        waits.append(wait)
        elapsed += wait
    assert waits[:7] == [0.25, 0.5, 1, 2, 4, 8, 8]
    assert max(waits) == 8
    assert sum(waits) == pytest.approx(60)
