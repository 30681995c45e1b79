"""A transition as calls and scene files give it: a type, its duration and its parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from dala.errors import DalaError, ParameterError, UnknownParameter, did_you_mean
from dala.gpu.compute import Buffer
from dala.gpu.compute.kernel import Kernel, find
from dala.gpu.compute.runnable import Runnable
from dala.media.kernels import kernel_from_text
from dala.media.sources.easing import EasingLike
from dala.media.sources.easing import easing as find_easing
from dala.media.sources.seconds import TimeLike, seconds_of
from dala.media.transitions.declarations import TRANSITIONS, Setting

if TYPE_CHECKING:
    from dala.typing import ImageLike, NDArray

#: Mixes two pixels by a weight.
_CROSS: Final = """
    def cross(p: vec4, q: vec4, w):
        alpha = mix(p.a, q.a, w)
        mixed = mix(p.rgb * p.a, q.rgb * q.a, w)
        color = mixed / alpha if alpha > 0.0 else mix(p.rgb, q.rgb, w)
        made = rgba(color, alpha)
        if w <= 0.0:
            made = rgba(p.rgb, p.a)
        if w >= 1.0:
            made = rgba(q.rgb, q.a)
        return made
"""

#: The weight of the second picture where a border passes place s, from 0 to 1, softly.
_EDGE: Final = """
    def edge(t, s, soft):
        return clamp((t * (1.0 + soft) - s) / soft, 0.0, 1.0)
"""

#: Head, helpers and body of each kernel.
_TEXTS: Final = {
    "dissolve": ("a: Pixel, b: Pixel, *, t: float", _CROSS, """
    return cross(vec4(a.r, a.g, a.b, a.a), vec4(b.r, b.g, b.b, b.a), t)
"""),
    "fade": ("a: Pixel, b: Pixel, *, t: float, color: vec4", _CROSS, """
    p, q = vec4(a.r, a.g, a.b, a.a), vec4(b.r, b.g, b.b, b.a)
    leaving = cross(p, color, min(2.0 * t, 1.0))
    return leaving if t < 0.5 else cross(color, q, 2.0 * t - 1.0)
"""),
    "wipe": ("a: Pixel, b: Pixel, *, t: float, direction: vec2, softness: float",
             _CROSS + _EDGE, """
    y, x = position()
    width, height = float(shape()[1]), float(shape()[0])
    reach = (width * abs(direction.x) + height * abs(direction.y)) * 0.5
    along = (float(x) + 0.5 - width * 0.5) * direction.x
    along += (float(y) + 0.5 - height * 0.5) * direction.y
    s = clamp((along + reach) / (2.0 * reach), 0.0, 1.0)
    w = edge(t, s, max(softness, 0.5 / reach))
    return cross(vec4(a.r, a.g, a.b, a.a), vec4(b.r, b.g, b.b, b.a), w)
"""),
    "iris": ("a: Pixel, b: Pixel, *, t: float, center: vec2, softness: float", _CROSS + _EDGE, """
    y, x = position()
    width, height = float(shape()[1]), float(shape()[0])
    across = max(center.x, 1.0 - center.x) * width
    down = max(center.y, 1.0 - center.y) * height
    reach = sqrt(across * across + down * down)
    dx = float(x) + 0.5 - center.x * width
    dy = float(y) + 0.5 - center.y * height
    s = min(sqrt(dx * dx + dy * dy) / reach, 1.0)
    w = edge(t, s, max(softness, 1.0 / reach))
    return cross(vec4(a.r, a.g, a.b, a.a), vec4(b.r, b.g, b.b, b.a), w)
"""),
    "luma": ("a: Pixel, b: Pixel, matte: Pixel, *, t: float, softness: float, invert: bool",
             _CROSS + _EDGE, """
    level = clamp(dot(matte.rgb, (0.2126, 0.7152, 0.0722)), 0.0, 1.0)
    s = 1.0 - level if invert else level
    w = edge(t, s, max(softness, 0.004))
    return cross(vec4(a.r, a.g, a.b, a.a), vec4(b.r, b.g, b.b, b.a), w)
"""),
    "slide": ("a: Image, b: Image, *, t: float, across: int, down: int", _CROSS, """
    y, x = position()
    # Places along the way of the second picture, which comes from where it is going to leave.
    size = a.width if across != 0 else a.height
    at = x if across != 0 else y
    back = across + down > 0
    at = size - 1 - at if back else at
    u = float(at) - (1.0 - t) * float(size)
    i = int(floor(u))
    f = u - floor(u)
    step = -1 if back else 1
    k, l = (i - at) * step, (i + 1 - at) * step
    here = a[0, 0]
    p = b[k if across != 0 else 0, k if across == 0 else 0] if i >= 0 else here
    q = b[l if across != 0 else 0, l if across == 0 else 0] if i + 1 >= 0 else here
    return cross(p, q, f)
