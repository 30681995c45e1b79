"""The declaration of a model: input preparation, outputs, weights, license."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dala.errors import ParameterError, UnknownParameter, did_you_mean
from dala.ml.prepare import Placement
from dala.ml.results import Outputs
from dala.ml.weights.origin import Origin
from dala.typing import Params

if TYPE_CHECKING:
    from dala.ml.landmarks.steps import LandmarkSteps

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
    #: "classify", "detect", "faces", "hands", "poses", "segment", "matte" or "raw".
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
    #: The steps around a model that finds points in regions that another model detects.
    steps: LandmarkSteps | None = None

    @property
    def copyleft(self) -> bool:
        """Whether the license asks those who use the model to license their own work alike."""
        return self.license.startswith(("AGPL", "GPL"))

    def chosen(self, options: Mapping[str, float]) -> dict[str, float]:
        """Return the options of a call and the defaults of the others; raise for bad ones."""
        known = self.options
        for name in options:
            if name not in known:
                advice = did_you_mean(name, known) or f"Options: {', '.join(known) or 'none'}."
                raise UnknownParameter(
                    f"predict: {self.name} has no option {name!r}. {advice}",
                    call="predict",
                    argument=name,
                )
        for name, value in options.items():
            _check_option(name, value, known[name])
        return {**known, **options}


def _check_option(name: str, value: float, default: float) -> None:
    """Raise ParameterError unless a value is of the default's kind: a count, a fraction, pixels."""
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise ParameterError.invalid("predict", name, "True or False", value)
        return
    if isinstance(default, int):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ParameterError.invalid("predict", name, "an int of at least 1", value)
        return
    high = 1.0 if default <= 1 else float("inf")
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0 <= value <= high:
        expected = "a number from 0 to 1" if high == 1 else "a number of at least 0"
        raise ParameterError.invalid("predict", name, expected, value)
