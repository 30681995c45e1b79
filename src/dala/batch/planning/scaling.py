"""How a plan would scale: time, efficiency and bottleneck on so many machines. An estimate.

The model is simple. Workers take tasks as they become free; a cluster is as fast as its slowest
part: processors, GPUs, the network of a machine, the storage that all share, or the driver. At the
end workers run dry, so a cluster with more workers than tasks gains nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dala.arguments import Integer
from dala.batch.planning.plans import BatchPlan
from dala.errors import ParameterError

#: Bytes of results pass so often: a part is written, read again, and written into the file.
_WRITTEN_TIMES = 3
#: Where the end takes more than this beyond the even share, there are too few chunks.
_DRY = 1.25


@dataclass(frozen=True)
class MachineKind:
    """The resources of each machine, and the shared ones.

    >>> MachineKind(cores=8).cores
    8
    """

    cores: int = 16
    #: GPUs, and the seconds that a frame's filters take on one; 0 for filters on the CPU.
    gpus: float = 0.0
    gpu_seconds: float = 0.0
    #: Bytes a second of a machine's network, and of the storage that all machines share.
    network: float = 1.25e9
    storage: float = 5e9
    #: Seconds that the driver needs for a task, and those until workers have started.
    overhead: float = 0.005
    start: float = 20.0


@dataclass(frozen=True)
class ScalePoint:
    """The estimate for one number of machines.

    ``efficiency`` is 1 where twice the machines need half the time. ``bottleneck`` is "CPU", "GPU",
    "network", "storage", "driver", "chunks" (there are not enough of them) or "start".

    >>> ScalePoint(machines=8, seconds=60.0, efficiency=0.9, bottleneck="storage").bottleneck
    'storage'
    """

    machines: int
    seconds: float
    efficiency: float
    bottleneck: str


def scale(
    plan: BatchPlan,
    machines: Iterable[int],
    kind: MachineKind | None = None,
    *,
    filter_share: float = 0.0,
) -> list[ScalePoint]:
    """Return an estimate of a plan's time on so many machines.

    Args:
        plan: what ``job.plan()`` returned, with its calibration.
        machines: numbers of machines.
        kind: what each machine has.
        filter_share: the share of a worker's time that filters take, which a GPU takes over.

    Raises:
        ParameterError: the plan has no calibration, or an argument is invalid.

    >>> plan = BatchPlan("videos", files=100, chunks=1000, frames=10**6, bytes_read=10**11)
    >>> plan.worker_minutes, plan.bytes_written = 2000.0, 10**10
    >>> for point in scale(plan, (1, 10, 1000)):
    ...     print(f"{point.machines:4} {point.seconds:6.0f} s {point.efficiency:4.0%}")
       1   7580 s 100%
      10    830 s  91%
    1000    140 s   5%
    """
    if not isinstance(plan, BatchPlan):
        raise ParameterError.invalid("batch.scale", "plan", "a BatchPlan, from job.plan()", plan)
    kind = kind or MachineKind()
    if plan.worker_minutes is None or not plan.chunks:
        expected = "one with an estimate of its time"
        raise ParameterError.invalid("batch.scale", "plan", expected, plan)
    if not 0 <= filter_share < 1:
        raise ParameterError.invalid(
            "batch.scale", "filter_share", "a number from 0 to below 1", filter_share
        )
    counts = list(machines)
    for count in counts:
        Integer(1, words="ints of at least 1").check("batch.scale", "machines", count)
    alone = max(_parts(plan, 1, kind, filter_share).values()) + kind.start
    made = []
    for count in counts:
        parts = _parts(plan, count, kind, filter_share)
        slowest = max(parts, key=lambda name: parts[name])
        seconds = parts[slowest] + kind.start
        bottleneck = slowest if parts[slowest] >= kind.start else "start"
        made.append(ScalePoint(count, seconds, alone / (count * seconds), bottleneck))
    return made


def _parts(plan: BatchPlan, count: int, kind: MachineKind, filter_share: float) -> dict[str, float]:
    """Return the seconds of each part of a cluster if it were the only limit."""
    assert plan.worker_minutes is not None
    on_gpu = kind.gpus > 0 and kind.gpu_seconds > 0
    work = plan.worker_minutes * 60 * (1 - filter_share if on_gpu else 1)
    workers = count * kind.cores
    moved = plan.bytes_read + _WRITTEN_TIMES * (plan.bytes_written or 0)
    tasks = plan.chunks + 2 * plan.files
    even, one = work / workers, work / plan.chunks
    # At the end workers run dry, each half a chunk early on average.
    busy = max(even + one / 2, one)
    parts = {
        "chunks" if busy > _DRY * even else "CPU": busy,
        "network": moved / (count * kind.network),
        "storage": moved / kind.storage,
        "driver": tasks * kind.overhead,
    }
    if on_gpu:
        parts["GPU"] = plan.frames * kind.gpu_seconds / (count * kind.gpus)
    return parts
