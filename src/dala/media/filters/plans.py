"""Filters as steps: which kernels run one after another, over what, into what shape.

A filter is a name and its parameters. Most are one kernel; effects are recipes of several. The
same steps run at once (one call a filter) or as stages of a pipeline (frames).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from dala.errors import ParameterError, UnknownKernel, did_you_mean
from dala.gpu.compute import Buffer, from_dlpack
from dala.gpu.compute.buffer import allocate
from dala.gpu.compute.kernel import Kernel, builtins, find
from dala.media.filters.blame import blamed
from dala.media.images import NDArray, Picture, Shape, check_out, read, shared

#: The picture that a filter was given, as an input of one of its steps.
PICTURE: Final = -1

Filter: TypeAlias = "str | Kernel | tuple[str | Kernel, Mapping[str, Any]]"

#: Built-in kernels that are filters; with a recipe, those that make another shape or take more.
FILTERS: Final = (
    "beauty", "bicubic_scale", "blur", "brightness", "chroma_key", "contrast", "denoise", "dilate",
    "edge_detect", "erode", "gamma", "gaussian_blur", "grayscale", "hue", "invert", "lut_apply",
    "median", "overlay_alpha", "remap", "resize", "saturation", "sepia", "sharpen", "video_mix",
    "vignette", "warp_affine", "warp_perspective",
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One kernel. Inputs are PICTURE, the number of an earlier step, or what was handed in."""

    kernel: Kernel
    inputs: tuple[int | NDArray | Buffer, ...]
    shape: Shape
    dtype: str
    params: dict[str, Any] = field(default_factory=dict)
    #: The call and the filter that it is of, as errors begin.
    origin: str = ""


def plan(
    filters: Sequence[Filter], shape: Shape, dtype: str, call: str, *, listed: bool = True
) -> list[Step]:
    """All steps of a list of filters; what a step reads is numbered over the whole list.

    Errors begin with the call and, where the user wrote a list, the filter's place in it.
    """
    if isinstance(filters, str | Mapping) or not isinstance(filters, Sequence):
        raise ParameterError(
            f"{call}: filters is a list such as [('blur', {{'radius': 3}})], "
            f"{type(filters).__name__} came."
        )
    steps: list[Step] = []
    before = PICTURE
    for number, item in enumerate(filters):
        first = len(steps)
        origin = _origin(item, number, call) if listed else call
        for step in _filter(item, shape, dtype, origin):
            inputs = tuple(
                (before if i == PICTURE else i + first) if isinstance(i, int) else i
                for i in step.inputs
            )
            params = {name: _fixed(value) for name, value in step.params.items()}
            steps.append(Step(step.kernel, inputs, step.shape, step.dtype, params, origin))
        before = len(steps) - 1
        shape = steps[-1].shape
    return steps


def _origin(item: Any, number: int, call: str) -> str:
    name = item[0] if isinstance(item, tuple | list) and item else item
    name = name.name if isinstance(name, Kernel) else name
    return f"{call}: filters[{number}]" + (f" ({name!r})" if isinstance(name, str) else "")


def _filter(item: Any, shape: Shape, dtype: str, call: str) -> list[Step]:
    from dala.media.filters.recipes import RECIPES

    name, params = (item, {}) if isinstance(item, str | Kernel) else _pair(item, call)
    if isinstance(name, str) and name in RECIPES:
        steps: list[Step] = RECIPES[name](name, shape, dtype, _plain(params), call)
        return steps
    kernel = name if isinstance(name, Kernel) else _named(name, call)
    if len(kernel.inputs) != 1:
        raise ParameterError(
            f"{call}: a kernel of {len(kernel.inputs)} inputs came; a filter of your own takes "
            "one, the picture."
        )
    return [Step(kernel, (PICTURE,), shape, dtype, _plain(params))]


def _pair(item: Any, call: str) -> tuple[str | Kernel, Mapping[str, Any]]:
    fits = isinstance(item, tuple | list) and len(item) == 2
    if not fits or not isinstance(item[0], str | Kernel) or not isinstance(item[1], Mapping):
        raise ParameterError(
            f"{call}: a filter is a name, or a name and its parameters, such as "
            f"('blur', {{'radius': 3}}); {item!r} came."
        )
    return item[0], item[1]


def _named(name: str, call: str) -> Kernel:
    kernel = find(name)
    if kernel is not None and (name in FILTERS or name not in builtins()):
        return kernel
    hint = did_you_mean(name, names()) or "dala.media.gpu.filters() lists all."
    what = "is a kernel, but no filter" if kernel is not None else "is no filter"
    raise UnknownKernel(f"{call} {what}. {hint}")


def names() -> list[str]:
    """Names of all filters."""
    from dala.media.filters.recipes import RECIPES

    return sorted({*FILTERS, *RECIPES})


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that were given; None means that it is left out."""
    return {str(name): value for name, value in params.items() if value is not None}


def _fixed(value: Any) -> Any:
    """Numbers in an order that nobody changes later, so that two frames' can be compared."""
    if isinstance(value, list | np.ndarray):
        return tuple(np.asarray(value).reshape(-1).tolist())
    return value


# at once --------------------------------------------------------------------------------------
def apply(
    img: Any,
    width: int | None,
    height: int | None,
    name: str,
    params: Mapping[str, Any],
    out: Any,
    device: str | None,
) -> Any:
    """One filter over one picture of any kind."""
    call = f"dala.media.{'gpu' if name in FILTERS else 'effects'}.{name}"
    picture = read(img, width, height, call)
    steps = plan([(name, params)], picture.shape, picture.dtype, call, listed=False)
    if out is not None:
        check_out(out, picture.kind, steps[-1].shape, steps[-1].dtype, call)
    source = picture.buffer(device)
    target = None if out is None else _target(picture, source, out, device)
    with blamed(steps, picture.shape, picture.dtype):
        result = run(steps, source, target, call)
    if out is None:
        return picture.give(result)
    if result is not target:
        np.copyto(out, result.numpy())
    return out


def _target(picture: Picture, source: Buffer, out: NDArray, device: str | None) -> Buffer | None:
    """A buffer over the caller's array, where the device can write there at once."""
    assert isinstance(picture.pixels, np.ndarray)
    if not out.flags.c_contiguous or not out.size or shared(source) is None:
        return None
    if np.may_share_memory(picture.pixels, out):
        return None
    return from_dlpack(out, device=device)


def run(steps: Sequence[Step], source: Buffer, target: Buffer | None, call: str) -> Buffer:
    """Runs steps one after another; the last one writes ``target``, if there is one."""
    made: list[Buffer] = []
    for number, step in enumerate(steps):
        inputs = [_input(i, source, made) for i in step.inputs]
        output = target if number == len(steps) - 1 else None
        if output is None:
            output = allocate(source.engine, step.shape, step.dtype, zero=False, call=call)
        step.kernel.run(inputs, output, step.params)
        made.append(output)
    return made[-1]


def _input(i: int | NDArray | Buffer, source: Buffer, made: Sequence[Buffer]) -> Buffer:
    if isinstance(i, int):
        return source if i == PICTURE else made[i]
    if isinstance(i, Buffer):
        return i.to(source.device)
    return from_dlpack(np.ascontiguousarray(i), device=source.device)
