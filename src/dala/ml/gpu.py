"""Load models by name or from ONNX files, run them, and read their results.

>>> sorted(available_models())[:3]
['blazeface', 'blazeface_back', 'blazepose']
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack, cast, overload

import numpy as np
import numpy.typing as npt

from dala.arguments import Integer, refuse_folder
from dala.errors import (
    ModelError,
    ModelNotFound,
    ParameterError,
    ShapeError,
    UnknownModel,
    did_you_mean,
)
from dala.gpu.compute import Buffer
from dala.gpu.compute.params import report_order
from dala.ml.convert.tfjs import convert_tfjs_file
from dala.ml.custom import custom_spec
from dala.ml.enhance import ImageModel
from dala.ml.labels import read_labels
from dala.ml.landmarks.steps import LandmarkModel
from dala.ml.model import Model, ModelInput, R
from dala.ml.models import NAMES, find_model
from dala.ml.models.mobilenet_v2 import probabilities
from dala.ml.options import ModelOptions
from dala.ml.results import Outputs, Scores
from dala.ml.results.base import name_of
from dala.ml.runtime.providers import candidates
from dala.ml.runtime.session import Session
from dala.ml.weights.find import ensure_weights
from dala.offload import LoopWorker
from dala.options import takes
from dala.typing import PathLike

if TYPE_CHECKING:
    from dala.ml.keywords import ModelKeywords

__all__ = [
    "available_models", "load_model", "load_model_async", "predict", "predict_async", "top_k",
]  # fmt: skip


#: Options of models that Dala does not know.
_OF_FILES: Final = ("task", "labels", "layout", "preprocess", "decode")


def available_models() -> list[str]:
    """Return the names that :func:`load_model` accepts.

    >>> "mobilenet_v2" in available_models()
    True
    """
    return list(NAMES)


@takes(ModelOptions)
def load_model(
    model: PathLike,
    provider: str = "auto",
    *,
    decode: Callable[[Outputs], R] | None = None,
    **given: Unpack[ModelKeywords],
) -> Model[R]:
    """Load a model by name, or from an ONNX file or a TensorFlow.js model.

    ``task``, ``labels``, ``size``, ``layout``, ``preprocess`` and ``decode`` are for files.

    Args:
        model: one of ``available_models()``, the path of an ONNX file, or the path of the JSON file
            of a TensorFlow.js model, whose weights are beside it.

    Raises:
        UnknownModel: there is no such name or file.
        ModelNotFound: the weights are missing and cannot be downloaded.
        ModelError: the file is not a valid model, or uses unsupported operators.
        DeviceUnavailable: the provider is not available.
        MissingPackage: ONNX Runtime is not installed.

    Example::

        model = load_model("mobilenet_v2")
        scores = model.predict(Frame.open("cat.jpg"))
        print(top_k(scores, k=3))
    """
    candidates(provider)  # raises before anything is downloaded
    options = ModelOptions.checked("load_model", {"provider": provider, "decode": decode, **given})
    spec = find_model(model) if isinstance(model, str) else None
    size, threads = options.size, options.threads
    if size is not None:
        report_order("load_model", *size)
    if spec is not None:
        custom = [name for name in options.changed() if name in _OF_FILES]
        if custom:
            raise ParameterError(
                f"load_model: {custom[0]} is for ONNX files, and {spec.name!r} is a known model. "
                f"Load it by its path instead: dala models path {spec.name}.",
                argument=custom[0],
            )
        path = ensure_weights(spec.name, options.pull)
        session = Session(str(path), repr(spec.name), provider, threads)
        if spec.steps is not None:
            part = partial(load_model, provider=provider, threads=threads, pull=options.pull)
            return LandmarkModel(session, spec, str(path), size, part)
        return Model(session, spec, spec.name, str(path), size)
    path = _file(model)
    # TensorFlow.js models are converted, each time: that takes less than opening the session.
    source = convert_tfjs_file(path) if path.suffix == ".json" else str(path)
    session = Session(source, repr(path.name), provider, threads)
    spec = custom_spec(path.stem, session, options.task, options.preprocess, decode)
    if spec.task == "image" and decode is None:
        made = ImageModel(session, spec, path.stem, str(path), size, None, options.layout)
        return cast("Model[R]", made)
    names = _label_names("load_model", options.labels)
    return Model(session, spec, path.stem, str(path), size, names, options.layout)


@takes(ModelOptions)
async def load_model_async(
    model: PathLike,
    provider: str = "auto",
    *,
    decode: Callable[[Outputs], R] | None = None,
    **given: Unpack[ModelKeywords],
) -> Model[R]:
    """Load a model as :func:`load_model` does, on a thread, without blocking the event loop.

    A task that is cancelled no longer waits. Its model is closed as soon as it is loaded.

    Example::

        model = await load_model_async("mobilenet_v2")
        scores = await predict_async(model, photo)
    """
    loading = partial(load_model, model, provider, decode=decode, **given)
    return await LoopWorker("dala model").opened(loading)


@overload
def predict(model: Model[R], input: Sequence[ModelInput], **options: float) -> list[R]: ...
@overload
def predict(model: Model[R], input: ModelInput, **options: float) -> R: ...
def predict(
    model: Model[R], input: ModelInput | Sequence[ModelInput], **options: float
) -> R | list[R]:
    """Run a model on a picture, a tensor, or a list of them; see :meth:`dala.ml.Model.predict`.

    Classifiers return ``Scores``, probabilities that ``top_k`` reads; detectors ``Detections``;
    "blazeface" ``Faces``; "posenet" ``Poses``; "deeplab" a ``Segmentation``. Every result has
    ``raw``, the model's outputs.

    Example::

        faces = predict(load_model("blazeface"), photo)
        print(faces[0].box)
    """
    loaded = _check_model(model, "predict")
    return loaded.found(input, loaded.spec.chosen(options))


@overload
async def predict_async(
    model: Model[R], input: Sequence[ModelInput], **options: float
) -> list[R]: ...
@overload
async def predict_async(model: Model[R], input: ModelInput, **options: float) -> R: ...
async def predict_async(
    model: Model[R], input: ModelInput | Sequence[ModelInput], **options: float
) -> R | list[R]:
    """Run a model as :func:`predict` does, without blocking the event loop.

    Example::

        faces = await predict_async(model, photo)
    """
    loaded = _check_model(model, "predict_async")
    return await asyncio.to_thread(lambda: loaded.found(input, loaded.spec.chosen(options)))


def top_k(
    output: npt.ArrayLike | Buffer | Outputs, k: int = 5, labels: Sequence[str] | str | None = None
) -> list[tuple[str, int, float]]:
    """Return the k most likely classes as (label, index, probability), most likely first.

    Args:
        output: the result of a classifier, or the logits or probabilities of one picture.
        k: the number of classes.
        labels: the names of the classes, or "imagenet", "coco" or "voc"; by default those of the
            model, or ImageNet's for 1000 classes.

    >>> [(label, index) for label, index, _ in top_k(np.eye(1000)[285] * 9, k=1)]
    [('Egyptian cat', 285)]
    """
    values: object = output
    if isinstance(output, Mapping) and len(output) == 1:  # raw outputs
        (values,) = output.values()
    if isinstance(values, Buffer):
        values = values.numpy()
    try:
        if values is None or np.iscomplexobj(values):  # type: ignore[arg-type]
            raise TypeError
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        expected = "the result of a classifier, or an array"
        raise ParameterError.invalid("top_k", "output", expected, type(output)) from None
    squeezed = numbers.reshape(-1) if numbers.size == max(numbers.shape, default=0) else numbers
    if squeezed.ndim != 1 or not squeezed.size:
        advice = "For a batch, select one: top_k(outputs[0])."
        raise ShapeError.invalid("top_k", "output", "the scores of one picture", numbers, advice)
    Integer(1, squeezed.size).check("top_k", "k", k)
    if not np.isfinite(squeezed).all():
        raise ModelError("top_k: the scores contain NaN or infinity.")
    names = _label_names("top_k", labels)
    if names is not None and len(names) != squeezed.size:
        expected = f"{squeezed.size} names, one for each score"
        raise ParameterError.invalid("top_k", "labels", expected, f"{len(names)} names")
    if names is None:
        own = output.labels if isinstance(output, Scores) else ()
        names = own or (read_labels("imagenet") if squeezed.size == 1000 else ())
    shares = probabilities(squeezed)
    order = np.argsort(-shares, kind="stable")[: int(k)]
    return [(name_of(names, i), int(i), float(shares[i])) for i in order]


def _label_names(call: str, labels: Sequence[str] | str | None) -> tuple[str, ...] | None:
    """Return class names from a sequence, or from the name of a known set."""
    if labels is None:
        return None
    if isinstance(labels, str) and labels in ("imagenet", "coco", "voc"):
        return read_labels(labels)
    if isinstance(labels, str | bytes | Mapping) or not isinstance(labels, Iterable):
        expected = "a list of names, 'imagenet', 'coco' or 'voc'"
        raise ParameterError.invalid(call, "labels", expected, labels)
    return tuple(map(str, labels))


def _check_model(model: Model[R], call: str) -> Model[R]:
    if isinstance(model, Model):
        return model
    advice = "Load it once: model = load_model('mobilenet_v2')."
    raise ModelError.invalid(call, "model", "a Model", type(model), advice)


def _file(model: PathLike) -> Path:
    try:
        path = Path(model)
    except TypeError:
        expected = "a name or the path of an ONNX file"
        raise UnknownModel.invalid("load_model", "model", expected, type(model)) from None
    if path.is_file():
        return path
    refuse_folder("load_model", path)
    looks_like_path = path.suffix or len(path.parts) > 1
    if looks_like_path:
        raise ModelNotFound(f"load_model: no such file: {str(path)!r}.")
    listed = ", ".join(NAMES)
    expected = f"one of {listed}, or the path of an ONNX file"
    advice = did_you_mean(str(model), NAMES)
    raise UnknownModel.invalid("load_model", "model", expected, str(model), advice)
