"""The keyboard and mouse of a terminal: its modes while a surface is shown, and their restoring.

Modes are restored when the presenter ends, and at exit. Where the process is killed, by any signal,
or crashes, a small shell process does it, which waits for that.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Final

from dala import forks
from dala.gpu.input.events import InputEvent
from dala.gpu.input.sequences import TerminalParser
from dala.gpu.presenters.base import POLL_SECONDS, join

#: The mouse with all its moves, focus, bracketed paste, kitty's keyboard protocol.
ON: Final = "\x1b[?1003h\x1b[?1006h\x1b[?1004h\x1b[?2004h\x1b[>27u"
OFF: Final = "\x1b[<u\x1b[?2004l\x1b[?1004l\x1b[?1006l\x1b[?1003l"
#: Seconds after which an Escape is the key, and not the begin of a sequence.
ESCAPE_SECONDS: Final = 0.05
#: Waits for a line, then ends; without one, since this process has died, it restores the terminal.
_GUARD: Final = 'read -r line && exit 0; stty "$1" <&1; printf "%s" "$2"'


class TerminalInput:
    """Reads a terminal until it is closed.

    Args:
        write: Writes to the terminal.
        put: Takes an event, whose position is in cells.
        leave: What the guard writes to the terminal after the modes of input are off.
    """

    def __init__(
        self,
        fd: int,
        write: Callable[[str], None],
        put: Callable[[InputEvent], None],
        leave: str,
    ) -> None:
        import termios

        self._fd, self._write, self._put = fd, write, put
        self.parser = TerminalParser()
        self._ended = forks.event()
        self._before = termios.tcgetattr(fd)
        self._guard = _start_guard(fd, OFF + leave)
        _set_raw(fd)
        write(ON)
        self._thread = forks.thread(self._read, name="dala-terminal-input")
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # the terminal is gone
            while not self._ended.is_set():
                seconds = ESCAPE_SECONDS if self.parser.waiting else POLL_SECONDS
                ready, _, _ = select.select([self._fd], [], [], seconds)
                data = os.read(self._fd, 4096) if ready else b""
                if ready and not data:
                    return
                for event in self.parser.feed(data) if data else self.parser.flush():
                    if event.get("key") == "c" and event.get("modifiers") == ("Control",):
                        if event["event_type"] == "key_down":  # of kitty's protocol
                            os.kill(os.getpid(), signal.SIGINT)
                        continue
                    self._put(event)

    def close(self) -> None:
        """Restore the modes, and drop input that was not read."""
        import termios

        if self._ended.is_set():
            return
        self._ended.set()
        with contextlib.suppress(OSError, termios.error):
            self._write(OFF)
            termios.tcsetattr(self._fd, termios.TCSAFLUSH, self._before)
        join(2.0, self._thread)
        if self._guard is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self._guard.communicate(b"done\n", timeout=2.0)


def input_descriptor() -> int | None:
    """Return the file descriptor of a terminal that this process may read, or None."""
    try:
        fd = -1 if sys.__stdin__ is None else sys.__stdin__.fileno()
    except (OSError, ValueError):
        fd = -1
    if os.name != "posix" or fd < 0 or not os.isatty(fd):
        return None
    try:
        # A process in the background would be stopped.
        return fd if os.tcgetpgrp(fd) == os.getpgrp() else None
    except OSError:
        return fd  # not the terminal that controls this process


def _set_raw(fd: int) -> None:
    """Report each key at once and unseen. Ctrl-C still interrupts; Ctrl-Z and Ctrl-\\ are keys."""
    import termios

    made = termios.tcgetattr(fd)
    made[0] &= ~(termios.ICRNL | termios.IXON)
    made[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
    off = bytes([os.fpathconf(fd, "PC_VDISABLE") & 255])
    for key, value in (("VMIN", b"\1"), ("VTIME", b"\0"), ("VSUSP", off), ("VQUIT", off)):
        made[6][getattr(termios, key)] = value
    termios.tcsetattr(fd, termios.TCSADRAIN, made)


def _start_guard(fd: int, leave: str) -> subprocess.Popen[bytes] | None:
    """Start the process that restores the terminal if this one cannot."""
    try:
        state = subprocess.run(["stty", "-g"], stdin=fd, capture_output=True, check=True, text=True)
        return subprocess.Popen(
            ["sh", "-c", _GUARD, "sh", state.stdout.strip(), leave],
            stdin=subprocess.PIPE, stdout=fd, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None  # a machine without these programs
