"""The peers of the video benchmark: ffmpeg's own filters, and PyAV with OpenCV.

``python -m benchmarks.video.peers IN OUT X264_PARAMS THREADS`` runs the latter.
"""

from __future__ import annotations

import sys

#: The grade, as parameters of ffmpeg's ``eq``.
CONTRAST, BRIGHTNESS, SATURATION = 1.1, 0.05, 1.2


def ffmpeg_command(
    binary: str, clip: str, out: str, crf: int, preset: str, params: str, threads: int
) -> list[str]:
    """ffmpeg with blur and grade; without ``params`` x264 uses its defaults."""
    grade = f"eq=brightness={BRIGHTNESS}:contrast={CONTRAST}:saturation={SATURATION}"
    command = [binary, "-v", "error", "-y", "-i", clip, "-vf", f"gblur=sigma=1.5,{grade}"]
    command += ["-c:v", "libx264", "-preset", preset, "-crf", str(crf)]
    if params:
        command += ["-threads", str(threads), "-x264-params", params]
    return [*command, "-movflags", "+faststart", out]


def opencv(clip: str, out: str, params: str, threads: int) -> None:
    """Decode, blur and grade in place, encode.

    Contrast, brightness and saturation are one matrix, so OpenCV needs one call for all three.
    """
    import av
    import cv2
    import numpy as np

    luma = np.array([0.114, 0.587, 0.299])
    saturate = np.eye(3) * SATURATION + (1.0 - SATURATION) * luma
    offset = 255.0 * (0.5 - 0.5 * CONTRAST + BRIGHTNESS)
    grade = np.hstack([CONTRAST * saturate, np.full((3, 1), offset)]).astype(np.float32)
    options = {"crf": "20", "preset": "veryfast", "x264-params": params}
    with av.open(clip) as source, av.open(out, "w", options={"movflags": "+faststart"}) as sink:
        video = source.streams.video[0]
        video.thread_type = "AUTO"
        stream = sink.add_stream("libx264", rate=video.average_rate, options=options)
        stream.width, stream.height, stream.pix_fmt = video.width, video.height, "yuv420p"
        stream.codec_context.color_range, stream.codec_context.colorspace = 1, 1
        stream.codec_context.thread_count = threads
        blurred = np.empty((video.height, video.width, 3), np.uint8)
        graded = np.empty_like(blurred)
        for frame in source.decode(video):
            picture = frame.to_ndarray(format="bgr24")
            cv2.GaussianBlur(picture, (7, 7), 1.5, dst=blurred, borderType=cv2.BORDER_REPLICATE)
            cv2.transform(blurred, grade, dst=graded)
            made = av.VideoFrame.from_ndarray(graded, format="bgr24")
            made.pts, made.time_base = frame.pts, frame.time_base
            sink.mux(stream.encode(made.reformat(format="yuv420p", dst_colorspace=1)))
        sink.mux(stream.encode(None))


if __name__ == "__main__":
    opencv(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
