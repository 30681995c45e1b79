"""``dala filter`` on a video, against ffmpeg and OpenCV."""


def main() -> None:
    from benchmarks.video.run import main

    main()
