"""Every error the library raises, all under :class:`DalaError`.

Each also inherits the builtin that a Python reader would expect (``ValueError``, ``KeyError``),
so ``except ValueError`` keeps working. Messages have one form, ``call: argument must be X, got Y.
Advice.``, and errors carry its parts as attributes.
"""

from __future__ import annotations

import re
from copy import copy as shallow_copy
from typing import Final, Self, TypeAlias, TypeGuard

from dala.errors.describing import counted as counted
from dala.errors.describing import describe as describe
from dala.errors.describing import did_you_mean as did_you_mean
from dala.errors.describing import printable as printable
from dala.errors.masking import masked as masked
from dala.errors.masking import masked_error as masked_error

#: The call that begins a message, and the argument that it refuses.
_CALLED: Final = re.compile(r"([\w.]+): (?:(\w+) must )?")
#: A refused value as an error keeps it.
Got: TypeAlias = "str | int | float | tuple[Got, ...] | None"


class DalaError(Exception):
    """The root of all errors raised by Dala.

    Attributes:
        call: the call that refused, such as ``"blur"``, or None. Messages begin with it.
        argument: the argument it refused, such as ``"radius"``, or None; that of "radius must".
        expected: a description of what it accepts, or None.
        got: what it got instead: the value itself where that is a number, a string or a tuple of
            them, else a description of it.

    >>> error = ParameterError.invalid("blur", "radius", "an int from 0 to 64", "abc")
    >>> print(error)
    blur: radius must be an int from 0 to 64, got 'abc'.
    >>> error.call, error.argument, error.got
    ('blur', 'radius', 'abc')
    """

    call: str | None = None
    argument: str | None = None
    expected: str | None = None
    got: Got = None

    def __init__(
        self,
        *args: object,
        call: str | None = None,
        argument: str | None = None,
        expected: str | None = None,
        got: Got = None,
    ) -> None:
        args = tuple(printable(masked(a)) if isinstance(a, str) else a for a in args)
        super().__init__(*args)
        found = _CALLED.match(args[0]) if args and isinstance(args[0], str) else None
        self.call = call or (found and found[1])
        self.argument = argument or (found and found[2])
        self.expected = expected
        self.got = got

    @classmethod
    def invalid(
        cls, call: str, argument: str, expected: str, got: object, advice: str = ""
    ) -> Self:
        """Return the error ``call: argument must be expected, got ... Advice.``

        ``got`` is the refused value; arrays and other large objects are described, not kept.
        """
        text = f"{call}: {argument} must be {expected}, got {describe(got)}."
        error = cls(f"{text} {advice}".rstrip())
        error.call, error.argument, error.expected = call, argument, expected
        error.got = got if _small(got) and masked(repr(got)) == repr(got) else describe(got)
        return error

    def within(self, call: str) -> Self:
        """Return a copy of this error that names another call, for ``raise ... from``."""
        copy = shallow_copy(self)
        text = str(self.args[0]) if self.args else ""
        if self.call is not None and text.startswith(f"{self.call}: "):
            text = text[len(self.call) + 2 :]
        copy.args = (printable(f"{call}: {text}"), *self.args[1:])
        copy.call = call
        return copy


def _small(value: object) -> TypeGuard[Got]:
    if isinstance(value, str):
        return len(value) <= 200
    if isinstance(value, tuple):
        return len(value) <= 16 and all(_small(item) for item in value)
    return value is None or isinstance(value, (bool, int, float))


class ShapeError(DalaError, ValueError):
    """A shape is malformed, or the data does not fill it."""


class ShapeMismatch(ShapeError):
    """Two shapes of one call do not match."""


class DtypeError(DalaError, TypeError):
    """A dtype is unknown, or cannot hold the data."""


class DtypeMismatch(DtypeError):
    """Two dtypes of one call do not match."""


class UnsupportedDtype(DtypeError):
    """The device does not support this dtype. The message names the device and an alternative."""


class OutOfRange(DalaError, ValueError):
    """A number does not fit the dtype it is to be stored in."""


class IndexOutOfRange(DalaError, IndexError):
    """An index is outside a buffer, or has too many axes."""


class ArityError(DalaError, TypeError):
    """A kernel got the wrong number of inputs."""


