"""Class names of ImageNet (1000), COCO (80) and Pascal VOC (21)."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def read_labels(name: str) -> tuple[str, ...]:
    """Return the class names of "imagenet", "coco" or "voc", in order.

    >>> read_labels("imagenet")[285], len(read_labels("coco")), read_labels("voc")[15]
    ('Egyptian cat', 80, 'person')
    """
    text = files(__package__).joinpath(f"{name}.txt").read_text("utf-8")
    return tuple(text.splitlines())
