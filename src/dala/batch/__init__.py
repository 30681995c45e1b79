"""The same work over many files, on one machine or many, with one identical result.

``batch.videos``, ``batch.images`` and ``batch.scenes`` describe a job. ``job.plan()`` says what it
would do, ``job.run()`` does it: in processes of this machine, or on a Ray cluster. Tasks are a few
hundred bytes; workers read and write files themselves.

>>> from dala import batch
>>> job = batch.images("photos/**/*.jpg", out="small/{path}.webp", chain=["grayscale"])
>>> job.out.name_of("/photos/a/b.jpg", "/photos").endswith("/small/a/b.webp")
True
"""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.batch.jobs import BatchJob as BatchJob
    from dala.batch.pictures import images as images
    from dala.batch.planning.plans import BatchPlan as BatchPlan
    from dala.batch.planning.scaling import MachineKind as MachineKind
    from dala.batch.planning.scaling import ScalePoint as ScalePoint
    from dala.batch.planning.scaling import scale as scale
    from dala.batch.report import BatchReport as BatchReport
    from dala.batch.report import Failure as Failure
    from dala.batch.scene.job import scenes as scenes
    from dala.batch.tables.jobs import TableJob as TableJob
    from dala.batch.tables.jobs import TableReport as TableReport
    from dala.batch.tables.jobs import classify as classify
    from dala.batch.tables.jobs import detect as detect
    from dala.batch.tables.jobs import faces as faces
    from dala.batch.tables.jobs import hands as hands
    from dala.batch.tables.jobs import poses as poses
    from dala.batch.tables.table import ResultTable as ResultTable
    from dala.batch.tables.table import read as read
    from dala.batch.tasks import BatchTask as BatchTask
    from dala.batch.tasks import Result as Result
    from dala.batch.tasks import run_task as run_task
    from dala.batch.video.job import videos as videos

_HOMES = {
    "Failure": "dala.batch.report",
    "BatchJob": "dala.batch.jobs",
    "BatchPlan": "dala.batch.planning.plans",
    "BatchReport": "dala.batch.report",
    "Result": "dala.batch.tasks",
    "BatchTask": "dala.batch.tasks",
    "images": "dala.batch.pictures",
    "detect": "dala.batch.tables.jobs",
    "classify": "dala.batch.tables.jobs",
    "faces": "dala.batch.tables.jobs",
    "hands": "dala.batch.tables.jobs",
    "poses": "dala.batch.tables.jobs",
    "TableJob": "dala.batch.tables.jobs",
    "TableReport": "dala.batch.tables.jobs",
    "ResultTable": "dala.batch.tables.table",
    "read": "dala.batch.tables.table",
    "scale": "dala.batch.planning.scaling",
    "MachineKind": "dala.batch.planning.scaling",
    "ScalePoint": "dala.batch.planning.scaling",
    "run_task": "dala.batch.tasks",
    "scenes": "dala.batch.scene.job",
    "videos": "dala.batch.video.job",
}

__all__ = list(_HOMES)

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, _HOMES)
