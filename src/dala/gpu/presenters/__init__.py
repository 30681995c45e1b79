"""Presenters: where the frames of a surface are seen.

Each kind has a file of its own, imported when it is first asked for. None owns a window toolkit:
windows and notebook widgets are rendercanvas's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from dala.errors import CommandError
from dala.gpu.checks import renderer_of

if TYPE_CHECKING:
    from dala.gpu.presenters.base import Presenter
    from dala.gpu.surface import Surface

#: What ``show=`` may be.
KINDS: Final = ("window", "browser", "notebook", "terminal")


def make_presenter(surface: Surface, kind: str, *, title: str, vsync: bool) -> Presenter:
    """Shows what a surface presents.

    Args:
        surface: whose frames.
        kind: "window", "browser", "notebook" or "terminal".
        title: of the window or page.
        vsync: show no more frames than the screen does.

    Raises:
        CommandError: there is no such kind, or the title is no text.
        DeviceUnavailable: this machine cannot show it that way; the message says what would help.
    """
    if kind not in KINDS:
        known = ", ".join(repr(k) for k in KINDS)
        raise CommandError(f"create_surface: show must be {known} or None, {kind!r} came.")
    if not isinstance(title, str):
        raise CommandError(f"create_surface: title must be text, {title!r} came.")
    renderer, vsync = renderer_of(surface, "create_surface"), bool(vsync)
    if kind == "window":
        from dala.gpu.presenters.window import WindowPresenter

        return WindowPresenter(renderer, title, vsync)
    if kind == "browser":
        from dala.gpu.presenters.browser import BrowserPresenter

        return BrowserPresenter(renderer, title, vsync)
    if kind == "notebook":
        from dala.gpu.presenters.notebook import make_notebook

        return make_notebook(renderer, title, vsync)
    from dala.gpu.presenters.terminal import TerminalPresenter

    return TerminalPresenter(renderer, vsync)


def wait_until_closed(surface: Surface, timeout: float | None) -> bool:
    """Waits until what shows a surface is closed, or the surface is destroyed: then True.

    Args:
        surface: one made with ``show=``.
        timeout: seconds after which to give up, with False; None waits for ever. 0 only looks,
            and on macOS also handles what has happened to the window.
    """
    if timeout is not None:
        timeout = _seconds(timeout)
    if surface.closed:
        return True
    presenter: Presenter | None = surface.presenter
    if presenter is None:
        raise CommandError(
            "wait_closed: the surface is not shown anywhere, so nothing can be closed. "
            "Make it with create_surface(..., show='window')."
        )
    return presenter.wait(timeout)


def _seconds(timeout: Any) -> float:
    try:
        seconds = float(timeout)
    except (TypeError, ValueError):
        seconds = math.nan
    if not seconds >= 0:
        raise CommandError(
            f"wait_closed: timeout must be seconds, 0 or more, or None, {timeout!r} came."
        )
    return seconds
