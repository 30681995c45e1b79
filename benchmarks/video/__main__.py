"""``python -m benchmarks.video``."""

import runpy

runpy.run_module("benchmarks.video.run", run_name="__main__")
