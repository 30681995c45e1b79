"""``python -m benchmarks.drawing``."""

import runpy

runpy.run_module("benchmarks.drawing.run", run_name="__main__")
