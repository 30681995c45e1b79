"""Shaders for a blur and the programs after it, in one dispatch.

``finish`` has the programs and what a shader stores, ``tiles`` and ``strips`` the two forms of the
blur, and ``forms`` chooses between them.
"""
