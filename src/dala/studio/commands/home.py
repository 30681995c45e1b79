"""Commands that take the result home: code, plans, files and web pages."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

import dala
from dala.errors import ParameterError
from dala.options import check_all
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.studio.commands.registry import PageRequest, command
from dala.studio.folders import kind_of
from dala.studio.home.jobs import StudioJob
from dala.studio.home.pages import page_chain
from dala.studio.home.plan import steps
from dala.studio.home.python import FileNames, python
from dala.studio.home.rendering import Rendering, render_options
from dala.studio.home.texts import command as command_line
from dala.studio.home.texts import file_name, preset_text, scene_text
from dala.studio.picture.moment import rgba8
from dala.untrusted.place import NewFile

_FORMS: Final = ("python", "command", "preset", "scene")
#: Formats of results.
_FORMATS: Final = (
    "png", "jpg", "jpeg", "webp", "tif", "tiff", "avif", "mp4", "mkv", "mov", "webm", "gif",
)  # fmt: skip


@command
def copy(request: PageRequest) -> JsonObject:
    """Return the active tab as text: Python, a command line, a preset or a scene file.

    A kernel with mistakes is refused, unless the page asks for its last good text.
    """
    form = request.get("as")
    if not isinstance(form, str) or form not in _FORMS:
        request.fail("as", f"one of {', '.join(_FORMS)}")
    tab = request.tab
    if form in ("python", "command") and tab.source.dirty:
        raise ParameterError("copy: the scene has changes that its file does not have. Save it.")
    if form in ("preset", "scene"):
        return {"text": preset_text(tab) if form == "preset" else scene_text(tab)}
    here, session = Path.cwd(), request.session
    if form == "command":  # it is pasted where the studio was started
        return {"text": command_line(tab, FileNames([here], session.scratch))}
    names = FileNames([here, *session.folders.roots], session.scratch)
    return {"text": python(tab, names, request.flag("last_good", False))}


@command
def plan(request: PageRequest) -> JsonObject:
    """Return the fused plan of the chain, as steps and as text."""
    tab = request.tab
    found = request.session.renderer.explain(tab)
    made = steps(found)
    return {
        "text": "\n".join(text or title for title, text in found),
        "passes": sum(isinstance(one, dict) and one["kind"] == "pass" for one in made),
        "steps": made,
    }


@command
def render(request: PageRequest) -> JsonObject:
    """Render the active tab to a file, as a job."""
    tab = request.tab
    usual = "mp4" if tab.source.rate is not None else "png"
    format = request.get("format") or usual
    if not isinstance(format, str) or format.lower().lstrip(".") not in _FORMATS:
        request.fail("format", f"one of {', '.join(_FORMATS)}")
    suffix = "." + format.lower().lstrip(".")
    named: NewFile | None = None
    if "path" in request:
        named = request.target("")
        target, shown = Path(named), named.name
        if target.suffix.lower().lstrip(".") not in _FORMATS:
            request.fail("path", f"the name of a file of one of {', '.join(_FORMATS)}")
    else:
        target = shown = request.session.new_result(file_name(tab, suffix))
    if kind_of(target) == "video" and tab.source.rate is None and target.suffix != ".gif":
        raise ParameterError(
            f"render: a picture cannot become {target.suffix}. Choose png, jpg or webp."
        )
    if str(shown) == tab.source.path:
        raise ParameterError("render: the result would replace the source. Choose another name.")
    part = None
    if request.flag("loop", False):
        part = tab.loop
        if part is None or tab.source.live or kind_of(target) != "video":
            raise ParameterError.invalid(
                "render",
                "loop",
                "false, as there is no loop that can become a video",
                True,
                "Mark a part of a video or scene on the time line first.",
            )
    work = Rendering(
        tab.source,
        tab.contents.cards,
        tab.time(),
        target,
        _options(request),
        request.session.device,
        request.session.files,
        request.session.bounds,
        part,
    )

    def run(job: StudioJob) -> JsonObject:
        try:
            work.run(job)
        except BaseException:
            target.unlink(missing_ok=True) if named is None else None
            raise
        path = None if named is None else str(named.name)
        if named is not None:
            request.session.own(named.name)
        return {"download": request.session.offer(shown), "path": path}

    return {"job": request.session.jobs.start(f"Render {target.name}", run)}


def _options(request: PageRequest) -> dict[str, Any]:
    given = request.get("options")
    if given is None:
        return {}
    if not isinstance(given, dict):
        request.fail("options", "an object")
    return check_all("render", render_options(), given)


@command
def trace(request: PageRequest) -> JsonObject | None:
    """Start a trace, or end it, which is a job: it offers the file and says why frames were late.

    Raises:
        DalaError: another trace runs.
    """
    session, ended = request.session, request.session.trace
    if request.flag("on", ended is None):
        if ended is None:
            session.trace = dala.trace(session.new_result("trace.json")).start()
        return None
    if ended is None or ended.path is None:
        return None
    target = ended.path

    def run(job: StudioJob) -> JsonObject:
        ended.stop()
        notes: list[Json] = [*str(ended.report()).splitlines()]
        return {"download": session.offer(target), "notes": notes}

    made: JsonObject = {"job": session.jobs.start("Trace", run)}
    session.trace = None
    return made


@command
def strip(request: PageRequest) -> JsonObject:
    """Return the times of the last seconds' frames, and the waits of each."""
    tab = request.session.active
    rate = None if tab is None else tab.source.rate
    return request.session.strip.json(1000 / float(rate or 30))


@command
def cancel(request: PageRequest) -> None:
    """Cancel a job."""
    request.session.jobs.cancel(request.get("job"))


@command
def export(request: PageRequest) -> JsonObject:
    """Export the chain, or effects of a scene, as a page that runs on the visitor's GPU."""
    from dala.web import export as export_page

    tab = request.tab
    single = request.flag("one_file", False)
    found = page_chain(tab, request.get("node"), request.session.files, request.session.device)
    moment = request.session.renderer.publisher.moment
    picture = found.picture
    if picture is None and moment is not None and moment.tab == tab.id:
        picture = rgba8(moment.pixels("before"))
    title = Path(tab.source.title).stem
    target = request.session.new_result(file_name(tab, ".html" if single else ""))

    def run(job: StudioJob) -> JsonObject:
        job.step(0, 1)
        made = export_page(found.filters, target, title=title, picture=picture, one_file=single)
        job.step(1, 1)
        offered = target if single else Path(shutil.make_archive(str(target), "zip", target))
        download = request.session.offer(offered)
        return {"download": download, "notes": [*found.notes, *made.notes]}

    return {"job": request.session.jobs.start(f"Export {title}", run)}
