"""The compositor on WebGPU."""
