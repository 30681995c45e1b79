"""Video in and out, on PyAV (FFmpeg): ``pip install "dala-gpu[media]"``.

``video.open`` returns a reader of frames, ``video.write`` a writer of them; colors are converted by
Dala's own kernels on the device in use::

    from dala.media import gpu, video

    with video.open("in.mp4") as source, video.write("out.mp4", audio_from=source) as sink:
        for frame in source:
            sink.write(gpu.blur(frame, radius=3))
"""

from __future__ import annotations

from dala.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
