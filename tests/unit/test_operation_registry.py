"""Operations register their code on each engine; only host operations run on the host."""

import subprocess
import sys

import numpy as np
import pytest

import dala
from dala.errors import UnsupportedOperation
from dala.gpu.compute import buffer, buffer_zeros, pipeline
from dala.gpu.compute.engines.cpu import ops as cpu_ops
from dala.gpu.compute.engines.webgpu import ops as webgpu_ops
from dala.gpu.compute.kernels import BUILTINS
from dala.gpu.compute.operation import Operation, Task

OPERATIONS = [k for k in (BUILTINS[name] for name in BUILTINS) if isinstance(k, Operation)]


class Unknown(Operation):
    """Negate numbers."""

    title = "unknown_operation"
    dtypes = ("f32",)

    def define(self, task: Task, *arrays: np.ndarray) -> np.ndarray:
        (a,) = arrays
        return -a


class OnHost(Unknown):
    title = "host_operation"
    host = True


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda k: k.name)
@pytest.mark.parametrize("engine", [cpu_ops, webgpu_ops], ids=["cpu", "webgpu"])
def test_every_operation_is_implemented_lowered_or_a_host_operation(engine, operation):
    # The reference engine runs the one or the other.
    assert operation.define or type(operation).lower is not Operation.lower
    domain = type(operation).__module__.rpartition(".")[2]
    found = engine.IMPLEMENTATIONS.find(operation.code or operation.name, domain)
    assert found or operation.host or type(operation).lower is not Operation.lower


def test_only_models_are_host_operations():
    from dala.ml.models import NAMES

    assert {k.name for k in OPERATIONS if k.host} == set(NAMES)


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
def test_a_missing_implementation_raises_and_names_operation_and_engine(device):
    try:
        a = buffer([1.0, 2.0], device=device)
    except dala.DeviceUnavailable:
        pytest.skip("no adapter")
    with pytest.raises(UnsupportedOperation) as caught:
        Unknown()(a)
    error, engine = caught.value, a.engine.id
    assert str(error) == (
        f"run_kernel: operation 'unknown_operation' on (f32 (2,)) has no implementation on the "
        f"engine '{engine}'. Move the buffers to a device that has one: b.to('cpu')."
    )
    assert (error.call, error.operation, error.engine) == ("run_kernel", Unknown.title, engine)
    assert isinstance(error, dala.DeviceError)
    assert isinstance(error, NotImplementedError)


def test_the_reference_engine_runs_the_definition():
    assert Unknown()(buffer([1.0, 2.0], device="reference")).read_list() == [-1.0, -2.0]


def test_a_host_operation_runs_everywhere_and_explain_says_where():
    a, out = buffer([1.0, 2.0], device="cpu"), buffer_zeros((2,), device="cpu")
    steps = pipeline()
    steps.add({"op": "run_kernel", "kernel": OnHost(), "inputs": [a], "output": out})
    steps.run()
    assert out.read_list() == [-1.0, -2.0]
    assert "pass 0: host_operation on the host" in steps.explain()


IMPORTS = """
import sys
from dala.gpu.compute import buffer, buffer_zeros, run_kernel

a, out = buffer([[1.0, 3.0]], device="cpu"), buffer_zeros((1, 2), device="cpu")
run_kernel("softmax", [a], out)
print(*(name for name in sys.modules if name.startswith("dala.")))
"""


def test_an_operation_imports_only_its_own_modules():
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True)
    loaded = set(done.stdout.split())
    ops = "dala.gpu.compute.engines.cpu.ops"
    assert f"{ops}.norm" in loaded, done.stderr
    assert not loaded & {f"{ops}.{name}" for name in ("conv", "fft", "lut", "matmul", "resize")}
    assert not {name for name in loaded if name.startswith(("dala.media", "dala.ml."))}
