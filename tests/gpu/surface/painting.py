"""What the tests of surfaces share."""

from __future__ import annotations

from dala.gpu import command
from dala.gpu.raster import Canvas

RED, GREEN, BLUE = b"\xff\0\0\xff", b"\0\xff\0\xff", b"\0\0\xff\xff"


def model(width, height, data):
    """Return the pixels that a canvas alone draws from command bytes."""
    canvas = Canvas(width, height)
    at = 0
    while (stop := canvas.run(data, at)) is not None:
        (found,) = command.decode(data[stop.offset : stop.end])
        if found.name.startswith("load"):
            getattr(canvas, found.name)(found.id, found.pixels, found.w, found.h)
        elif found.name.startswith("remove"):
            getattr(canvas, found.name)(found.id)
        at = stop.end
    return canvas.pixels.tobytes()
