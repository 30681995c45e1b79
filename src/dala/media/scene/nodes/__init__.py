"""Nodes of a scene. ``Scene.add_video``, ``add_image``, ... create them.

``node.py`` has the base class, ``properties.py`` and ``property_types.py`` the declarations, and
``registry.py`` derives the builder methods. Each other module is one kind of node; ``builtin.py``
imports them all.
"""
