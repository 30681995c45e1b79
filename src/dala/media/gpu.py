"""Picture filters, one call each, and frame pipelines.

A picture is an array of (height, width), (height, width, 3) or (height, width, 4), u8 or f32; bytes
with ``width`` and ``height``; a Pillow image; a Frame; a Buffer; or a tensor of torch, JAX or any
library that supports DLPack. The result has the same kind,
channels and dtype. ``out`` is an array for the result; ``device`` is the device to run on, by
default the current one, or that of the Frame or Buffer.

The calls are derived from the filters' declarations (``docs/media/filters.md`` lists them); the
stub file beside this module shows their signatures.

>>> import numpy as np
>>> from dala.media import gpu
>>> int(gpu.invert(np.full((2, 2), 55, np.uint8), device="cpu")[0, 0])
200
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from dala.errors import DtypeError, ParameterError
from dala.gpu.compute.runnable import Runnable
from dala.media.filters.calls import call, lazy_calls
from dala.media.filters.declarations import declared, filter_names, module_of
from dala.media.filters.pipeline import FramePipeline
from dala.media.filters.plans import Filter, FilterValue
from dala.media.filters.plans import apply as apply_kernel
from dala.typing import ImageLike, NDArray

__getattr__, __dir__ = lazy_calls("gpu", globals())

_Image = TypeVar("_Image", bound=ImageLike)


def filters() -> list[str]:
    """Return the names of all filters, which a list for ``FramePipeline`` may hold.

    >>> "sepia" in filters(), "grade" in filters()
    (True, True)
    """
    return filter_names()


def apply(
    img: _Image,
    kernel: str | Runnable,
    *,
    width: int | None = None,
    height: int | None = None,
    out: NDArray | None = None,
    device: str | None = None,
    **params: FilterValue,
) -> _Image:
    """Apply a kernel of your own, or a filter by its name, to a picture.

    Args:
        img: the picture, of any kind.
        kernel: a kernel whose first input is the picture, the name of a registered one, or the name
            of a filter.
        width: of bytes, in pixels.
        height: of bytes, in pixels.
        out: an array for the result.
        device: the device; by default the current one, or that of a Frame or Buffer.
        **params: the parameters of the kernel, and its further inputs, by name.

    Returns:
        A picture of the same kind and size, or ``out``. Filters that resize give their own size.

    >>> import numpy as np
    >>> from dala.gpu.compute import Pixel, kernel, rgba
    >>> @kernel
    ... def swap(px: Pixel, *, gain: float = 1.0):
    ...     return rgba(px.bgr * gain, px.a)
    >>> apply(np.array([[[10, 20, 30]]], np.uint8), swap, gain=2.0, device="cpu").tolist()
    [[[60, 40, 20]]]
    >>> apply(np.array([[10, 20]], np.uint8), "invert", device="cpu").tolist()
    [[245, 235]]
    """
    if not isinstance(kernel, str | Runnable):
        raise DtypeError.invalid(
            "apply",
            "kernel",
            "a Kernel or the name of a filter",
            kernel,
            "Make a kernel of a function with @dala.gpu.compute.kernel.",
        )
    spec = declared().get(kernel) if isinstance(kernel, str) else None
    if spec is None:
        made = apply_kernel(img, width, height, kernel, params, out, device)
    else:
        run = call(spec.name, module_of(spec))
        made = run(img, width=width, height=height, out=out, device=device, **params)
    return cast("_Image", made)


# frame pipelines --------------------------------------------------------------------------------
def start_pipeline(width: int, height: int, *, device: str | None = None) -> FramePipeline:
    """Return a context for frames of up to this size; see :class:`FramePipeline`.

    >>> ctx = start_pipeline(2, 1, device="cpu")
    >>> process_frame(ctx, bytes([10, 20, 30, 255] * 2), [("brightness", {"value": 0.2})])
    b'=GQ\\xff=GQ\\xff'
    >>> stop_pipeline(ctx)
    """
    return FramePipeline(width, height, device=device)


def process_frame(
    ctx: FramePipeline,
    rgba: _Image,
    filters: Sequence[Filter],
    *,
    width: int | None = None,
    height: int | None = None,
    out: NDArray | None = None,
) -> _Image:
    """Apply a list of filters to a frame, as one fused pipeline.

    Args:
        ctx: the context that ``start_pipeline`` returned.
        rgba: the frame, a picture of any kind.
        filters: names, or pairs of a name and its parameters.
        width: of bytes, in pixels; the context's by default.
        height: of bytes, in pixels; the context's by default.
        out: an array for the result.

    >>> import numpy as np
    >>> ctx = start_pipeline(4, 4, device="cpu")
    >>> process_frame(ctx, np.zeros((1, 2), np.uint8), ["invert"]).tolist()
    [[255, 255]]
    >>> stop_pipeline(ctx)
    """
    _check(ctx, "process_frame")
    return ctx.process(rgba, filters, width=width, height=height, out=out)


def stop_pipeline(ctx: FramePipeline) -> None:
    """Free a context. Stopping twice has no effect.

    >>> ctx = start_pipeline(4, 4, device="cpu")
    >>> stop_pipeline(ctx)
    """
    _check(ctx, "stop_pipeline")
    ctx.close()


def _check(ctx: FramePipeline, call: str) -> None:
    if not isinstance(ctx, FramePipeline):
        raise ParameterError.invalid(
            call, "ctx", "the result of start_pipeline(width, height)", type(ctx)
        )
