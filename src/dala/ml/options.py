"""The options of loading models, of drawing results, of watching videos and of hiding faces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dala.arguments import Fitting, Flag, Integer, Quantity, Selection, Size, Text
from dala.options import Options, option

if TYPE_CHECKING:
    from dala.ml.results import Outputs
    from dala.typing import ColorLike, Params


@dataclass(frozen=True, kw_only=True)
class ModelOptions(Options):
    """The options of ``load_model``.

    Args:
        provider: the ONNX Runtime provider: "cuda", "coreml", "directml", "webgpu" or "cpu". "auto"
            uses the first of these that starts; ``warmup()`` then measures them.
        task: "classify", "detect" (outputs as of YOLOv5 or YOLOv8), "segment", "matte",
            "keypoints" (heatmaps, or rows of x, y and score), "image" (super-resolution and other
            models from pictures to pictures) or "raw"; derived from the outputs by default.
        labels: the names of the classes, or "imagenet", "coco" or "voc".
        size: (width, height), for models with a variable input size.
        layout: "nchw" or "nhwc", if it cannot be derived from the input shape.
        preprocess: parameters of ``dala.ml.preprocess``, such as normalize, mean, std or fit.
        decode: a function from the outputs of one picture, a dict of arrays, to the result.
        threads: the number of threads of the CPU provider.
        pull: whether missing weights are downloaded from the package registry.
    """

    provider: str = option(
        Fitting(), "auto", "auto, cuda, coreml, directml, webgpu or cpu", command=True, named=True
    )
    task: str | None = option(Fitting())
    labels: Sequence[str] | str | None = option(Fitting())
    size: tuple[int, int] | None = option(
        Size(1, 1 << 31, "(width, height), two ints of at least 1")
    )
    layout: str | None = option(Selection("nchw", "nhwc", expected="'nchw' or 'nhwc'"))
    preprocess: Params | None = option(Fitting())
    decode: Callable[[Outputs], object] | None = option(Fitting(), named=True)
    threads: int | None = option(Integer(1))
    pull: bool = option(Flag(), True)


@dataclass(frozen=True, kw_only=True)
class DrawOptions(Options):
    """The options of ``result.draw``.

    Args:
        color: of boxes and points; by default one for each class.
        width: of lines in pixels; by default it depends on the size of the picture.
        labels: whether labels are drawn.
        opacity: of masks, 0 to 1.
        least: the minimum score of keypoints.
    """

    color: ColorLike | None = option(Fitting())
    width: int | None = option(Integer(1))
    labels: bool = option(Flag(), True)
    opacity: float = option(Quantity(0, 1), 0.5)
    least: float = option(Quantity(), 0.3)


@dataclass(frozen=True, kw_only=True)
class WatchOptions(Options):
    """The options of ``dala.ml.watch``, beside those of the model's ``predict``.

    Args:
        label: the class to find, such as "person"; by default all.
        smooth: whether places are smoothed over time with a One-Euro filter, or its cutoff at
            rest, in Hz; lower is steadier.
        least: the least score of a point. One below it counts as not found.
        wait: True to wait for the model in ``scene.play`` too; by default ``play`` shows the last
            result there is, and everything else waits for that of the frame.
        provider: of ``load_model``.
    """

    label: str | None = option(Text("the name of a class"))
    smooth: bool | float = option(
        Fitting(
            "a bool, or a cutoff above 0 Hz",
            lambda given: isinstance(given, bool | int | float) and (given is False or given > 0),
        ),
        True,
    )
    least: float = option(Quantity(0, 1), 0.3)
    wait: bool | None = option(Flag("True, False or None"))
    provider: str = option(Fitting(), "auto")


@dataclass(frozen=True, kw_only=True)
class HideOptions(Options):
    """The options of hiding faces.

    Args:
        radius: of the blur, or the side of blocks, in pixels; by default it grows with the face.
        color: of "box".
        margin: how much of the face's size is hidden around its box, on each side.
        score: the lowest score of a face.
        keep: the frames for which a face that is not found stays hidden.
        ahead: the frames before the first one with a face in which it is hidden, too.
        every: look for faces in one of so many frames of a video, and follow them between. A face
            that shows for fewer frames may stay visible.
        tiles: look in so many overlapping parts along each side as well, for small faces.
    """

    radius: int | None = option(Fitting())
    color: ColorLike = option(Fitting(), "black", "the color of --box (black)", command=True)
    margin: float = option(Quantity(0, 4), 0.3, "around the face, in its sizes (0.3)", command=True)
    score: float = option(Quantity(0, 1), 0.4)
    keep: int = option(
        Integer(0, 10_000),
        15,
        "frames for which a face that is lost stays hidden (15)",
        command=True,
    )
    ahead: int = option(
        Integer(0, 1000), 5, "frames in which a face is hidden before it is found (5)", command=True
    )
    every: int = option(
        Integer(1, 100), 1, "look for faces in one of so many frames (1)", command=True
    )
    tiles: int = option(
        Integer(1, 8),
        1,
        "look in N x N overlapping parts as well, for small faces (1)",
        command=True,
    )
