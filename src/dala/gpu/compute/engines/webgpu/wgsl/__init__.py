"""Generate WGSL from the typed IR."""
