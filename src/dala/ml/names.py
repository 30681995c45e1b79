"""The names of the known models, without importing them."""

from __future__ import annotations

from typing import Final

#: Every model, in the order they are listed.
NAMES: Final = (
    "mobilenet_v2", "yolo_v5", "blazeface", "blazeface_back", "posenet", "deeplab", "u2netp",
)  # fmt: skip
