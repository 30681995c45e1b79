"""The options of jobs over videos, scenes, pictures and models."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from dala.arguments import DURATION, ArgumentKind, Duration, Flag, Integer, Quantity, Text
from dala.media.pictures.options import PictureOptions
from dala.media.scene.options import SceneRate
from dala.media.video.options import EncoderOptions, FilterOptions
from dala.options import DeviceOptions, Options, option

_AMOUNT: Final = Quantity(0, 1e6, words="a number of at least 0, or None")
_UNITS: Final = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 1 << 10, "MIB": 1 << 20,
                 "GIB": 1 << 30}  # fmt: skip


class ByteCount(ArgumentKind[int]):
    """A number of bytes above 0, or a text with a unit.

    >>> ByteCount().accept("2GB"), ByteCount().accept(1024)
    (2000000000, 1024)
    """

    expected = "bytes, or a text such as '2GB'"
    metavar = "SIZE"

    def accept(self, value: Any) -> int:
        """Return the number."""
        if not isinstance(value, str):
            return Integer(1).accept(value)
        text = value.upper().replace(" ", "")
        unit = text.lstrip("0123456789.")
        if unit not in _UNITS:
            raise ValueError
        return round(float(text[: len(text) - len(unit)]) * _UNITS[unit])


class Interval(ArgumentKind[Fraction]):
    """The exact time between two frames that are looked at.

    >>> Interval().accept("500ms"), Interval().accept(0.1)
    (Fraction(1, 2), Fraction(1, 10))
    """

    expected = "a time above 0 such as '1s', '500ms' or 0.5 (seconds)"

    def accept(self, value: Any) -> Fraction:
        """Return the seconds."""
        if isinstance(value, str) and "/" in value:  # as records have it
            value = Fraction(value)
        return Fraction(Duration().accept(value)).limit_denominator(1_000_000)


@dataclass(frozen=True, kw_only=True)
class RunOptions(Options):
    """The options of ``Job.run``.

    Args:
        workers: processes of a local run; by default as many as the threads of encoders leave
            room for.
        gpus: the share of a GPU that a task takes.
        cpus: the CPUs that a task takes; by default the threads of its encoder.
        memory: the memory that a task takes, in bytes or such as "2GB".
        resume: go on with what an earlier run of the same job has left, instead of starting over.
        retries: how often a task that failed is tried again.
        progress: show a line of progress; by default if standard error is a terminal.
        metrics: count tasks and frames in the metrics of the Ray cluster.
    """

    workers: int | None = option(
        Integer(1, words="an int of at least 1, or None"), None,
        "processes of this machine (by its cores and --threads)", command=True,
    )  # fmt: skip
    gpus: float | None = option(_AMOUNT, None, "GPUs of a task, such as 0.25", command=True)
    cpus: float | None = option(_AMOUNT, None, "CPUs of a task", command=True)
    memory: int | str | None = option(
        ByteCount(), None, "memory of a task, such as 2GB", command=True
    )
    resume: bool = option(Flag(), False, "go on with what an earlier run has left", command=True)
    retries: int = option(
        Integer(0), 2, "how often a task that failed is tried again (2)", command=True
    )
    progress: bool | None = option(Flag())
    metrics: bool = option(
        Flag(), False, "count tasks and frames in the metrics of the Ray cluster", command=True
    )


@dataclass(frozen=True, kw_only=True)
class JobOptions(DeviceOptions, EncoderOptions):
    """The options of jobs that encode videos in parts.

    Args:
        threads: of each encoder, which may change the result; by default as many as ``dala
            filter`` would use here. One is best where there are as many workers as cores.
        chunk: the least duration of a part, in seconds or such as "2min"; None to split nothing.
    """

    threads: int | None = option(  # type: ignore[assignment]
        Integer(1, 128), None, "of each encoder; 1 if there is a worker for each core", command=True
    )
    chunk: float | str | None = option(
        Duration(), "60s", "least seconds of a part, such as 30 or 2min (60s)", command=True
    )


@dataclass(frozen=True, kw_only=True)
class VideoJobOptions(JobOptions, FilterOptions):
    """The options of ``batch.videos``."""


@dataclass(frozen=True, kw_only=True)
class SceneJobOptions(JobOptions):
    """The options of ``batch.scenes``.

    Args:
        seconds: duration; by default each scene's own.
        fps: frames per second; by default each scene's own.
        start: the scene's time of the first frame.
        audio: write the sound.
    """

    seconds: float | None = option(DURATION, None, "of scenes (their own)", command=True)
    fps: float | str | Fraction | None = option(
        SceneRate(), None, "of scenes (their own)", command=True
    )
    start: float = option(Quantity(-1e9, 1e9, "seconds"), 0.0)
    audio: bool = option(Flag(), True, "drop the sound", command=True)


@dataclass(frozen=True, kw_only=True)
class PictureJobOptions(DeviceOptions, PictureOptions):
    """The options of ``batch.images``."""


@dataclass(frozen=True, kw_only=True)
class ModelJobOptions(DeviceOptions):
    """The options of jobs whose result is a table, beside those of the model's ``predict``.

    Args:
        model: the name of a model (``dala models``), or an ONNX file that all machines reach.
        every: seconds between two frames that are looked at, or a text such as "1s" or "500ms"; by
            default all frames.
        score: the lowest score to report; by default the model's.
        provider: the ONNX Runtime provider. "auto" takes that of this machine for all workers.
    """

    model: str | None = option(
        Text("the name of a model or an ONNX file"), None,
        "the model, by name or as an ONNX file", command=True,
    )  # fmt: skip
    every: float | str | Fraction | None = option(
        Interval(), None, "seconds between two frames (all)", command=True
    )
    score: float | None = option(Quantity(0, 1), None, "the lowest score to report", command=True)
    provider: str = option(
        Text("a name, or 'auto'"), "auto",
        "of ONNX Runtime, on all workers: cuda, webgpu, cpu, .. (as here)", command=True,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ClassifyJobOptions(ModelJobOptions):
    """The options of ``batch.classify``.

    Args:
        top: how many classes each picture has in the table.
    """

    top: int = option(Integer(1, 10_000), 1, "classes of a picture (1)", command=True)
