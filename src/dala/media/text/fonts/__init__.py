"""Fonts: find them by family name or path, and list them.

>>> from dala.media import fonts
>>> fonts.find("Source Sans Pro", weight=700).weight
700
"""

from __future__ import annotations

from dala.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
