"""Opening files, samples and cameras as tabs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from dala import samples
from dala.errors import ParameterError
from dala.studio.cards.card import MAX_TEXT, new_card
from dala.studio.catalogue.parameters import Json
from dala.studio.document.tab import Tab
from dala.studio.folders import kind_of
from dala.studio.sources import source as sources

if TYPE_CHECKING:
    from dala.studio.session import StudioSession
    from dala.untrusted.opened import Opened

#: The photograph that kernels of files are shown on.
_SAMPLE: Final = "coffee"


def open_file(session: StudioSession, file: Opened) -> Tab:
    """Open a file in a new tab; a preset replaces the chain of the active one.

    Raises:
        DalaError, OSError: it cannot be read, or is of an unknown kind.
    """
    kind = kind_of(file.name)
    if kind == "json":
        return _json(session, file)
    if kind == "kernel":
        return _kernel(session, file)
    source: sources.StudioSource
    if kind == "video" and not _is_still(file):
        source = sources.MovingFile(file, session.device)
    elif kind in ("picture", "video"):
        source = sources.StillPicture.open(file, session.limits.pixels, str(file.name))
    else:
        raise ParameterError.invalid(
            "open", "path", "a picture, a video, a scene, a kernel or a preset", file.name.name
        )
    return session.add_tab(source)


def _is_still(file: Opened) -> bool:
    """Return whether a GIF has one picture."""
    if file.name.suffix.lower() != ".gif":
        return False
    from dala.media.pictures.plugins import open_image

    try:  # by the decoders for files of strangers, and no further than the second picture
        with open_image(Path(file)) as image:
            return not getattr(image, "is_animated", False)
    except Exception:  # decoders raise nearly anything
        return False


def _json(session: StudioSession, file: Opened) -> Tab:
    from dala.media.scene.file.load import read
    from dala.studio.commands.chain import cards_of
    from dala.studio.scenes.source import SceneFile

    data = read(file)
    if isinstance(data, dict) and "chain" in data:
        if session.active is None:
            session.add_tab(_sample_picture(_SAMPLE))
        tab = session.tab("open")
        tab.change(cards_of(session, tab, data))
        return tab
    limits = session.limits
    source = SceneFile(
        file, session.device, session.folders, limits.scene_memory, limits.chain_time
    )
    tab = session.add_tab(source)
    tab.contents = replace(tab.contents, scene=source.document)
    session.own(file.name)
    return tab


def _kernel(session: StudioSession, file: Opened) -> Tab:
    try:
        text = file.content(4 * MAX_TEXT, "open").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ParameterError(
            f"open: {file.name.name!r} is not UTF-8 (byte {error.start})."
        ) from None
    pixels = np.asarray(samples.photo(_SAMPLE, device="cpu"))
    tab = session.add_tab(sources.KernelPicture(pixels, file.name.name, str(file.name)))
    card = new_card(tab.next_card(), "kernel", None, None, text)
    tab.contents = replace(tab.contents, cards=(replace(card, path=str(file.name)),))
    session.own(file.name)
    return tab


def _sample_picture(name: str) -> sources.StillPicture:
    return sources.StillPicture(np.asarray(samples.photo(name, device="cpu")), name)


def open_sample(session: StudioSession, name: str, kind: Json = None) -> Tab:
    """Open a photograph or a video for trying things.

    Raises:
        ParameterError: there is no such sample.
    """
    if kind == "video" or (kind is None and name not in samples.PHOTOS):
        source: sources.StudioSource = sources.MovingFile(samples.video(name), session.device)
        source.title, source.path = name, ""
        return session.add_tab(source)
    return session.add_tab(_sample_picture(name))


def open_camera(session: StudioSession, camera: Json) -> Tab:
    """Open a camera.

    Raises:
        VideoNotFound, VideoError: there is no such camera, or it cannot be opened.
    """
    if isinstance(camera, str) and camera.isdecimal() and len(camera) < 4:
        camera = int(camera)
    if isinstance(camera, bool) or not isinstance(camera, str | int):
        raise ParameterError.invalid("open", "camera", "the id of a camera", camera)
    return session.add_tab(sources.CameraFeed(camera, session.device))
