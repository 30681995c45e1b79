"""Everything in a container besides its pictures: sound, subtitles, chapters, attachments, tags."""

from dala.media.video.tracks.group import TrackGroup
from dala.media.video.tracks.tracks import Tracks

__all__ = ["TrackGroup", "Tracks"]
