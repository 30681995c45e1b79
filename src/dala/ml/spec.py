"""The declaration of a model: input preparation, outputs, weights, license."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dala.ml.prepare import Placement
from dala.ml.results import Outputs
from dala.ml.weights.origin import Origin
from dala.typing import Params

#: (outputs of one picture, without the batch axis; its placement in the input; labels; options),
#: to a result of the type of the model, which is not known here.
Decode: TypeAlias = Callable[[Outputs, Placement, tuple[str, ...], Mapping[str, float]], Any]


@dataclass(frozen=True)
class ModelSpec:
    """How a model is used, and where its weights come from.

    ``dala/ml/models/NAME.py`` declares the model NAME as ``MODEL``. The names that ``load_model``
    knows, ``dala models``, the kernels of pipelines and the table in the docs are derived from it.
    """

    name: str
    #: "classify", "detect", "faces", "poses", "segment", "matte" or "raw".
    task: str
    #: One line for people.
    title: str
    license: str
    #: Parameters of the kernel "preprocess", without size and layout.
    prepare: Params
    decode: Decode
    #: (height, width) and layout of the input of the known file; of others they are read from it.
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

    @property
    def copyleft(self) -> bool:
        """Whether the license asks those who use the model to license their own work alike."""
        return self.license.startswith(("AGPL", "GPL"))
