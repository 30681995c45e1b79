"""Everything in a container besides its pictures: sound, subtitles, chapters, attachments, tags."""

from dala.media.video.tracks.tracks import TrackGroup, Tracks

__all__ = ["TrackGroup", "Tracks"]
