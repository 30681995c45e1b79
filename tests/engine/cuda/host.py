"""Translated shaders on the host: workgroups are loops, and invocations are coroutines.

An invocation is suspended at a barrier until all of its workgroup have reached it.
"""

from __future__ import annotations

import ctypes
import re
import struct
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm

from dala.gpu.compute.engines.webgpu.cuda.module import WgslModule
from dala.gpu.compute.engines.webgpu.cuda.ptx import CompiledShader
from dala.gpu.compute.engines.webgpu.cuda.target import GpuTarget, private_memory
from dala.gpu.compute.engines.webgpu.cuda.types import (
    U32,
    WgslArray,
    WgslPlace,
    WgslValue,
    WgslVector,
)

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.cuda.emitter import ShaderEmitter
    from dala.gpu.compute.engines.webgpu.cuda.module import WgslVariable

_COROUTINES = """\
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare i64 @llvm.coro.size.i64()
declare ptr @llvm.coro.begin(token, ptr)
declare i8 @llvm.coro.suspend(token, i1)
declare void @llvm.coro.end(ptr, i1, token)
declare ptr @llvm.coro.free(token, ptr)
declare void @llvm.coro.resume(ptr)
declare void @llvm.coro.destroy(ptr)
declare i1 @llvm.coro.done(ptr)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""

_GROUP = """\
define void @group($GIVEN, i32 %gx, i32 %gy, i32 %gz, i32 %nx, i32 %ny, i32 %nz, ptr %handles) {
entry:
$ZEROS
  br label %make
make:
  %k = phi i32 [ 0, %entry ], [ %k1, %make ]
  %lx = urem i32 %k, $X
  %rest = udiv i32 %k, $X
  %ly = urem i32 %rest, $Y
  %lz = udiv i32 %rest, $Y
  %h = call ptr @main($PASSED, i32 %gx, i32 %gy, i32 %gz,
    i32 %nx, i32 %ny, i32 %nz, i32 %lx, i32 %ly, i32 %lz)
  %hp = getelementptr ptr, ptr %handles, i32 %k
  store ptr %h, ptr %hp
  %k1 = add i32 %k, 1
  %m = icmp ult i32 %k1, $THREADS
  br i1 %m, label %make, label %round
round:
  br label %turn
turn:
  %i = phi i32 [ 0, %round ], [ %i1, %turned ]
  %left = phi i1 [ false, %round ], [ %left1, %turned ]
  %ip = getelementptr ptr, ptr %handles, i32 %i
  %ih = load ptr, ptr %ip
  %done = call i1 @llvm.coro.done(ptr %ih)
  br i1 %done, label %turned, label %resume
resume:
  call void @llvm.coro.resume(ptr %ih)
  br label %turned
turned:
  %now = xor i1 %done, true
  %left1 = or i1 %left, %now
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i1, $THREADS
  br i1 %more, label %turn, label %rounded
rounded:
  br i1 %left1, label %round, label %drop
drop:
  %d = phi i32 [ 0, %rounded ], [ %d1, %drop ]
  %dp = getelementptr ptr, ptr %handles, i32 %d
  %dh = load ptr, ptr %dp
  call void @llvm.coro.destroy(ptr %dh)
  %d1 = add i32 %d, 1
  %dm = icmp ult i32 %d1, $THREADS
  br i1 %dm, label %drop, label %end
end:
  ret void
}
"""

_NAMES = {
    "workgroup_id": ("gx", "gy", "gz"),
    "num_workgroups": ("nx", "ny", "nz"),
    "local_invocation_id": ("lx", "ly", "lz"),
}


class Host(GpuTarget):
    """The processor: memory of a workgroup is global."""

    header = f'target triple = "{llvm.get_default_triple()}"'
    leave = "br label %finish"

    def place(self, buffer: WgslVariable) -> tuple[WgslPlace, str]:
        name, kind = buffer.name, buffer.kind
        if buffer.space == "workgroup":
            text = f"@w.{name} = internal global [{kind.size} x i8] zeroinitializer, align 16"
            return WgslPlace(kind, f"@w.{name}"), text
        place, text = super().place(buffer)
        return WgslPlace(place.kind, place.address, "ptr", place.length), text

    def passed(self, module: WgslModule) -> list[str]:
        return [text.replace(" addrspace(1)", "") for text in super().passed(module)]

    def _given(self, module: WgslModule) -> list[str]:
        """Return the buffers: what the host passes."""
        return [text for text in self.passed(module) if "%p." not in text]

    def builtin(self, emitter: ShaderEmitter, name: str, module: WgslModule) -> WgslValue:
        if name in _NAMES:
            return emitter.gather(
                WgslVector(3, U32), [WgslValue(U32, f"%{n}") for n in _NAMES[name]]
            )
        return super().builtin(emitter, name, module)

    def _index(self, emitter: ShaderEmitter, module: WgslModule) -> WgslValue:
        width, height, _ = module.workgroup
        y = emitter.emit(f"mul i32 %ly, {width}", U32)
        z = emitter.emit(f"mul i32 %lz, {width * height}", U32)
        total = emitter.emit(f"add i32 %lx, {y.text}", U32)
        return emitter.emit(f"add i32 {total.text}, {z.text}", U32)

    def barrier(self, emitter: ShaderEmitter, name: str) -> None:
        after = emitter.name("after")
        found = emitter.emit("call i8 @llvm.coro.suspend(token none, i1 false)", U32).text
        emitter.end(
            f"switch i8 {found}, label %suspend [i8 0, label %{after} i8 1, label %cleanup]"
        )
        emitter.block(after)

    def begin(self, emitter: ShaderEmitter, module: WgslModule) -> None:
        emitter.head += private_memory(module)

    def entry(self, emitter: ShaderEmitter, module: WgslModule) -> str:
        names = ", ".join(f"i32 %{n}" for triple in _NAMES.values() for n in triple)
        given = ", ".join([*self._given(module), names])
        lines = "\n".join([*emitter.head, *emitter.lines])
        return f"""{_COROUTINES}
