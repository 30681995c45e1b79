; LLVM IR written by hand, in parts: the loops that run jobs, the ends of modules, and checks.
; --- tiles
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
; --- stream
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
; --- check
define internal void @dala.enter(ptr %job) noinline #0 {
entry:
  %stop.p = getelementptr i64, ptr %job, i64 $stop
  %stop = load ptr, ptr %stop.p
  %ask.p = getelementptr i64, ptr %stop, i64 2
  %ask = load ptr, ptr %ask.p
  %some = icmp ne ptr %ask, null
  br i1 %some, label %note, label %leave
note:
  %frame = call ptr @llvm.frameaddress.p0(i32 0)
  %frame.p = getelementptr i64, ptr %stop, i64 1
  store ptr %frame, ptr %frame.p
  br label %leave
leave:
  ret void
}

define internal i1 @dala.check(ptr %stop) noinline cold #0 {
entry:
  %state = load atomic i64, ptr %stop monotonic, align 8
  switch i64 %state, label %ended [ i64 0, label %go i64 1, label %look ]
look:
  %frame = call ptr @llvm.frameaddress.p0(i32 0)
  %here = ptrtoint ptr %frame to i64
  %frame.p = getelementptr i64, ptr %stop, i64 1
  %base = load i64, ptr %frame.p
  %above = add i64 %base, 65536
  %depth = sub i64 %above, %here
  %mine = icmp ult i64 %depth, 2097152
  br i1 %mine, label %question, label %go
question:
  %ask.p = getelementptr i64, ptr %stop, i64 2
  %ask = load ptr, ptr %ask.p
  %answer = call i32 %ask()
  %end = icmp ne i32 %answer, 0
  br i1 %end, label %ended, label %go
go:
  ret i1 false
ended:
  ret i1 true
}

declare ptr @llvm.frameaddress.p0(i32)
; --- all
define void @all(ptr %job) #0 {
  $enter
  %total.p = getelementptr i64, ptr %job, i64 1
  %total = load i64, ptr %total.p
  %out.p = getelementptr i64, ptr %job, i64 $out
  %out = load ptr, ptr %out.p
  tail call void @body(ptr %job, ptr %out, i64 0, i64 %total)
  ret void
}
; --- metadata
!0 = distinct !{}
!1 = distinct !{!1, !3}
!2 = distinct !{!2, !3, !4, !5}
!3 = !{!"llvm.loop.parallel_accesses", !0}
!4 = !{!"llvm.loop.vectorize.enable", i1 false}
!5 = !{!"llvm.loop.unroll.disable"}
!6 = !{!"branch_weights", i32 1, i32 65536}
!7 = distinct !{!7, !5}
!8 = !{i32 1}
; --- fault
define internal void @dala.fault(ptr %f, i64 %index, i64 %length, i64 %line, i64 %name) #0 {
  %put = cmpxchg ptr %f, i64 0, i64 1 acq_rel monotonic
  %first = extractvalue { i64, i1 } %put, 1
  br i1 %first, label %report, label %leave
report:
  %p1 = getelementptr i64, ptr %f, i64 1
  store i64 %index, ptr %p1
  %p2 = getelementptr i64, ptr %f, i64 2
  store i64 %length, ptr %p2
  %p3 = getelementptr i64, ptr %f, i64 3
  store i64 %line, ptr %p3
  %p4 = getelementptr i64, ptr %f, i64 4
  store i64 %name, ptr %p4
  br label %leave
leave:
  ret void
}
; --- tile by tile
define void @all(ptr %job) #0 {
entry:
  %total.p = getelementptr i64, ptr %job, i64 1
  %total = load i64, ptr %total.p
  %chunk.p = getelementptr i64, ptr %job, i64 2
  %chunk = load i64, ptr %chunk.p
  br label %look
look:
  %start = phi i64 [ 0, %entry ], [ %end, %tile ]
  %some = icmp slt i64 %start, %total
  br i1 %some, label %tile, label %leave
tile:
  %full = add i64 %start, %chunk
  %over = icmp sgt i64 %full, %total
  %end = select i1 %over, i64 %total, i64 %full
  call void @body(ptr %job, ptr null, i64 %start, i64 %end)
  br label %look
leave:
  ret void
}
; --- touch
define internal void @dala.touch(i64 %pages) noinline #0 {
entry:
  br label %look
look:
  %n = phi i64 [ %pages, %entry ], [ %fewer, %page ]
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %page, label %leave
page:
  %p = alloca i8, i64 4096, align 16
  store volatile i8 0, ptr %p
  %fewer = sub i64 %n, 1
  br label %look
leave:
  ret void
}
