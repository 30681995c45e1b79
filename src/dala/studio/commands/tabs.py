"""Commands of tabs: their sources, which are opened and closed, and their time line."""

from __future__ import annotations

from dala.errors import ParameterError
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.studio.commands.registry import PageRequest, command


@command
def open_(request: PageRequest) -> JsonObject:
    """Open a file, a sample or a camera in a new tab."""
    from dala.studio.sources.opening import open_camera, open_file, open_sample

    session = request.session
    if "path" in request:
        file = session.folders.open(request.get("path"), "open")
        return {"tab": open_file(session, file).id}
    if "sample" in request:
        kind = request.get("kind")
        return {"tab": open_sample(session, request.text("sample", 100), kind).id}
    if "camera" in request:
        return {"tab": open_camera(session, request.get("camera")).id}
    raise ParameterError("open: give a path, a sample or a camera.")


@command
def cameras(request: PageRequest) -> JsonObject:
    """List the cameras of this machine, and the generated one."""
    from dala.media import camera

    found: list[Json] = [{"id": str(c.index), "title": c.name} for c in camera.list()]
    return {"cameras": [*found, {"id": "test", "title": "Test camera"}]}


@command
def close(request: PageRequest) -> None:
    """Close a tab."""
    request.session.close_tab(request.get("tab"))


@command
def tab(request: PageRequest) -> None:
    """Make a tab the active one."""
    request.session.activate(request.get("tab"))


@command
def pixel(request: PageRequest) -> JsonObject:
    """Return the values of a pixel before and after the chain."""
    x, y = request.integer("x", -(1 << 20), 1 << 20), request.integer("y", -(1 << 20), 1 << 20)
    moment = request.session.renderer.publisher.moment
    before, after = (None, None) if moment is None else moment.at(x, y)
    return {"before": before, "after": after}


@command
def play(request: PageRequest) -> None:
    """Let the active tab play."""
    request.tab.play()


@command
def pause(request: PageRequest) -> None:
    """Pause the active tab."""
    request.tab.pause()


@command
def seek(request: PageRequest) -> None:
    """Go to a time."""
    request.tab.seek(request.seconds("time"))


@command
def step(request: PageRequest) -> None:
    """Go some pictures forward or back, and pause."""
    request.tab.step(request.integer("frames", -(10**6), 10**6, 1))


@command
def loop(request: PageRequest) -> None:
    """Repeat a part, or stop that."""
    tab = request.tab
    if "from" not in request and "to" not in request:
        tab.loop = None
        return
    first, last = request.seconds("from"), request.seconds("to")
    if tab.source.duration is not None:
        last = min(last, tab.source.duration)
    first = max(first, 0 * first)
    if last - first < tab.frame:
        raise ParameterError.invalid(
            "loop", "to", "at least one frame after from", float(last), "Drag a longer part."
        )
    time = tab.time()
    tab.loop = first, last
    if not first <= time < last:
        tab.seek(first)
