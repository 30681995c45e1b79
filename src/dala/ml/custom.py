"""Declarations for a user's own ONNX files, by task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from dala.errors import DalaError, ModelError, ParameterError, did_you_mean
from dala.gpu.compute.kernels.resize import Preprocess
from dala.gpu.compute.params import check_values
from dala.ml.models import deeplab, mobilenet_v2, u2netp, yolo_v5
from dala.ml.prepare import Placement
from dala.ml.results import (
    Detections,
    Keypoint,
    Matte,
    Outputs,
    Pose,
    Poses,
    Segmentation,
    Tensors,
)
from dala.ml.results.base import name_of
from dala.ml.runtime.session import Session
from dala.ml.spec import Decode, ModelSpec
from dala.typing import Params


def decode_raw(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, float]
) -> Tensors:
    """Return the outputs unchanged."""
    return Tensors(outputs)


def decode_planes(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, float]
) -> Segmentation:
    """Decode an output (classes, height, width), as most exporters write it."""
    _check_rank("segment", outputs, 3, "(classes, height, width)")
    return deeplab.segment(next(iter(outputs.values())), placement, labels, outputs)


def decode_last(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, float]
) -> Segmentation:
    """Decode an output (height, width, classes)."""
    _check_rank("segment", outputs, 3, "(height, width, classes)")
    return deeplab.decode(outputs, placement, labels, options)


def decode_matte(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, float]
) -> Matte:
    """Decode an output (1, height, width)."""
    _check_rank("matte", outputs, 3, "(1, height, width)")
    return u2netp.decode(outputs, placement, labels, options)


def decode_rows(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, float]
) -> Detections:
    """Decode rows as of YOLOv5, or columns without objectness as of its successors."""
    name, rows = next(iter(outputs.items()))
    _check_rank("detect", outputs, 2, "(boxes, 5 + classes) or (4 + classes, boxes)")
    turned = rows.shape[0] < rows.shape[1] and rows.shape[1] != 5 + len(labels)
    if turned or (labels and rows.shape[0] == 4 + len(labels) != rows.shape[1] - 1):
        sure = np.ones((rows.shape[1], 1), rows.dtype)
        rows = np.concatenate([rows[:4].T, sure, rows[4:].T], axis=1)
    if rows.shape[1] < 6:
        raise ModelError(
            "predict: task 'detect' needs an output of boxes with class scores, got "
            f"{name!r} of shape {outputs[name].shape}. Use task='raw' or decode=."
        )
    found = yolo_v5.decode({name: rows}, placement, labels, options)
    found.raw = outputs
    return found


def _check_rank(task: str, outputs: Outputs, rank: int, wanted: str) -> None:
    name, array = next(iter(outputs.items()))
    if array.ndim != rank:
        raise ModelError(
            f"predict: task {task!r} needs an output of shape {wanted}, got {name!r} of shape "
            f"{array.shape}. Use task='raw' or decode=."
        )


def decode_keypoints(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, float]
) -> Poses:
    """Decode heatmaps (points, height, width), or rows (points, 2 or 3) of x, y and score.

    Rows are in pixels of the model's input, or from 0 to 1 if none is above 1. Labels are the
    names of the points.
    """
    name, array = next(iter(outputs.items()))
    if array.ndim == 3 and array.shape[1] > 1:
        count, height, width = array.shape
        flat = array.reshape(count, -1)
        best = flat.argmax(1)
        places = np.stack([best % width + 0.5, best // width + 0.5], 1) / (width, height)
        scores = np.clip(flat[np.arange(count), best], 0, 1)
    elif array.reshape(-1, array.shape[-1]).shape[-1] in (2, 3):
        rows = array.reshape(-1, array.shape[-1]).astype(np.float64)
        places, scores = rows[:, :2], rows[:, 2] if rows.shape[1] == 3 else np.ones(len(rows))
        if places.max(initial=0) > 1:
            places = places / placement.size
    else:
        raise ModelError(
            "predict: task 'keypoints' needs an output of shape (points, height, width) or "
            f"(points, 2 or 3), got {name!r} of shape {array.shape}. Use task='raw' or decode=."
        )
    points = placement.back(places.astype(np.float64) * placement.size)
    made = tuple(
        Keypoint(name_of(labels, k), float(x), float(y), float(score))
        for k, ((x, y), score) in enumerate(zip(points, scores, strict=True))
    )
    mean = float(np.mean(scores)) if made else 0.0
    return Poses([Pose(made, mean)] if mean >= options["score"] else [], outputs)


def decode_image(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, float]
) -> Tensors:
    """Return the outputs for a tensor; pictures go through ``ImageModel``."""
    return Tensors(outputs)


TASKS: Final[Mapping[str, Decode]] = {
    "classify": mobilenet_v2.decode,
    "detect": decode_rows,
    "segment": decode_planes,
    "matte": decode_matte,
    "keypoints": decode_keypoints,
    "image": decode_image,
    "raw": decode_raw,
}
_OPTIONS: Final[Mapping[str, Mapping[str, float]]] = {
    "detect": yolo_v5.MODEL.options,
    "keypoints": {"score": 0.0},
    "image": {"overlap": 32},
}


def custom_spec(
    name: str,
    session: Session,
    task: str | None,
    prepare: Params | None,
    decode: Callable[[Outputs], object] | None,
) -> ModelSpec:
    """Return the declaration of a user's own file."""
    if task is None:
        task = _guess_task(session)
    elif not isinstance(task, str) or task not in TASKS:
        listed = ", ".join(map(repr, TASKS))
        raise ParameterError.invalid(
            "load_model", "task", f"one of {listed}", task, did_you_mean(str(task), TASKS)
        )
    if decode is not None and not callable(decode):
        raise ParameterError.invalid(
            "load_model", "decode", "a function of the outputs", type(decode)
        )
    found = TASKS[task]
    if task == "segment" and session.outputs[0].shape[-1:] not in ((None,), ()):
        # The classes are last if the last axis is not of the picture's size.
        shape = session.outputs[0].shape
        if len(shape) == 4 and shape[1] == shape[2]:
            found = decode_last
    if decode is not None:
        own = decode

        def found(outputs: Outputs, *_: object) -> object:
            return own(outputs)

    return ModelSpec(
        name=name,
        task="poses" if task == "keypoints" else task,
        title=f"{name}, an ONNX file",
        license="not given by the file",
        prepare=_prepare(session, prepare, task),
        decode=found,
        options=_OPTIONS.get(task, {}),
    )


