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

from dataclasses import dataclass
from string import Template
from typing import Final

from dala.gpu.compute.engines.cpu.llvm.metering import CHECK

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


@dataclass(frozen=True, slots=True)
class Host:
    """Properties of the CPU that generated code depends on."""

    #: Function attributes, such as the vector width to use.
    attributes: str = ""
    #: True where non-temporal stores exist (x86).
    streams: bool = False
    #: The instruction of waiting loops, as LLVM IR.
    pause: str = ""
    #: The intrinsic for rounded products of signed 16-bit fractions, and its lanes.
    q15: str = ""
    q15_lanes: int = 0
    #: The intrinsic for products of signed 16-bit numbers, added in pairs, and its lanes.
    pairs: str = ""
    pair_lanes: int = 0
    #: The intrinsic for ``narrow_fours``, of half as many lanes.
    narrow: str = ""
    #: The intrinsic that looks up 64 bytes in a table of 128.
    lookup: str = ""
    #: The intrinsic for products of u8 and i8, added in pairs, of twice as many lanes as ``pairs``.
    byte_pairs: str = ""


_TILES: Final = Template("""\
define internal void @tiles(ptr %job, i1 %helper) #0 {
entry:
  %total.p = getelementptr i64, ptr %job, i64 1
  %total = load i64, ptr %total.p
  %chunk.p = getelementptr i64, ptr %job, i64 2
  %chunk = load i64, ptr %chunk.p
  %body.p = getelementptr i64, ptr %job, i64 5
  %body = load ptr, ptr %body.p
  %size.p = getelementptr i64, ptr %job, i64 6
  %size = load i64, ptr %size.p
  %stream.p = getelementptr i64, ptr %job, i64 7
  %stream = load i64, ptr %stream.p
  %nontemporal = icmp ne i64 %stream, 0
  %back.p = getelementptr i64, ptr %job, i64 8
  %stop.p = getelementptr i64, ptr %job, i64 9
  %stop = load ptr, ptr %stop.p
  %out.p = getelementptr i64, ptr %job, i64 10
  %out = load ptr, ptr %out.p
  %more = add i64 %total, %chunk
  %round = sub i64 %more, 1
  %count = udiv i64 %round, %chunk
  %last = sub i64 %count, 1
  br label %look
look:
  %front = phi i64 [ 0, %entry ], [ %front.next, %done ]
  %state = load atomic i64, ptr %stop monotonic, align 8
  %asked = icmp ne i64 %state, 0
  br i1 %asked, label %check, label %claim
check:
  %ended = call i1 @dala.check(ptr %stop)
  br i1 %ended, label %none, label %claim
claim:
  %claimed = atomicrmw add ptr %job, i64 1 monotonic
  %some = icmp slt i64 %claimed, %count
  br i1 %some, label %which, label %none
which:
  br i1 %helper, label %behind, label %tile
behind:
  %back = atomicrmw add ptr %back.p, i64 1 monotonic
  %reverse = sub i64 %last, %back
  br label %tile
tile:
  %index = phi i64 [ %front, %which ], [ %reverse, %behind ]
  %start = mul i64 %index, %chunk
  %full = add i64 %start, %chunk
  %end = call i64 @llvm.smin.i64(i64 %full, i64 %total)
  br i1 %nontemporal, label %streaming, label %plain
streaming:
  $stream
  br label %done
plain:
  call void %body(ptr %job, ptr %out, i64 %start, i64 %end)
  br label %done
done:
  %front.next = add i64 %front, 1
  br label %look
none:
  ret void
}

define i32 @share(ptr %job, ptr %mailbox, i64 %helpers, i64 %spins) #0 {
entry:
  call void @dala.enter(ptr %job)
  %me = ptrtoint ptr %job to i64
  %slots = getelementptr i64, ptr %mailbox, i64 2
  br label %invite
invite:
  %i = phi i64 [ 0, %entry ], [ %i.next, %invited ]
  %posted = phi i64 [ 0, %entry ], [ %posted.next, %invited ]
  %enough = icmp eq i64 %posted, %helpers
  %over = icmp eq i64 %i, $slots
  %stop = or i1 %enough, %over
  br i1 %stop, label %work, label %try
try:
  %slot = getelementptr i64, ptr %slots, i64 %i
  %put = cmpxchg ptr %slot, i64 0, i64 %me acq_rel monotonic
  %did = extractvalue { i64, i1 } %put, 1
  br label %invited
invited:
  %one = zext i1 %did to i64
  %posted.next = add i64 %posted, %one
  %i.next = add i64 %i, 1
  br label %invite
work:
  call void @tiles(ptr %job, i1 false)
  br label %withdraw
withdraw:
  %j = phi i64 [ 0, %work ], [ %j.next, %drawn ]
  %back = phi i64 [ 0, %work ], [ %back.next, %drawn ]
  %all = icmp eq i64 %j, %i
  br i1 %all, label %known, label %draw
draw:
  %open = getelementptr i64, ptr %slots, i64 %j
  %undo = cmpxchg ptr %open, i64 %me, i64 0 acq_rel monotonic
  %undone = extractvalue { i64, i1 } %undo, 1
  br label %drawn
drawn:
  %one.back = zext i1 %undone to i64
  %back.next = add i64 %back, %one.back
  %j.next = add i64 %j, 1
  br label %withdraw
known:
  %joined = sub i64 %posted, %back
  %joined.p = getelementptr i64, ptr %job, i64 4
  store i64 %joined, ptr %joined.p
  %done = call i32 @wait(ptr %job, i64 %spins)
  ret i32 %done
}

define i32 @wait(ptr %job, i64 %spins) #0 {
entry:
  %left.p = getelementptr i64, ptr %job, i64 3
  %joined.p = getelementptr i64, ptr %job, i64 4
  %joined = load i64, ptr %joined.p
  br label %look
look:
  %n = phi i64 [ %spins, %entry ], [ %fewer, %rest ]
  %left = load atomic i64, ptr %left.p acquire, align 8
  %done = icmp eq i64 %left, %joined
  br i1 %done, label %finished, label %more
more:
  %timeout = icmp eq i64 %n, 0
  br i1 %timeout, label %unfinished, label %rest
rest:
  $pause
  %fewer = sub i64 %n, 1
  br label %look
finished:
  ret i32 1
unfinished:
  ret i32 0
}

define void @serve(ptr %mailbox, i64 %spins) #0 {
entry:
  %idle.p = getelementptr i64, ptr %mailbox, i64 1
  %slots = getelementptr i64, ptr %mailbox, i64 2
  %entered = atomicrmw add ptr %idle.p, i64 1 monotonic
  br label %round
round:
  %n = phi i64 [ %spins, %entry ], [ %fewer, %idle ], [ %spins, %helped ]
  %stop = load atomic i64, ptr %mailbox monotonic, align 8
  %ended = icmp ne i64 %stop, 0
  %timeout = icmp eq i64 %n, 0
  %go = or i1 %ended, %timeout
  br i1 %go, label %leave, label %scan
scan:
  %i = phi i64 [ 0, %round ], [ %i.next, %next ]
  %slot = getelementptr i64, ptr %slots, i64 %i
  %job = load atomic i64, ptr %slot monotonic, align 8
  %none = icmp eq i64 %job, 0
  br i1 %none, label %next, label %accept
accept:
  %got = cmpxchg ptr %slot, i64 %job, i64 0 acq_rel monotonic
  %mine = extractvalue { i64, i1 } %got, 1
  br i1 %mine, label %help, label %next
next:
  %i.next = add i64 %i, 1
  %over = icmp eq i64 %i.next, $slots
  br i1 %over, label %idle, label %scan
help:
  %busy = atomicrmw sub ptr %idle.p, i64 1 monotonic
  %block = inttoptr i64 %job to ptr
  call void @tiles(ptr %block, i1 true)
  br label %helped
helped:
  %left.p = getelementptr i64, ptr %block, i64 3
  %gone = atomicrmw add ptr %left.p, i64 1 release
  %free = atomicrmw add ptr %idle.p, i64 1 monotonic
  br label %round
idle:
  $pause
  %fewer = sub i64 %n, 1
  br label %round
leave:
  %left = atomicrmw sub ptr %idle.p, i64 1 monotonic
  ret void
}

declare i64 @llvm.smin.i64(i64, i64)
attributes #0 = { nounwind "no-stack-arg-probe" }
""")

