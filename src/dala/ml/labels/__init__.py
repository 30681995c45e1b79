"""Class names of ImageNet (1000), COCO (80) and Pascal VOC (21)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from dala.errors import ParameterError


@cache
def read_labels(name: str) -> tuple[str, ...]:
    """Return the class names of "imagenet", "coco" or "voc", in order.

    >>> read_labels("imagenet")[285], len(read_labels("coco")), read_labels("voc")[15]
    ('Egyptian cat', 80, 'person')
    """
    text = files(__package__).joinpath(f"{name}.txt").read_text("utf-8")
    return Labels(text.splitlines())


class Labels(tuple[str, ...]):
    """Class names, in order: a tuple that prints short.

    >>> read_labels("imagenet")
    ('tench', 'goldfish', 'great white shark', ... 1000 in all)
    >>> Labels(["cat", "dog"])
    ('cat', 'dog')
    """

    __slots__ = ()

    def __repr__(self) -> str:
        if len(self) <= 6:
            return super().__repr__()
        return f"({', '.join(map(repr, self[:3]))}, ... {len(self)} in all)"


def check_labels(call: str, task: str, shape: Sequence[int | None], labels: Sequence[str]) -> None:
    """Raise ParameterError if a model with an output of this shape has not as many classes.

    The shape has a batch axis; axes of None may have any size.

    >>> check_labels("load_model", "classify", (None, 2), ["cat", "dog"])
    """
    counts: list[int | None] = []
    if task == "classify" and len(shape) >= 2:
        sizes = [n for n in shape[1:] if n is not None]
        counts = [math.prod(sizes) if len(sizes) == len(shape) - 1 else None]
    elif task == "segment" and len(shape) == 4:
        last = shape[1] == shape[2]  # the classes are last
        counts = [shape[3] if last else shape[1]]
    elif task == "detect" and len(shape) == 3:  # rows with objectness, or columns without
        counts = [None if n is None else n - k for n, k in ((shape[2], 5), (shape[1], 4))]
        counts = [n for n in counts if n is None or n >= 0]
    if counts and None not in counts and len(labels) not in counts:
        wanted = min(n for n in counts if n is not None)
        expected = f"{wanted} names, one for each class of the model"
        raise ParameterError.invalid(call, "labels", expected, f"{len(labels)} names")
