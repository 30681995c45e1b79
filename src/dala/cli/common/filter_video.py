"""``dala filter`` for videos."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain as joined
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from dala import forks
from dala.cli.common import chain, inputs
from dala.cli.common.arguments import Report
from dala.errors import DalaError, ParameterError, VideoError, counted
from dala.media.pictures.options import PictureOptions
from dala.media.progress import Progress
from dala.media.video.options import DecodeOptions, EncodeOptions, FilterOptions
from dala.notices import notify

if TYPE_CHECKING:
    from dala.media import Frame
    from dala.media.video.chain import VideoChain
    from dala.media.video.files import Reader
    from dala.media.video.source import VideoSource
    from dala.media.video.tracks import Tracks
    from dala.typing import ColorLike


#: The options of ``video.write`` that the command has besides those of filtering.
ENCODE: Final = ("alpha", "retime", "loop", "device")


#: Seconds of a frame's own sound that a shader hears; frames need not say how long they are shown.
_AHEAD: Final = 1 / 30


class Work(NamedTuple):
    """The outcome of a command: the device, the results, the failures, and the seconds."""

    device: str = ""
    made: Sequence[Report] = ()
    failed: Sequence[Report] = ()
    seconds: float = 0.0


def run(args: argparse.Namespace, name: str, out: str) -> Work:
    """Filter a video.

    The decodable frames of a damaged video are filtered and saved.
    """
    from dala.media.video.animated.facts import animation_kind
    from dala.media.video.animated.reader import AnimationReader
    from dala.media.video.decoding.planes import pixel_aspect
    from dala.media.video.files import open_writer
    from dala.media.video.output.layouts import deep_layout

    remote = "://" in name
    codec = args.codec
    if Path(out).suffix.lower() == ".png" and inputs.is_animation(Path(name), Path(out)):
        codec = "apng"
    animated = animation_kind(out, codec)
    if animated is None:
        inputs.refuse_no_video("OUT", name, out)
    used = chain.files(args.chain)
    inputs.refuse_overwriting([*([] if remote else [Path(name)]), *used], [Path(out)])
    filters = chain.load(args.chain, args.max_pixels)
    options = FilterOptions.checked("dala filter", FilterOptions.given(args))
    pictures = PictureOptions(**PictureOptions.given(args))
    own = EncodeOptions.given(args, *ENCODE)
    encoding = EncodeOptions.of(options, **{**own, "codec": codec, "hdr": None})
    if animated == "webp" and args.quality is not None:
        encoding = replace(encoding, options={"quality": args.quality})
    damage: list[VideoError] = []
    with ExitStack() as held:
        source, stages = _start(name, filters, options, args.device, held)
        moves = isinstance(source, AnimationReader)
        if moves and source.width * source.height > pictures.max_pixels:
            raise ParameterError(
                f"{source.name} has {source.width} x {source.height} pixels, more than "
                f"max_pixels={pictures.max_pixels:,}. Raise it if you trust the file."
            )
        progress = held.enter_context(Progress(_count(source), "frames"))
        whole = _until_damage(source, damage)
        frames = stages.stream(whole) if filters else whole
        if moves and animated is None and not encoding.alpha:
            frames = _opaque(frames, pictures.background, out)
        first = next(frames, None)
        if first is None:
            raise damage[0] if damage else VideoError(f"{name!r} has no video frames.")
        tracks = None
        if animated is not None and options.audio and not remote and source.has_audio:
            notify(f"{out}: {animated} has no sound; that of {name} is left out.")
        elif animated is None and not remote and not moves:
            tracks = _tracks_of(source, args, options, encoding.retime)
            held.callback(tracks.close)  # if no writer takes it
        if tracks is None and _changes_sound(args):
            raise ParameterError(
                "--volume, --loudness and --audio-fade are for a video file that becomes a video."
            )
        if animated and encoding.loop is None and isinstance(source, AnimationReader):
            encoding = replace(encoding, loop=source.loop)
        if source.depth == "float" and first.hdr is None and animated is None:
            codec, layout = deep_layout(codec, out, source.bits)
            encoding = replace(encoding, codec=codec, pixel_format=layout)
        aspect = pixel_aspect(source, first)
        encoding = replace(encoding, fps=source.fps, tracks_from=tracks, pixel_aspect=aspect)
        with open_writer(out, encoding) as sink:
            made: Report = {"in": name, "out": out, "width": first.width, "height": first.height}
            frames = joined([first], frames)
            del first  # a frame that is referenced keeps its memory from being reused
            for frame in frames:
                sink.write(frame, copy=False)
                progress.step()
    made["frames"] = progress.done
    failed: list[Report] = []
    if damage:
        were = "was" if progress.done == 1 else "were"
        saved = f"{damage[0]} {counted(progress.done, 'frames')} {were} saved to {out!r}."
        failed = [{"in": name, "error": saved}]
    return Work(stages.device, [made], failed, progress.seconds)


def _opaque(frames: Iterator[Frame], background: ColorLike, out: str) -> Iterator[Frame]:
    """Yield the frames of an animated picture, laid over a color where they are transparent."""
    from dala.gpu.command import color_to_rgba
    from dala.gpu.compute import from_array
    from dala.media.pictures.pixels import over

    red, green, blue = color_to_rgba(background)[:3]
    for frame in frames:
        pixels = frame.picture() if frame.format == "rgba" else None
        if pixels is None or pixels[..., 3].min() == 255:
            yield frame
            continue
        notify(f"{out}: a video has no transparency here; frames are laid over {background}.")
        flat = over(pixels, (red, green, blue))
        yield frame.like(from_array(flat, device=frame.device))


def _start(
    name: str,
    filters: Sequence[chain.Link],
    options: FilterOptions,
    device: str | None,
    held: ExitStack,
) -> tuple[Reader, VideoChain]:
    """Open the video and start its filters at the same time, as both take a while."""
    from dala.media.video.chain import VideoChain
    from dala.media.video.decoding.planes import open_planes

    given: str | VideoSource = name
    if "://" not in name and Path(name).is_fifo():
        from dala.media.video.source import source_of

        # Its bytes are kept, as the sound is read apart from the pictures.
        pipe = held.enter_context(Path(name).open("rb"))  # noqa: SIM115 - entered, on this line
        given = source_of(pipe)
    heard = _heard(name, filters, held)
    with forks.pool(1, "dala-video") as other:
        # What a shader hears belongs to one frame at a time.
        workers = None if heard is None else 1
        making = other.submit(
            VideoChain, heard or filters, device=device, range="limited", workers=workers
        )
        try:
            fields = "auto" if options.deinterlace else None
            decoding = DecodeOptions.of(options, deinterlace=fields, device=device, threads=0)
            source = held.enter_context(
                open_planes(given, decoding, keep_hdr=options.hdr == "keep")
            )
        finally:
            stages = held.enter_context(making.result())
    return source, stages


def _heard(
    name: str, filters: Sequence[chain.Link], held: ExitStack
) -> Callable[[Frame], Sequence[chain.Link]] | None:
    """Return a function that lets shaders hear the video's sound up to a frame; None without."""
    from dala.cli.common.kernels import Heard
    from dala.gpu.compute.passes.program import KernelProgram

    listening = [f for f, _ in filters if isinstance(f, KernelProgram) and f.sounds]
    if not listening or not Path(name).is_file():
        return None
    try:
        sound = Heard(name, held)
    except DalaError:  # it has none
        return None

    for program in listening:  # other commands of this process may use them
        held.callback(program.hear, (0.0,))

    def filters_of(frame: Frame) -> Sequence[chain.Link]:
        samples = sound.at(float(frame.time or 0) + _AHEAD)
        for program in listening:
            program.hear(samples)
        return filters

    return filters_of