class ParameterError(DalaError, ValueError):
    """A parameter or argument is missing or invalid."""


class OutsidePicture(ParameterError, ShapeError):
    """A part reaches beyond the picture: another picture may be large enough."""


class UnknownParameter(ParameterError, KeyError):
    """A kernel or filter has no parameter of this name."""

    __str__ = Exception.__str__


class UnknownKernel(DalaError, KeyError):
    """No kernel has this name. The message suggests similar names."""

    __str__ = Exception.__str__


class KernelExists(DalaError, ValueError):
    """The name belongs to a built-in kernel and cannot be reused."""


class KernelSyntaxError(DalaError, SyntaxError):
    """Kernel source is not in the kernel language.

    Attributes ``lineno``, ``offset``, ``text`` and ``advice`` locate and explain the problem;
    ``str(error)`` shows the line with a caret, and what to write instead.
    """

    def __init__(
        self,
        problem: str,
        place: tuple[str, int, int, str] | None = None,
        *,
        advice: str = "",
        kernel: str = "kernel",
        filename: str = "<kernel>",
        lineno: int = 1,
        column: int = 0,
        line: str = "",
    ) -> None:
        self.problem, self.advice, self.kernel = problem, advice, kernel
        super().__init__(problem, place or (filename, lineno, column + 1, line))
        # Python prints ``msg`` under the line and the caret of an uncaught error.
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
    """A shader does not compile or cannot be used.

    Attributes ``shader``, ``problem``, ``lineno``, ``column`` and ``text`` locate the problem;
    ``str(error)`` shows the line with a caret where the compiler reports one.
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
        #: Line number from 1, or None if the compiler names no line.
        self.lineno = lineno
        self.column = column
        self.text = line
        place = "" if lineno is None else f", line {lineno}"
        shown = [f"shader {shader!r}{place}: {problem}"]
        if line:
            start = max(
                len(line) - len(line.lstrip()), column - 80
            )  # longer lines are cut at the left
            shown.append("    " + line[start : start + 120].rstrip())
            shown.append(("    " + " " * max(column - start, 0) + f"^ {detail}").rstrip())
        elif detail:
            shown.append(detail)
        super().__init__("\n".join(shown))


class CubeError(DalaError, ValueError):
    """A .cube file (a color lookup table) is invalid. The message names the line."""


class UnknownCommand(DalaError, KeyError):
    """No command has this id, or it finished too long ago."""

    __str__ = Exception.__str__


class CommandTimeout(DalaError, TimeoutError):
    """Work did not finish in time. The message says whether it was ended or continues.

    ``dala.limits(time=)`` and ``submit(..., timeout=)`` end the work. The ``timeout`` of a wait
    ends the wait only: the work continues, and waiting again is fine.
    """


class Cancelled(DalaError, RuntimeError):
    """Work was ended before it was done, by ``Command.cancel()``, ``close()`` or at exit."""


class LimitExceeded(DalaError, RuntimeError):
    """Work would exceed a limit. The message names the limit and how to change it.

    ``argument`` is the name of the limit, such as ``"iterations"`` or ``"memory"``.
    """


class MemoryLimitExceeded(LimitExceeded, MemoryError):
    """An allocation would exceed a memory limit. Nothing was allocated.

    Attributes:
        asked: the bytes that were needed.
        used: the bytes in use before.
        limit: the bytes allowed.
    """

    def __init__(
        self,
        message: str,
        *,
        call: str | None = None,
        asked: int = 0,
        used: int = 0,
        limit: int = 0,
    ) -> None:
        super().__init__(message, call=call, argument="memory", expected=f"at most {limit}")
        self.asked = asked
        self.used = used
        self.limit = limit


class KernelTooLarge(KernelSyntaxError, LimitExceeded):
    """A kernel exceeds a limit of the kernel language, such as its number of operations.

    The limits are the same on every device. The message names the one that is exceeded.
    """


class FreedError(DalaError, RuntimeError):
    """An object was used after it was freed or closed."""


class UnpicklableError(DalaError, TypeError):
    """An object that belongs to its process was pickled or copied. The message says what to do."""


class ReadOnlyError(DalaError, ValueError):
    """A buffer over read-only memory cannot be written."""


class DeviceError(DalaError, RuntimeError):
    """A device reported an error. The message includes its text."""


class UnsupportedOperation(DeviceError, NotImplementedError):
    """The engine has no implementation of this operation for these shapes and dtypes.

    Attributes:
        operation: the operation's name, such as ``"conv2d"``.
        engine: the engine's id, such as ``"webgpu:0"``.
    """

    def __init__(
        self, message: str, *, call: str | None = None, operation: str = "", engine: str = ""
    ) -> None:
        super().__init__(message, call=call)
        self.operation = operation
        self.engine = engine


class DeviceUnavailable(DeviceError):
    """The requested device does not exist on this machine."""


class UnknownDevice(DeviceUnavailable, ValueError):
    """Not a device name. The message lists the valid ones."""


class DeviceLostError(DeviceError):
    """The device was lost. Every call that waits for it raises this."""


class DeviceMismatch(DalaError, ValueError):
    """Buffers of one call are on different devices."""


class BufferTooLarge(DalaError, MemoryError):
    """The buffer exceeds a limit of the device. The message names the limit."""


class ColorError(DalaError, ValueError):
    """Not a color. The message suggests similar names."""


class CommandError(DalaError, ValueError):
    """An argument of a drawing command does not fit its field."""


class ProtocolError(DalaError, ValueError):
    """Command bytes are malformed. ``offset`` and ``opcode`` identify the command."""

    def __init__(self, problem: str, offset: int = 0, opcode: int | None = None) -> None:
        self.problem = problem
        self.offset = offset
        self.opcode = opcode
        what = "" if opcode is None else f", opcode 0x{opcode:02X}"
        super().__init__(f"command at byte {offset}{what}: {problem}. Nothing was applied.")


class MissingPackage(DalaError, ImportError):
    """An optional package is not installed. The message says how to install it."""


class FolderGiven(ParameterError, IsADirectoryError):
    """A path names a folder where a file belongs."""


class FileMissing(DalaError, FileNotFoundError):
    """No such file. The message suggests similar names in its folder."""


class VideoError(DalaError, OSError, ValueError):
    """A video cannot be opened, decoded or written. The message includes FFmpeg's text."""


