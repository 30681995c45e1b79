"""Kernels and shaders of files: ``--kernel glow.py,amount=0.5``, ``--shader glow.fs``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from dala.errors import ParameterError

if TYPE_CHECKING:
    from dala.gpu.compute.kernels.filter import FilterParam
    from dala.gpu.compute.passes.source import Shader
    from dala.gpu.compute.runnable import Runnable
    from dala.media.audio.arriving import LiveVoice
    from dala.typing import NDArray

#: The longest file, in bytes.
_MOST: Final = 1_000_000
#: Samples of a sound that a shader is given.
_HEARD: Final = 2048


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
    """Return the program of an ISF file, or of one of Shadertoy's."""
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
SUFFIXES: Final = {".py": "kernel", **dict.fromkeys((".fs", ".glsl", ".frag"), "shader")}


class Heard:
    """The last samples of a sound file, or of a microphone, at the times that are asked for.

    Times of a file must not go back. ``name`` is a file, "microphone" or "microphone:NAME".
    """

    rate = 48000

    def __init__(self, name: str, held: ExitStack) -> None:
        import numpy as np

        from dala.media import audio, microphone

        self._last = np.zeros((_HEARD, 1), np.float32)
        self._voice: LiveVoice | None = None
        self._read = 0
        kind, _, which = name.partition(":")
        if kind == "microphone" and not Path(name).exists():
            begin = monotonic()
            live = held.enter_context(microphone.open(which or "default"))
            self._voice = live.voice(lambda: begin, self.rate)
        else:
            self._reader = held.enter_context(audio.open(name, rate=self.rate, layout="mono"))

    def at(self, time: float) -> NDArray:
        """Return the samples before a time."""
        import numpy as np

        if self._voice is not None:
            self._voice.ready(round(time * self.rate))
            return self._voice.render((self._voice.end or 0) - _HEARD, _HEARD)
        wanted = round(time * self.rate)
        block = self._reader.read(Fraction(max(wanted - self._read, 0), self.rate)).numpy()
        block = np.concatenate([block, np.zeros((max(wanted - self._read - len(block), 0), 1))])
        self._read = max(wanted, self._read)
        self._last = np.concatenate([self._last, block])[-_HEARD:]
        return self._last


def params_of(kernel: Runnable) -> dict[str, FilterParam]:
    """Return the parameters of a kernel that a command may set, and its further pictures."""
    from dala.gpu.compute.kernels.filter import FilterParam
    from dala.media.filters.declarations import parameters_of

    found = {p.name: p for p in parameters_of(kernel)}
    pictures = [name for name in kernel.inputs[1:] if name in kernel.pictures]
    return found | {name: FilterParam(name, "picture", required=True) for name in pictures}
