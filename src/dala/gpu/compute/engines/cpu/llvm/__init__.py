"""Emitters: from the typed IR to LLVM IR."""
