"""Kernels that the media packages use themselves. They are not registered under a name."""

from __future__ import annotations

from dala.gpu.compute.kernel import Kernel
from dala.gpu.compute.lang.parser import declare
from dala.gpu.compute.lang.source import from_text


def kernel_from_text(text: str) -> Kernel:
    """Return the kernel of a text that begins with ``def name(``; it is parsed when first used.

    >>> kernel_from_text("def half(x): return x * 0.5").name
    'half'
    """
    text = text.strip()
    name = text[len("def ") : text.index("(")]
    return Kernel(name, lambda: declare(from_text(text, name)))
