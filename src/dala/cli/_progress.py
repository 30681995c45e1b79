"""How far long work is, on the terminal: see :mod:`dala.media.progress`."""

from dala.media.progress import Progress, line

__all__ = ["Progress", "line"]
