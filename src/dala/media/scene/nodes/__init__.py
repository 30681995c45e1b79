"""Nodes of a scene: what it is made of. ``Scene.add_video``, ``add_image``, ... make them."""
