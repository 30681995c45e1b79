"""Kernels and shaders of files: ``--kernel glow.py,amount=0.5``, ``--shader glow.fs``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dala.errors import ParameterError

if TYPE_CHECKING:
    from dala.gpu.compute.kernels.filter import FilterParam
    from dala.gpu.compute.passes.source import Shader
    from dala.gpu.compute.runnable import Runnable

#: The longest file, in bytes.
_MOST: Final = 1_000_000


@lru_cache(64)
def kernel_of(path: str) -> Shader:
    """Return the kernel or program of a file. Its text is parsed and never executed.

    Raises:
        ParameterError: there is no such file, it is too long, or not UTF-8.
        KernelSyntaxError: it is no kernel.
    """
    from dala.gpu.compute.lang.source import KernelSource
    from dala.gpu.compute.passes.source import shader_from

    file = Path(path)
    if not file.is_file():
        raise ParameterError(f"--kernel: there is no file {path!r}.")
    if file.stat().st_size > _MOST:
        raise ParameterError.invalid("--kernel", "FILE", f"at most {_MOST:,} bytes", path)
    try:
        text = file.read_text(encoding="utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ParameterError.invalid("--kernel", "FILE", "text in UTF-8", path) from None
    return shader_from(KernelSource(text, file.stem, path))


@lru_cache(64)
def shader_of(path: str) -> Shader:
    """Return the program of an ISF file."""
    from dala.shaders import load

    if not Path(path).is_file():
        raise ParameterError(f"--shader: there is no file {path!r}.")
    return load(path)


#: Options that name a file with a filter in it, each with what reads it.
READERS: Final[Mapping[str, Callable[[str], Runnable]]] = {
    "kernel": kernel_of,
    "shader": shader_of,
}
#: What reads a file with a filter in it, by the end of its name.
SUFFIXES: Final = {".py": "kernel", ".fs": "shader"}


def params_of(kernel: Runnable) -> dict[str, FilterParam]:
    """Return the parameters of a kernel that a command may set, and its further pictures."""
    from dala.gpu.compute.kernels.filter import FilterParam, parameter_of

    given = dict(kernel.roles)
    found = {p.name: parameter_of(p) for p in kernel.params if p.name not in given}
    pictures = [name for name in kernel.inputs[1:] if name in kernel.pictures]
    return found | {name: FilterParam(name, "picture", required=True) for name in pictures}
