"""A subset of GLSL ES 3 (and GLSL ES 1), translated to the kernel language.

The text goes through :mod:`tokens` (with the preprocessor), :mod:`parse` (a tree), and
:mod:`translate` (kernel text of the same lines). No GPU compiler sees the author's text.
"""
