"""Programs rewritten before they are written as WGSL: from IR to IR."""
