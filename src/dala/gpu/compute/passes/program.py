"""Programs of several passes: their declaration, and the plan of one frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeAlias

import numpy as np

from dala.arguments import Integer, Quantity
from dala.errors import DtypeError, ParameterError
from dala.gpu.compute.buffer import Buffer, allocate
from dala.gpu.compute.call.checks import check_count
from dala.gpu.compute.kernel import Kernel, text_kernel
from dala.gpu.compute.lang.declaration import LEVELS, ParamDecl
from dala.gpu.compute.params import check_params
from dala.gpu.compute.passes.sizes import PassSize, checked_size, size_of
from dala.gpu.compute.runnable import NO_PARAMS, Runnable
from dala.typing import KernelInput, NDArray, Params, ParamValue

if TYPE_CHECKING:
    from dala.gpu.compute.passes.state import ProgramState

#: Most passes of a program.
MAX_PASSES: Final = 64

#: Copy and scale a picture: the last step of a program whose output is also read in the next frame,
#: or that has another size or dtype.
_SAME: Final = "def same(px: Pixel): return px"
_SCALED: Final = """
def scaled(img: Image):
    y, x = position()
    return img.sample_uv((x + 0.5) / shape()[1], (y + 0.5) / shape()[0])
"""


@dataclass(frozen=True)
class ProgramPass:
    """One pass of a program: a kernel over every pixel of the buffer that it writes.

    The kernel's inputs are found by name: a target's name means what that buffer holds at this
    moment, the result of an earlier pass of this frame, else of the frame before (zeros in the
    first). Other names are inputs of the program.

    Attributes:
        kernel: the kernel.
        target: the name of the buffer that it writes; "" for the program's output.
        size: of the target: a scale of the output's size, or (width, height), each a number or a
            formula such as "width // 2"; of passes with the same target, the first one's counts.
        dtype: "u8" or "f32"; by default the output's.
        reads: other names for inputs of the kernel: the target or program input that each reads.
        params: values of parameters that are fixed in this pass.

    >>> from dala.gpu.compute import kernel
    >>> half = kernel("def half(a: Pixel): return a * 0.5")
    >>> ProgramPass(half, "dark", size=0.5, reads={"a": "img"}).sources
    ('img',)
    """

    kernel: Kernel
    target: str = ""
    size: PassSize = 1.0
    dtype: str = ""
    reads: Mapping[str, str] = field(default_factory=dict)
    params: Params = field(default_factory=dict)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of the kernel's inputs: names of targets or of the program's inputs."""
        return tuple(self.reads.get(name, name) for name in self.kernel.inputs)


class Previous(NamedTuple):
    """The result of a step in the frame before; zeros in the first frame."""

    step: int


#: An input of a planned pass: the number of an earlier one, the frame before's, or the name of an
#: input of the program.
PassInput: TypeAlias = "int | Previous | str"


class PlannedPass(NamedTuple):
    """One pass of a frame: kernel, inputs, and the shape and dtype of its result."""

    kernel: Kernel
    inputs: tuple[PassInput, ...]
    shape: tuple[int, ...]
    dtype: str
    params: dict[str, ParamValue]


