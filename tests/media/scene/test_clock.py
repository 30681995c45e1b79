"""The clock of a scene: exact times of frames."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dala.media.scene.options import Clock
from dala.media.sources.seconds import Moment

RATES = st.sampled_from([30, 25, 29.97, "24000/1001", 12.5, 1000, 0.001])


@given(RATES, st.integers(0, 10**7))
def test_times_of_consecutive_frames_are_exact(rate, number):
    clock = Clock(rate)
    clock.next = number
    moment = clock.moment()
    assert moment.exact == Fraction(number) / clock.rate
    assert moment.seconds == float(moment.exact)
    assert moment.pts * moment.time_base == moment.exact
    clock.move(moment)
    assert (clock.next, clock.time) == (number + 1, moment.seconds)
    assert clock.moment().exact - moment.exact == clock.period


@given(RATES, st.fractions(0, 10**6, max_denominator=10**6))
def test_given_times_are_kept(rate, time):
    clock = Clock(rate)
    moment = clock.moment(time)
    assert abs(moment.exact - time) < Fraction(1, 10**7)
    clock.move(moment)
    assert clock.moment().exact > moment.exact - Fraction(1, 90000)


@given(st.fractions(-(10**6), 10**6, max_denominator=10**6))
def test_moment_of_a_time(time):
    moment = Moment.of(time)
    assert (moment.exact, moment.seconds) == (time, float(time))
    assert moment.pts * moment.time_base == time
