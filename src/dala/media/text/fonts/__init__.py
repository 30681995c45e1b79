"""Fonts: find them by family name or path, and list them.

>>> from dala.media import fonts
>>> fonts.find("Source Sans Pro", weight=700).weight
700
"""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.media.text.fonts.faces import families as families
    from dala.media.text.fonts.faces import find as find
    from dala.media.text.fonts.faces import refresh as refresh

__all__ = ["families", "find", "refresh"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, dict.fromkeys(__all__, "dala.media.text.fonts.faces"))
