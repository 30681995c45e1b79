"""Parquet files: written row group by row group, and named when they are complete."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dala.batch import storage
from dala.errors import ParameterError
from dala.extras import needing

if TYPE_CHECKING:
    from dala.ml.results import Prediction

#: The module ``pyarrow`` or one of its objects, which have no types that hold here.
ArrowObject: TypeAlias = Any
#: A row: each column's value.
Row: TypeAlias = "dict[str, str | float | dict[str, float] | list[dict[str, str | float]] | None]"

#: Tasks of models whose results have rows, each with the model that is used by default.
TASKS: Final = {
    "detect": "nanodet", "classify": "mobilenet_v2", "faces": "blazeface", "hands": "hands",
    "poses": "movenet",
}  # fmt: skip
#: Those with keypoints.
_POINTS: Final = frozenset(("faces", "hands", "poses"))


def pyarrow(call: str) -> ArrowObject:
    """Return the module ``pyarrow``.

    Raises:
        MissingPackage: it is not installed.
    """
    with needing(call, "batch", why=", and tables need it"):
        import pyarrow as module
        import pyarrow.parquet
    assert pyarrow.parquet is not None
    return module


def schema(task: str) -> ArrowObject:
    """Return the columns of a task's table.

    >>> schema("detect").names
    ['video', 'time', 'box', 'label', 'score', 'model', 'version']
    >>> schema("faces").names[-1]
    'keypoints'
    """
    pa = pyarrow("batch")
    name = pa.dictionary(pa.int32(), pa.string())
    number = pa.float32()
    box = pa.struct([(side, number) for side in ("x1", "y1", "x2", "y2")])
    columns = [
        ("video", name),
        ("time", pa.float64()),  # null for pictures
        ("box", box),  # null for classes of the whole picture
        ("label", name),
        ("score", number),
        ("model", name),
        ("version", name),
    ]
    if task in _POINTS:
        point = pa.struct([("name", pa.string()), ("x", number), ("y", number), ("score", number)])
        columns.append(("keypoints", pa.list_(point)))
    return pa.schema(columns)


def rows_of(
    task: str, found: Prediction, video: str, time: float | None, top: int
) -> Iterator[Row]:
    """Yield a row for each thing that a model found, without the columns of the model.

    >>> from dala.ml.results import Detection, Detections
    >>> found = Detections([Detection((10, 20, 50, 80), "dog", 0.8)])
    >>> next(rows_of("detect", found, "a.mp4", 1.5, 5))["box"]
    {'x1': 10, 'y1': 20, 'x2': 50, 'y2': 80}
    """
    from dala.ml.results import Detection, Pose, Scores

    head: Row = {"video": video, "time": time}
    if isinstance(found, Scores):
        for one in found.top(top):
            yield {**head, "box": None, "label": one.label, "score": one.probability}
        return
    assert isinstance(found, list)
    for thing in found:
        assert isinstance(thing, Detection | Pose)
        label = thing.label if isinstance(thing, Detection) else "person"
        side = getattr(thing, "side", "")
        row: Row = {
            **head,
            "box": dict(zip(("x1", "y1", "x2", "y2"), thing.box, strict=True)),
            "label": f"{side} {label}".lstrip(),
            "score": thing.score,
        }
        if task in _POINTS:
            points = getattr(thing, "keypoints", ())
            row["keypoints"] = [
                {"name": p.name, "x": p.x, "y": p.y, "score": p.score} for p in points
            ]
        yield row


#: Rows of a row group, and rows after which the next file begins.
GROUP: Final = 1 << 16
FILE: Final = 1 << 22


class RowFile:
    """A Parquet file that is being written.

    Args:
        path: where.
        schema: the columns.
        facts: kept in the file, beside the columns.
    """

    def __init__(
        self, path: Path, schema: ArrowObject, facts: Mapping[str, str] | None = None
    ) -> None:
        self._arrow = pyarrow("batch")
        self._schema = schema.with_metadata(dict(facts)) if facts else schema
        self._writer = self._arrow.parquet.ParquetWriter(path, self._schema, compression="zstd")
        self._rows: list[Row] = []
        self.rows = 0

    def add(self, row: Row) -> None:
        """Add a row."""
        self._rows.append(row)
        if len(self._rows) >= GROUP:
            self._flush()

    def add_batch(self, batch: ArrowObject) -> None:
        """Add rows of another file, a row group at most."""
        self._flush()
        table = self._arrow.Table.from_batches([batch]).cast(self._schema)
        self._writer.write_table(table, GROUP)
        self.rows += len(table)

    def _flush(self) -> None:
        if self._rows:
            table = self._arrow.Table.from_pylist(self._rows, self._schema)
            self._writer.write_table(table)
            self.rows += len(self._rows)
            self._rows = []

    def close(self) -> None:
        """Write the remaining rows and end the file."""
        self._flush()
        self._writer.close()


def batches_of(names: Iterable[str]) -> Iterator[ArrowObject]:
    """Yield the rows of files as batches of Arrow, a file at a time."""
    for name in names:
        with _opened(name) as found:
            yield from found.iter_batches(GROUP)


def rows_in(name: str) -> int:
    """Return the rows of a file, from its end."""
    with _opened(name) as found:
        return int(found.metadata.num_rows)


def schema_of(name: str) -> ArrowObject:
    """Return the columns of a file."""
    with _opened(name) as found:
        return found.schema_arrow


@contextlib.contextmanager
def _opened(name: str) -> Iterator[ArrowObject]:
    arrow = pyarrow("batch.read")
    with storage.open_read(name) as file:
        try:
            yield arrow.parquet.ParquetFile(file)
        except (arrow.ArrowInvalid, arrow.ArrowKeyError, arrow.ArrowNotImplementedError) as error:
            raise ParameterError(
                f"batch.read: {storage.shown(name)!r} is no Parquet file, or damaged ({error})."
            ) from None


def write_folder(
    batches: Iterable[ArrowObject], schema: ArrowObject, folder: str, file_rows: int = FILE
) -> int:
    """Write batches as files of a folder; return the rows. Each file appears whole.

    Files of an earlier table in the folder are replaced, and removed after the last new one.
    """
    found = iter(batches)
    number = rows = 0
    more: ArrowObject | None = next(found, None)
    written = set()
    while more is not None or not number:
        name = storage.join(folder, f"part-{number:05}.parquet")
        with storage.writing(name) as path:
            file = RowFile(path, schema)
            while more is not None and file.rows < file_rows:
                file.add_batch(more)
                more = next(found, None)
            file.close()
        rows += file.rows
        written.add(name)
        number += 1
    for old in storage.list_folder(folder):
        last = storage.name_of(old.name)
        if last.startswith("part-") and last.endswith(".parquet") and old.name not in written:
            storage.remove(old.name)
    return rows
