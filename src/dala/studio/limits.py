"""Bounds on requests of pages to a studio."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StudioLimits:
    """Bounds of a studio: sizes in bytes, times in seconds, and counts.

    >>> StudioLimits(viewers=2).viewers
    2
    """

    #: The largest message of a page.
    message: int = 1 << 20
    #: The largest file that a page may upload, and all uploads together.
    upload: int = 1 << 30
    uploads: int = 4 << 30
    #: The most pixels of a picture that is opened.
    pixels: int = 1 << 26
    cards: int = 64
    tabs: int = 16
    #: Pages that are connected at the same time.
    viewers: int = 16
    #: Open connections of a server, and seconds in which a request must arrive.
    connections: int = 64
    patience: float = 10.0
    #: Messages that wait for a page before it is dropped.
    queue: int = 256
    #: Pictures under way to one page.
    pictures: int = 2
    jobs: int = 2
    undo: int = 200
    #: Seconds and bytes that one picture may take in its chain, and bytes of a scene.
    chain_time: float = 30.0
    chain_memory: int = 2 << 30
    scene_memory: int = 2 << 30
    #: Results that can be downloaded; older ones are removed.
    results: int = 32
    #: Seconds, loop iterations and bytes of one run of a kernel from the page.
    kernel_time: float = 2.0
    kernel_iterations: int = 1_000_000
    kernel_memory: int = 1 << 30
