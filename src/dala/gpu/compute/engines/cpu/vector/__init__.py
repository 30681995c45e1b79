"""Typed scalars and vectors of the CPU engine, and the one writer of their LLVM IR."""
