"""Names of classes: ImageNet's thousand, COCO's eighty, Pascal VOC's twenty-one."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def read_labels(name: str) -> tuple[str, ...]:
    """The names of a set, "imagenet", "coco" or "voc", in the order of their numbers.

    >>> read_labels("imagenet")[285], len(read_labels("coco")), read_labels("voc")[15]
    ('Egyptian cat', 80, 'person')
    """
    text = files(__package__).joinpath(f"{name}.txt").read_text("utf-8")
    return tuple(text.splitlines())
