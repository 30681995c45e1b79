"""Phrases for the causes of late frames, and the option to change for each."""

from __future__ import annotations

from typing import Final

#: What a frame waited for, by stage, and what to change.
_STAGES: Final = {
    "demux": (
        "the source",
        "The file or camera delivers late: read from a faster disk or connection, or give "
        "video.open(queue=8) to read further ahead.",
    ),
    "decode": (
        "the decoder",
        "Give video.open(hwaccel='auto') to decode on hardware, or threads=0 for all cores.",
    ),
    "deinterlace": ("deinterlacing", "Give deinterlace=False if the combs do not matter."),
    "convert": (
        "a conversion of pixels",
        "Keep the planes of the video: format='native', or filters in a VideoChain, as `dala "
        "filter` does.",
    ),
    "upload": (
        "an upload",
        "Keep frames on one device: device='cpu' for light work, or open the video with the "
        "device of the filters.",
    ),
    "download": ("a download", "Read results less often, or keep the next step on the device."),
    "compile": (
        "a first compile",
        "Run each filter once before the clock starts, with the sizes and radii to come; the cache "
        "on disk then serves later runs (DALA_CACHE_DIR).",
    ),
    "pass": (
        "a pass",
        "Lower its radius or the size of the frames, or choose another device: --device.",
    ),
    "job": ("a submitted job", "Submit it with priority='background', or wait for it earlier."),
    "model": (
        "the model",
        "Choose a lighter model or provider ('auto' measures them), or run it on every second "
        "frame: stream(every=2).",
    ),
    "compose": (
        "the composition",
        "Let less of the scene change: what stands still is drawn once. Fewer effects on "
        "everything below help most.",
    ),
    "draw": ("drawing", "Switch off a card that `stats` shows as slow, or show a smaller picture."),
    "encode": (
        "the encoder",
        "Use a faster preset (options={'preset': 'ultrafast'}), hardware (encoder='auto'), or a "
        "smaller size.",
    ),
    "mux": ("writing the file", "Write to a faster disk."),
    "network": (
        "the network",
        "Lower bit_rate, or send to a nearer server; the receiver takes packets too slowly.",
    ),
    "present": ("the presenter", "Show a smaller picture, or close other viewers."),
    "gc": (
        "Python's garbage collector",
        "Call gc.freeze() after loading, and create fewer objects for each frame.",
    ),
    "gil": (
        "Python to go on (another thread held the GIL)",
        "Move Python code that computes to another process, or to a kernel.",
    ),
    "processor": (
        "a processor (the system ran other threads)",
        "Use fewer threads (DALA_THREADS, the encoder's threads=), or stop other programs.",
    ),
    "python": (
        "Python code without a span",
        "Mark its steps with dala.trace.span('name'), and trace again.",
    ),
}  # fmt: skip
_WAITS: Final = {
    "wait:lock": (
        "a lock",
        "Another thread compiles, draws text, or uses the same scene, writer or pipeline: do that "
        "before, or give each thread its own.",
    ),
    "wait:the device": ("the device", "Read results later, or lower DALA_QUEUE_MS."),
    "wait:room on the device": ("room on the device", "The device has too much work: do less."),
    "wait:room for": ("room in a queue", "The consumer of the queue is too slow."),
    "wait:the sender": ("the process that sends", "Lower bit_rate or the size of the frames."),
}


def phrase_for(stage: str, name: str) -> str:
    """Return the phrase for what a frame waited for.

    >>> phrase_for("encode", "libx264 medium, 2 threads"), phrase_for("user", "my step")
    ('the encoder', 'my step')
    """
    if stage == "compile" and "pipeline" not in name:
        return f"a first compile ({name})"
    if stage == "user":
        return name
    known = _STAGES.get(stage) or _WAITS.get(stage)
    return known[0] if known else f"{stage.removeprefix('wait:')} {name}".strip()


def advice_for(stage: str, name: str) -> str:
    """Return which option to change; "" for a user's own range.

    >>> advice_for("mux", "out.mp4")
    'Write to a faster disk.'
    """
    known = _STAGES.get(stage) or _WAITS.get(stage)
    return known[1] if known else ""
