"""A clock with smooth hands, which is a stopwatch after a click.

python examples/clock.py             # in a window; also: browser, terminal

Click, or press Space: the stopwatch starts, and stops. Press R to see the time of day again.
"""

import math
import sys
from datetime import datetime

from dala.gpu import RadialGradient, create_surface

SIZE = 360
INK, RED = "#1b1f3b", "#d1495b"
SHADOW = RadialGradient((0, 4), 99, [(0.88, "#1b1f3b70"), (1, "#1b1f3b00")])
PAPER = RadialGradient((0, -30), 130, [(0, "#fffdf8"), (1, "#e6ddcc")])


class Clock:
    """The time of day, or the seconds of a stopwatch."""

    def __init__(self, s, now=datetime.now):
        self.now = now
        self.seconds = None  # of the stopwatch
        self.running = False
        s.on("pointer_down", lambda event: self.click())
        s.on("key_down", lambda event: self.key(event["key"]))

    def click(self):
        self.running = not self.running
        self.seconds = self.seconds or 0.0

    def key(self, name):
        if name == " ":
            self.click()
        elif name in ("r", "R"):
            self.seconds, self.running = None, False

    def time(self):
        """Return the seconds that the hands show."""
        if self.seconds is not None:
            return self.seconds
        now = self.now()
        return now.hour * 3600 + now.minute * 60 + now.second + now.microsecond / 1e6

    def draw(self, s, dt):
        if self.running:
            self.seconds += dt
        seconds = self.time()
        s.clear("#dfe7ea")
        with s.transformed(translate=(SIZE / 2, SIZE / 2), scale=SIZE / 200):
            s.circle(0, 4, 99, SHADOW)
            s.circle(0, 0, 92, INK)
            s.circle(0, 0, 86, PAPER)
            for minute in range(60):
                length, width = (11, 3.2) if minute % 5 == 0 else (6, 1.2)
                hand(s, minute / 60, 80, 80 - length, INK, width)
            for hour in range(1, 13):
                x, y = 59 * math.sin(math.tau * hour / 12), -59 * math.cos(math.tau * hour / 12)
                s.text(f"{hour}", x, y - 9, INK, size=13, weight="bold", align="center")
            with s.transformed(translate=(2, 3)):
                self.hands(s, seconds, "#1b1f3b28", "#1b1f3b28")
            self.hands(s, seconds, INK, RED)
            s.arc(0, 0, 89, -90, -90 + seconds % 60 * 6, RED, 6)

    def hands(self, s, seconds, ink, red):
        hand(s, seconds / 43200, -12, 44, ink, 6)
        hand(s, seconds / 3600, -14, 66, ink, 4)
        hand(s, seconds / 60, -18, 74, red, 1.8)
        s.circle(0, 0, 5, red)


def hand(s, turn, start, end, color, width):
    """Draw a line from a distance to another, at a part of a turn from the top."""
    x, y = math.sin(math.tau * turn), -math.cos(math.tau * turn)
    s.line(start * x, start * y, end * x, end * y, color, width, cap="round")


if __name__ == "__main__":
    show = sys.argv[1] if len(sys.argv) > 1 else "window"
    with create_surface(SIZE, SIZE, show=show, title="clock") as surface:
        surface.run(Clock(surface).draw)
