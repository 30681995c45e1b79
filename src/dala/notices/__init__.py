"""Notices of conversions, repairs, omissions and likely mistakes, each given once.

A notice is a Python warning. A command line collects them instead, for its report.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from dala import forks
from dala.errors import masked

_lock = forks.lock()
_collecting: list[list[str]] = []


class MediaNotice(UserWarning):
    """Something was done that its user should know about, such as a change to a file.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", MediaNotice)
    ...     notify("clip.ts: 2 frames had no time of their own.")
    """


def notify(text: str, *, stacklevel: int = 1) -> None:
    """Say something once: as a warning, or to the command that collects notices.

    Threads may call it. ``stacklevel`` counts as in ``warnings.warn``, from the caller.

    >>> with collected() as notices:
    ...     notify("clip.ts: interlaced.")
    ...     notify("clip.ts: interlaced.")
    >>> notices
    ['clip.ts: interlaced.']
    """
    text = masked(text)
    with _lock:
        for texts in _collecting[-1:]:
            if text not in texts:
                texts.append(text)
            return
    warnings.warn(text, MediaNotice, stacklevel=stacklevel + 1)


@contextmanager
def collected() -> Iterator[list[str]]:
    """Collect the notices of a block, of all threads, in a list."""
    texts: list[str] = []
    with _lock:
        _collecting.append(texts)
    try:
        yield texts
    finally:
        with _lock:
            _collecting.remove(texts)
