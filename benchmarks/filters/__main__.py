"""``python -m benchmarks.filters``."""

import runpy

runpy.run_module("benchmarks.filters.run", run_name="__main__")
