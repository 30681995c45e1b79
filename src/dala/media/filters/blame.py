"""Errors of filters, named after what the user wrote.

A filter's parameters are checked by its kernels, which know neither the call nor the place in a
list that they came from. What they say is put into words here, after the fact: a frame that goes
through pays nothing for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from dala.errors import DalaError, ShapeError
from dala.gpu.compute import Buffer, buffer_zeros
from dala.media.images import Shape, dtype_of

if TYPE_CHECKING:
    from dala.media.filters.plans import Filter, Step

#: How kernels begin to complain: of a parameter or an input, or in general.
_OF_ONE: Final = re.compile(r"run_kernel: (?:parameter|input) '(\w+)' of kernel '\w+' ")
_OF_ALL: Final = re.compile(r"run_kernel: kernel '\w+' ")


@contextmanager
def blamed(steps: Sequence[Step], shape: Shape, dtype: str) -> Iterator[None]:
    """What kernels refuse inside is told as the refusal of the filter that has the kernel."""
    try:
        yield
    except DalaError as error:
        text = str(error)
        guilty = _guilty(steps, shape, dtype, text)
        if guilty is None:
            raise
        if not text.startswith("run_kernel: "):
            raise error.within(guilty.origin) from error
        error.args = (_told(text, guilty.origin),)
        raise


def _told(text: str, origin: str) -> str:
    """
    >>> _told("run_kernel: parameter 'radius' of kernel 'blur' must be 0.", "blur")
    'blur: radius must be 0.'
    >>> _told("run_kernel: kernel 'blur' has no parameter 'x'.", "process_frame: filters[1]")
    "process_frame: filters[1]: it has no parameter 'x'."
    """
    told, found = _OF_ONE.subn(rf"{origin}: \1 ", text, count=1)
    return told if found else _OF_ALL.sub(f"{origin}: it ", text, count=1)


def _guilty(steps: Sequence[Step], shape: Shape, dtype: str, text: str) -> Step | None:
    """The step that refused with these words: of several with such a kernel, the first to."""
    named = [
        step
        for step in steps
        if text.startswith(f"{step.kernel.name}: ") or f"kernel {step.kernel.name!r} " in text
    ]
    if len({step.origin for step in named}) == 1:
        return named[0]
    for step in named:
        try:
            _rehearse(step, steps, shape, dtype)
        except DalaError as error:
            if str(error) == text:
                return step
    return None


def _rehearse(step: Step, steps: Sequence[Step], shape: Shape, dtype: str) -> None:
    """Has a step checked as if it were run, on the engine that runs nothing."""

    def held(shape: Shape, dtype: str) -> Buffer:
        return buffer_zeros(shape, dtype, device="null")

    inputs = []
    for i in step.inputs:
        if not isinstance(i, int):
            inputs.append(held(i.shape, i.dtype if isinstance(i, Buffer) else dtype_of(i)))
        elif i < 0:
            inputs.append(held(shape, dtype))
        else:
            inputs.append(held(steps[i].shape, steps[i].dtype))
    step.kernel.run(inputs, held(step.shape, step.dtype), step.params)


def check(item: Filter, call: str, shape: Shape = (64, 64, 4), dtype: str = "u8") -> None:
    """Checks a filter's parameters before there is a picture.

    Shapes are not judged: a second picture may have the size that the first will have.

    Raises:
        ParameterError: a parameter is unknown, missing or out of its range.
    """
    from dala.media.filters.plans import plan

    try:
        steps = plan([item], shape, dtype, call, listed=False)
        with blamed(steps, shape, dtype):
            for step in steps:
                _rehearse(step, steps, shape, dtype)
    except ShapeError:
        return
