"""Commands that open and close sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dala.errors import ParameterError
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.studio.commands.registry import command
from dala.studio.message import Message

if TYPE_CHECKING:
    from dala.studio.session import StudioSession


@command("open")
def open_source(session: StudioSession, message: Message) -> JsonObject:
    """Open a file, a sample or a camera in a new tab."""
    from dala.studio.sources.opening import open_camera, open_file, open_sample

    if "path" in message:
        path = session.folders.existing(message.get("path"), "open")
        return {"tab": open_file(session, path).id}
    if "sample" in message:
        kind = message.get("kind")
        return {"tab": open_sample(session, message.text("sample", 100), kind).id}
    if "camera" in message:
        return {"tab": open_camera(session, message.get("camera")).id}
    raise ParameterError("open: give a path, a sample or a camera.")


@command("cameras")
def cameras(session: StudioSession, message: Message) -> JsonObject:
    """List the cameras of this machine, and the generated one."""
    from dala.media import camera

    found: list[Json] = [{"id": str(c.index), "title": c.name} for c in camera.list()]
    return {"cameras": [*found, {"id": "test", "title": "Test camera"}]}


@command("close")
def close(session: StudioSession, message: Message) -> None:
    """Close a tab."""
    session.close_tab(message.get("tab"))


@command("tab")
def tab(session: StudioSession, message: Message) -> None:
    """Make a tab the active one."""
    session.activate(message.get("tab"))


@command("pixel")
def pixel(session: StudioSession, message: Message) -> JsonObject:
    """Return the values of a pixel before and after the chain."""
    x, y = message.integer("x", -(1 << 20), 1 << 20), message.integer("y", -(1 << 20), 1 << 20)
    moment = session.renderer.publisher.moment
    before, after = (None, None) if moment is None else moment.at(x, y)
    return {
        "before": None if before is None else list[Json](before),
        "after": None if after is None else list[Json](after),
    }
