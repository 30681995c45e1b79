"""Video in and out, on PyAV (FFmpeg): ``pip install "dala-gpu[media]"``.

``video.open`` returns a reader of frames, ``video.write`` a writer of them; colors are converted by
Dala's own kernels on the device in use::

    from dala.media import gpu, video

    with video.open("in.mp4") as source, video.write("out.mp4", audio_from=source) as sink:
        for frame in source:
            sink.write(gpu.blur(frame, radius=3))
"""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.media.video.files import Reader as Reader
    from dala.media.video.files import Writer as Writer
    from dala.media.video.files import open as open
    from dala.media.video.files import write as write

__all__ = ["Reader", "Writer", "open", "write"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, dict.fromkeys(__all__, "dala.media.video.files"))