# Runs a tile in parts: each is computed into the nearest cache and then stored in whole cache
# lines. The fence is needed because non-temporal stores are not ordered with the atomic counter.
_STREAM: Final = """\
define internal void @stream(ptr %job, ptr %body, i64 %size, ptr %out, i64 %start, i64 %end) #0 {
entry:
  %space = alloca [4096 x i8], align 64
  %fit = udiv i64 4096, %size
  %positions = and i64 %fit, -64
  %begin = mul i64 %start, %size
  %first = getelementptr i8, ptr %out, i64 %begin
  %address = ptrtoint ptr %first to i64
  %negative = sub i64 0, %address
  %lead = and i64 %negative, 63
  %skew = udiv i64 %lead, %size
  %ahead = add i64 %start, %skew
  %aligned = call i64 @llvm.smin.i64(i64 %ahead, i64 %end)
  %askew = icmp slt i64 %start, %aligned
  br i1 %askew, label %up, label %pieces
up:
  call void %body(ptr %job, ptr %out, i64 %start, i64 %aligned)
  br label %pieces
pieces:
  %at = phi i64 [ %aligned, %entry ], [ %aligned, %up ], [ %stop, %sent ]
  %some = icmp slt i64 %at, %end
  br i1 %some, label %piece, label %leave
piece:
  %full = add i64 %at, %positions
  %stop = call i64 @llvm.smin.i64(i64 %full, i64 %end)
  %offset = mul i64 %at, %size
  %back = sub i64 0, %offset
  %shifted = getelementptr i8, ptr %space, i64 %back
  call void %body(ptr %job, ptr %shifted, i64 %at, i64 %stop)
  %target = getelementptr i8, ptr %out, i64 %offset
  %count = sub i64 %stop, %at
  %bytes = mul i64 %count, %size
  %whole = and i64 %bytes, -64
  br label %lines
lines:
  %i = phi i64 [ 0, %piece ], [ %i.next, %line ]
  %more = icmp slt i64 %i, %whole
  br i1 %more, label %line, label %tail
line:
  %from = getelementptr i8, ptr %space, i64 %i
  %to = getelementptr i8, ptr %target, i64 %i
  %moved = load <16 x i32>, ptr %from, align 64
  store <16 x i32> %moved, ptr %to, align 64, !nontemporal !0
  %i.next = add i64 %i, 64
  br label %lines
tail:
  %j = phi i64 [ %whole, %lines ], [ %j.next, %byte ]
  %rest = icmp slt i64 %j, %bytes
  br i1 %rest, label %byte, label %sent
byte:
  %from.j = getelementptr i8, ptr %space, i64 %j
  %to.j = getelementptr i8, ptr %target, i64 %j
  %moved.j = load i8, ptr %from.j
  store i8 %moved.j, ptr %to.j
  %j.next = add i64 %j, 1
  br label %tail, !llvm.loop !1
sent:
  br label %pieces
leave:
  call void @llvm.x86.sse.sfence()
  ret void
}

declare void @llvm.x86.sse.sfence()
!0 = !{i32 1}
!1 = distinct !{!1, !2, !3}
!2 = !{!"llvm.loop.vectorize.enable", i1 false}
!3 = !{!"llvm.loop.unroll.disable"}
"""

_PLAIN_CALL: Final = "call void %body(ptr %job, ptr %out, i64 %start, i64 %end)"
_STREAM_CALL: Final = (
    "call void @stream(ptr %job, ptr %body, i64 %size, ptr %out, i64 %start, i64 %end)"
)


def tiles_text(host: Host) -> str:
    """Return the module that runs jobs on this CPU."""
    call = _STREAM_CALL if host.streams else _PLAIN_CALL
    parts = [_TILES.substitute(stream=call, pause=host.pause, slots=SLOTS), CHECK]
    if host.streams:
        parts.append(_STREAM)
    if host.pause:
        parts.append(host.pause.replace("call", "declare").replace("i32 15", "i32") + "\n")
    return "\n".join(parts)
