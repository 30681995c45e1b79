"""Models that nothing is known of: what they do is told from their outputs, or by the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from dala.errors import DalaError, ModelError, ParameterError, did_you_mean
from dala.gpu.compute.kernels.resize import Preprocess
from dala.gpu.compute.params import check_values
from dala.ml.models import deeplab, mobilenet_v2, u2netp, yolo_v5
from dala.ml.prepare import Placement
from dala.ml.results import Tensors
from dala.ml.session import Session
from dala.ml.spec import Decode, ModelSpec, Outputs


def decode_raw(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, Any]
) -> Tensors:
    """The outputs as they are."""
    return Tensors(outputs)


def decode_planes(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, Any]
) -> Any:
    """Class planes first (channels, height, width) as most exporters leave them."""
    _check_rank("segment", outputs, 3, "(classes, height, width)")
    return deeplab.segmented(next(iter(outputs.values())), placement, labels, outputs)


def decode_last(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, Any]
) -> Any:
    """Class planes last."""
    _check_rank("segment", outputs, 3, "(height, width, classes)")
    return deeplab.decode(outputs, placement, labels, options)


def decode_matte(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, Any]
) -> Any:
    """One map (1, height, width)."""
    _check_rank("matte", outputs, 3, "(1, height, width)")
    return u2netp.decode(outputs, placement, labels, options)


def decode_rows(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, Any]
) -> Any:
    """Rows as YOLOv5 gives them, or columns without a certainty as its successors do."""
    name, rows = next(iter(outputs.items()))
    _check_rank("detect", outputs, 2, "(boxes, 5 + classes) or (4 + classes, boxes)")
    turned = rows.shape[0] < rows.shape[1] and rows.shape[1] != 5 + len(labels)
    if turned or (labels and rows.shape[0] == 4 + len(labels) != rows.shape[1] - 1):
        sure = np.ones((rows.shape[1], 1), rows.dtype)
        rows = np.concatenate([rows[:4].T, sure, rows[4:].T], axis=1)
    if rows.shape[1] < 6:
        raise ModelError(
            f"predict: task 'detect' reads boxes with class scores, output {name!r} is "
            f"{outputs[name].shape}. Use task='raw', or decode= with a function of your own."
        )
    found = yolo_v5.decode({name: rows}, placement, labels, options)
    found.raw = outputs
    return found


def _check_rank(task: str, outputs: Outputs, rank: int, wanted: str) -> None:
    name, array = next(iter(outputs.items()))
    if array.ndim != rank:
        raise ModelError(
            f"predict: task {task!r} reads an output {wanted}, {name!r} is {array.shape}. "
            "Use task='raw', or decode= with a function of your own."
        )


TASKS: Final[Mapping[str, Decode]] = {
    "classify": mobilenet_v2.decode,
    "detect": decode_rows,
    "segment": decode_planes,
    "matte": decode_matte,
    "raw": decode_raw,
}
_OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {"detect": yolo_v5.MODEL.options}


def custom_spec(
    name: str,
    session: Session,
    task: str | None,
    prepare: Mapping[str, Any] | None,
    decode: Callable[..., Any] | None,
) -> ModelSpec:
    """Return the declaration of a user's own file."""
    if task is None:
        task = _told(session)
    elif not isinstance(task, str) or task not in TASKS:
        hint = did_you_mean(str(task), list(TASKS))
        listed = ", ".join(map(repr, TASKS))
        raise ParameterError(f"load_model: task is one of {listed}; {task!r} came. {hint}".rstrip())
    if decode is not None and not callable(decode):
        raise ParameterError(
            f"load_model: decode is a function of the outputs; {type(decode).__name__} came."
        )
    found = TASKS[task]
    if task == "segment" and session.outputs[0].shape[-1:] not in ((None,), ()):
        # Classes last: the last axis is the one that differs from the picture's.
        shape = session.outputs[0].shape
        if len(shape) == 4 and shape[1] == shape[2]:
            found = decode_last
    if decode is not None:
        own = decode

        def found(outputs: Outputs, *_: Any) -> Any:
            return own(outputs)

    return ModelSpec(
        name=name,
        task=task,
        title=f"{name}, an ONNX file",
        license="not given by the file",
        prepare=_prepare(session, prepare),
        decode=found,
        options=_OPTIONS.get(task, {}),
    )


def _prepare(session: Session, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Parameters of "preprocess", checked before the first picture comes."""
    if given is None:
        port = session.inputs[0] if session.inputs else None
        if port is not None and port.dtype is not None and np.dtype(port.dtype).kind in "ui":
            return {"normalize": "raw"}
        gray = port is not None and len(port.shape) == 4 and 1 in port.shape[1::2]
        return {"normalize": "unit" if gray else "imagenet"}
    if not isinstance(given, Mapping):
        raise ParameterError(
            "load_model: preprocess is a dict of parameters of dala.ml.preprocess; "
            f"{type(given).__name__} came."
        )
    for name in ("size", "layout"):
        if name in given:
            raise ParameterError(
                f"load_model: {name} is an argument of load_model itself, not of preprocess."
            )
    try:
        check_values("preprocess", Preprocess.options, given)
    except DalaError as error:
        raise error.within("load_model: preprocess") from error
    return dict(given)


def _told(session: Session) -> str:
    """A single output of scores (n, classes) is a classifier's; the rest is left as it is."""
    if len(session.outputs) == 1 and len(session.outputs[0].shape) == 2:
        return "classify"
    return "raw"
