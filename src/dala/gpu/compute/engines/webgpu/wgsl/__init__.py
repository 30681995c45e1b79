"""Emitters: from the typed IR to WGSL."""