def _prepare(session: Session, given: Params | None, task: str) -> Params:
    """Return the parameters of "preprocess", checked."""
    if task == "image":
        _check_range(given)
    if given is None:
        port = session.inputs[0] if session.inputs else None
        if port is not None and port.dtype is not None and np.dtype(port.dtype).kind in "ui":
            return {"normalize": "raw"}
        if task == "image":
            return {"normalize": "unit"}
        gray = port is not None and len(port.shape) == 4 and 1 in port.shape[1::2]
        return {"normalize": "unit" if gray else "imagenet"}
    if not isinstance(given, Mapping):
        raise ParameterError.invalid(
            "load_model", "preprocess", "a dict of parameters of dala.ml.preprocess", type(given)
        )
    for name in ("size", "layout"):
        if name in given:
            raise ParameterError(
                f"load_model: pass {name} to load_model, not in preprocess.", call="load_model"
            )
    try:
        check_values("preprocess", Preprocess.options, given)
    except DalaError as error:
        raise error.within("load_model: preprocess") from error
    return dict(given)


def _check_range(given: Params | None) -> None:
    """Raise ParameterError for parameters that pictures of their own size cannot have."""
    for name, value in (given or {}).items():
        if name != "normalize" or value not in ("unit", "raw", "signed"):
            raise ParameterError(
                "load_model: preprocess of task 'image' is the range of its pictures: normalize= "
                f"'unit' (0 to 1), 'raw' (0 to 255) or 'signed' (-1 to 1), got {name}={value!r}.",
                call="load_model",
                argument="preprocess",
            )


def _guess_task(session: Session) -> str:
    """Return "classify" for a single output of shape (n, classes), else "raw"."""
    if len(session.outputs) == 1 and len(session.outputs[0].shape) == 2:
        return "classify"
    return "raw"
