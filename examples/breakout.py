"""Breakout: a ball, a paddle, sixty bricks and their sounds.

python examples/breakout.py          # in a window; also: browser, terminal

Move the paddle with the mouse, a finger or the arrows. Click, or press Space, to serve. Sounds are
made by dala.media.audio, and played where sounddevice is installed: pip install "dala-gpu[live]"
"""

import math
import sys

from dala.gpu import LinearGradient, RadialGradient, create_surface
from dala.media import audio

WIDTH, HEIGHT = 480, 360
COLUMNS, ROWS, TOP = 10, 6, 48
BRICK = (WIDTH - 20) / COLUMNS, 18
PADDLE, RADIUS, SPEED = 76, 6, 300
NIGHT = LinearGradient((0, 0), (0, HEIGHT), [(0, "#0a1030"), (1, "#27326b")])
GOLD = LinearGradient((0, HEIGHT - 34), (0, HEIGHT - 24), [(0, "#ffd166"), (1, "#f77f00")])
COLORS = ("#e63946", "#f3722c", "#f9c74f", "#90be6d", "#43aa8b", "#577590")


class Sounds:
    """Short tones, played on the machine's sound device if there is one; ``played`` lists them."""

    def __init__(self):
        tones = {"wall": 220, "paddle": 330, "lost": 110, "won": 880}
        tones |= {f"brick{row}": 520 + 80 * (ROWS - row) for row in range(ROWS)}
        self.tones = {name: beep(hertz) for name, hertz in tones.items()}
        self.played = []
        try:
            import sounddevice

            sounddevice.query_devices(kind="output")
            self.device = sounddevice
        except (ImportError, OSError, ValueError) as error:  # no package, no PortAudio, no device
            self.device = None
            self.silent = str(error)

    def play(self, name):
        self.played.append(name)
        if self.device is not None:
            tone = self.tones[name]
            self.device.play(tone.numpy(), tone.rate)


def beep(hertz):
    """Return a tone of a tenth of a second, without a click at its ends."""
    tone = audio.tone(hertz, 0.1, amplitude=0.3, shape="triangle", rate=44100)
    return tone.fade_in(0.004).fade_out(0.08)


class Breakout:
    """The game: state, input, one step in time, one picture."""

    def __init__(self, s):
        self.s, self.sounds = s, Sounds()
        self.bricks = {(c, r) for c in range(COLUMNS) for r in range(ROWS)}
        self.paddle, self.lives, self.score = WIDTH / 2, 3, 0
        self.flying, self.trail = False, []
        self.rest()
        s.cursor = "none"
        s.on("pointer_move", lambda event: self.move_to(event["x"]))
        s.on("pointer_down", lambda event: self.serve())
        s.on("key_down", lambda event: event["key"] == " " and self.serve())

    # input --------------------------------------------------------------------------------------
    def move_to(self, x):
        self.paddle = min(max(x, PADDLE / 2), WIDTH - PADDLE / 2)

    def serve(self):
        if not self.flying and self.lives and self.bricks:
            self.flying = True
            self.vx, self.vy = SPEED * 0.4, -SPEED * 0.9

    # the game -----------------------------------------------------------------------------------
    def rest(self):
        """Put the ball on the paddle."""
        self.x, self.y, self.vx, self.vy = self.paddle, HEIGHT - 40.0, 0.0, 0.0

    def step(self, dt):
        """Move everything. Long steps are cut, so that the ball never jumps over a brick."""
        arrows = ("ArrowRight" in self.s.keys) - ("ArrowLeft" in self.s.keys)
        self.move_to(self.paddle + arrows * 420 * dt)
        if not self.flying:
            self.rest()
            return
        self.x, self.y = self.x + self.vx * dt, self.y + self.vy * dt
        if self.x < RADIUS or self.x > WIDTH - RADIUS:
            self.vx = math.copysign(self.vx, WIDTH / 2 - self.x)
            self.sounds.play("wall")
        if self.y < RADIUS:
            self.vy = abs(self.vy)
            self.sounds.play("wall")
        if (
            self.vy > 0
            and 0 <= self.y - (HEIGHT - 40) < 12
            and abs(self.x - self.paddle) < PADDLE / 2 + 4
        ):
            turn = (self.x - self.paddle) / PADDLE * 2.0  # the ends send it aside
            self.vx, self.vy = SPEED * math.sin(turn), -SPEED * math.cos(turn)
            self.sounds.play("paddle")
        if self.y > HEIGHT + 20:
            self.flying, self.lives = False, self.lives - 1
            self.sounds.play("lost")
        self.hit()

    def hit(self):
        column, row = int((self.x - 10) // BRICK[0]), int((self.y - TOP) // BRICK[1])
        if (column, row) not in self.bricks:
            return
        self.bricks.remove((column, row))
        self.score += 10 * (ROWS - row)
        middle = 10 + (column + 0.5) * BRICK[0], TOP + (row + 0.5) * BRICK[1]
        if abs(self.x - middle[0]) / BRICK[0] > abs(self.y - middle[1]) / BRICK[1]:
            self.vx = math.copysign(self.vx, self.x - middle[0])
        else:
            self.vy = math.copysign(self.vy, self.y - middle[1])
        self.sounds.play(f"brick{row}" if self.bricks else "won")

    def draw(self, s, dt):
        parts = max(math.ceil(dt / 0.01), 1)
        for _ in range(min(parts, 20)):
            self.step(min(dt / parts, 0.01))
        self.trail = [*self.trail[-14:], (self.x, self.y)]
        s.rect(0, 0, WIDTH, HEIGHT, NIGHT)
        for column, row in self.bricks:
            x, y = 10 + column * BRICK[0], TOP + row * BRICK[1]
            s.rect(x + 1.5, y + 1.5, BRICK[0] - 3, BRICK[1] - 3, COLORS[row], radius=4)
            s.line(x + 5, y + 4, x + BRICK[0] - 5, y + 4, "#ffffff60", width=2, cap="round")
        for life in range(self.lives):
            s.circle(18 + 18 * life, 22, 5, "#e5e5e5")
        s.text(f"{self.score}", WIDTH - 20, 12, "white", size=20, weight="bold", align="right")
        if not self.flying:
            over = not self.bricks or not self.lives
            words = ("won" if not self.bricks else "lost") if over else "click to serve"
            s.text(words, WIDTH / 2, 230, "#e5e5e5", size=24, align="center")
        s.rect(self.paddle - PADDLE / 2, HEIGHT - 34, PADDLE, 10, GOLD, radius=5)
        for n, (x, y) in enumerate(self.trail):
            s.circle(x, y, RADIUS * n / 15, (255, 255, 255, 5 * n))
        glow = RadialGradient((self.x, self.y), 26, [(0, "#fff8"), (1, "#fff0")])
        s.circle(self.x, self.y, 26, glow)
        s.circle(self.x, self.y, RADIUS, "white")


if __name__ == "__main__":
    show = sys.argv[1] if len(sys.argv) > 1 else "window"
    with create_surface(WIDTH, HEIGHT, show=show, title="breakout") as surface:
        game = Breakout(surface)
        if game.sounds.device is None:
            print(f"breakout is silent: {game.sounds.silent}", file=sys.stderr)
        surface.run(game.draw)
        print(f"{game.score} points")
