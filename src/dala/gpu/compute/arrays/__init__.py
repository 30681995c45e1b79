"""Buffers as arrays: operators, indexing and reductions.

Operators build expressions, which are fused into one kernel when their values are needed. Modules:
``methods`` (what :class:`~dala.gpu.compute.Buffer` inherits), ``promote`` (dtypes), ``operators``
(build expressions), ``graph`` (expressions that are not computed yet), ``evaluate`` (fuse and run
them), ``indexing`` and ``reductions``.
"""
