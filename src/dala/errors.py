"""Every error the library raises, all under :class:`DalaError`.

Each also inherits the builtin that a Python reader would expect (``ValueError``, ``KeyError``),
so ``except ValueError`` keeps working. A message says which call, which argument, what was
expected, what came and what to do.
"""

from __future__ import annotations

__all__ = [
    "ArityError",
    "BufferTooLarge",
    "ColorError",
    "CommandError",
    "CommandTimeout",
    "CubeError",
    "DalaError",
    "DeviceError",
    "DeviceLostError",
    "DeviceMismatch",
    "DeviceUnavailable",
    "DtypeError",
    "DtypeMismatch",
    "FreedError",
    "KernelExists",
    "KernelSyntaxError",
    "MissingPackage",
    "ModelError",
    "ModelNotFound",
    "OutOfRange",
    "ParameterError",
    "ProtocolError",
    "ReadOnlyError",
    "SceneFileError",
    "ShaderError",
    "ShapeError",
    "ShapeMismatch",
    "UnknownCommand",
    "UnknownDevice",
    "UnknownKernel",
    "UnknownModel",
    "UnknownParameter",
    "UnsupportedDtype",
    "VideoError",
    "VideoNotFound",
]


class DalaError(Exception):
    """The root of all errors raised by Dala."""


class ShapeError(DalaError, ValueError):
    """A shape is malformed, or the data does not fill it."""


class ShapeMismatch(ShapeError):
    """Two shapes do not go together in one call."""


class DtypeError(DalaError, TypeError):
    """A dtype is unknown, or the data cannot be held in it."""


class DtypeMismatch(DtypeError):
    """Two dtypes do not go together in one call."""


class UnsupportedDtype(DtypeError):
    """The device cannot compute with this dtype; the message names the device and the way out."""


class OutOfRange(DalaError, ValueError):
    """A number does not fit the dtype it should be stored in."""


class ArityError(DalaError, TypeError):
    """A kernel was given the wrong number of inputs."""


class ParameterError(DalaError, ValueError):
    """A parameter is missing, or its value is not one the kernel takes."""


class UnknownParameter(ParameterError, KeyError):
    """A parameter was given that the kernel does not have."""

    __str__ = Exception.__str__


class UnknownKernel(DalaError, KeyError):
    """No kernel has this name; the message offers the nearest ones."""

    __str__ = Exception.__str__


class KernelExists(DalaError, ValueError):
    """The name belongs to a built-in kernel and cannot be taken."""


class KernelSyntaxError(DalaError, SyntaxError):
    """Kernel source is outside the language. Holds ``lineno``, ``offset``, ``text`` and ``advice``.

    ``str(error)`` shows the line, a caret under the place, and what to write instead.
    """

    def __init__(
        self,
        problem: str,
        *,
        advice: str = "",
        kernel: str = "kernel",
        filename: str = "<kernel>",
        lineno: int = 1,
        column: int = 0,
        line: str = "",
    ) -> None:
        self.problem = problem
        self.advice = advice
        self.kernel = kernel
        super().__init__(problem, (filename, lineno, column + 1, line))
        # Python shows ``msg`` under the line and the caret when nobody catches the error.
        self.msg = f"{problem}. {advice}" if advice else problem

    def __str__(self) -> str:
        shown = [f"kernel {self.kernel!r}, line {self.lineno}: {self.problem}"]
        if self.text:
            column = max((self.offset or 1) - 1, 0)
            line = self.text.rstrip()
            indent = len(line) - len(line.lstrip())
            shown.append("    " + line.strip())
            shown.append("    " + " " * max(column - indent, 0) + "^")
        if self.advice:
            shown.append(self.advice)
        return "\n".join(shown)


