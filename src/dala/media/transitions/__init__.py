"""Transitions between two pictures, as kernels that run on every device.

``declarations.py`` has the registry: each transition with its parameters is declared there once.
``kernels.py`` has the kernels, ``spec.py`` the forms in which calls and scene files name one.
"""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.media.transitions.declarations import TRANSITIONS as TRANSITIONS
    from dala.media.transitions.declarations import TransitionType as TransitionType
    from dala.media.transitions.spec import Transition as Transition

_HOMES = {
    "TRANSITIONS": "dala.media.transitions.declarations",
    "Transition": "dala.media.transitions.spec",
    "TransitionType": "dala.media.transitions.declarations",
}

__all__ = ["TRANSITIONS", "Transition", "TransitionType"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, _HOMES)
