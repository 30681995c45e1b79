"""Kernels of this room: in the language, read when first used, and not registered under a name."""

from __future__ import annotations

from functools import partial

from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.lang.decl import KernelDecl
from dala.gpu.compute.lang.declare import declare
from dala.gpu.compute.lang.source import from_text


def written(text: str) -> Kernel:
    """A kernel from its text, which begins with ``def name(``."""
    text = text.strip()
    name = text[len("def ") : text.index("(")]
    return Kernel(name, partial(_read, text, name))


def _read(text: str, name: str) -> KernelDecl:
    return declare(from_text(text, name))
