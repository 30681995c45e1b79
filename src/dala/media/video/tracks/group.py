"""Tracks of several sources in one output."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dala.media.video.source import AvObject
from dala.media.video.tracks.tracks import Tracks


class TrackGroup(Tracks):
    """Tracks of several sources, passed into one output.

    Example::

        with video.write("out.mkv", tracks_from="film.mkv", audio_from="dub.wav") as sink: ...
    """

    def __init__(self, members: Sequence[Tracks]) -> None:
        self.members = tuple(members)
        self.source = self.members[0].source

    @property
    def has_sound(self) -> bool:
        """Whether one of the sources has sound."""
        return any(member.has_sound for member in self.members)

    def add_to(self, output: AvObject, shift_to_zero: bool) -> None:
        """Add an output stream for each track of the sources."""
        for member in self.members:
            member.add_to(output, shift_to_zero)

    def feed(self, output: AvObject, until: Fraction | None) -> None:
        """Pass on the packets up to a time, or all remaining ones."""
        for member in self.members:
            member.feed(output, until)

    def finish(self, output: AvObject) -> None:
        """Write what converted tracks still hold."""
        for member in self.members:
            member.finish(output)

    def close(self) -> None:
        """Close the sources."""
        for member in self.members:
            member.close()