class ShaderError(DalaError, ValueError):
    """A shader is refused. Holds ``shader``, ``problem``, ``lineno``, ``column`` and ``text``.

    ``str(error)`` shows the line and a caret under the place, where the compiler named one.
    """

    def __init__(
        self,
        problem: str,
        *,
        shader: str = "shader",
        lineno: int | None = None,
        column: int = 0,
        line: str = "",
        detail: str = "",
    ) -> None:
        self.problem = problem
        self.shader = shader
        #: From 1; None where no line is to blame.
        self.lineno = lineno
        self.column = column
        self.text = line
        place = "" if lineno is None else f", line {lineno}"
        shown = [f"shader {shader!r}{place}: {problem}"]
        if line:
            start = max(len(line) - len(line.lstrip()), column - 80)  # what is left of it is cut
            shown.append("    " + line[start : start + 120].rstrip())
            shown.append(("    " + " " * max(column - start, 0) + f"^ {detail}").rstrip())
        elif detail:
            shown.append(detail)
        super().__init__("\n".join(shown))


class CubeError(DalaError, ValueError):
    """A .cube file (a colour look-up table) is damaged or outside the format; names the line."""


class UnknownCommand(DalaError, KeyError):
    """No command has this id, or it ended too long ago to be remembered."""

    __str__ = Exception.__str__


class CommandTimeout(DalaError, TimeoutError):
    """A command has not ended in the time given; it goes on, and may be waited for again."""


class FreedError(DalaError, RuntimeError):
    """Something was used after it was freed or closed."""


class ReadOnlyError(DalaError, ValueError):
    """A buffer over memory that was lent for reading only cannot be written."""


class DeviceError(DalaError, RuntimeError):
    """A device refused the work; the message holds what it said."""


class DeviceUnavailable(DeviceError):
    """The asked-for device does not exist on this machine."""


class UnknownDevice(DeviceUnavailable, ValueError):
    """The name is not one that a device can have; the message lists those that are."""


class DeviceLostError(DeviceError):
    """The device was lost while work was in flight. What was waiting raises this."""


class DeviceMismatch(DalaError, ValueError):
    """Buffers in one call live on different devices."""


class BufferTooLarge(DalaError, MemoryError):
    """The buffer is larger than the device allows; the message names the limit."""


class ColorError(DalaError, ValueError):
    """What was given as a colour is none."""


class CommandError(DalaError, ValueError):
    """A drawing command was given something that does not fit its field."""


class ProtocolError(DalaError, ValueError):
    """Command bytes are malformed. Holds ``offset`` and ``opcode`` of the command that is."""

    def __init__(self, problem: str, offset: int = 0, opcode: int | None = None) -> None:
        self.problem = problem
        self.offset = offset
        self.opcode = opcode
        what = "" if opcode is None else f", opcode 0x{opcode:02X}"
        super().__init__(f"command at byte {offset}{what}: {problem}. Nothing was applied.")


class MissingPackage(DalaError, ImportError):
    """An optional package is not installed; the message says how to install it."""


class VideoError(DalaError, OSError, ValueError):
    """A video cannot be opened, read on or written; names the file, the time and FFmpeg's words."""


class VideoNotFound(VideoError, FileNotFoundError):
    """There is no such video file."""


class ModelError(DalaError, ValueError):
    """A model cannot be loaded or run; the message names it and says what came."""


class UnknownModel(ModelError, KeyError):
    """There is no model of this name; the message offers the nearest ones."""

    __str__ = Exception.__str__


class ModelNotFound(ModelError, FileNotFoundError):
    """The weights of a model are nowhere to be found; the message says how to get them."""


class SceneFileError(ParameterError):
    """A scene file is refused. ``problems`` has all that is wrong, each with its place in the file.

    ``str(error)`` has the first ten.
    """

    def __init__(self, name: str, problems: list[str]) -> None:
        self.name = name
        self.problems = list(problems)
        told = [f"{name}: {problem}" for problem in self.problems[:10]]
        if len(self.problems) > len(told):
            told.append(f"{name}: and {len(self.problems) - len(told)} more.")
        super().__init__("\n".join(told))

    def __reduce__(self) -> tuple[type[SceneFileError], tuple[str, list[str]]]:
        return type(self), (self.name, self.problems)
