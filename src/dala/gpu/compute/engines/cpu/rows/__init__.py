"""Image processing by rows on the CPU: chains of stages in one pass."""
