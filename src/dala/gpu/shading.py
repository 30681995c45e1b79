"""The compute calls of surfaces: shaders and kernels over the pixels, and their uniforms.

Each is a function that takes a surface first, and a method of ``Surface``, as in ``draw.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dala.gpu import command as encode
from dala.gpu.checks import renderer_of
from dala.gpu.draw import put_any
from dala.gpu.protocol import BytesLike
from dala.typing import Params

if TYPE_CHECKING:
    from dala.gpu.compute.kernel import Kernel
    from dala.gpu.surface import Surface


def load_shader(s: Surface, name: str, source: str) -> None:
    """Load a shader, WGSL or kernel text, under a name.

    >>> from dala import gpu
    >>> with gpu.create_surface(1, 1) as s:
    ...     gpu.clear(s, "white")
    ...     gpu.load_shader(s, "dim", "def dim(px: Pixel): return rgba(px.r, px.g, 0.0, px.a)")
    ...     gpu.dispatch_compute(s, "dim")
    ...     gpu.get_pixels(s).hex()
    'ffff00ff'
    """
    put_any(s, "load_shader", encode.encode_load_shader(name, source))


def dispatch_compute(
    s: Surface,
    shader: str | Kernel,
    params: BytesLike | Params = b"",
    workgroups: tuple[int, int, int] = (1, 1, 1),
) -> None:
    """Run a shader or kernel over the pixels; see :func:`load_shader`.

    Args:
        s: The surface.
        shader: A kernel with one input, ``px: Pixel`` or ``img: Image``; or the name of a loaded
            shader, or source text.
        params: The parameters: a dict, or their bytes.
        workgroups: The number of WGSL workgroups along x, y and z. Kernels ignore it.

    >>> from dala import gpu
    >>> with gpu.create_surface(1, 1) as s:
    ...     gpu.clear(s, "red")
    ...     gpu.dispatch_compute(s, "def swap(px: Pixel): return rgba(px.b, px.g, px.r, px.a)")
    ...     dim = "def dim(px: Pixel, *, by): return rgba(px.r * by, px.g * by, px.b * by, px.a)"
    ...     gpu.dispatch_compute(s, dim, {"by": 0.2})
    ...     gpu.get_pixels(s).hex()
    '000033ff'
    """
    if isinstance(shader, str) and not isinstance(params, Mapping):
        put_any(s, "dispatch_compute", encode.encode_dispatch_compute(shader, params, workgroups))
        return
    from dala.gpu.shaders.dispatch import post_dispatch

    post_dispatch(renderer_of(s, "dispatch_compute"), shader, params, workgroups)


def set_uniform(s: Surface, name: str, data: BytesLike) -> None:
    """Set the bytes of a uniform, which shaders read by its name.

    >>> import struct
    >>> from dala import gpu
    >>> with gpu.create_surface(1, 1) as s:
    ...     gpu.set_uniform(s, "red", struct.pack("<f", 1.0))
    ...     text = "def fill(px: Pixel, *, red=0.0): return rgba(red, 0.0, 0.0, 1.0)"
    ...     gpu.dispatch_compute(s, text)
    ...     gpu.get_pixels(s).hex()
    'ff0000ff'
    """
    put_any(s, "set_uniform", encode.encode_set_uniform(name, data))


def supports_compute(s: Surface) -> bool:
    """Return True if this machine can run WGSL shaders. Kernel text runs everywhere.

    >>> from dala import gpu
    >>> with gpu.create_surface(1, 1) as s:
    ...     gpu.supports_compute(s) in (True, False)
    True
    """
    from dala.gpu.shaders.dispatch import wgsl_available

    renderer_of(s, "supports_compute")
    return wgsl_available()
