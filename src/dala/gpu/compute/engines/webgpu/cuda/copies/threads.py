"""Copies of the host's memory by threads that wait in native code.

Python's threads need the GIL to begin and to end each part of a copy, and while other threads work
they wait for it longer than they copy. Here a copy is one native call.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any, Final

from dala import forks
from dala.gpu.compute.engines.cpu.memory import Array, address_of
from dala.gpu.compute.engines.cpu.threads import usable_cores
from dala.gpu.compute.engines.webgpu import copying

#: Bytes that a thread takes at a time.
PART_BYTES: Final = 1 << 20
#: The most threads: on 16 cores ten copy 86 GB/s, eight 72, twelve 91; a bus moves 55.
MAX_THREADS: Final = 10
#: Bytes of a helper in native memory: a semaphore, and the address of its job.
_HELPER: Final = 64

# A job has words of eight bytes: the next part, the number of parts, the bytes of a part and of
# all, the target, the source, and the semaphore that each helper posts when no part is left.
_TEXT: Final = """
declare i32 @sem_wait(ptr)
declare i32 @sem_post(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.umin.i64(i64, i64)

define private void @pause(ptr %semaphore) {
begin:
  br label %again
again:
  %code = call i32 @sem_wait(ptr %semaphore)
  %interrupted = icmp ne i32 %code, 0
  br i1 %interrupted, label %again, label %done
done:
  ret void
}

define private void @work(ptr %job) {
begin:
  %at1 = getelementptr i64, ptr %job, i64 1
  %parts = load i64, ptr %at1
  %at2 = getelementptr i64, ptr %job, i64 2
  %step = load i64, ptr %at2
  %at3 = getelementptr i64, ptr %job, i64 3
  %all = load i64, ptr %at3
  %at4 = getelementptr i64, ptr %job, i64 4
  %target = load ptr, ptr %at4
  %at5 = getelementptr i64, ptr %job, i64 5
  %source = load ptr, ptr %at5
  br label %next
next:
  %part = atomicrmw add ptr %job, i64 1 acq_rel
  %more = icmp ult i64 %part, %parts
  br i1 %more, label %copy, label %done
copy:
  %start = mul i64 %part, %step
  %left = sub i64 %all, %start
  %size = call i64 @llvm.umin.i64(i64 %step, i64 %left)
  %to = getelementptr i8, ptr %target, i64 %start
  %from = getelementptr i8, ptr %source, i64 %start
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  br label %next
done:
  ret void
}

define void @serve(ptr %self) {
begin:
  br label %again
again:
  call void @pause(ptr %self)
  %at = getelementptr i8, ptr %self, i64 32
  %job = load ptr, ptr %at
  call void @work(ptr %job)
  %at6 = getelementptr i64, ptr %job, i64 6
  %ended = load ptr, ptr %at6
  %code = call i32 @sem_post(ptr %ended)
  br label %again
}

define void @copy(ptr %job, ptr %helpers, i64 %count) {
begin:
  br label %invite
invite:
  %i = phi i64 [0, %begin], [%i1, %one]
  %some = icmp ult i64 %i, %count
  br i1 %some, label %one, label %own
one:
  %at = mul i64 %i, 64
  %helper = getelementptr i8, ptr %helpers, i64 %at
  %place = getelementptr i8, ptr %helper, i64 32
  store ptr %job, ptr %place
  %code = call i32 @sem_post(ptr %helper)
  %i1 = add i64 %i, 1
  br label %invite
own:
  call void @work(ptr %job)
  %at6 = getelementptr i64, ptr %job, i64 6
  %ended = load ptr, ptr %at6
  br label %wait
wait:
  %k = phi i64 [0, %own], [%k1, %waited]
  %left = icmp ult i64 %k, %count
  br i1 %left, label %waited, label %end
waited:
  call void @pause(ptr %ended)
  %k1 = add i64 %k, 1
  br label %wait
end:
  ret void
}
"""


class CopyThreads:
    """Threads that copy together; one copy at a time."""

    def __init__(self, helpers: int) -> None:
        self._code = _compiled()
        self._lock = forks.lock()
        # Those of the helpers, and the semaphore of their ends. One of value 0 is zeros.
        self._memory = ctypes.create_string_buffer(_HELPER * (helpers + 2))
        self._helpers = -(-ctypes.addressof(self._memory) // _HELPER) * _HELPER
        self._count = helpers
        for k in range(helpers):
            at = self._helpers + k * _HELPER
            forks.thread(self._code.serve, name=f"dala copier {k}", args=(at,)).start()

    def copy(self, target: Array, source: Array) -> None:
        """Copy all bytes. The GIL is free meanwhile."""
        parts = -(-source.size // PART_BYTES)
        job = (ctypes.c_int64 * 7)(
            0, parts, PART_BYTES, source.size, address_of(target), address_of(source),
            self._helpers + self._count * _HELPER,
        )  # fmt: skip
        with self._lock:
            self._code.copy(ctypes.addressof(job), self._helpers, min(self._count, parts - 1))


class _Code:
    """The native functions."""

    def __init__(self, engine: Any) -> None:
        word, address, find = ctypes.c_int64, ctypes.c_void_p, engine.get_function_address
        self.serve = ctypes.CFUNCTYPE(None, address)(find("serve"))
        self.copy = ctypes.CFUNCTYPE(None, address, address, word)(find("copy"))
        self._engine = engine


@cache
def _compiled() -> _Code:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(_TEXT)
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return _Code(engine)


@cache
def copier() -> CopyThreads | None:
    """Return the threads of this process; None where they are of no use, or cannot be."""
    helpers = min(MAX_THREADS, usable_cores() * 2 // 3) - 1
    return CopyThreads(helpers) if helpers > 0 and sys.platform == "linux" else None


def copy_bytes(target: Array, source: Array) -> None:
    """Copy all bytes; large arrays on several threads."""
    found = copier() if source.size >= 2 * PART_BYTES else None
    if found is None or not source.flags.c_contiguous:
        copying.copy_bytes(target, source)
    else:
        found.copy(target, source)


def _after_fork() -> None:
    copier.cache_clear()


forks.in_child(_after_fork)
