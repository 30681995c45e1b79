"""Text rendering: any TrueType or OpenType font, any script, wrapped, outlined, with shadows."""

from __future__ import annotations

from dala.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
