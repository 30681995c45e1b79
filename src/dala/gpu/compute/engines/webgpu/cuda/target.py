"""Where translated shaders run: NVIDIA's GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dala.gpu.compute.engines.webgpu.cuda.types import (
    U32,
    WgslArray,
    WgslPlace,
    WgslValue,
    WgslVector,
    constant,
)

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.cuda.emitter import ShaderEmitter
    from dala.gpu.compute.engines.webgpu.cuda.module import WgslModule, WgslVariable

_REGISTERS: Final = {
    "workgroup_id": "ctaid", "num_workgroups": "nctaid", "local_invocation_id": "tid",
}  # fmt: skip


def private_memory(module: WgslModule) -> list[str]:
    """Return instructions for the variables of each invocation, which begin as zero."""
    found: list[str] = []
    for buffer in module.buffers:
        if buffer.space == "private":
            kind = f"[{buffer.kind.size} x i8]"
            found.append(f"  %p.{buffer.name} = alloca {kind}, align 16")
            found.append(f"  store {kind} zeroinitializer, ptr %p.{buffer.name}, align 16")
    return found


class GpuTarget:
    """A GPU: threads of a block are invocations; buffers are parameters of the kernel."""

    header = 'target triple = "nvptx64-nvidia-cuda"'
    leave = "ret void"

    def place(self, buffer: WgslVariable) -> tuple[WgslPlace, str]:
        """Return where a variable of the module is, and the text that defines it."""
        name, kind = buffer.name, buffer.kind
        if buffer.space == "workgroup":
            text = f"@w.{name} = internal addrspace(3) global [{kind.size} x i8] undef, align 16"
            return WgslPlace(kind, f"@w.{name}", "ptr addrspace(3)"), text
        if buffer.space == "uniform":
            return WgslPlace(kind, "%uniform"), ""
        if buffer.space == "private":
            return WgslPlace(kind, f"%p.{name}"), ""
        length = f"%n{buffer.binding}" if isinstance(kind, WgslArray) and not kind.count else ""
        return WgslPlace(kind, f"%b{buffer.binding}", "ptr addrspace(1)", length), ""

    def passed(self, module: WgslModule) -> list[str]:
        """Return the parameters that every function has: the buffers."""
        found: list[str] = []
        for buffer in module.buffers:
            if buffer.space == "uniform":
                found.append("ptr %uniform")
            elif buffer.space == "private":
                found.append(f"ptr %p.{buffer.name}")
            elif buffer.space == "storage":
                found += [f"ptr addrspace(1) %b{buffer.binding}", f"i32 %n{buffer.binding}"]
        return found

    def builtin(self, emitter: ShaderEmitter, name: str, module: WgslModule) -> WgslValue:
        """Return a value that differs between invocations."""
        if name == "local_invocation_index":
            return self._index(emitter, module)
        kind = WgslVector(3, U32)
        if name == "global_invocation_id":
            group = self.builtin(emitter, "workgroup_id", module)
            local = self.builtin(emitter, "local_invocation_id", module)
            sizes = ", ".join(f"i32 {size}" for size in module.workgroup)
            first = emitter.emit(f"mul {kind.llvm} {group.text}, <{sizes}>", kind)
            return emitter.emit(f"add {kind.llvm} {first.text}, {local.text}", kind)
        register = _REGISTERS[name]
        parts = [emitter.call(f"llvm.nvvm.read.ptx.sreg.{register}.{axis}", U32) for axis in "xyz"]
        return emitter.gather(kind, parts)

    def _index(self, emitter: ShaderEmitter, module: WgslModule) -> WgslValue:
        x, y, z = (emitter.call(f"llvm.nvvm.read.ptx.sreg.tid.{axis}", U32) for axis in "xyz")
        width, height, depth = module.workgroup
        index = x
        for other, step in ((y, width), (z, width * height)):
            if step < width * height * depth:
                far = emitter.emit(f"mul i32 {other.text}, {step}", U32)
                index = emitter.emit(f"add i32 {index.text}, {far.text}", U32)
        return index

    def barrier(self, emitter: ShaderEmitter, name: str) -> None:
        """Wait for the other invocations of the workgroup."""
        emitter.declared.add("declare void @llvm.nvvm.barrier0() convergent")
        emitter.do("call void @llvm.nvvm.barrier0()")

    def begin(self, emitter: ShaderEmitter, module: WgslModule) -> None:
        """Write zeros to the memory of the workgroup."""
        emitter.head += private_memory(module)
        shared = [b for b in module.buffers if b.space == "workgroup"]
        if not shared:
            return
        threads = module.workgroup[0] * module.workgroup[1] * module.workgroup[2]
        index = self._index(emitter, module)
        slot = emitter.variable(U32)
        for buffer in shared:
            words = buffer.kind.size // 4
            head, body, done = (emitter.name(stem) for stem in ("zero", "word", "zeroed"))
            emitter.store(slot, index)
            emitter.block(head)
            at = emitter.load(slot)
            test = emitter.emit(f"icmp ult i32 {at.text}, {words}", U32)
            emitter.branch(test, body, done)
            emitter.block(body)
            pointer = "ptr addrspace(3)"
            place = emitter.emit(
                f"getelementptr i32, {pointer} @w.{buffer.name}, i32 {at.text}", U32
            )
            emitter.store(WgslPlace(U32, place.text, pointer), constant(U32, 0))
            after = emitter.emit(f"add i32 {at.text}, {threads}", U32)
            emitter.store(slot, after)
            emitter.end(f"br label %{head}")
            emitter.block(done)
        self.barrier(emitter, "workgroupBarrier")

    def entry(self, emitter: ShaderEmitter, module: WgslModule) -> str:
        """Return the text of the kernel."""
        given: list[str] = []
        head: list[str] = []
        for buffer in module.buffers:
            k = buffer.binding
            if buffer.space == "uniform":
                size = -(-buffer.kind.size // 16) * 16
                given.append(f"ptr byval([{size} x i8]) align 16 %uniform")
            elif buffer.space == "storage":
                access = "" if buffer.written else " readonly"
                given.append(f"ptr addrspace(1) noalias{access} align 16 %b{k}, i32 %bytes{k}")
                stride = buffer.kind.stride if isinstance(buffer.kind, WgslArray) else 1
                head.append(f"  %n{k} = udiv i32 %bytes{k}, {stride}")
        lines = "\n".join(["entry:", *head, *emitter.head, *emitter.lines])
        return f"define ptx_kernel void @main({', '.join(given)}) {{\n{lines}\n}}\n"

    def footer(self, module: WgslModule) -> str:
        """Return what ends the module: the size of workgroups."""
        x, y, z = module.workgroup
        return "!nvvm.annotations = !{!0}\n" + (
            f'!0 = !{{ptr @main, !"maxntidx", i32 {x}, !"maxntidy", i32 {y}, !"maxntidz", i32 {z}}}'
        )
