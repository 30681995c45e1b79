"""Presenters: they show the frames of a surface in a window, browser, notebook or terminal.

Each kind has its own module, which is imported on first use. Windows are glfw's, drawn by wgpu;
notebook widgets come from rendercanvas.
"""

from __future__ import annotations

import math
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from dala.errors import CommandError, did_you_mean
from dala.gpu.checks import renderer_of

if TYPE_CHECKING:
    from dala.gpu.presenters.base import Presenter, Steer
    from dala.gpu.surface import Surface

#: The values of ``steer=``.
STEER: Final = ("first", "all", "none")

#: The values of ``show=``, and what makes their presenters, in modules of the same names.
KINDS: Final = {
    "window": "WindowPresenter",
    "browser": "BrowserPresenter",
    "notebook": "make_notebook",
    "terminal": "TerminalPresenter",
}


def default_kind() -> str | None:
    """Return the kind that suits this machine: "window", else "browser"; None without a display."""
    from dala.gpu.presenters.window_loop import has_display

    if not has_display():
        return None
    return "window" if find_spec("glfw") is not None else "browser"


def make_presenter(
    surface: Surface, kind: str, *, title: str, vsync: bool, steer: Steer = "first"
) -> Presenter:
    """Create the presenter of a surface.

    Args:
        surface: The surface whose frames are shown.
        kind: "window", "browser", "notebook" or "terminal".
        title: The title of the window or page.
        vsync: Show no more frames than the screen can.
        steer: Which pages of a browser send input.

    Raises:
        CommandError: The kind is unknown, or the title is not a str.
        DeviceUnavailable: This machine cannot show it that way; the message says what would help.
    """
    if not isinstance(kind, str) or kind not in KINDS:
        known = ", ".join(repr(k) for k in KINDS)
        advice = did_you_mean(kind, KINDS) if isinstance(kind, str) else ""
        raise CommandError.invalid("create_surface", "show", f"{known} or None", kind, advice)
    if steer not in STEER:
        expected = " or ".join(map(repr, STEER))
        raise CommandError.invalid("create_surface", "steer", expected, steer)
    renderer = renderer_of(surface, "create_surface")
    make = getattr(import_module(f"dala.gpu.presenters.{kind}"), KINDS[kind])
    options = {"steer": steer} if kind == "browser" else {}
    presenter: Presenter = make(renderer, title, bool(vsync), **options)
    return presenter


def wait_until_closed(surface: Surface, timeout: float | None) -> bool:
    """Wait until the window or page of a surface is closed. Return True once it is.

    Args:
        surface: A surface created with ``show=``.
        timeout: Seconds to wait at most, then the result is False; None waits without a limit. 0
            only checks, and on macOS also handles the events of the window.
    """
    if timeout is not None:
        timeout = _seconds(timeout)
    if surface.closed:
        return True
    presenter: Presenter | None = surface.presenter
    if presenter is None:
        raise CommandError(
            "wait_closed: the surface has no presenter to wait for. "
            "Create it with create_surface(..., show='window')."
        )
    return presenter.wait(timeout)


def _seconds(timeout: float) -> float:
    try:
        seconds = float(timeout)
    except (TypeError, ValueError):
        seconds = math.nan
    if not seconds >= 0:
        raise CommandError.invalid(
            "wait_closed", "timeout", "a number of seconds from 0 up, or None", timeout
        )
    return seconds
