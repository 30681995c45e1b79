"""What is known of a model: how pictures go in, what comes out, whose it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from dala.ml.prepare import Placement

Outputs: TypeAlias = Mapping[str, np.ndarray[Any, Any]]
#: (outputs of one picture, without the batch axis; where it lay in the input; labels; options)
Decode: TypeAlias = Callable[[Outputs, Placement, tuple[str, ...], Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Recipe:
    """How a model is used."""

    name: str
    #: "classify", "detect", "faces", "poses", "segment", "matte" or "raw".
    task: str
    #: One line for people.
    title: str
    licence: str
    #: Parameters of the kernel "preprocess", but for size and layout, which the file tells.
    prepare: Mapping[str, Any]
    decode: Decode
    #: Options of ``predict`` and their defaults.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: The set of labels, as in ``dala.ml.labels``.
    labels: str = ""
