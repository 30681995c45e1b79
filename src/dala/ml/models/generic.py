"""Models that nothing is known of: what they do is told from their outputs, or by the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dala.errors import ParameterError
from dala.gpu.compute.lang.suggest import nearest
from dala.ml.models import deeplab, mobilenet_v2, u2netp, yolo_v5
from dala.ml.models.recipe import Decode, Outputs, Recipe
from dala.ml.prepare import Placement
from dala.ml.results import Tensors
from dala.ml.session import Session


def decode_raw(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, Any]
) -> Tensors:
    """The outputs as they are."""
    return Tensors(outputs)


def decode_planes(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, Any]
) -> Any:
    """Class planes first (channels, height, width) as most exporters leave them."""
    name, planes = next(iter(outputs.items()))
    found = deeplab.decode({name: planes.transpose(1, 2, 0)}, placement, labels, options)
    found.raw = outputs
    return found


TASKS: Final[Mapping[str, Decode]] = {
    "classify": mobilenet_v2.decode,
    "detect": yolo_v5.decode,
    "segment": decode_planes,
    "matte": u2netp.decode,
    "raw": decode_raw,
}
_OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {"detect": yolo_v5.RECIPES["yolo_v5"].options}


def make_recipe(
    name: str,
    session: Session,
    task: str | None,
    prepare: Mapping[str, Any] | None,
    decode: Callable[..., Any] | None,
) -> Recipe:
    """A recipe for a file."""
    if task is None:
        task = _told(session)
    elif task not in TASKS:
        hint = nearest(str(task), list(TASKS))
        listed = ", ".join(map(repr, TASKS))
        raise ParameterError(f"load_model: task is one of {listed}; {task!r} came. {hint}".rstrip())
    found = TASKS[task]
    if task == "segment" and session.outputs[0].shape[-1:] not in ((None,), ()):
        # Classes last: the last axis is the one that differs from the picture's.
        shape = session.outputs[0].shape
        if len(shape) == 4 and shape[1] == shape[2]:
            found = deeplab.decode
    if decode is not None:
        own = decode

        def found(outputs: Outputs, *_: Any) -> Any:
            return own(outputs)

    return Recipe(
        name=name,
        task=task,
        title=f"{name}, an ONNX file",
        licence="not told by the file",
        prepare={"normalize": "imagenet"} if prepare is None else dict(prepare),
        decode=found,
        options=_OPTIONS.get(task, {}),
    )


def _told(session: Session) -> str:
    """A single output of scores (n, classes) is a classifier's; the rest is left as it is."""
    if len(session.outputs) == 1 and len(session.outputs[0].shape) == 2:
        return "classify"
    return "raw"
