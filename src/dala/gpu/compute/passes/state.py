"""Programs over frames: compiled passes, and the buffers that last from frame to frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dala.arguments import Integer, Quantity
from dala.errors import ParameterError
from dala.gpu.compute.buffer import Buffer
from dala.gpu.compute.call.checks import check_count
from dala.gpu.compute.call.foreign import find
from dala.gpu.compute.call.instant import Instant
from dala.gpu.compute.create import buffer, buffer_zeros
from dala.gpu.compute.passes.program import PlannedPass, Previous
from dala.gpu.compute.pipeline.pipeline import Pipeline
from dala.resources import Closing
from dala.typing import KernelInput, NDArray, Params, ParamValue

if TYPE_CHECKING:
    from dala.gpu.compute.passes.program import KernelProgram


class FrameMemory:
    """Results of some steps, of this frame and of the one before, which change places.

    >>> memory = FrameMemory({2: ((1, 1, 4), "f32")}, "cpu")
    >>> memory.now(2) is memory.before(2), memory.frame
    (False, -1)
    """

    def __init__(self, forms: dict[int, tuple[tuple[int, ...], str]], device: str) -> None:
        self._pairs = {
            n: [buffer_zeros(shape, dtype, device=device) for _ in range(2)]
            for n, (shape, dtype) in forms.items()
        }
        #: The frame that was computed last; -1 before the first.
        self.frame = -1
        self._first = 0

    def now(self, step: int) -> Buffer:
        """Return the buffer that a step writes."""
        return self._pairs[step][0]

    def before(self, step: int) -> Buffer:
        """Return the buffer with a step's result of the frame before."""
        return self._pairs[step][1]

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def __contains__(self, step: object) -> bool:
        return step in self._pairs

    def since(self, moment: Instant) -> Instant:
        """Return a moment with the number of its frame counted from the first one remembered."""
        if not self._pairs:
            return moment
        again = self.frame < 0 or moment.frame < self.frame
        return moment._replace(frame=0 if again else moment.frame - self._first)

    def begin(self, frame: int, pipeline: Pipeline) -> None:
        """Turn to a frame: the same one again, a later one, or the first after a step back."""
        if self.frame < 0 or frame < self.frame:
            self._first = frame
        if 0 <= self.frame < frame:
            for pair in self._pairs.values():
                pipeline.swap(*pair)
                pair.reverse()
        elif frame < self.frame:
            for pair in self._pairs.values():
                pair[1].write(np.zeros(pair[1].shape, np.uint8))
        self.frame = frame

    def close(self) -> None:
        """Free the buffers."""
        for pair in self._pairs.values():
            for b in pair:
                b.free()


def remembered(
    steps: Sequence[tuple[Sequence[object], tuple[int, ...], str]],
) -> dict[int, tuple[tuple[int, ...], str]]:
    """Return shape and dtype of the steps that are read in the next frame, by number.

    Args:
        steps: the inputs, the shape and the dtype of each.
    """
    read = {i.step for inputs, _, _ in steps for i in inputs if isinstance(i, Previous)}
    return {n: steps[n][1:] for n in sorted(read)}