def _count(source: Reader) -> int | None:
    if source.frames is None and source.duration and source.fps:
        return round(source.duration * source.fps)
    return source.frames


def _until_damage(given: Iterable[Frame], damage: list[VideoError]) -> Iterator[Frame]:
    """Yield frames until the video is damaged; the error is appended to ``damage``."""
    try:
        yield from given
    except VideoError as error:
        damage.append(error)


def _changes_sound(args: argparse.Namespace) -> bool:
    return not (args.volume is None and args.loudness is None and args.audio_fade is None)


def _tracks_of(
    source: Reader, args: argparse.Namespace, options: FilterOptions, retime: bool
) -> Tracks:
    """Return the tracks besides the pictures: sound unchanged, unless options change it."""
    from dala.media.video.tracks import Tracks

    if not _changes_sound(args):
        return Tracks(source.source, "dala filter", sound=options.audio, everything=True)
    if not options.audio:
        raise ParameterError(
            "--no-audio drops the sound. Leave out --volume, --loudness and --audio-fade."
        )
    if not source.has_audio:
        raise ParameterError(
            f"{source.name} has no sound. Leave out --volume, --loudness and --audio-fade."
        )
    from dala.media.audio.files.changed import changed_sound

    rising, falling = args.audio_fade or (0.0, 0.0)
    return changed_sound(
        source.source,
        "dala filter",
        volume=1.0 if args.volume is None else args.volume,
        loudness=args.loudness,
        fade_in=rising,
        fade_out=falling,
        from_pictures=retime,
    )
