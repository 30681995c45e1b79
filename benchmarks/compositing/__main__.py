"""``python -m benchmarks.compositing``."""

import runpy

runpy.run_module("benchmarks.compositing.run", run_name="__main__")
