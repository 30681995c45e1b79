"""The tracks of a source under the name that writers use for sound."""

from dala.media.video.tracks import Tracks as AudioPassthrough

__all__ = ["AudioPassthrough"]
