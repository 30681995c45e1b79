"""Plans of the WebGPU engine, recorded and not run, for export."""
