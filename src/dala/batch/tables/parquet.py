"""Parquet files: written row group by row group, and named when they are complete."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from dala.batch import storage
from dala.batch.tables.rows import ArrowObject, Row, pyarrow
from dala.errors import ParameterError

#: Rows of a row group, and rows after which the next file begins.
GROUP: Final = 1 << 16
FILE: Final = 1 << 22


class RowFile:
    """A Parquet file that is being written.

    Args:
        path: where.
        schema: the columns.
        facts: kept in the file, beside the columns.
        group: rows of a row group.
    """

    def __init__(
        self,
        path: Path,
        schema: ArrowObject,
        facts: Mapping[str, str] | None = None,
        group: int = GROUP,
    ) -> None:
        self._arrow = pyarrow("batch")
        self._schema = schema.with_metadata(dict(facts)) if facts else schema
        self._writer = self._arrow.parquet.ParquetWriter(path, self._schema, compression="zstd")
        self._rows: list[Row] = []
        self._group = group
        self.rows = 0

    def add(self, row: Row) -> None:
        """Add a row."""
        self._rows.append(row)
        if len(self._rows) >= self._group:
            self._flush()

    def add_batch(self, batch: ArrowObject) -> None:
        """Add rows of another file, a row group at most."""
        self._flush()
        table = self._arrow.Table.from_batches([batch]).cast(self._schema)
        self._writer.write_table(table, self._group)
        self.rows += len(table)

    def _flush(self) -> None:
        if self._rows:
            table = self._arrow.Table.from_pylist(self._rows, self._schema)
            self._writer.write_table(table)
            self.rows += len(self._rows)
            self._rows = []

    def close(self) -> None:
        """Write what is left and end the file."""
        self._flush()
        self._writer.close()


def batches_of(names: Iterable[str], size: int = GROUP) -> Iterator[ArrowObject]:
    """Yield the rows of files as batches of Arrow, a file at a time."""
    pa = pyarrow("batch.read")
    for name in names:
        with storage.open_read(name) as file, _readable(name):
            found = pa.parquet.ParquetFile(file)
            yield from found.iter_batches(size)


def rows_in(name: str) -> int:
    """Return the rows of a file, from its end."""
    pa = pyarrow("batch.read")
    with storage.open_read(name) as file, _readable(name):
        return int(pa.parquet.read_metadata(file).num_rows)


def schema_of(name: str) -> ArrowObject:
    """Return the columns of a file."""
    pa = pyarrow("batch.read")
    with storage.open_read(name) as file, _readable(name):
        return pa.parquet.read_schema(file)


@contextlib.contextmanager
def _readable(name: str) -> Iterator[None]:
    arrow = pyarrow("batch.read")
    try:
        yield
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
