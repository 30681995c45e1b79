"""The methods ``add_video``, ``add_image``, ... of scenes and groups.

Each node class adds its method here when it is declared (see ``nodes/registry.py``).
``builder_methods.pyi`` lists them for type checkers and editors; a test keeps it current.
"""

from __future__ import annotations


class BuilderMethods:
    """One method ``add_<type>`` per node type."""

    __slots__ = ()
