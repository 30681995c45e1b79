"""Commands that take the result home: code, plans, files and web pages."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dala.errors import ParameterError
from dala.studio.catalogue.parameters import Json, JsonObject
from dala.studio.commands.registry import command
from dala.studio.folders import kind_of
from dala.studio.home.jobs import StudioJob
from dala.studio.home.pages import page_chain
from dala.studio.home.plan import passes_of, steps, svg
from dala.studio.home.python import python
from dala.studio.home.rendering import Rendering
from dala.studio.home.texts import command as command_line
from dala.studio.home.texts import file_name, preset_text, scene_text
from dala.studio.message import Message
from dala.studio.picture.moment import rgba8

if TYPE_CHECKING:
    from dala.studio.session import StudioSession

_FORMS: Final = {
    "python": python, "command": command_line, "preset": preset_text, "scene": scene_text,
}  # fmt: skip
#: Formats of results, and the options of rendering with their bounds.
_FORMATS: Final = (
    "png", "jpg", "jpeg", "webp", "tif", "tiff", "avif", "mp4", "mkv", "mov", "webm", "gif",
)  # fmt: skip
_OPTIONS: Final = {"crf": (0, 63), "quality": (1, 100), "seconds": (0.04, 3600)}
_CODECS: Final = ("h264", "hevc", "av1", "vp9", "ffv1", "prores")


@command("copy")
def copy(session: StudioSession, message: Message) -> JsonObject:
    """Return the active tab as text: Python, a command line, a preset or a scene file."""
    form = message.get("as")
    if not isinstance(form, str) or form not in _FORMS:
        message.fail("as", f"one of {', '.join(_FORMS)}")
    tab = session.tab("copy")
    if form in ("python", "command") and tab.source.dirty:
        raise ParameterError("copy: the scene has changes that its file does not have. Save it.")
    return {"text": _FORMS[form](tab)}


@command("plan")
def plan(session: StudioSession, message: Message) -> JsonObject:
    """Return the fused plan of the chain, as a picture and as text."""
    tab = session.tab("plan")
    found = session.renderer.explain(tab)
    groups = [(title, passes_of(text)) for title, text in found]
    return {
        "svg": svg(groups),
        "text": "\n".join(text or title for title, text in found),
        "passes": sum(len(passes) for _, passes in groups),
        "steps": steps(groups),
    }


@command("render")
def render(session: StudioSession, message: Message) -> JsonObject:
    """Render the active tab to a file, as a job."""
    tab = session.tab("render")
    usual = "mp4" if tab.source.rate is not None else "png"
    format = message.get("format") or usual
    if not isinstance(format, str) or format.lower().lstrip(".") not in _FORMATS:
        message.fail("format", f"one of {', '.join(_FORMATS)}")
    suffix = "." + format.lower().lstrip(".")
    if "path" in message:
        target = session.folders.target(message.get("path"), "render")
        if target.suffix.lower().lstrip(".") not in _FORMATS:
            message.fail("path", f"the name of a file of one of {', '.join(_FORMATS)}")
    else:
        target = session.new_result(file_name(tab, suffix))
    if kind_of(target) == "video" and tab.source.rate is None and target.suffix != ".gif":
        raise ParameterError(
            f"render: a picture cannot become {target.suffix}. Choose png, jpg or webp."
        )
    if str(target) == tab.source.path:
        raise ParameterError("render: the result would replace the source. Choose another name.")
    part = None
    if message.flag("loop", False):
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
        _options(message),
        session.device,
        session.files,
        session.bounds,
        part,
    )
    offered = "path" not in message

    def run(job: StudioJob) -> JsonObject:
        try:
            work.run(job)
        except BaseException:
            target.unlink(missing_ok=True) if offered else None
            raise
        if offered:
            return {"download": session.offer(target), "path": None}
        return {"download": session.offer(target), "path": str(target)}

    return {"job": session.jobs.start(f"Render {target.name}", run)}


def _options(message: Message) -> dict[str, int | float | str]:
    given = message.get("options")
    if given is None:
        return {}
    if not isinstance(given, dict):
        message.fail("options", "an object")
    made: dict[str, int | float | str] = {}
    for name, value in given.items():
        if name == "codec" and isinstance(value, str) and value in _CODECS:
            made[name] = value
        elif name in _OPTIONS and isinstance(value, int | float) and not isinstance(value, bool):
            low, high = _OPTIONS[name]
            if not low <= value <= high:
                raise ParameterError.invalid(
                    "render", name, f"a number from {low:g} to {high:g}", value
                )
            made[name] = value if name == "seconds" else int(value)
        else:
            known = f"{', '.join(_OPTIONS)} or codec ({', '.join(_CODECS)})"
            raise ParameterError.invalid("render", "options", known, name)
    return made


@command("cancel")
def cancel(session: StudioSession, message: Message) -> None:
    """Cancel a job."""
    session.jobs.cancel(message.get("job"))


@command("export")
def export(session: StudioSession, message: Message) -> JsonObject:
    """Export the chain, or effects of a scene, as a page that runs on the visitor's GPU."""
    from dala.web import export as export_page

    tab = session.tab("export")
    single = message.flag("one_file", False)
    found = page_chain(tab, message.get("node"), session.files, session.device)
    moment = session.renderer.publisher.moment
    picture = found.picture
    if picture is None and moment is not None and moment.tab == tab.id:
        picture = rgba8(moment.pixels("before"))
    title = Path(tab.source.title).stem
    target = session.new_result(file_name(tab, ".html" if single else ""))

    def run(job: StudioJob) -> JsonObject:
        job.step(0, 1)
        made = export_page(found.filters, target, title=title, picture=picture, one_file=single)
        job.step(1, 1)
        notes: list[Json] = [*found.notes, *made.notes]
        if single:
            return {"download": session.offer(target), "notes": notes}
        packed = shutil.make_archive(str(target), "zip", target)
        return {"download": session.offer(Path(packed)), "notes": notes}

    return {"job": session.jobs.start(f"Export {title}", run)}
