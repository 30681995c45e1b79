"""Text rendering: any TrueType or OpenType font, any script, wrapped, outlined, with shadows."""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.media.text import fonts as fonts
    from dala.media.text.style import TextStyle as TextStyle
    from dala.media.text.text import TextPicture as TextPicture
    from dala.media.text.text import atlas_report as atlas_report
    from dala.media.text.text import clear_atlas as clear_atlas
    from dala.media.text.text import set_text as set_text

_HOMES = dict.fromkeys(
    ("TextPicture", "TextStyle", "atlas_report", "clear_atlas", "set_text"), "dala.media.text.text"
)

__all__ = ["TextPicture", "TextStyle", "atlas_report", "clear_atlas", "fonts", "set_text"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, _HOMES, ("fonts",))
