"""Models as cards: the background of people, faces, and boxes around objects."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

import numpy as np

from dala.errors import MissingPackage, ModelNotFound
from dala.extras import pip_install
from dala.gpu.compute.kernels.filter import FilterParam
from dala.ml.results import Enhanced, Prediction, Tensors
from dala.resources import Closing
from dala.studio.catalogue.parameters import Json
from dala.typing import NDArray


class ModelRunner(Closing):
    """A loaded model that changes pictures."""

    @abstractmethod
    def process(self, pixels: NDArray) -> NDArray:
        """Return the picture with the model's result."""


@dataclass(frozen=True)
class ModelCard:
    """A model that a chain can have: its parameters, its weights, and how it is made.

    >>> MODELS["faces"].title
    'Faces'
    """

    title: str
    doc: str
    params: tuple[FilterParam, ...]
    #: The weights that it needs, by the values of its parameters.
    weights: Callable[[Mapping[str, Json]], str]
    make: Callable[[Mapping[str, Json], str | None], ModelRunner]


def _color(value: Json) -> tuple[float, ...]:
    listed = value if isinstance(value, list) else [0.0, 0.7, 0.25]
    return tuple(float(v) for v in listed if isinstance(v, int | float))[:3]


def _float(value: Json, default: float) -> float:
    return float(value) if isinstance(value, int | float) else default


def _drawn(found: Prediction, pixels: NDArray) -> NDArray:
    """Return a picture with what was found."""
    if isinstance(found, Tensors | Enhanced):
        return pixels
    made: NDArray = np.asarray(found.draw(pixels))
    return made


class _BackgroundRunner(ModelRunner):
    def __init__(self, params: Mapping[str, Json], device: str | None) -> None:
        from dala.ml.background import Background

        replace = params.get("replace", "blur") == "color"
        best = params.get("quality", "fast") == "best"
        self._work = Background(
            "u2netp" if best else "selfie",
            background=_color(params.get("color")) if replace else None,
            radius=int(_float(params.get("radius"), 12)),
            smooth=0.6,
            device=device,
        )

    def process(self, pixels: NDArray) -> NDArray:
        """Blur or replace the background."""
        made: NDArray = np.asarray(self._work.process(pixels))
        return made

    def close(self) -> None:
        """Close the model."""
        self._work.close()


class _FacesRunner(ModelRunner):
    def __init__(self, params: Mapping[str, Json], device: str | None) -> None:
        from dala.ml.gpu import load_model
        from dala.ml.hide import FaceHider

        how = params.get("show", "boxes")
        self._score = _float(params.get("score"), 0.5)
        self._hider = None
        self._model = load_model("blazeface", pull=False)
        if how != "boxes":
            self._hider = FaceHider(
                str(how), model=self._model, score=self._score, margin=0.3, keep=0, ahead=0
            )

    def process(self, pixels: NDArray) -> NDArray:
        """Draw a box around each face, or hide it."""
        if self._hider is not None:
            hidden: NDArray = np.asarray(self._hider.process(pixels))
            return hidden
        found = self._model.predict(pixels, score=self._score)
        return _drawn(found, pixels)

    def close(self) -> None:
        """Close the model."""
        if self._hider is not None:
            self._hider.close()
        self._model.close()


class _BoxesRunner(ModelRunner):
    def __init__(self, params: Mapping[str, Json], device: str | None) -> None:
        from dala.ml.gpu import load_model

        self._model = load_model(str(params.get("model", "nanodet")), pull=False)
        self._score = _float(params.get("score"), 0.4)

    def process(self, pixels: NDArray) -> NDArray:
        """Draw a box and a name around each object."""
        found = self._model.predict(pixels, score=self._score)
        return _drawn(found, pixels)

    def close(self) -> None:
        """Close the model."""
        self._model.close()


_SCORE: Final = FilterParam("score", "float", 0.5, 0.0, 1.0, doc="the lowest score that is shown.")

#: The models that a chain can have, by name.
MODELS: Final[dict[str, ModelCard]] = {
    "background": ModelCard(
        "Background",
        "Blur or replace the background of people.",
        (
            FilterParam(
                "replace", "choice", "blur", choices=("blur", "color"),
                doc="blur it, or cover it.",
            ),
            FilterParam("radius", "int", 12, 0, 200, unit="pixels", doc="of the blur."),
            FilterParam(
                "color", "floats", (0.0, 0.7, 0.25), 0.0, 1.0, size=3, doc="that covers it.",
            ),
            FilterParam(
                "quality", "choice", "fast", choices=("fast", "best"),
                doc="people in real time, or any foreground with softer edges, much slower.",
            ),
        ),
        lambda params: "u2netp" if params.get("quality") == "best" else "selfie",
        _BackgroundRunner,
    ),
    "faces": ModelCard(
        "Faces",
        "Find faces: draw boxes around them, or hide them.",
        (
            FilterParam(
                "show", "choice", "boxes", choices=("boxes", "blur", "pixelate", "box"),
                doc="boxes around faces; or faces blurred, pixelated or covered.",
            ),
            _SCORE,
        ),
        lambda params: "blazeface",
        _FacesRunner,
    ),
    "boxes": ModelCard(
        "Boxes",
        "Find objects and draw a box around each.",
        (
            FilterParam(
                "model", "choice", "nanodet", choices=("nanodet", "yolo_v5"), doc="the detector.",
            ),
            FilterParam("score", "float", 0.4, 0.0, 1.0, doc="the lowest score that is shown."),
        ),
        lambda params: str(params.get("model", "nanodet")),
        _BoxesRunner,
    ),
}  # fmt: skip


def missing(name: str, params: Mapping[str, Json] | None = None) -> str:
    """Return what a model lacks on this machine, and how to get it; "" if nothing.

    >>> missing("faces")
    ''
    """
    if find_spec("onnxruntime") is None:
        return f"ONNX Runtime is not installed. Run: {pip_install('ml')}"
    from dala.ml.weights.find import find_weights

    weights = MODELS[name].weights(params or {})
    if find_weights(weights) is None:
        return (
            f"the weights of {weights!r} are not on this machine. Run: dala models pull {weights}"
        )
    return ""


def load(name: str, params: Mapping[str, Json], device: str | None) -> ModelRunner:
    """Load a model with its parameters.

    Raises:
        MissingPackage, ModelNotFound: what it needs is not on this machine.
    """
    lacks = missing(name, params)
    if lacks:
        error = MissingPackage if find_spec("onnxruntime") is None else ModelNotFound
        raise error(f"{name}: {lacks}")
    return MODELS[name].make(params, device)