"""),
    "push": ("a: Image, b: Image, *, t: float, across: int, down: int", _CROSS, """
    y, x = position()
    size = a.width if across != 0 else a.height
    at = x if across != 0 else y
    back = across + down > 0
    at = size - 1 - at if back else at
    u = float(at) + t * float(size)
    i = int(floor(u))
    f = u - floor(u)
    step = -1 if back else 1
    j = i + 1
    k = ((i if i < size else i - size) - at) * step
    l = ((j if j < size else j - size) - at) * step
    kx, ky = (k, 0) if across != 0 else (0, k)
    lx, ly = (l, 0) if across != 0 else (0, l)
    p = a[kx, ky] if i < size else b[kx, ky]
    q = a[lx, ly] if j < size else b[lx, ly]
    return cross(p, q, f)
"""),
    "zoom": ("a: Image, b: Image, *, t: float, amount: float, center: vec2", _CROSS + """
    def source(at, middle, scale):
        return float(at) if scale <= 1.0 else (float(at) + 0.5 - middle) / scale + middle - 0.5
""", """
    y, x = position()
    middle_x, middle_y = center.x * float(a.width), center.y * float(a.height)
    # Both are enlarged about the center, and read between four of their pixels.
    one, two = 1.0 + (amount - 1.0) * t, 1.0 + (amount - 1.0) * (1.0 - t)
    u, v = source(x, middle_x, one), source(y, middle_y, one)
    i, j = int(floor(u)) - x, int(floor(v)) - y
    above = cross(a[i, j], a[i + 1, j], u - floor(u))
    below = cross(a[i, j + 1], a[i + 1, j + 1], u - floor(u))
    first = cross(above, below, v - floor(v))
    u, v = source(x, middle_x, two), source(y, middle_y, two)
    i, j = int(floor(u)) - x, int(floor(v)) - y
    above = cross(b[i, j], b[i + 1, j], u - floor(u))
    below = cross(b[i, j + 1], b[i + 1, j + 1], u - floor(u))
    second = cross(above, below, v - floor(v))
    return cross(first, second, t * t * (3.0 - 2.0 * t))
