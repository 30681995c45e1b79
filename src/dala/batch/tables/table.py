"""Tables of results: read in batches, written as Parquet, handed to Ray Data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, cast

from dala.batch import storage
from dala.batch.places import absolute
from dala.batch.tables.parquet import Row, batches_of, rows_in, schema_of, write_folder
from dala.batch.tables.parquet import pyarrow as find_pyarrow
from dala.errors import MissingPackage, ParameterError, StorageNotFound
from dala.typing import PathLike

if TYPE_CHECKING:
    import pyarrow
    import ray.data


class ResultTable:
    """Rows in Parquet files, of which only a batch is in memory at a time.

    Iterate it for rows as dicts. ``batch.read(folder)`` returns one, and so do the reports of
    ``batch.detect`` and its sisters::

        table = batch.read("found/")
        print(len(table), table.columns)
        dogs = [row for row in table if row["label"] == "dog"]

    Args:
        names: the files, in order, or a function that returns them.
        schema: the columns, as Arrow has them; None to read them from the first file.
    """

    def __init__(
        self, names: Iterable[str] | Callable[[], Iterable[str]], schema: pyarrow.Schema | None
    ) -> None:
        self._names = names
        self._schema = schema

    @property
    def files(self) -> list[str]:
        """The names of the files."""
        return list(self._names() if callable(self._names) else self._names)

    @property
    def schema(self) -> pyarrow.Schema:
        """The columns, as Arrow has them."""
        if self._schema is None:
            self._schema = schema_of(self.files[0])
        return self._schema

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    def __len__(self) -> int:
        return sum(map(rows_in, self.files))

    def __iter__(self) -> Iterator[Row]:
        for batch in self.batches():
            yield from cast("list[Row]", batch.to_pylist())

    def __repr__(self) -> str:
        return f"<ResultTable of {len(self)} rows: {', '.join(self.columns)}>"

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows as record batches of Arrow."""
        return batches_of(self._names() if callable(self._names) else self._names)

    def to_arrow(self) -> pyarrow.Table:
        """Return all rows as a table of Arrow, in memory."""
        pa = find_pyarrow("ResultTable.to_arrow")
        made = [pa.Table.from_batches([b]).cast(self.schema) for b in self.batches()]
        return pa.concat_tables(made) if made else self.schema.empty_table()

    def to_parquet(self, folder: PathLike) -> ResultTable:
        """Write the rows as Parquet files of a folder; return the table that is there.

        Each file appears whole. Tables that are in the folder already are replaced.
        """
        place = absolute(folder, "to_parquet", "folder").rstrip("/")
        own = [name for name in self.files if storage.parent(name).rstrip("/") == place]
        if not own:
            write_folder(self.batches(), self.schema, place)
        return read(place)

    def to_ray_dataset(self) -> ray.data.Dataset:
        """Return the rows as a dataset of Ray Data, which reads the files on its own workers.

        Raises:
            MissingPackage: Ray Data is not installed.
        """
        try:
            import ray.data
        except ImportError as error:
            raise MissingPackage(
                f"to_ray_dataset: Ray Data cannot be imported ({error}). Run: "
                'pip install "ray[data]"'
            ) from None
        files = self.files
        if not files:
            return ray.data.from_arrow(self.to_arrow())
        system = storage.current.system_of(files[0])
        if system is None:
            return ray.data.read_parquet([str(storage.local_path(name)) for name in files])
        return ray.data.read_parquet(files, filesystem=system)


def read(folder: PathLike) -> ResultTable:
    """Open a table: a folder of Parquet files, a pattern, or a file; a path or a URL.

    Raises:
        StorageNotFound: there is no such file or folder, or none in it.

    Example::

        for row in batch.read("found/"):
            print(row["video"], row["time"], row["label"], row["score"])
    """
    call = "batch.read"
    place = absolute(folder, call, "folder")
    names = [facts.name for facts in storage.listing(place, (".parquet",))]
    if not names:
        raise StorageNotFound(f"{call}: there is no Parquet file in {storage.shown(place)!r}.")
    first = schema_of(names[0])
    for name in names[1:]:
        if schema_of(name).names != first.names:
            raise ParameterError(
                f"{call}: the files of {storage.shown(place)!r} have different columns. Read them "
                "one by one."
            )
    return ResultTable(names, first)
