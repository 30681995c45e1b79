"""A video in which nobody can be recognized; `dala faces in.mp4 out.mp4 --blur` does the same.

python examples/blur_faces.py              # out/blur_faces.mp4
python examples/blur_faces.py talk.mp4     # the same on a video of yours
"""

import sys
from pathlib import Path

import dala
from dala.media import video
from dala.ml import FaceHider


def main(source: str | Path | None = None, folder: Path = Path("out")) -> Path:
    """Write the video and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "blur_faces.mp4"
    with (
        # "pixelate" and "box" hide them, too; tiles=3 looks for small faces.
        FaceHider("blur", margin=0.3) as hider,
        video.open(source or dala.samples.video("astronaut"), policy="every") as reader,
        video.write(path, fps=reader.fps, audio_from=reader if reader.has_audio else None) as sink,
    ):
        for hidden in hider.stream(reader):
            sink.write(hidden.frame)
    return path


if __name__ == "__main__":
    print(main(*sys.argv[1:2]))
