"""Type aliases that signatures across the library share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage
    from typing_extensions import CapsuleType

    from dala.gpu.compute.buffer import Buffer
    from dala.media.frame import Frame

#: A NumPy array of any shape and dtype. The one place where arrays are typed loosely: arithmetic on
#: arrays of unknown dtype has no better type in NumPy's stubs.
NDArray: TypeAlias = np.ndarray[Any, Any]


class SupportsDLPack(Protocol):
    """An array or tensor of a library that supports DLPack."""

    def __dlpack__(self, *, stream: None = ...) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


#: Anything that names a file.
PathLike: TypeAlias = "str | os.PathLike[str]"

#: A picture file: its path, its bytes, or an open binary file.
PictureSource: TypeAlias = "PathLike | bytes | bytearray | memoryview | BinaryIO"

#: A picture as people hold it: an array, bytes (with width and height), a Pillow image, a Frame, a
#: Buffer, a tensor of another library.
ImageLike: TypeAlias = (
    "NDArray | bytes | bytearray | memoryview | PillowImage | Frame | Buffer | SupportsDLPack"
)

#: An input of a kernel: a Buffer, an array, a tensor of another library, a Pillow image, a Frame.
KernelInput: TypeAlias = "Buffer | NDArray | SupportsDLPack | PillowImage | Frame"

#: A color: a CSS name, "#rrggbb[aa]", or three or four numbers from 0 to 255.
ColorLike: TypeAlias = "str | Sequence[int]"

#: The value of one kernel or filter parameter.
ParamValue: TypeAlias = "bool | int | float | str | Sequence[float] | NDArray | None"

#: Parameters by name.
Params: TypeAlias = Mapping[str, ParamValue]