define ptr @main({given}) presplitcoroutine {{
entry:
  %id = call token @llvm.coro.id(i32 64, ptr null, ptr null, ptr null)
  %size = call i64 @llvm.coro.size.i64()
  %more = add i64 %size, 63
  %whole = and i64 %more, -64
  %memory = call ptr @aligned_alloc(i64 64, i64 %whole)
  %handle = call ptr @llvm.coro.begin(token %id, ptr %memory)
{lines}
finish:
  %last = call i8 @llvm.coro.suspend(token none, i1 true)
  switch i8 %last, label %suspend [i8 0, label %trap i8 1, label %cleanup]
trap:
  unreachable
cleanup:
  %own = call ptr @llvm.coro.free(token %id, ptr %handle)
  call void @free(ptr %own)
  br label %suspend
suspend:
  call void @llvm.coro.end(ptr %handle, i1 false, token none)
  ret ptr %handle
}}
"""

    def footer(self, module: WgslModule) -> str:
        shared = [b for b in module.buffers if b.space == "workgroup"]
        zeros = "\n".join(
            f"  call void @llvm.memset.p0.i64(ptr @w.{b.name}, i8 0, i64 {b.kind.size}, i1 false)"
            for b in shared
        )
        passed = ", ".join(self._given(module))
        x, y, z = module.workgroup
        found = _GROUP.replace("$GIVEN", passed).replace("$PASSED", passed)
        found = found.replace("$ZEROS", zeros).replace("$THREADS", str(x * y * z))
        found = re.sub(r"\$X\b", str(x), found)
        return re.sub(r"\$Y\b", str(y), found)


class Kernel:
    """A shader that runs on the host."""

    def __init__(self, text: str, *, clamped: bool = True) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.module = WgslModule(text, Host(), clamped=clamped)
        self.text = self.module.llvm()
        made = llvm.parse_assembly(self.text)
        made.verify()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(),
            features=llvm.get_host_cpu_features().flatten(),
            opt=1,
            jit=True,
        )
        tuning = llvm.create_pipeline_tuning_options(speed_level=1)
        llvm.create_pass_builder(machine, tuning).getModulePassManager().run(
            made, llvm.create_pass_builder(machine, tuning)
        )
        self.engine = llvm.create_mcjit_compiler(made, machine)
        self.engine.finalize_object()
        self.address = self.engine.get_function_address("group")

    def __call__(self, grid: tuple[int, int], packed: bytes) -> None:
        """Run workgroups with packed parameters."""
        given: list[int] = []
        kinds: list[Any] = []
        at = 0
        uniform = None
        for buffer in self.module.buffers:
            if buffer.space == "uniform":
                uniform = ctypes.create_string_buffer(packed[at:].ljust(buffer.kind.size, b"\0"))
                given.append(ctypes.addressof(uniform))
                kinds.append(ctypes.c_void_p)
            elif buffer.space == "storage":
                stride = buffer.kind.stride if isinstance(buffer.kind, WgslArray) else 1
                address, nbytes = struct.unpack_from("<QQ", packed, at)
                at += 16
                given += [address, nbytes // stride]
                kinds += [ctypes.c_void_p, ctypes.c_uint32]
        x, y, z = self.module.workgroup
        handles = (ctypes.c_void_p * (x * y * z))()
        run = ctypes.CFUNCTYPE(None, *kinds, *[ctypes.c_uint32] * 6, ctypes.c_void_p)(self.address)
        for down in range(grid[1]):
            for across in range(grid[0]):
                run(*given, across, down, 0, *grid, 1, ctypes.addressof(handles))


class HostApi:
    """The functions of ``cuda.api.Api``, done at once by the processor."""

    def __init__(self) -> None:
        self._memory: dict[int, Any] = {}
        #: Which streams waited for which: ours for another, or another for ours.
        self.registered: set[int] = set()
        #: What a graph that is being made does, and how many graphs were launched.
        self.captured: list[Any] | None = None
        self.graphs = 0
        self.order: list[tuple[str, int]] = []

    def close(self) -> None:
        pass

    def allocate(self, nbytes: int) -> int:
        made = ctypes.create_string_buffer(nbytes + 64)
        address = -(-ctypes.addressof(made) // 64) * 64
        self._memory[address] = made
        return address

    allocate_host = allocate

    def register(self, address: int, nbytes: int) -> None:
        self.registered.add(address)

    def unregister(self, address: int, held: object = None) -> None:
        self.registered.discard(address)

    def free(self, address: int) -> None:
        del self._memory[address]

    free_host = free

    def clear(self, address: int, nbytes: int) -> None:
        if self.captured is not None:
            self.captured.append((ctypes.memset, address, 0, nbytes))
            return
        ctypes.memset(address, 0, nbytes)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        if self.captured is not None:
            self.captured.append((ctypes.memmove, target, source, nbytes))
            return
        ctypes.memmove(target, source, nbytes)

    #: The handle of the stream of downloads.
    back = 78

    def read_back(self, target: int, source: int, nbytes: int) -> float:
        ctypes.memmove(target, source, nbytes)
        return self.event()

    def copy_rows(self, target: int, source: int, pitch: int, nbytes: int, count: int) -> None:
        for row in range(count):
            ctypes.memmove(target + row * nbytes, source + row * pitch, nbytes)

    def enter(self) -> None:
        pass

    #: The stream's handle.
    stream = 77

    def follow(self, stream: int) -> None:
        self.order.append(("follow", stream))

    def lead(self, stream: int) -> None:
        self.order.append(("lead", stream))

    def load(self, ptx: bytes) -> Kernel:
        clamped, _, text = ptx.decode().partition("\n")
        return Kernel(text, clamped=clamped == "True")

    def unload(self, function: Kernel) -> None:
        pass

    def launch(self, function: Kernel, grid: tuple[int, int], block: Any, packed: bytes) -> None:
        if self.captured is None:
            function(grid, packed)
        else:
            self.captured.append((function, grid, packed))

    def capture(self, work: Callable[[], None]) -> list[Any]:
        self.captured = graph = []
        work()
        self.captured = None
        return graph

    def launch_graph(self, graph: list[Any]) -> None:
        self.graphs += 1
        for function, *given in graph:
            function(*given)

    def event(self, *, timed: bool = False) -> float:
        return time.perf_counter()

    def reached(self, event: float) -> bool:
        return True

    def elapsed(self, first: float, second: float) -> float:
        return second - first

    def release(self, event: float) -> None:
        pass


def compile_for_host(code: str, checks: str, capability: int) -> CompiledShader:
    """Return a shader whose text stands for its PTX."""
    module = WgslModule(code, Host(), clamped=checks != "none")
    uniform = [b.kind.size for b in module.buffers if b.space == "uniform"]
    storage = tuple(b.binding for b in module.buffers if b.space == "storage")
    text = f"{checks != 'none'}\n{code}"
    return CompiledShader(text, module.workgroup, storage, uniform[0] if uniform else 0)