"""),
}  # fmt: skip


@cache
def transition_kernel(name: str) -> Kernel:
    """Return the kernel of a built-in transition."""
    head, helpers, body = _TEXTS[name]
    lines = (f"def transition_{name}({head}):", helpers.strip("\n"), body.strip("\n"))
    return kernel_from_text("\n".join(lines))


#: A transition: a name, (name, seconds), (name, seconds, parameters), a dict with type, duration
#: and parameters, a kernel in place of the name, or a Transition.
TransitionLike: TypeAlias = (
    "Transition | str | Runnable | Sequence[TransitionPart] | Mapping[str, TransitionPart] | None"
)
#: A parameter of a transition: a number, a color, a direction, a point, a picture or its path.
TransitionValue: TypeAlias = (
    "bool | float | str | os.PathLike[str] | Sequence[float] | NDArray | None"
)
#: An item of a transition that is written as a sequence or a dict.
TransitionPart: TypeAlias = (
    "TransitionValue | Fraction | Runnable | EasingLike | TransitionSettings"
)
TransitionSettings: TypeAlias = "Mapping[str, TransitionValue | EasingLike]"

#: The duration of a transition by default, in seconds.
DURATION: Final = Fraction(1)
_EXPECTED: Final = (
    "a name such as 'dissolve', (name, seconds), a dict with 'type', a kernel, or a Transition"
)


class Transition:
    """A transition between two pictures.

    Args:
        type: a name of ``TRANSITIONS``, a kernel of two pictures with a parameter ``t`` (or
            ``progress``, as ISF files have), or the name of such a kernel.
        duration: seconds; 0 only for "cut".
        easing: how the progress runs; see the module ``easing``.
        params: the parameters of the transition, or of the kernel.

    >>> import numpy as np
    >>> black, white = np.zeros((1, 4), np.uint8), np.full((1, 4), 255, np.uint8)
    >>> Transition("wipe", 1.5, angle=180).mix(black, white, 0.5).tolist()
    [[0, 0, 255, 255]]
    """

    def __init__(
        self,
        type: str | Runnable = "dissolve",
        duration: TimeLike | None = None,
        *,
        easing: EasingLike = "linear",
        **params: TransitionValue,
    ) -> None:
        call = "transition"
        kernel = type if isinstance(type, Runnable) else None
        name = kernel.name if kernel is not None else type
        if kernel is None and (not isinstance(name, str) or name not in TRANSITIONS):
            kernel = find(name) if isinstance(name, str) else None
            if kernel is None:
                hint = did_you_mean(name, TRANSITIONS) if isinstance(name, str) else ""
                expected = f"one of {', '.join(map(repr, TRANSITIONS))}, or a kernel"
                raise ParameterError.invalid(call, "type", expected, name, hint)
        self.name: str = cast(str, name)
        #: The kernel, if it is not a transition of the registry.
        self.kernel = kernel
        default = Fraction(0) if self.name == "cut" and kernel is None else DURATION
        self.duration = default if duration is None else seconds_of(duration, call, "duration")
        if self.duration < 0 or (self.duration == 0) != (default == 0):
            expected = "0 for a cut" if default == 0 else "above 0"
            raise ParameterError.invalid(call, "duration", expected, duration)
        self.easing = easing
        self._curve = find_easing(easing)
        #: The parameters that were given, checked.
        self.params = self._checked(params)
        self._mattes: dict[tuple[int, int, str], Buffer] = {}

    @classmethod
    def of(cls, given: TransitionLike, call: str) -> Transition:
        """Return the transition that an argument stands for."""
        if isinstance(given, Transition):
            return given
        try:
            if given is None:
                return cls("cut")
            if isinstance(given, str | Runnable):
                return cls(given)
            if isinstance(given, Mapping) and "type" in given:
                values: dict[str, Setting] = dict(given)
                return cls(values.pop("type"), values.pop("duration", None), **values)
            if isinstance(given, list | tuple) and 1 <= len(given) <= 3:
                row: list[Setting] = list(given)
                extra = row[2] if len(row) == 3 else {}
                if isinstance(extra, Mapping):
                    return cls(row[0], row[1] if len(row) > 1 else None, **extra)
        except DalaError as error:
            raise error.within(call) from None
        raise ParameterError.invalid(call, "transition", _EXPECTED, given)

    @property
    def is_cut(self) -> bool:
        """True if it takes no time."""
        return self.duration == 0

    def _checked(self, params: dict[str, Setting]) -> dict[str, Setting]:
        call, kernel = f"transition {self.name!r}", self.kernel
        parameters = TRANSITIONS[self.name].parameters if kernel is None else ()
        declared = {p.name: p for p in parameters}
        known = list(declared)
        if kernel is not None:
            known = sorted(p.name for p in kernel.params)
            self._progress = "progress" if "progress" in known and "t" not in known else "t"
            if len(kernel.inputs) != 2 or self._progress not in known:
                raise ParameterError(
                    f"{call}: a transition is a kernel of two pictures with a parameter t, such as "
                    f"def {self.name}(a: Image, b: Image, *, t: float); it has "
                    f"{len(kernel.inputs)} inputs and the parameters {', '.join(known) or 'none'}."
                )
            known.remove(self._progress)
        for name in params:
            if name not in known:
                takes = f"It takes: {', '.join(known)}." if known else "It takes none."
                hint = did_you_mean(name, known) or takes
                raise UnknownParameter(f"{call} has no parameter {name!r}. {hint}", argument=name)
        for name, parameter in declared.items():
            if parameter.kind == "picture" and params.get(name) is None:
                raise ParameterError(f"{call}: {name} is missing. Give a picture, or its path.")
        if kernel is not None:
            return params
        return {name: declared[name].check(value, call) for name, value in params.items()}

    # use --------------------------------------------------------------------------------------
    def progress(self, share: Fraction) -> float:
        """Return the eased progress, 0 to 1, at a part of its time."""
        return min(max(self._curve(min(max(float(share), 0.0), 1.0)), 0.0), 1.0)

    def mix(self, a: ImageLike, b: ImageLike, t: float) -> NDArray:
        """Return the picture at a progress from 0 to 1, of two pictures of one size."""
        from dala.gpu.compute import buffer, buffer_zeros
        from dala.media.pictures.pixels import to_u8

        first, second = (to_u8(picture, "transition") for picture in (a, b))
        if first.shape != second.shape:
            raise ParameterError.invalid(
                "transition", "b", f"a picture of shape {first.shape}", second
            )
        made = buffer_zeros(first.shape, "u8", device="cpu")
        inputs = [buffer(x, dtype="u8", device="cpu") for x in (first, second)]
        self.run(inputs[0], inputs[1], made, t)
        return made.numpy()

    def run(self, a: Buffer, b: Buffer, out: Buffer, t: float) -> None:
        """Write the picture at a progress to a buffer; all are u8 pictures of one size."""
        if self.kernel is not None:
            self.kernel.run([a, b], out, {self._progress: t, **self.params})
            return
        if self.is_cut:
            transition_kernel("dissolve").run([a, b], out, {"t": 0.0 if t < 1 else 1.0})
            return
        known = TRANSITIONS[self.name]
        values = {p.name: self.params.get(p.name, p.default) for p in known.parameters}
        inputs = [a, b]
        if self.name == "luma":
            inputs.append(self._matte(values["picture"], a))
        transition_kernel(self.name).run(inputs, out, {"t": t, **known.convert(values)})

    def _matte(self, given: Setting, like: Buffer) -> Buffer:
        """Return the matte in the size of a picture, on its device."""
        height, width = like.shape[:2]
        key = (width, height, like.device)
        if key not in self._mattes:
            from dala.gpu.compute import buffer
            from dala.media import gpu
            from dala.media.files import load
            from dala.media.pictures.pixels import to_u8

            picture = load(given, 1 << 27) if isinstance(given, str | os.PathLike) else given
            pixels = to_u8(picture, "transition")
            if pixels.shape[:2] != (height, width):
                pixels = gpu.resize(pixels, width, height, device="cpu")
            self._mattes[key] = buffer(pixels, dtype="u8", device=like.device)
        return self._mattes[key]

    def __repr__(self) -> str:
        params = "".join(f", {name}={value!r}" for name, value in self.params.items())
        return f"<Transition {self.name!r}, {float(self.duration):g} s{params}>"
