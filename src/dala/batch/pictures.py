"""Jobs over pictures: ``batch.images``."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Sequence
from typing import Final, cast

from dala.batch import storage
from dala.batch.chains import Assets, ChainItem, pack_chain, unpack_chain
from dala.batch.driver import Step
from dala.batch.jobs import BatchJob
from dala.batch.keeping import kept
from dala.batch.manifest import Manifest
from dala.batch.places import (
    Patterns,
    Template,
    check_name,
    check_target,
    digest,
    find_files,
    patterns_of,
)
from dala.batch.plans import BatchPlan
from dala.batch.report import counted
from dala.batch.tasks import (
    BatchTask,
    Json,
    JsonObject,
    Made,
    PartFailure,
    ProgressReport,
    Result,
    int_of,
    list_of,
    text_of,
)
from dala.batch.worker import FINAL, error_text
from dala.errors import ParameterError
from dala.typing import PathLike

_CALL: Final = "batch.images"
#: Suffixes of the files of a folder that are read as pictures.
SUFFIXES: Final = frozenset((
    ".avif", ".bmp", ".gif", ".jp2", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm",
    ".tga", ".tif", ".tiff", ".webp",
))  # fmt: skip
#: A group ends after a file whose name has a digest that this divides, or after the most files.
#: So a file that is added changes one group, and the others of a resumed job stay as they are.
_MEAN: Final = 48
_MOST: Final = 96
#: A group ends once its files have so many bytes.
_BYTES: Final = 256 << 20


def images(
    pattern: Patterns,
    out: PathLike,
    chain: Sequence[ChainItem],
    *,
    quality: int | None = None,
    device: str | None = None,
    max_pixels: int = 1 << 27,
    color: str = "srgb",
    background: str = "white",
) -> BatchJob:
    """Filter many pictures.

    Args:
        pattern: a folder, a pattern such as "photos/**/*.jpg", a name or a list of them; paths
            or URLs.
        out: the names of the results, such as "small/{path}.webp"; fields are ``{path}`` (the
            folders below the pattern's root and the stem), ``{parent}``, ``{stem}``, ``{name}``
            and ``{suffix}``. A folder stands for the same names in it.
        chain: filters, as for ``FramePipeline``.
        quality: of JPEG, WebP and AVIF.
        device: where filters run; by default the current device.
        max_pixels: the most pixels of a picture.
        color: "srgb" converts pictures with an ICC profile, "raw" keeps their values.
        background: below transparent pixels in formats without alpha.

    Example::

        batch.images("photos/**/*.jpg", out="small/{path}.webp",
                     chain=[("resize", {"size": (360, 640)})]).run()
    """
    from dala.gpu.command import color_to_rgba

    if quality is not None and (
        isinstance(quality, bool) or not isinstance(quality, int) or not 1 <= quality <= 100
    ):
        raise ParameterError.invalid(_CALL, "quality", "an int from 1 to 100, or None", quality)
    if isinstance(max_pixels, bool) or not isinstance(max_pixels, int) or max_pixels < 1:
        raise ParameterError.invalid(_CALL, "max_pixels", "an int of at least 1", max_pixels)
    if color not in ("srgb", "raw"):
        raise ParameterError.invalid(_CALL, "color", "'srgb' or 'raw'", color)
    color_to_rgba(background)
    assets = Assets()
    spec: JsonObject = {
        "chain": pack_chain(chain, assets.keep, _CALL),
        "quality": quality,
        "device": device_id(device),
        "max_pixels": max_pixels,
        "color": color,
        "background": background,
    }
    return PictureJob(
        _CALL,
        patterns_of(pattern, _CALL),
        Template(out, _CALL),
        spec,
        assets=assets,
        device=text_of(spec, "device"),
    )


def device_id(device: str | None) -> str:
    """Return the id of a device; by default that of the current one.

    >>> device_id("cpu")
    'cpu'
    """
    from dala.gpu.compute import buffer_zeros

    with buffer_zeros(1, "u8", device=device) as probe:
        return probe.device


class PictureJob(BatchJob):
    """A job over pictures, in groups of some dozens."""

    kind = "pictures"

    def tasks(self, manifest: Manifest) -> Iterator[Step]:
        """Yield a task for each group of pictures."""
        for files, root in self._groups():
            names: list[Json] = [facts.name[len(root) :].strip("/") for facts in files]
            key = digest(root, *(f"{f.name}\0{f.size}\0{f.stamp}" for f in files))
            part: JsonObject = {"root": root, "names": names, "out": self.out.text}
            label = f"{counted(len(files), 'pictures')} from {files[0].name}"
            yield self.task(key, "pictures", label, part, weight=float(len(files)))

    def _groups(self) -> Iterator[tuple[list[storage.Facts], str]]:
        seen: set[int] = set()
        group: list[storage.Facts] = []
        before, size = "", 0
        for facts, root in find_files(self.patterns, SUFFIXES, self.call):
            target = self.out.name_of(facts.name, root)
            if target == facts.name:
                raise ParameterError(
                    f"{self.call}: {facts.name!r} is an input and is not overwritten. Change out."
                )
            key = hash(target)
            if key in seen:
                raise ParameterError(
                    f"{self.call}: two pictures would become {target!r}. Use {{path}} or "
                    "{name} in out."
                )
            seen.add(key)
            if group and root != before:
                yield group, before
                group, size = [], 0
            before = root
            group.append(facts)
            size += facts.size
            ends = int(digest(facts.name), 16) % _MEAN == 0
            if ends or len(group) >= _MOST or size >= _BYTES:
                yield group, root
                group, size = [], 0
        if group:
            yield group, before

    def finished(self, task: BatchTask, manifest: Manifest) -> Result | None:
        """Return the result of a group that has a record: all its pictures were made."""
        if not manifest.is_done(task.id):
            return None
        return Result(task.id, len(list_of(task.part, "names")), 0.0, 0.0)

    def files_of(self, task: BatchTask, result: Result) -> int:
        """Return how many pictures a group has made."""
        return result.frames

    def plan(self) -> BatchPlan:
        """Return the number of pictures, groups and bytes."""
        plan = BatchPlan("pictures")
        for files, _ in self._groups():
            plan.chunks += 1
            plan.files += len(files)
            plan.bytes_read += sum(facts.size for facts in files)
        return plan


def filter_group(task: BatchTask, report: ProgressReport) -> Made:
    """Filter the pictures of a group. One that fails does not keep the others from being made."""
    from dala.media.filters.pipeline import FramePipeline
    from dala.media.pictures.filtering import filter_picture, large_pictures

    spec, part = task.spec, task.part
    packed, device = list_of(spec, "chain"), text_of(spec, "device")
    chain = unpack_chain(packed, task.work)
    root = text_of(part, "root")
    template = Template(text_of(part, "out"), _CALL)
    quality = cast("int | None", spec.get("quality"))
    failures: list[PartFailure] = []
    read = written = done = 0
    key = json.dumps(["pictures", task.work, packed, device])
    with (
        large_pictures(),
        kept(key, lambda: FramePipeline(1 << 20, 1 << 20, device=device)) as pipeline,
    ):
        for name in map(str, list_of(part, "names")):
            source = check_name(storage.join(root, name), task.roots, _CALL)
            target = check_target(template.name_of(source, root), task.roots, _CALL)
            try:
                data = storage.read_bytes(source)
                made = io.BytesIO()
                filter_picture(
                    pipeline, chain, data, made, os.path.splitext(target)[1],
                    max_pixels=int_of(spec, "max_pixels"), quality=quality,
                    color=text_of(spec, "color"), background=text_of(spec, "background"),
                )  # fmt: skip
                storage.write_bytes(target, made.getvalue())
            except Exception as error:
                failures.append(PartFailure(source, error_text(error), isinstance(error, FINAL)))
                continue
            read, written, done = read + len(data), written + len(made.getvalue()), done + 1
            report(done)
    return Made(done, read, written, failures=tuple(failures))
