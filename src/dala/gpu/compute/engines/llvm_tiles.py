"""The native side of sharing out a job: fetching tiles until none is left. Written once, as IR.

A job block is made of words of eight bytes. The first ones are

===  ======  ==================================================================================
0    next    the first position nobody has taken yet (atomic)
1    total   the number of positions
2    chunk   positions in a tile
3    done    positions finished (atomic)
4    body    the function ``body(ptr job, ptr out, i64 start, i64 end)``
5    size    bytes that the output has for each position
6    out     the output
===  ======  ==================================================================================

and the rest belongs to ``body``, which may not change any of it. The module exports

``run(ptr job, i64 n)``           takes tiles until none is left; 1 if it finished the last one, or
                                  if the job was finished while it looked n times, else 0;
``run_stream(ptr job, i64 n)``    the same, storing past the caches where the machine can; output
                                  and tiles must be on 64-byte boundaries;
``watch(ptr p, i64 old, i64 n)``  looks n times for the word at p to change from old; 1 if it did.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template
from typing import Final

#: The words that the table above names.
HEAD_WORDS: Final = 7


@dataclass(frozen=True, slots=True)
class Host:
    """What generated code depends on of the machine."""

    #: Function attributes, such as the vector width to use.
    attributes: str = ""
    #: True where stores that bypass the caches exist (x86).
    streams: bool = False
    #: The instruction for waiting loops, as LLVM IR.
    pause: str = ""


_RUN: Final = Template("""\
define i32 @$name(ptr %job, i64 %looks) #0 {
entry:
  %total.p = getelementptr i64, ptr %job, i64 1
  %total = load i64, ptr %total.p
  %chunk.p = getelementptr i64, ptr %job, i64 2
  %chunk = load i64, ptr %chunk.p
  %done.p = getelementptr i64, ptr %job, i64 3
  %body.p = getelementptr i64, ptr %job, i64 4
  %body = load ptr, ptr %body.p
  %size.p = getelementptr i64, ptr %job, i64 5
  %size = load i64, ptr %size.p
  %out.p = getelementptr i64, ptr %job, i64 6
  %out = load ptr, ptr %out.p
  br label %take
take:
  %start = atomicrmw add ptr %job, i64 %chunk monotonic
  %some = icmp slt i64 %start, %total
  br i1 %some, label %tile, label %look
tile:
  %full = add i64 %start, %chunk
  %end = call i64 @llvm.smin.i64(i64 %full, i64 %total)
  $call
  %count = sub i64 %end, %start
  %before = atomicrmw add ptr %done.p, i64 %count acq_rel
  %now = add i64 %before, %count
  %last = icmp eq i64 %now, %total
  br i1 %last, label %finished, label %take
look:
  %left = phi i64 [ %looks, %take ], [ %fewer, %wait ]
  %gone = icmp eq i64 %left, 0
  br i1 %gone, label %unknown, label %wait
wait:
  $pause
  %fewer = sub i64 %left, 1
  %seen = load atomic i64, ptr %done.p acquire, align 8
  %done = icmp eq i64 %seen, %total
  br i1 %done, label %finished, label %look
finished:
  ret i32 1
unknown:
  ret i32 0
}
""")

_WATCH: Final = Template("""\
define i32 @watch(ptr %word, i64 %old, i64 %looks) #0 {
entry:
  br label %look
look:
  %left = phi i64 [ %looks, %entry ], [ %fewer, %wait ]
  %now = load atomic i64, ptr %word monotonic, align 8
  %same = icmp eq i64 %now, %old
  br i1 %same, label %more, label %changed
more:
  %gone = icmp eq i64 %left, 0
  br i1 %gone, label %never, label %wait
wait:
  $pause
  %fewer = sub i64 %left, 1
  br label %look
changed:
  ret i32 1
never:
  ret i32 0
}
""")

# A tile in pieces: each is computed into the nearest cache and sent on in whole lines. The fence is
# there because such stores are not ordered with the counter that says the tile is done.
_STREAM: Final = """\
define internal void @stream(ptr %job, ptr %body, i64 %size, ptr %out, i64 %start, i64 %end) #0 {
entry:
  %space = alloca [4096 x i8], align 64
  %fit = udiv i64 4096, %size
  %positions = and i64 %fit, -64
  br label %pieces
pieces:
  %at = phi i64 [ %start, %entry ], [ %stop, %sent ]
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
    """The module that shares out jobs on this machine."""
    parts = [_RUN.substitute(name="run", call=_PLAIN_CALL, pause=host.pause)]
    call = _STREAM_CALL if host.streams else _PLAIN_CALL
    parts.append(_RUN.substitute(name="run_stream", call=call, pause=host.pause))
    if host.streams:
        parts.append(_STREAM)
    parts.append(_WATCH.substitute(pause=host.pause))
    parts.append("declare i64 @llvm.smin.i64(i64, i64)\n")
    parts.append('attributes #0 = { nounwind "no-stack-arg-probe" }\n')
    if host.pause:
        parts.append(host.pause.replace("call", "declare").replace("i32 15", "i32") + "\n")
    return "\n".join(parts)
