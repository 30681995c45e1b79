"""The names of the package; see ``dala.lazy``."""

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
