"""Fresh processes: time to import the library, and to the first kernel's result."""

from __future__ import annotations

import compileall
import importlib.util
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import dala
from benchmarks.harness import write

IMPORT = "import dala"

DALA = """
import dala
dala.use("cpu")
from dala.gpu.compute import buffer, buffer_zeros, kernel
k = kernel("def first(a, b, c): return max(a * b + c, 0.0) * 2 - 1")
a = buffer([1.0, 2.0, 3.0]); out = buffer_zeros(3)
k(a, a, a, out=out)
assert out.read_list() == [3.0, 11.0, 23.0]
"""

NUMBA = """
import numpy as np, numba
@numba.njit(parallel=True)
def first(a, b, c, out):
    for i in numba.prange(a.size):
        out[i] = max(a[i] * b[i] + c[i], 0) * 2 - 1
a = np.array([1, 2, 3], np.float32); out = np.zeros(3, np.float32)
first(a, a, a, out)
assert out.tolist() == [3.0, 11.0, 23.0]
"""

JAX = """
import numpy as np, jax, jax.numpy as jnp
first = jax.jit(lambda a, b, c: jnp.maximum(a * b + c, 0) * 2 - 1)
a = np.array([1, 2, 3], np.float32)
assert np.asarray(first(a, a, a)).tolist() == [3.0, 11.0, 23.0]
"""

TAICHI = """
import numpy as np, taichi as ti
ti.init(arch=ti.cpu, log_level=ti.ERROR)
@ti.kernel
def first(a: ti.types.ndarray(), out: ti.types.ndarray()):
    for i in range(a.shape[0]):
        out[i] = ti.max(a[i] * a[i] + a[i], 0) * 2 - 1
a = np.array([1, 2, 3], np.float32); out = np.zeros(3, np.float32)
first(a, out)
assert out.tolist() == [3.0, 11.0, 23.0]
"""

MEASURE = """
import time; start = time.perf_counter()
import dala
print(time.perf_counter() - start)
"""


def _run(code: str, **env: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "fresh.py"  # a file: some peers read their own source
        script.write_text(code)
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, str(script)],
            check=True,
            env={**os.environ, **env},
            stdout=subprocess.DEVNULL,
        )
        return time.perf_counter() - start


def main(rounds: int = 12) -> None:
    """Run every program in turn, ``rounds`` times."""
    # As pip installs it: a clone has no bytecode before its first import.
    compileall.compile_dir(str(pathlib.Path(dala.__file__).parent), quiet=1)
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as warm:
        _run(DALA, DALA_CACHE_DIR=warm)
        for _ in range(rounds):
            inside = subprocess.run(
                [sys.executable, "-c", MEASURE], check=True, capture_output=True, text=True
            )
            times.setdefault("import dala", []).append(float(inside.stdout))
            times.setdefault("python alone", []).append(_run("pass"))
            times.setdefault("python and numpy", []).append(_run("import numpy"))
            with tempfile.TemporaryDirectory() as cold:
                times.setdefault("dala, cold cache", []).append(_run(DALA, DALA_CACHE_DIR=cold))
            times.setdefault("dala, warm cache", []).append(_run(DALA, DALA_CACHE_DIR=warm))
            for name, code in (("numba", NUMBA), ("jax", JAX), ("taichi", TAICHI)):
                if importlib.util.find_spec(name):
                    times.setdefault(name, []).append(_run(code))
    rows = {name: {"min_s": min(t), "median_s": statistics.median(t)} for name, t in times.items()}
    print("seconds, fresh process (import dala: inside the process)")
    for name, row in rows.items():
        print(f"  {name:20s} min {row['min_s']:.3f}  median {row['median_s']:.3f}")
    write("startup", rows, ("numba", "jax", "taichi"))