class VideoNotFound(VideoError, FileNotFoundError):
    """No such video file or camera."""


class AudioError(DalaError, OSError, ValueError):
    """Sound cannot be opened, decoded, processed or written."""


class AudioNotFound(AudioError, FileNotFoundError):
    """No such sound file."""


class StorageError(DalaError, OSError):
    """A file of a batch cannot be read or written. The message includes the storage's text."""


class StorageNotFound(StorageError, FileNotFoundError):
    """No such file, folder or bucket."""


class ModelError(DalaError, ValueError):
    """A model cannot be loaded or run."""


class UnknownModel(ModelError, KeyError):
    """No model has this name. The message suggests similar names."""

    __str__ = Exception.__str__


class ModelNotFound(ModelError, FileNotFoundError):
    """A model's weights are not available. The message says how to get them."""


class BatchError(DalaError, RuntimeError):
    """A job over many files cannot run or has failed. The message names the files."""


class SceneFileError(ParameterError):
    """A scene file is invalid. ``problems`` lists every problem with its place in the file.

    ``str(error)`` shows the first ten.
    """

    def __init__(self, name: str, problems: list[str]) -> None:
        self.name = name
        self.problems = [masked(problem) for problem in problems]
        more = [f"and {len(problems) - 10} more."] if len(problems) > 10 else []
        super().__init__("\n".join(f"{name}: {text}" for text in [*self.problems[:10], *more]))

    def __reduce__(self) -> tuple[type[SceneFileError], tuple[str, list[str]]]:
        return type(self), (self.name, self.problems)


def error_line(error: BaseException) -> str:
    """Return an error as one line; errors that are not ours have their type.

    >>> error_line(ValueError("no"))
    'ValueError: no'
    """
    kind = type(error).__name__
    text = " ".join(masked(str(error)).split()) or kind
    clear = isinstance(error, DalaError | OSError) or text.startswith(kind)
    return text if clear else f"{kind}: {text}"


#: The names of the errors that ``dala`` has too; its stub lists them.
__all__ = [
    name
    for name, kind in list(vars().items())
    if isinstance(kind, type) and issubclass(kind, DalaError)
]
