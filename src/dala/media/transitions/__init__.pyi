"""The names of ``dala.media.transitions``, each with the module that defines it."""

from dala.media.transitions.declarations import TRANSITIONS as TRANSITIONS
from dala.media.transitions.declarations import TransitionType as TransitionType
from dala.media.transitions.spec import Transition as Transition