class ProgramState(Closing):
    """A program at a size on a device, frame by frame.

    ``render()`` returns the next frame. ``render(frame=12)`` computes the frames up to that one, a
    picture of the past is the same one again: a program without a picture always gives the same
    frame for the same number.

    >>> from dala.gpu.compute import program
    >>> fade = program("def fade(px: Pixel, fade: Pixel): return max(px.rgb, fade.rgb * 0.5)")
    >>> with fade.start(1, 1, device="cpu") as state:
    ...     [state.render(np.full((1, 1, 4), v, np.uint8))[0, 0, 0] for v in (200, 0, 0)]
    [np.uint8(200), np.uint8(100), np.uint8(50)]
    """

    _instead = "Start the program there."

    def __init__(
        self, program: KernelProgram, shape: tuple[int, ...], dtype: str, device: str | None
    ) -> None:
        #: The program.
        self.program = program
        self.shape, self.dtype = shape, dtype
        with buffer_zeros(1, "u8", device=device) as probe:
            #: The id of the device.
            self.device = probe.device
        self._key: object = None
        self._plan: list[PlannedPass] = []
        self._pipeline: Pipeline | None = None
        self._memory = FrameMemory({}, self.device)
        self._bound: dict[str, Buffer] = {}
        self._made: list[Buffer] = []
        self._next = 0
        self._names = (*program.inputs, *program.images)
        self._pictures: list[Buffer] = []

    def _own(self) -> list[Buffer]:
        """Return the pictures of the program itself on this device."""
        if len(self._pictures) != len(self.program.images):
            pictures = self.program.images.values()
            self._pictures = [buffer(p, dtype="u8", device=self.device) for p in pictures]
        return self._pictures

    def _hear(self, sound: NDArray, call: str) -> None:
        """Turn samples into the pictures of sound that the program reads."""
        heard = self.program.pictures_of(sound, call)
        for name, held in zip(self.program.images, self._own(), strict=True):
            if name in heard:
                held.write(heard[name])

    @property
    def frame(self) -> int:
        """The number of the last frame; -1 before the first."""
        return self._memory.frame

    def reset(self) -> None:
        """Forget all frames: the next one is the first."""
        self._release()
        self._next = 0

    def render(
        self,
        *inputs: KernelInput,
        frame: int | None = None,
        time: float | None = None,
        fps: float = 60.0,
        pointer: tuple[float, float, float] = (0.0, 0.0, 0.0),
        sound: NDArray | None = None,
        **params: ParamValue,
    ) -> KernelInput:
        """Return a frame, as the kind of the first input; a Buffer if there is none.

        Args:
            inputs: the program's inputs, in order.
            frame: its number; by default the next one. Frames that were left out are computed
                first, with the same inputs; an earlier frame begins again at frame 0.
            time: in seconds, for kernels that ask for it; by default frame / fps.
            fps: frames a second.
            pointer: the pointer in pixels, and 1 while it is pressed.
            sound: the last samples of the sound, from -1 to 1, for shaders that read it; the mean
                of its columns if it has channels.
            params: the program's parameters.
        """
        call = f"{self.program.name}.render"
        wanted = self._next if frame is None else Integer(0).check(call, "frame", frame)
        fps = Quantity(0, 1e6, above=True).check(call, "fps", fps)
        if time is not None:
            time = Quantity().check(call, "time", time)
        at = pointer if isinstance(pointer, tuple | list) and len(pointer) == 3 else ()
        place = tuple(Quantity().check(call, "pointer", n) for n in at)
        if len(place) != 3:
            raise ParameterError.invalid(call, "pointer", "x, y and 1 while pressed", pointer)
        if sound is not None:
            self._hear(sound, call)
        check_count(self.program, len(inputs))
        pictures = self.program.pictures
        named = zip(inputs, self.program.inputs, strict=True)
        held = [find(v, call, n, n in pictures) for v, n in named]
        buffers = [h.buffer(self.device).to(self.device) for h in held]
        output = buffer_zeros(self.shape, self.dtype, device=self.device)
        known = self.frame
        first = wanted
        if known != wanted and self.program.remembers:
            first = known + 1 if known < wanted else 0
        for number in range(first, wanted + 1):
            seconds = time if number == wanted and time is not None else number / fps
            self.run(buffers, output, params, Instant(seconds, number, place))
        self._next = wanted + 1
        return held[0].give(output) if held else output

    def run(
        self, inputs: Sequence[Buffer], output: Buffer, params: Params, moment: Instant
    ) -> None:
        """Compute a frame into a buffer; one that is not the next ends or repeats the past."""
        inputs = [*inputs, *self._own()]
        values = {**self._memory.since(moment).given(self.program), **params}
        shapes = {n: b.shape for n, b in zip(self._names, inputs, strict=True)}
        plan = self.program.planned(output.shape, output.dtype, values, shapes)
        key = [(p.inputs, p.shape, p.dtype) for p in plan], [(b.shape, b.dtype) for b in inputs]
        if self._pipeline is None or key != self._key:
            self._release()
            self._compile(plan, inputs, output)
            self._key = key
        pipeline = self._pipeline
        assert pipeline is not None
        for number, (p, old) in enumerate(zip(plan, self._plan, strict=True)):
            if p.params != old.params:
                pipeline.set_params(number, **p.params)
        self._plan = plan
        self._memory.begin(moment.frame, pipeline)
        given = dict(zip(self._names, inputs, strict=True)) | {"": output}
        for name in self._names:  # one buffer for two inputs: each needs its own
            if any(given[n] is given[name] for n in self._names if n < name):
                given[name] = buffer(
                    given[name].numpy(), dtype=given[name].dtype, device=self.device
                )
        used = {"", *(i for p in plan for i in p.inputs if isinstance(i, str))}
        given = {name: b for name, b in given.items() if name in used}
        for name, b in given.items():
            pipeline.rebind(self._bound[name], b)
        try:
            pipeline.run()
        finally:
            for name, b in given.items():  # the pipeline must not keep the user's memory alive
                pipeline.rebind(b, self._bound[name])

    def _compile(self, plan: list[PlannedPass], inputs: Sequence[Buffer], output: Buffer) -> None:
        device, steps = self.device, [(p.inputs, p.shape, p.dtype) for p in plan]
        self._memory = FrameMemory(remembered(steps), device)
        names = (*self._names, "")
        forms = [(b.shape, b.dtype) for b in (*inputs, output)]
        self._bound = {
            n: buffer_zeros(s, d, device=device) for n, (s, d) in zip(names, forms, strict=True)
        }
        self._made, self._pipeline, self._plan = [], Pipeline(), plan
        for number, p in enumerate(plan):
            found = [
                self._memory.before(i.step) if isinstance(i, Previous)
                else self._made[i] if isinstance(i, int) else self._bound[i]
                for i in p.inputs
            ]  # fmt: skip
            if number in self._memory:
                target = self._memory.now(number)
            elif number == len(plan) - 1:
                target = self._bound[""]
            else:
                target = buffer_zeros(p.shape, p.dtype, device=device, transient=True)
            self._made.append(target)
            self._pipeline.add({
                "op": "run_kernel", "kernel": p.kernel, "inputs": found, "output": target,
                "params": p.params,
            })  # fmt: skip

    def _release(self) -> None:
        if self._pipeline is not None:
            self._pipeline.close()
        self._pipeline = None
        for b in (*self._bound.values(), *self._made):
            b.free()
        self._bound, self._made = {}, []
        self._memory.close()
        self._memory = FrameMemory({}, self.device)

    def explain(self) -> str:
        """Return the plan of the last frame: stages, passes and bytes."""
        return self._pipeline.explain() if self._pipeline is not None else "no frame yet"

    @property
    def passes(self) -> int:
        """The number of passes over memory of a frame; 0 before the first."""
        return self._pipeline.passes if self._pipeline is not None else 0

    def close(self) -> None:
        """Free all buffers. Closing twice is allowed."""
        self._release()
        while self._pictures:
            self._pictures.pop().free()
