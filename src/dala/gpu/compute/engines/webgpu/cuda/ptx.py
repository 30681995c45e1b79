"""PTX of shaders: WGSL is translated to LLVM IR, which LLVM compiles for NVIDIA's GPUs."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dala import forks
from dala.errors import DeviceError
from dala.gpu.compute.engines.cpu.cache import ObjectCache, cache_folder
from dala.gpu.compute.engines.webgpu.cuda.module import WgslModule
from dala.gpu.compute.engines.webgpu.cuda.target import GpuTarget

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.calls.public import ShaderChecks

#: Part of every key on disk. Increase it when LLVM is asked for other code.
CACHE_VERSION: Final = 2
#: The newest GPU that LLVM is asked to know; newer ones run its PTX, too.
NEWEST: Final = 90

_lock = forks.lock()


class CompiledShader(NamedTuple):
    """A kernel's PTX, and what a launch needs."""

    ptx: str
    workgroup: tuple[int, ...]
    #: The bindings of storage buffers, in the order of the parameters.
    storage: tuple[int, ...]
    #: Bytes of the uniform block; 0 if there is none.
    block: int


def compile_shader(code: str, checks: ShaderChecks, capability: int) -> CompiledShader:
    """Return the PTX of a shader for GPUs of a capability, such as 90."""
    import llvmlite.binding as llvm

    # Operations of our own do without checks, and permit fused products: matrix products take half
    # the time. Kernels of bytes and of users are as exact as on the CPU.
    own = checks == "none"
    module = WgslModule(code, GpuTarget(), clamped=not own, fused=own)
    text = module.llvm()
    # The driver's compiler does again what LLVM's last stage does, in which LLVM spends half the
    # time, and most of it for little in kernels of bytes.
    how = min(capability, NEWEST), 3 if own else 0
    version = [CACHE_VERSION, llvm.llvm_version_info, how, text]
    key = hashlib.sha256(repr(version).encode()).hexdigest()
    stored = _disk().get(key)
    ptx = _compiled(text, *how) if stored is None else stored.decode()
    if stored is None:
        _disk().put(key, ptx.encode())
    uniform = [b.kind.size for b in module.buffers if b.space == "uniform"]
    storage = tuple(b.binding for b in module.buffers if b.space == "storage")
    return CompiledShader(ptx, module.workgroup, storage, uniform[0] if uniform else 0)


def _compiled(text: str, capability: int, effort: int) -> str:
    """Return the PTX of LLVM's text."""
    import llvmlite.binding as llvm

    with _lock:
        machine = _machine(capability, effort)
        try:
            made = llvm.parse_assembly(text)
        except RuntimeError as error:
            raise DeviceError(
                "cuda: the shader's types must be right, got what LLVM refuses: "
                f"{str(error).strip()}. Check its WGSL on a webgpu device."
            ) from error
        tuning = llvm.create_pipeline_tuning_options(speed_level=2)
        builder = llvm.create_pass_builder(machine, tuning)
        builder.getModulePassManager().run(made, builder)
        ptx: str = machine.emit_assembly(made)
    return ptx


@cache
def _disk() -> ObjectCache:
    return ObjectCache(cache_folder())


@cache
def _machine(capability: int, effort: int) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    return target.create_target_machine(cpu=f"sm_{capability}", features="+ptx81", opt=effort)
