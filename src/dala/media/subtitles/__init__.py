"""Subtitles: SRT, WebVTT and ASS files as lists of cues.

>>> from dala.media.subtitles import load_subtitles
>>> cues = load_subtitles("1\\n00:00:01,000 --> 00:00:02,500\\n<i>Hello</i>\\n")
>>> cues[0].text, cues[0].italic, cues.kind
('Hello', True, 'srt')

Many subtitle files have small mistakes. A cue that cannot be read is skipped, with a warning that
names its line and the reason; ``left_out`` of the result counts everything that is not a cue of it.
"""

from dala.media.subtitles.cue import Cue, Subtitles
from dala.media.subtitles.load import load_subtitles
from dala.media.subtitles.write import format_subtitles

__all__ = ["Cue", "Subtitles", "format_subtitles", "load_subtitles"]
