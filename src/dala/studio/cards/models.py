"""Models as cards: the background of people, faces, and boxes around objects."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from dala.errors import MissingPackage, ModelNotFound
from dala.extras import pip_install
from dala.gpu.compute.kernels.filter import FilterParam
from dala.ml.results import Detection, Enhanced, Prediction, Scores, Tensors
from dala.resources import Closing
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.typing import ImageLike, NDArray

#: The most rows of findings that a page gets, and the classes that are listed.
_ROWS: Final = 10
_CLASSES: Final = 5
_TIMES: Final = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True)
class Findings:
    """Findings of a model in a picture: in a few words, and one by one with scores of 0 to 1.

    >>> Findings("2 faces", (("face", 0.98), ("face", 0.7))).json()["text"]
    '2 faces'
    """

    text: str = ""
    rows: tuple[tuple[str, float], ...] = ()

    def json(self) -> JsonObject:
        """Return it as pages get it; at most ten rows."""
        shown = self.rows[:_ROWS]
        return {"text": self.text, "rows": [[name, round(score, 3)] for name, score in shown]}


def found_in(result: Prediction) -> Findings:
    """Return the objects of a result, the most certain first, and how often each occurs.

    >>> from dala.ml.results import Detections
    >>> box = 0, 0, 8, 8
    >>> found_in(Detections([Detection(box, "dog", 0.6), Detection(box, "dog", 0.9)])).text
    'dog × 2'
    """
    listed: Sequence[object] = result if isinstance(result, list) else []
    objects = [one for one in listed if isinstance(one, Detection)]
    rows = tuple((one.label, float(one.score)) for one in sorted(objects, key=lambda o: -o.score))
    counts = Counter(name for name, _ in rows)
    names = [name if n == 1 else f"{name} {_TIMES} {n}" for name, n in counts.items()]
    return Findings(", ".join(names) or "nothing found", rows)


class ModelRunner(Closing):
    """A loaded model that changes pictures, with its findings in the last one."""

    found = Findings()

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
    #: The weights that it needs, by the values of all its parameters.
    weights_of: Callable[[Mapping[str, Any]], str]
    #: Makes it of its weights, the values of all its parameters, and the device.
    make: Callable[[str, Mapping[str, Any], str | None], ModelRunner]

    def values(self, given: Mapping[str, Json]) -> dict[str, Any]:
        """Return the values of all parameters."""
        return {p.name: given.get(p.name, p.default) for p in self.params}

    def weights(self, given: Mapping[str, Json]) -> str:
        """Return the name of the weights that it needs."""
        return self.weights_of(self.values(given))


def _drawn(found: Prediction, pixels: NDArray) -> NDArray:
    """Return a picture with findings drawn into it."""
    if isinstance(found, Tensors | Enhanced):
        return pixels
    made: NDArray = np.asarray(found.draw(pixels))
    return made


class _BackgroundRunner(ModelRunner):
    def __init__(self, weights: str, params: Mapping[str, Any], device: str | None) -> None:
        from dala.ml.background import Background

        class Watched(Background):
            """A background that remembers how much of the picture is in front of it."""

            share = 0.0

            def mask(self, image: ImageLike) -> NDArray:
                found = super().mask(image)
                self.share = float(found.mean())
                return found

        self._work = Watched(
            weights,
            background=tuple(params["color"]) if params["replace"] == "color" else None,
            radius=int(params["radius"]),
            smooth=0.6,
            device=device,
        )

    def process(self, pixels: NDArray) -> NDArray:
        """Blur or replace the background."""
        made: NDArray = np.asarray(self._work.process(pixels))
        share = self._work.share
        self.found = Findings(f"{share:.0%} of the picture is in front".replace("%", " %"))
        return made

    def close(self) -> None:
        """Close the model."""
        self._work.close()


class _PredictRunner(ModelRunner):
    """A model that shows its predictions; subclasses describe them."""

    def __init__(self, weights: str, params: Mapping[str, Any], device: str | None) -> None:
        from dala.ml.gpu import load_model

        self._model = load_model(weights, pull=False)
        self._score = float(params["score"])

    def process(self, pixels: NDArray) -> NDArray:
        """Draw the model's findings."""
        found = self._model.predict(pixels, score=self._score)
        self.found = self.findings(found)
        return _drawn(found, pixels)

    def findings(self, found: Prediction) -> Findings:
        """Return the findings for the page."""
        return found_in(found)

    def close(self) -> None:
        """Close the model."""
        self._model.close()


class _FacesRunner(_PredictRunner):
    def __init__(self, weights: str, params: Mapping[str, Any], device: str | None) -> None:
        from dala.ml.hide import FaceHider

        super().__init__(weights, params, device)
        self._hider = None
        if (how := params["show"]) != "boxes":
            self._hider = FaceHider(
                how, model=self._model, score=self._score, margin=0.3, keep=0, ahead=0
            )

    def process(self, pixels: NDArray) -> NDArray:
        """Draw a box around each face, or hide it."""
        if self._hider is None:
            return super().process(pixels)
        from dala.ml.hide import HiddenFace

        faces = self._hider.find(pixels)
        self.found = self.findings(faces)
        boxes = [HiddenFace(face.box, face.score) for face in faces]
        hidden: NDArray = np.asarray(self._hider.hide(pixels, boxes))
        return hidden

    def findings(self, found: Prediction) -> Findings:
        """Return the number of faces, and their scores."""
        rows = found_in(found).rows
        return Findings(f"{len(rows) or 'no'} face{'' if len(rows) == 1 else 's'}", rows)


class _ClassesRunner(_PredictRunner):
    def process(self, pixels: NDArray) -> NDArray:
        """Write the most likely classes into the picture."""
        found = self._model.predict(pixels)
        assert isinstance(found, Scores)
        rows = tuple((one.label, one.probability) for one in found.top(_CLASSES))
        self.found = Findings(rows[0][0], rows)
        made: NDArray = np.asarray(found.draw(pixels, least=self._score))
        return made


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
        lambda params: "u2netp" if params["quality"] == "best" else "selfie",
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
        lambda params: str(params["model"]),
        _PredictRunner,
    ),
    "classes": ModelCard(
        "Classes",
        "Name what the picture shows, one of 1000 classes.",
        (FilterParam("score", "float", 0.1, 0.0, 1.0, doc="the lowest score that is written."),),
        lambda params: "mobilenet_v2",
        _ClassesRunner,
    ),
}  # fmt: skip


def missing(name: str, params: Mapping[str, Json] | None = None) -> str:
    """Return the missing parts of a model on this machine, and how to get them; "" if none.

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
    card = MODELS[name]
    return card.make(card.weights(params), card.values(params), device)
