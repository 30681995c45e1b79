"""Rows: what models find, as columns of Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dala.extras import needing

if TYPE_CHECKING:
    from dala.ml.results import Prediction

#: The module ``pyarrow`` or one of its objects, which have no types that hold here.
ArrowObject: TypeAlias = Any
#: A row: each column's value.
Row: TypeAlias = "dict[str, str | float | dict[str, float] | list[dict[str, str | float]] | None]"

#: Tasks of models whose results have rows, each with the model that is used by default.
TASKS: Final = {
    "detect": "nanodet",
    "classify": "mobilenet_v2",
    "faces": "blazeface",
    "hands": "hands",
    "poses": "movenet",
}
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
