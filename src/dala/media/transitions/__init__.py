"""Transitions between two pictures, as kernels that run on every device.

``declarations.py`` has the registry: each transition with its parameters is declared there once.
``kernels.py`` has the kernels, ``spec.py`` the forms in which calls and scene files name one.
"""

from __future__ import annotations

from dala.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
