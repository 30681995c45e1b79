"""A pipeline of four threads and a device, on a clock that only this model moves.

``Model`` computes when each thread works and waits on bounded queues, and records that as the
library does. No real time passes, so that any delay can be tried exactly.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from dala.trace.recorder import Tracer

#: Stages by the thread that does them, with milliseconds.
DECODER, MAIN, ENCODER, SENDER, DEVICE, COMPILER = 11, 12, 13, 14, 15, 16
STAGES = {
    "demux": (DECODER, 0.4), "decode": (DECODER, 6.0),
    "convert": (MAIN, 1.5), "upload": (MAIN, 1.0), "compile": (COMPILER, 0.0),
    "pass": (DEVICE, 5.0), "model": (MAIN, 4.0), "compose": (MAIN, 3.0),
    "encode": (ENCODER, 11.0), "mux": (ENCODER, 0.3), "network": (SENDER, 1.0),
}  # fmt: skip
#: The ten in which delays are injected.
INJECTED = tuple(name for name in STAGES if name != "demux")
NAMES = {
    "demux": "", "decode": "h264", "convert": "to rgba", "upload": "webgpu:0",
    "compile": "kernel 'blur'", "pass": "blur", "model": "blazeface", "compose": "scene",
    "encode": "libx264 veryfast, 2 threads", "mux": "out.ts", "network": "mpegts",
}  # fmt: skip
PROCESS = 100
THREADS = {PROCESS: {
    DECODER: "decoder", MAIN: "main", ENCODER: "encoder", SENDER: "sender", DEVICE: "webgpu:0",
    COMPILER: "compiler",
}}  # fmt: skip


@dataclass
class Queue:
    """When items were put and taken."""

    size: int
    put: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)


class Model:
    """Runs frames through the stages; ``delays[stage, frame]`` are milliseconds more."""

    def __init__(self, seed=0, delays=None, *, rate=None, jitter=0.1, times=None):
        self.random = random.Random(seed)
        self.tracer = Tracer(clock=lambda: self.now)
        self.now = 0
        self.tracer.on = True
        self.delays = delays or {}
        self.rate, self.jitter = rate, jitter
        self.times = {name: (times or {}).get(name, ms) for name, (_, ms) in STAGES.items()}
        self.free = dict.fromkeys((DECODER, MAIN, ENCODER, SENDER, DEVICE, COMPILER), 0)
        self.decoded, self.pictures, self.packets = Queue(4), Queue(4), Queue(3)

    def run(self, frames):
        for number in range(frames):
            self.frame(number)
        return [(PROCESS, record) for record in self.tracer.records]

    def work(self, stage, number, thread=None):
        """A span of a stage on a thread; return its end."""
        thread = thread or STAGES[stage][0]
        begin = self.free[thread]
        ms = self.times[stage] * (1 + self.jitter * (self.random.random() - 0.5))
        ms += self.delays.get((stage, number), 0.0)
        end = begin + round(ms * 1e6)
        if end > begin:
            self.tracer.put((stage, NAMES[stage], begin, end, thread, number + 1, None))
        self.free[thread] = end
        return end

    def wait(self, what, name, thread, until, by=None, at=None):
        if until > self.free[thread]:
            facts = None if by is None else {"by": by, "at": until if at is None else at}
            begin, self.free[thread] = self.free[thread], until
            self.tracer.put((f"wait:{what}", name, begin, until, thread, None, facts))

    def take(self, queue, name, thread, by):
        """Wait for an item, and take it."""
        self.wait("", name, thread, queue.put[-1], by)
        queue.taken.append(self.free[thread])

    def give(self, queue, name, thread, by):
        """Wait for room, and put an item. Call it before the item is taken."""
        older = len(queue.put) - queue.size
        if older >= 0:
            self.wait("room for", name, thread, queue.taken[older], by)
        queue.put.append(self.free[thread])

    def elsewhere(self, stage, number, thread, what):
        """Work that another thread does while the main one waits, and does not know who."""
        if not self.times[stage] and (stage, number) not in self.delays:
            return
        self.free[thread] = max(self.free[thread], self.free[MAIN])
        self.wait(what, NAMES[stage], MAIN, self.work(stage, number, thread))

    def frame(self, number):
        if self.rate is not None:  # a source in real time
            due = round(number * 1e9 / self.rate)
            self.wait("idle", "", DECODER, due)
        self.work("demux", number)
        self.work("decode", number)
        self.give(self.decoded, "decoded frames", DECODER, MAIN)
        self.take(self.decoded, "decoded frames", MAIN, DECODER)
        self.work("convert", number)
        self.work("upload", number)
        self.elsewhere("compile", number, COMPILER, "the compilation of")
        self.elsewhere("pass", number, DEVICE, "the device")
        self.work("model", number)
        self.work("compose", number)
        self.give(self.pictures, "frames to encode", MAIN, ENCODER)
        self.take(self.pictures, "frames to encode", ENCODER, MAIN)
        self.work("encode", number)
        self.work("mux", number)
        self.give(self.packets, "packets", ENCODER, SENDER)
        self.take(self.packets, "packets", SENDER, ENCODER)
        end = self.work("network", number)
        facts = {"due": due} if self.rate is not None else None
        self.tracer.put(("done", "out", end, end, SENDER, number + 1, facts))
