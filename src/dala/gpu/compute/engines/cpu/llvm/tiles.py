"""The native functions that run a job on several threads, as LLVM IR.

A job block consists of words of eight bytes. The first ones are

===  =======  =================================================================================
0    claimed  tiles claimed so far (atomic)
1    total    the number of positions
2    chunk    positions per tile
3    left     helpers that have finished (atomic)
4    joined   helpers that have joined, set once no more can
5    body     the function ``body(ptr job, ptr out, i64 start, i64 end)``
6    size     bytes of the output per position
7    stream   1 for non-temporal stores; a position of each tile must be on a 64-byte boundary
8    back     tiles claimed by helpers (atomic)
9    stop     the address of the stop cell; see ``metering.py``
10   out      the output
===  =======  =================================================================================

The other words belong to ``body``, which must not change any. No tile starts once the stop cell
says so. The caller claims tiles from the
front and helpers claim them from the back, so that over a sequence of jobs each thread finds in its
cache the part that it wrote before.

A mailbox has a word that stops its helpers, a word that counts idle helpers, and :data:`SLOTS`
words for invitations, each the address of a job that has tiles left. The module exports:

``share(ptr job, ptr mailbox, i64 helpers, i64 spins)``
    Invites helpers, runs tiles until none is left, withdraws open invitations and waits for the
    helpers that joined. Returns 1 when the job is done, 0 if a helper is still busy after
    ``spins`` checks.
``wait(ptr job, i64 spins)``
    Continues to wait; returns the same.
``serve(ptr mailbox, i64 spins)``
    The loop of a helper: accepts invitations until there were none for ``spins`` checks.

The caller may free a job block once ``share`` or ``wait`` has returned 1.
"""

from __future__ import annotations

from typing import Final

from dala.gpu.compute.engines.cpu.llvm.metering import check_text
from dala.gpu.compute.engines.cpu.machine import Machine
from dala.gpu.compute.engines.cpu.vector.text import runtime

#: Words listed above.
HEAD_WORDS: Final = 11
#: The word with the number of positions.
TOTAL_WORD: Final = 1
#: The word with the address of the output.
OUT_WORD: Final = 10
#: Words of a mailbox before its slots: stop, idle.
MAILBOX_HEAD: Final = 2
#: The most invitations open at one time.
SLOTS: Final = 64


_PLAIN_CALL: Final = "call void %body(ptr %job, ptr %out, i64 %start, i64 %end)"
_STREAM_CALL: Final = (
    "call void @stream(ptr %job, ptr %body, i64 %size, ptr %out, i64 %start, i64 %end)"
)


def tiles_text(machine: Machine) -> str:
    """Return the module that runs jobs on this CPU."""
    call = _STREAM_CALL if machine.streams else _PLAIN_CALL
    parts = [runtime("tiles", stream=call, pause=machine.pause, slots=SLOTS), check_text()]
    if machine.streams:
        parts.append(runtime("stream"))
    if machine.pause:
        parts.append(machine.pause.replace("call", "declare").replace("i32 15", "i32") + "\n")
    return "\n".join(parts)
