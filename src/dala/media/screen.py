"""The screen as a video: all of it, or a region."""

from __future__ import annotations

import os
import sys
from fractions import Fraction
from typing import Final

from dala.arguments import Rate
from dala.errors import DeviceUnavailable, ParameterError
from dala.errors.masking import masked_url
from dala.media.video.options import DecodeOptions
from dala.media.video.reader import CALL, Reader
from dala.media.video.source import VideoSource

__all__ = ["open"]

_CALL: Final = "screen.open"


def open(
    screen: str | None = None,
    *,
    region: tuple[int, int, int, int] | None = None,
    fps: float | str | Fraction = 30,
    cursor: bool = True,
    device: str | None = None,
    policy: str = "latest",
    timeout: float = 10.0,
) -> Reader:
    """Open the screen: a context manager that iterates frames.

    Args:
        screen: the display, such as ":1" (X11), or the number of a screen (macOS); by default the
            one in use.
        region: (x, y, width, height) in pixels; by default all of it.
        fps: frames per second.
        cursor: whether the pointer is in the pictures.
        device: where frames are created; by default the current device.
        policy: only the "latest" frame, or "every" frame.
        timeout: seconds to wait for the screen.

    Raises:
        DeviceUnavailable: there is no screen.
        VideoError: it cannot be opened.

    Example::

        with screen.open(region=(0, 0, 1280, 720), fps=15) as source:
            frame = next(source)
    """
    rate = Rate().check(_CALL, "fps", fps)
    area = None if region is None else _checked(region)
    source = _source(screen, area, rate, cursor)
    given = {"device": device, "policy": policy, "timeout": timeout}
    return Reader(source, DecodeOptions.checked(CALL, given))


def _checked(region: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    whole = isinstance(region, tuple | list) and len(region) == 4
    whole = whole and all(type(value) is int and 0 <= value <= 65535 for value in region)
    if not whole or not (region[2] and region[3]):
        raise ParameterError.invalid(_CALL, "region", "(x, y, width, height) in pixels", region)
    return region


def _source(
    screen: str | None, area: tuple[int, int, int, int] | None, rate: Fraction, cursor: bool
) -> VideoSource:
    options = {"framerate": str(rate)}
    if sys.platform == "darwin":
        options.update(capture_cursor=str(int(cursor)), pixel_format="nv12")
        if area is not None:
            raise ParameterError.invalid(_CALL, "region", "None on macOS", area, "Crop the frames.")
        name = f"Capture screen {screen or 0}:none"
        return VideoSource(name, "the screen", True, "avfoundation", options)
    options["draw_mouse"] = str(int(cursor))
    if area is not None:
        options["video_size"] = f"{area[2]}x{area[3]}"
    if sys.platform == "win32":
        if area is not None:
            options.update(offset_x=str(area[0]), offset_y=str(area[1]))
        return VideoSource("desktop", "the screen", True, "gdigrab", options)
    display = screen or os.environ.get("DISPLAY", "")
    if not display:
        raise DeviceUnavailable(
            f"{_CALL}: there is no X11 display (DISPLAY is not set). Give screen=':0'; Wayland's "
            "screens can be captured through Xwayland only."
        )
    place = "" if area is None else f"+{area[0]},{area[1]}"
    return VideoSource(display + place, f"screen {masked_url(display)}", True, "x11grab", options)
