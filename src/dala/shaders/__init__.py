"""Shaders of others: ISF files and Shadertoy texts, as programs that run on every device.

- ``dala.shaders.load("file.fs")``: an ISF file; :func:`isf` takes its text
- ``dala.shaders.shadertoy(image, ...)``: a text with ``mainImage``

The text is parsed and translated to the kernel language, with its limits: no GPU compiler sees it.
Both return a program of passes, which goes where a kernel goes.
"""

from __future__ import annotations

from dala.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
