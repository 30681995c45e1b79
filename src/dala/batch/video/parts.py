"""Jobs whose results are made in parts and stitched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from dala.batch import storage
from dala.batch.driver import Step
from dala.batch.jobs import BatchJob
from dala.batch.manifest import Manifest
from dala.batch.places import check_name, digest, find_targets
from dala.batch.tasks import BatchTask, Json, JsonObject, Result, int_of
from dala.batch.video.work import PlannedVideo, part_name, whole_result


class StitchedJob(BatchJob):
    """A job over files whose parts are tasks of their own; another one stitches them."""

    #: The files of a folder that are taken, and what they are.
    suffixes: ClassVar[frozenset[str]]
    what: ClassVar[str]
    #: The kinds of the tasks for a part, and for the stitch.
    part_kind: ClassVar[str]
    stitch_kind: ClassVar[str]
    #: Results of which parts are on their way: how many are left.
    _left: dict[str, int]

    def planned(self) -> Iterator[PlannedVideo]:
        """Yield the files, with their results."""
        self._left = {}
        found = find_targets(self.patterns, self.suffixes, self.out, self.call, self.what)
        for facts, _, out in found:
            key = digest(facts.name, str(facts.size), facts.stamp, out)
            yield PlannedVideo(facts.name, facts.size, facts.stamp, out, key)

    def parts(
        self,
        source: PlannedVideo,
        facts: JsonObject,
        parts: list[tuple[JsonObject, float, float]],
        manifest: Manifest,
    ) -> Iterator[BatchTask]:
        """Yield a task for each part of a file, or the stitch if its result is there.

        Args:
            source: the file.
            facts: what the stitch needs to know.
            parts: of each, its settings, and the seconds of its begin and end.
            manifest: the records.
        """
        # They come from a record, which may be of unknown origin.
        check_name(source.name, self.roots, self.call)
        check_name(source.out, [self.out.root], self.call)
        shared: JsonObject = {"source": source.to_json(), "parts": len(parts), **facts}
        if whole_result(manifest, source) is not None:
            yield self._stitch(shared)
            return
        self._left[source.key] = len(parts)
        for number, (own, begin, end) in enumerate(parts):
            yield self.task(
                f"{source.key}-{number}",
                self.part_kind,
                f"{source.name}, {begin:g} to {end:g} s",
                {**shared, "number": number, **own},
                weight=max(0.001, end - begin),
                group=source.key,
            )

    def _stitch(self, facts: JsonObject) -> BatchTask:
        source = PlannedVideo.of(facts["source"])
        part: JsonObject = {
            key: facts[key] for key in ("source", "parts", "frames") if key in facts
        }
        return self.task(
            f"{source.key}-stitch", self.stitch_kind, source.name, part, weight=0.0,
            group=source.key,
        )  # fmt: skip

    def follow(self, task: BatchTask, result: Result, manifest: Manifest) -> Iterable[Step]:
        """Return the stitch of a file whose parts are done."""
        if task.kind == self.part_kind:
            self._left[task.group] -= 1
            if self._left[task.group] == 0:
                del self._left[task.group]
                return [self._stitch(task.part)]
        if task.kind == self.stitch_kind:
            storage.remove_tree(storage.join(self.work, "parts", task.group))
        return ()

    def results_of(self, task: BatchTask) -> list[str]:
        """Return the name of the packets of a part, or of the result of a stitch."""
        if task.kind not in (self.part_kind, self.stitch_kind):
            return []
        source = PlannedVideo.of(task.part["source"])
        if task.kind == self.stitch_kind:
            return [source.out]
        return [part_name(self.work, source.key, int_of(task.part, "number"))]

    def files_of(self, task: BatchTask, result: Result) -> int:
        """Return how many videos a finished task completes."""
        return int(task.kind == self.stitch_kind)


def numbers_of(values: Json) -> list[float]:
    """Return a list of numbers of a task's settings.

    >>> numbers_of([0, 30, 1.5])
    [0, 30, 1.5]
    """
    assert isinstance(values, list)
    return [value for value in values if isinstance(value, int | float)]