class KernelProgram(Runnable):
    """Passes of kernels over named buffers, some of which last from one frame to the next.

    Make one with :func:`dala.gpu.compute.program`, or of :class:`ProgramPass` items. It goes where
    a kernel with a picture goes: ``gpu.apply``, lists of filters, scenes, surfaces and pages. A
    buffer that is read before a pass has written it holds the result of the frame before.
    :meth:`start` runs a program frame by frame.

    >>> from dala.gpu.compute import kernel
    >>> half = kernel("def half(px: Pixel): return px * 0.5")
    >>> both = kernel("def both(px: Pixel, dark: Image): return px + dark.sample_uv(0.5, 0.5)")
    >>> KernelProgram("glow", [ProgramPass(half, "dark"), ProgramPass(both)]).inputs
    ('px',)
    """

    def __init__(
        self,
        name: str,
        passes: Sequence[ProgramPass],
        doc: str = "",
        inputs: Sequence[str] = (),
        images: Mapping[str, NDArray] = MappingProxyType({}),
        sounds: Mapping[str, Callable[[NDArray], NDArray]] = MappingProxyType({}),
    ) -> None:
        self.name = name
        self.passes = tuple(passes) if isinstance(passes, list | tuple) else ()
        self._doc = doc
        self._plans = {}
        self._check()
        if any(a.levels for p in self.passes for a in p.kernel.decl.args):
            from dala.gpu.compute.passes.levels import with_levels

            self.passes = tuple(with_levels(self.passes))
        #: Pictures that are part of the program, by the names under which passes read them.
        self.images = dict(images) | {name: made(np.zeros(1)) for name, made in sounds.items()}
        #: What makes pictures of sound, by the names under which passes read them.
        self.sounds = dict(sounds)
        targets = {p.target for p in self.passes} | set(self.images)
        read = [*inputs, *(n for p in self.passes for n in p.sources)]
        self._inputs = tuple(dict.fromkeys(n for n in read if n not in targets))
        self._params = self._merged()
        self._known = MappingProxyType({p.name: p for p in self._params})

    def _check(self) -> None:
        if not 0 < len(self.passes) <= MAX_PASSES:
            raise ParameterError.invalid(
                "program", "passes", f"1 to {MAX_PASSES} passes", len(self.passes)
            )
        for p in self.passes:
            named = isinstance(p, ProgramPass) and isinstance(p.kernel, Kernel)
            if not (
                named and isinstance(p.target, str)
                and isinstance(p.reads, Mapping) and isinstance(p.params, Mapping)
            ):  # fmt: skip
                raise ParameterError.invalid("program", "passes", "a list of ProgramPass", p)
            checked_size(p.size, self.name)
            if not isinstance(p.dtype, str) or p.dtype not in ("", "u8", "f32"):
                raise DtypeError.invalid(self.name, "dtype", "'u8' or 'f32'", p.dtype)

    def _merged(self) -> tuple[ParamDecl, ...]:
        found: dict[str, ParamDecl] = {}
        for p in self.passes:
            for param in p.kernel.params:
                if param.name in p.params:
                    continue
                if found.setdefault(param.name, param) != param:
                    raise ParameterError(
                        f"{self.name}: passes declare the parameter {param.name!r} in different "
                        "ways. Give it the same type, range and default in each."
                    )
        return tuple(found.values())

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs, the picture first; none for a program that draws by itself."""
        return self._inputs

    @property
    def pictures(self) -> frozenset[str]:
        """Names of the inputs that are read as pixels."""
        read = {
            source
            for p in self.passes
            for name, source in zip(p.kernel.inputs, p.sources, strict=True)
            if name in p.kernel.pictures
        }
        return frozenset(read & set(self._inputs))

    @property
    def params(self) -> tuple[ParamDecl, ...]:
        """The parameters of all passes; equal names mean one parameter."""
        return self._params

    @property
    def roles(self) -> tuple[tuple[str, str], ...]:
        """Names and roles of the parameters that videos, scenes and surfaces give."""
        return tuple((p.name, p.role) for p in self._params if p.role)

    @property
    def doc(self) -> str:
        """The docstring."""
        return self._doc

    @property
    def remembers(self) -> bool:
        """True if a buffer lasts from frame to frame.

        >>> from dala.gpu.compute import program
        >>> program("def trail(px: Pixel, trail: Pixel): return max(px, trail * 0.9)").remembers
        True
        """
        written: set[str] = set()
        targets = {p.target for p in self.passes}
        for p in self.passes:
            if any(n in targets and n not in written for n in p.sources):
                return True
            written.add(p.target)
        return False

    @property
    def generator(self) -> bool:
        """True if it reads no picture: it draws by itself."""
        return not self._inputs

    def render(
        self,
        width: int,
        height: int,
        *inputs: KernelInput,
        time: float = 0.0,
        frame: int | None = None,
        fps: float = 60.0,
        pointer: tuple[float, float, float] = (0.0, 0.0, 0.0),
        sound: NDArray | None = None,
        dtype: str = "u8",
        device: str | None = None,
        **params: ParamValue,
    ) -> KernelInput:
        """Return the frame at a time, as the kind of the first input; an array if there is none.

        A program that remembers frames computes all of them from the beginning. :meth:`start`
        serves a program whose frames follow each other.

        Args:
            width: of the frame, in pixels.
            height: of the frame.
            inputs: the program's inputs, in order.
            time: in seconds.
            frame: its number; by default that of the time.
            fps: frames a second.
            pointer: the pointer in pixels, and 1 while it is pressed.
            sound: the last samples of the sound, for shaders that read it.
            dtype: of the frame, "u8" or "f32".
            device: where to run; the current device by default.
            params: the program's parameters.

        >>> from dala.gpu.compute import program
        >>> ramp = program("def ramp(*, time: Time): return rgba(time, position()[1] / 4, 0, 1)")
        >>> ramp.generator, ramp.render(2, 1, time=0.2, device="cpu").tolist()
        (True, [[[51, 0, 0, 255], [51, 64, 0, 255]]])
        """
        call = f"{self.name}.render"
        seconds = Quantity().check(call, "time", time)
        rate = Quantity(0, 1e6, above=True).check(call, "fps", fps)
        number = max(0, round(seconds * rate)) if frame is None else frame
        with self.start(width, height, dtype=dtype, device=device) as state:
            found = state.render(
                *inputs, frame=number, time=seconds, fps=rate, pointer=pointer, sound=sound,
                **params,
            )  # fmt: skip
            return found.numpy() if isinstance(found, Buffer) and not inputs else found

    def start(
        self, width: int, height: int, *, dtype: str = "u8", device: str | None = None
    ) -> ProgramState:
        """Return the program at a size, ready for its first frame; see :class:`ProgramState`.

        Args:
            width: of the output, in pixels.
            height: of the output.
            dtype: of the output, "u8" or "f32".
            device: where to run; the current device by default.

        >>> from dala.gpu.compute import program
        >>> life = program("def life(life: Image): return life[0, 0].r + 0.25")
        >>> with life.start(2, 1, device="cpu") as state:
        ...     [int(state.render().numpy()[0, 0, 0]) for _ in range(3)]
        [64, 128, 192]
        """
        from dala.gpu.compute.passes.state import ProgramState

        call = f"{self.name}.start"
        w, h = (Integer(1).check(call, n, v) for n, v in (("width", width), ("height", height)))
        if not isinstance(dtype, str) or dtype not in ("u8", "f32"):
            raise DtypeError.invalid(call, "dtype", "'u8' or 'f32'", dtype)
        return ProgramState(self, (h, w, 4), dtype, device)

    # one frame --------------------------------------------------------------------------------
    def planned(
        self,
        shape: Sequence[int],
        dtype: str,
        params: Params,
        shapes: Mapping[str, Sequence[int]] = MappingProxyType({}),
    ) -> list[PlannedPass]:
        """Return the passes of a frame with their inputs; the last one writes the output.

        Args:
            shape: of the output; (height, width, channels).
            dtype: of the output, and of targets that declare none.
            params: values of the program's parameters.
            shapes: of inputs that are not of the output's size.
        """
        check_params(self.name, params, list(self._known))
        own = {p.name: p.default for p in self._params if not p.role and p.default is not None}
        values = own | dict(params)
        last = {p.target: n for n, p in enumerate(self.passes)}
        held: dict[str, int] = {}
        made: list[PlannedPass] = []
        known: dict[str, tuple[tuple[int, ...], str]] = {}
        for number, p in enumerate(self.passes):
            found = [held.get(n, Previous(last[n])) if n in last else n for n in p.sources]
            source = p.target.removesuffix(LEVELS)
            if source != p.target:  # as large as what it has the levels of
                images = {n: a.shape for n, a in self.images.items()} | dict(shapes)
                side = known[source][0] if source in known else images.get(source, shape)
                known[p.target] = (*side[:2], 4), p.dtype
            known.setdefault(p.target, self._form(p, shape, dtype, values))
            given = {n: v for n, v in values.items() if n in p.kernel.decl.param_names}
            made.append(PlannedPass(p.kernel, tuple(found), *known[p.target], given | {**p.params}))
            held[p.target] = number
        output, end = tuple(shape), made[-1]
        again = any(Previous(len(made) - 1) in p.inputs for p in made)
        if again or (end.shape, end.dtype) != (output, dtype):
            same = end.shape[:2] == output[:2]
            copy = text_kernel("same", _SAME) if same else text_kernel("scaled", _SCALED)
            made.append(PlannedPass(copy, (len(made) - 1,), output, dtype, {}))
        return made

    def _form(
        self, p: ProgramPass, shape: Sequence[int], dtype: str, values: Mapping[str, Any]
    ) -> tuple[tuple[int, ...], str]:
        width, height = size_of(p.size, shape[1], shape[0], values, self.name)
        channels = shape[2:] if not p.target else (4,)
        return (height, width, *channels), p.dtype or dtype

    # sound ------------------------------------------------------------------------------------
    def hear(self, sound: NDArray | Sequence[float]) -> None:
        """Give the last samples of a sound to a shader that reads it, as a filter of next frames.

        >>> from dala.media import gpu
        >>> from dala.shaders import isf
        >>> bars = isf('''/*{"INPUTS": [{"NAME": "wave", "TYPE": "audio", "MAX": 1}]}*/
        ... void main() { gl_FragColor = vec4(IMG_NORM_PIXEL(wave, vec2(0.5)).r); }''')
        >>> bars.hear(np.ones(512))
        >>> gpu.apply(np.zeros((1, 1, 3), np.uint8), bars, device="cpu").tolist()
        [[[255, 255, 255]]]
        """
        self.images |= self.pictures_of(sound, f"{self.name}.hear")

    def pictures_of(self, sound: NDArray | Sequence[float], call: str) -> dict[str, NDArray]:
        """Return the pictures of a sound that the program reads, by name."""
        try:
            samples = np.asarray(sound, np.float64)
        except (TypeError, ValueError):
            samples = np.zeros(())
        if samples.ndim not in (1, 2) or not samples.size:
            raise ParameterError.invalid(call, "sound", "samples, or (samples, channels)", sound)
        mono = samples if samples.ndim == 1 else samples.mean(axis=1)
        return {name: made(mono) for name, made in self.sounds.items()}

    # the interface of kernels -----------------------------------------------------------------
    def run(self, inputs: Sequence[Buffer], output: Buffer, params: Params = NO_PARAMS) -> None:
        """Run the first frame, as if there had been none before, and write the output."""
        from dala.gpu.compute.call.instant import BEGINNING
        from dala.gpu.compute.passes.state import ProgramState

        if len(self.passes) == 1 and not (self.remembers or self.images):
            given = dict(zip(self._inputs, inputs, strict=True))
            first = self.passes[0]
            if len(inputs) == len(self._inputs) and not first.params and first.size == 1.0:
                read = [given[name] for name in first.sources]
                first.kernel.run(read, output, params)
                return
        with ProgramState(self, output.shape, output.dtype, output.device) as state:
            state.run(inputs, output, params, BEGINNING)

    def new_output(self, inputs: Sequence[Buffer], params: Params) -> Buffer:
        """Return a new buffer of the first picture's shape and dtype."""
        check_count(self, len(inputs))
        first = [b for b, n in zip(inputs, self._inputs, strict=True) if n in self.pictures]
        if not first:
            raise self._no_output()
        return allocate(first[0].engine, first[0].shape, first[0].dtype, zero=False, call=self.name)

    def bind(self, inputs: Sequence[Buffer], output: Buffer, params: Params) -> NoReturn:
        """Refuse: a program is several calls."""
        self._facts(params)

    def _facts(self, params: Params) -> NoReturn:
        raise ParameterError(
            f"{self.name}: a program has several passes, which a pipeline of kernels does not take."
            " Use program.start(width, height), or a list of filters."
        )

    def _check_apart(self, inputs: Sequence[Buffer], output: Buffer, program: object) -> None:
        return

    def _described_inputs(self) -> list[str]:
        return list(self._inputs)

    def source(self, target: str = "python", *, dtype: str | None = None) -> str:
        """Return the source of the passes, or generated code of each, one after the other."""
        texts = (p.kernel.source(target, dtype=dtype) for p in self.passes)
        return "\n\n".join(dict.fromkeys(texts))

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.name, self.passes, self._doc, self._inputs, self.images, self.sounds
        return KernelProgram, given
