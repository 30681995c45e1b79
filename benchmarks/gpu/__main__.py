"""``python -m benchmarks.gpu``."""

import runpy

runpy.run_module("benchmarks.gpu.run", run_name="__main__")
