"""A virtual camera, which programs for calls show as one of the machine's."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from dala.errors import DeviceUnavailable, MissingPackage
from dala.extras import pip_install
from dala.media.live.measures import LiveMeter

if TYPE_CHECKING:
    from dala.media.live.connection import Item
    from dala.media.live.destination import Destination
    from dala.media.live.muxing import StreamSettings

#: A camera of pyvirtualcam, which has no types.
CameraObject: TypeAlias = Any


class CameraConnection:
    """A virtual camera that is open, in the place of a connection. ``put`` shows a picture."""

    error: Exception | None = None

    def __init__(self, where: Destination, settings: StreamSettings, meter: LiveMeter) -> None:
        self.where = where
        self._meter = meter
        self._camera = _open_camera(where, settings)
        self.connected, self.ended = True, False

    def put(self, item: Item) -> None:
        """Show a picture."""
        if item.picture is None or self.ended:
            return
        self._camera.send(item.picture.to_ndarray(format="rgb24"))
        self._meter.sent(0, item.captured, monotonic())

    def is_stuck(self, timeout: float) -> bool:
        """Return False: a camera does not wait."""
        return False

    def is_idle(self) -> bool:
        """Return True: pictures are shown at once."""
        return True

    def wait(self, done: Callable[[], bool], timeout: float) -> bool:
        """Return whether something is so."""
        return done()

    def finish(self, timeout: float) -> bool:
        """Close the camera."""
        self.abandon()
        return True

    def abandon(self) -> None:
        """Close the camera."""
        if not self.ended:
            self.ended = True
            self._camera.close()


def _open_camera(where: Destination, settings: StreamSettings) -> CameraObject:
    try:
        import pyvirtualcam
    except ModuleNotFoundError:
        raise MissingPackage(
            "live: pyvirtualcam is not installed, and a virtual camera needs it. Run: "
            f"{pip_install('live')}"
        ) from None
    rate = settings["rate"][0] / settings["rate"][1]
    try:
        return pyvirtualcam.Camera(
            width=settings["width"], height=settings["height"], fps=rate, device=where.name or None
        )
    except (RuntimeError, OSError, ValueError) as error:
        raise DeviceUnavailable(
            f"live: no virtual camera can be opened ({str(error).partition('. ')[0].strip('.')}). "
            "On Linux load the kernel module v4l2loopback; on macOS and Windows install OBS."
        ) from error
