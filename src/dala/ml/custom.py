"""Declarations for a user's own ONNX files, by task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from dala.arguments import Selection
from dala.errors import DalaError, ParameterError
from dala.gpu.compute.kernels.resize import Preprocess
from dala.gpu.compute.params import check_values
from dala.ml.models import deeplab, mobilenet_v2, u2netp, yolo_v5
from dala.ml.results import Detections, Outputs, Pose, Poses, Segmentation
from dala.ml.results.base import name_of
from dala.ml.results.people import keypoints
from dala.ml.runtime.session import Session
from dala.ml.spec import Decode, ModelSpec, RawResult, as_tensors, wrong_output
from dala.typing import Params


def _ranked(task: str, rank: int, wanted: str, decode: Decode) -> Decode:
    """Return a decoder that first checks the number of axes of the first output."""

    def checked(raw: RawResult) -> Any:
        if raw.first.ndim != rank:
            raise wrong_output(task, f"shape {wanted}", next(iter(raw.outputs)), raw.first)
        return decode(raw)

    return checked


def _decode_planes(raw: RawResult) -> Segmentation:
    return deeplab.segment(raw.first, raw)


def _decode_rows(raw: RawResult) -> Detections:
    """Decode rows as of YOLOv5, or columns without objectness as of its successors."""
    rows, labels = raw.first, raw.labels
    turned = rows.shape[0] < rows.shape[1] and rows.shape[1] != 5 + len(labels)
    if turned or (labels and rows.shape[0] == 4 + len(labels) != rows.shape[1] - 1):
        sure = np.ones((rows.shape[1], 1), rows.dtype)
        rows = np.concatenate([rows[:4].T, sure, rows[4:].T], axis=1)
    name = next(iter(raw.outputs))
    if rows.shape[1] < 6:
        raise wrong_output("detect", "boxes with class scores", name, raw.first)
    found = yolo_v5.decode(raw._replace(outputs={name: rows}))
    found.raw = raw.outputs
    return found


def _decode_keypoints(raw: RawResult) -> Poses:
    """Decode heatmaps (points, height, width), or rows (points, 2 or 3) of x, y and score.

    Rows are in pixels of the model's input, or from 0 to 1 if none is above 1. Labels are the
    names of the points.
    """
    array, size = raw.first, raw.placement.size
    if array.ndim == 3 and array.shape[1] > 1:
        count, height, width = array.shape
        flat = array.reshape(count, -1)
        best = flat.argmax(1)
        places = np.stack([best % width + 0.5, best // width + 0.5], 1) / (width, height)
        scores = np.clip(flat[np.arange(count), best], 0, 1)
    elif array.shape[-1] in (2, 3):
        rows = array.reshape(-1, array.shape[-1]).astype(np.float64)
        places, scores = rows[:, :2], rows[:, 2] if rows.shape[1] == 3 else np.ones(len(rows))
        if places.max(initial=0) > 1:
            places = places / size
    else:
        wanted = "shape (points, height, width) or (points, 2 or 3)"
        raise wrong_output("keypoints", wanted, next(iter(raw.outputs)), array)
    names = [name_of(raw.labels, k) for k in range(len(places))]
    points = raw.placement.back(places.astype(np.float64) * size)
    made = keypoints(names, points, scores.tolist())
    mean = float(np.mean(scores)) if made else 0.0
    return Poses([Pose(made, mean)] if mean >= raw.options["score"] else [], raw.outputs)


_LAST: Final = _ranked("segment", 3, "(height, width, classes)", deeplab.decode)
TASKS: Final[Mapping[str, Decode]] = {
    "classify": mobilenet_v2.decode,
    "detect": _ranked("detect", 2, "(boxes, 5 + classes) or (4 + classes, boxes)", _decode_rows),
    "segment": _ranked("segment", 3, "(classes, height, width)", _decode_planes),
    "matte": _ranked("matte", 3, "(1, height, width)", u2netp.decode),
    "keypoints": _decode_keypoints,
    "image": as_tensors,  # for a tensor; pictures go through ImageModel
    "raw": as_tensors,
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
        task = "classify" if [len(port.shape) for port in session.outputs] == [2] else "raw"
    Selection(*TASKS).check("load_model", "task", task)
    if decode is not None and not callable(decode):
        expected = "a function of the outputs"
        raise ParameterError.invalid("load_model", "decode", expected, type(decode))
    found = TASKS[task]
    if task == "segment" and session.outputs[0].shape[-1:] not in ((None,), ()):
        # The classes are last if the last axis is not of the picture's size.
        shape = session.outputs[0].shape
        if len(shape) == 4 and shape[1] == shape[2]:
            found = _LAST
    if decode is not None:
        own = decode

        def found(raw: RawResult) -> object:
            return own(raw.outputs)

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
        expected = "a dict of parameters of dala.ml.preprocess"
        raise ParameterError.invalid("load_model", "preprocess", expected, type(given))
    for name in ("size", "layout"):
        if name in given:
            raise ParameterError(f"load_model: pass {name} to load_model, not in preprocess.")
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
                argument="preprocess",
            )
