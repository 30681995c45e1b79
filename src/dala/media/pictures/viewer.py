"""The viewers of ``Frame.show``: a notebook, a window, a page, the terminal, or a file."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import TYPE_CHECKING, Final

from dala.errors import DeviceUnavailable, ParameterError
from dala.gpu.presenters import KINDS, default_kind
from dala.gpu.surface import Surface, create_surface
from dala.media.pictures.pixels import to_rgba

if TYPE_CHECKING:
    from dala.media.frame import Frame
    from dala.typing import NDArray

#: Surfaces that interactive sessions keep open.
_kept: Final[list[Surface]] = []


def show(frame: Frame, where: str | None = None) -> None:
    """Show a frame; see ``Frame.show``."""
    if where is not None and where not in KINDS:
        known = ", ".join(map(repr, KINDS))
        raise ParameterError.invalid("Frame.show", "where", f"{known} or None", where)
    if where in (None, "notebook") and _in_notebook(frame):
        return
    pixels = to_rgba(frame.picture(), "Frame.show")
    kind = where or default_kind()
    if kind is None and sys.stdout is not None and sys.stdout.isatty():
        _say("there is no display; the frame is shown in the terminal")
        kind = "terminal"
    if kind is None:
        _say(f"there is no display; the frame is in {_stored(frame)}")
        return
    title = f"frame {frame.width} x {frame.height}"
    try:
        _present(pixels, kind, title)
    except DeviceUnavailable as error:
        if where is not None or kind != "window":
            raise
        _say(f"no window: {error} The frame is shown in the browser")
        _present(pixels, "browser", title)


def _present(pixels: NDArray, kind: str, title: str) -> None:
    height, width = pixels.shape[:2]
    _kept[:] = [s for s in _kept if not s.closed and s.presenter and not s.presenter.closed]
    surface = create_surface(width, height, show=kind, title=title)
    try:
        surface.set_pixels(pixels)
        surface.present()
        surface.synchronize()
        if kind in ("window", "browser"):
            if _interactive():
                _kept.append(surface)
                return
            surface.wait_closed()
    except KeyboardInterrupt:
        pass  # the usual way to stop looking
    except BaseException:
        surface.close()
        raise
    surface.close()


def _interactive() -> bool:
    """Return True in an interpreter that goes on after the call; scripts wait for the viewer."""
    return hasattr(sys, "ps1") or bool(sys.flags.interactive)


def _in_notebook(frame: Frame) -> bool:
    """Display a frame below the cell; returns False outside of notebooks."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or getattr(shell, "kernel", None) is None:
        return False
    from IPython.display import display

    display(frame)
    return True


def _stored(frame: Frame) -> str:
    """Write a frame to a new PNG file, and return its path."""
    number, path = tempfile.mkstemp(prefix="dala-", suffix=".png")
    os.close(number)
    frame.save(path)
    return path


def _say(text: str) -> None:
    if sys.stderr is not None:  # None in programs without a console
        sys.stderr.write(f"dala: Frame.show: {text}\n")
        sys.stderr.flush()
