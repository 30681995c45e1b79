"""Tasks on a Ray cluster: one long-lived actor for each share of a machine.

Ray starts the processes, watches them and carries a few hundred bytes each way. Each actor is bound
to one machine, so that a machine which does not match the plan can be refused by name, and a task
that failed on one is tried on another.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from dala.batch import storage
from dala.batch.runners import Resources
from dala.batch.runners.remote import RayWorker
from dala.batch.tasks import BatchTask, Event, Failed, Finished, Progressed, Result, Started
from dala.errors import BatchError, counted
from dala.extras import needing
from dala.notices import notify

#: The module, a handle of an actor, or a reference of Ray, which has no types that hold here.
RayObject: TypeAlias = Any

#: Seconds between two looks at the machines of the cluster.
_LOOK: Final = 2.0
#: Seconds between two questions for progress.
_ASK: Final = 1.0
#: Questions that are under way at once.
_QUESTIONS: Final = 64
#: Seconds to wait for the first worker, in which a cluster may add machines.
_PATIENCE: Final = 120.0
#: Workers of one machine that may die before their first answer.
_STILLBORN: Final = 3
#: Seconds in which the head of a cluster must accept a connection.
_ANSWER: Final = 10.0
#: Bytes of shared memory of a Ray that is started here: descriptors need next to none.
_OBJECT_STORE: Final = 80 << 20


def ray_module() -> RayObject:
    """Return the module ``ray``.

    Raises:
        MissingPackage: it is not installed.
    """
    with needing("Job.run", "cluster", "Ray", ", and on='ray' needs it"):
        import ray
    return ray


@dataclass
class _Slot:
    """An actor, and its task."""

    node: _Node
    actor: RayObject
    hello: RayObject
    #: Its name once it has answered.
    worker: str = ""
    task: BatchTask | None = None
    running: RayObject = None
    question: RayObject = None


@dataclass
class _Node:
    """A machine of the cluster."""

    id: str
    name: str
    #: Actors that it has room for.
    room: int
    alive: bool = True
    #: Why it takes no part.
    refused: str = ""
    #: Actors in a row that died before they answered.
    stillborn: int = 0
    slots: list[_Slot] = field(default_factory=list)


class RayRunner:
    """Runs tasks on a Ray cluster.

    Args:
        on: "ray" for the Ray that is initialized, else that of RAY_ADDRESS, else a new local one;
            or an address such as ``"ray://head:10001"``.
        resources: what a task takes.
    """

    name = "ray"

    def __init__(self, on: str, resources: Resources) -> None:
        self._on = on
        self._resources = resources
        self._ray: RayObject = None
        self._owned = False
        self._gpus = _gpus(resources)
        self._cpus = float(resources.threads if resources.cpus is None else resources.cpus)
        self._nodes: dict[str, _Node] = {}
        self._waiting: deque[BatchTask] = deque()
        #: The machines on which a task has failed.
        self._failed_on: dict[str, set[str]] = {}
        self._environment: str | None = None
        self._looked = self._asked = 0.0
        self._since = 0.0
        #: Workers for which the cluster was asked to have room.
        self._requested = 0

    # connecting -------------------------------------------------------------------------------
    def start(self) -> str:
        """Connect to the cluster; return which one it is.

        Raises:
            MissingPackage: Ray is not installed.
            BatchError: there is no Ray at the address, or none that can be used.
        """
        self._ray = ray_module()
        which = self._connect()
        self._since = time.monotonic()
        self._look()
        machines = [node for node in self._nodes.values() if node.alive]
        room = sum(node.room for node in machines)
        if not room and self._owned:
            raise BatchError(f"Job.run: {self._no_room()}")
        nodes = counted(len(machines), "machines")
        return f"{which}, {nodes}, room for {counted(self._limit(room), 'workers')}"

    def _connect(self) -> str:
        ray, on = self._ray, self._on
        if ray.is_initialized():
            here = ray.get_runtime_context().gcs_address
            if on not in ("ray", "auto", here) and not on.startswith("ray://"):
                raise BatchError(
                    f"Job.run: Ray is already initialized with {here}, not {on}. Use on='ray', or "
                    "call ray.shutdown() first."
                )
            return f"the Ray that is initialized ({here})"
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        address = os.environ.get("RAY_ADDRESS", "") if on == "ray" else on
        quiet = {"log_to_driver": False, "logging_level": "warning"}
        try:
            if address and address != "local":
                _reach(address)
                ray.init(address=address, **quiet)
                which = f"the Ray at {address}"
                which += " (RAY_ADDRESS)" if on == "ray" else ""
            else:
                ray.init(
                    address="local",
                    include_dashboard=False,
                    object_store_memory=_OBJECT_STORE,
                    **quiet,
                )
                which = "a local Ray, started for this job"
        except (ConnectionError, OSError, RuntimeError, ValueError, TimeoutError) as error:
            where = f"at {address}" if address else "on this machine"
            raise BatchError(
                f"Job.run: no Ray can be used {where} ({_short(error)}). See docs/batch.md, also "
                "for clusters that ask for a token."
            ) from error
        self._owned = True
        return which

    # machines ---------------------------------------------------------------------------------
    def _look(self) -> None:
        """Find machines that are new or gone."""
        self._looked = time.monotonic()
        found = {node["NodeID"]: node for node in self._ray.nodes()}
        if self._resources.cpus is None and not any(node.room for node in self._nodes.values()):
            self._fit([facts["Resources"] for facts in found.values() if facts["Alive"]])
        for id, facts in found.items():
            known = self._nodes.get(id)
            if known is not None:
                known.alive = bool(facts["Alive"])
                known.room = known.room or self._room(facts["Resources"])
            elif facts["Alive"]:
                name = facts.get("NodeManagerHostname") or facts.get("NodeName") or id[:8]
                self._nodes[id] = _Node(id, f"{name} ({id[:8]})", self._room(facts["Resources"]))
        for id, node in self._nodes.items():
            node.alive = node.alive and id in found

    def _fit(self, machines: list[dict[str, float]]) -> None:
        """Take no more CPUs for a task than the largest machine has."""
        fitting = [m.get("CPU", 0.0) for m in machines if self._room({**m, "CPU": 1e9})]
        most = max(fitting, default=0.0)
        if 0 < most < self._cpus:
            wanted, self._cpus = self._cpus, float(int(most) or most)
            notify(f"Job.run: no machine has {wanted:g} CPUs for a task; it takes {self._cpus:g}.")

    def _room(self, resources: dict[str, float]) -> int:
        """Return how many actors a machine has room for."""
        cpus = resources.get("CPU", 0.0)
        room = cpus if not self._cpus else cpus / self._cpus
        if self._gpus:
            room = min(room, resources.get("GPU", 0.0) / self._gpus)
        if self._resources.memory:
            room = min(room, resources.get("memory", 0.0) / self._resources.memory)
        return int(room + 1e-9)

    def _limit(self, room: int) -> int:
        wanted = self._resources.workers
        return room if wanted is None else min(room, wanted)

    def _fill(self) -> None:
        """Start actors for tasks that have none, in turns over the machines."""
        usable = self._usable
        slots = sum(len(n.slots) for n in usable)
        limit = self._limit(sum(n.room for n in usable))
        tasks = len(self._waiting) + sum(s.task is not None for s in self._slots)
        while slots < min(limit, tasks):
            open_nodes = [n for n in usable if len(n.slots) < n.room]
            if not open_nodes:
                return
            self._start_actor(min(open_nodes, key=lambda n: len(n.slots)))
            slots += 1

    def _grow(self) -> None:
        """Ask a cluster that adds machines by itself for room for the tasks that wait.

        Actors are bound to machines, so Ray does not see by itself that there could be more. The
        driver gives twice as many tasks as there is room for: the cluster doubles until it is as
        large as it may be, or tasks run out.
        """
        room = sum(n.room for n in self._usable)
        busy = sum(s.task is not None for s in self._slots)
        wanted = self._limit(busy + len(self._waiting))
        if wanted > max(room, self._requested):
            self._request(wanted)

    def _request(self, workers: int) -> None:
        """Set for how many workers the cluster should have room; 0 for no wish."""
        bundle = {"CPU": self._cpus, "GPU": self._gpus}
        if self._resources.memory:
            bundle["memory"] = float(self._resources.memory)
        needed = {name: amount for name, amount in bundle.items() if amount}
        self._requested = workers
        with contextlib.suppress(Exception):  # of a cluster that cannot be asked
            from ray.autoscaler.sdk import request_resources

            request_resources(bundles=[needed] * workers)

    def _start_actor(self, node: _Node) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options = {
            "num_cpus": self._cpus,
            "num_gpus": self._gpus,
            "max_concurrency": 2,
            "max_restarts": 0,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node.id, soft=False),
        }
        if self._resources.memory:
            options["memory"] = self._resources.memory
        threads = math.ceil(self._cpus) if self._resources.device == "cpu" else 0
        settings = json.dumps({"storage": storage.current.options, "threads": threads})
        actor = self._ray.remote(RayWorker).options(**options).remote(settings)
        node.slots.append(_Slot(node, actor, actor.hello.remote(self._environment)))

    @property
    def _usable(self) -> list[_Node]:
        return [n for n in self._nodes.values() if n.alive and not n.refused]

    @property
    def _slots(self) -> Iterator[_Slot]:
        for node in self._nodes.values():
            yield from node.slots

    @property
    def busy(self) -> Iterator[str]:
        """The names of the workers that do a task now."""
        return (slot.worker for slot in self._slots if slot.task is not None)

    # tasks ------------------------------------------------------------------------------------
    def capacity(self) -> int:
        """Return how many tasks it takes: one more for each worker, so that none waits."""
        return 2 * max(1, self._limit(sum(n.room for n in self._usable)))

    def submit(self, task: BatchTask) -> None:
        """Begin a task, now or when a worker is free.

        Raises:
            BatchError: its files are only in the memory of this process.
        """
        inside = [root for root in task.roots if root.startswith("memory://")]
        if inside:
            raise BatchError(
                f"Job.run: {inside[0]} is in the memory of this process, which other machines "
                "cannot read. Use on='local', or storage that all machines reach."
            )
        if self._environment is None:
            self._environment = json.dumps(task.environment)
        self._waiting.append(task)

    def _deal(self) -> list[Event]:
        """Give waiting tasks to free workers."""
        events: list[Event] = []
        free = [s for s in self._slots if s.worker and s.task is None]
        while free and self._waiting:
            task = self._waiting.popleft()
            avoid = self._failed_on.get(task.id, set())
            slot = next((s for s in free if s.node.id not in avoid), free[0])
            free.remove(slot)
            slot.task = task
            slot.running = slot.actor.run.remote(task.to_json())
            events.append(Started(task.id, slot.worker))
        return events

    def wait(self, seconds: float) -> list[Event]:
        """Return the events on the cluster since the last call.

        Raises:
            BatchError: no machine can take part.
        """
        end = time.monotonic() + seconds
        events: list[Event] = []
        while True:
            now = time.monotonic()
            if now - self._looked >= _LOOK:
                self._look()
                self._grow()
                self._give_up()
            events += self._deal()
            if self._waiting:
                self._fill()
            self._ask(now)
            left = 0.0 if events else max(0.0, end - now)
            events += self._collect(min(left, _LOOK))
            if events or time.monotonic() >= end:
                return events + self._deal()

    def _ask(self, now: float) -> None:
        if now - self._asked < _ASK:
            return
        self._asked = now
        busy = [s for s in self._slots if s.task is not None and s.question is None]
        for slot in busy[:_QUESTIONS]:
            slot.question = slot.actor.progress.remote()

    def _collect(self, seconds: float) -> list[Event]:
        """Return the answers of workers; wait so long for the first one."""
        asked: dict[RayObject, _Slot] = {}
        for slot in self._slots:
            for reference in (slot.hello, slot.running, slot.question):
                if reference is not None:
                    asked[reference] = slot
        if not asked:
            time.sleep(min(seconds, 0.1))
            return []
        ready, _ = self._ray.wait(list(asked), num_returns=1, timeout=seconds)
        if ready and len(asked) > 1:
            ready, _ = self._ray.wait(list(asked), num_returns=len(asked), timeout=0)
        events: list[Event] = []
        for reference in ready:
            slot = asked[reference]
            if slot not in slot.node.slots:
                continue  # it was lost with an answer before
            try:
                text = self._ray.get(reference)
            except Exception as error:  # Ray's errors for dead actors and machines, and others
                events += self._lost(slot, error)
            else:
                events += self._answered(slot, reference, text)
        return events

    def _answered(self, slot: _Slot, reference: RayObject, text: str) -> list[Event]:
        said = json.loads(text)
        if reference == slot.hello:
            slot.hello = None
            slot.node.stillborn = 0
            if said["refused"]:
                return self._refuse(slot.node, said["refused"])
            slot.worker = said["worker"]
            return []
        if reference == slot.question:
            slot.question = None
            id, frames = said
            current = slot.task is not None and slot.task.id == id
            return [Progressed(id, frames)] if current else []
        task, slot.task, slot.running = slot.task, None, None
        assert task is not None
        if "result" in said:
            self._failed_on.pop(task.id, None)
            return [Finished(task.id, Result.from_json(said["result"]))]
        self._failed_on.setdefault(task.id, set()).add(slot.node.id)
        return [Failed(task.id, said["error"], slot.worker, final=said["final"])]

    def _lost(self, slot: _Slot, error: Exception) -> list[Event]:
        """Forget an actor that died; another takes its place if its machine lives."""
        node = slot.node
        node.slots.remove(slot)
        with contextlib.suppress(Exception):
            self._ray.kill(slot.actor)
        self._looked = 0.0  # a machine may be gone
        events: list[Event] = []
        if slot.hello is not None:
            node.stillborn += 1
            if node.stillborn >= _STILLBORN and node.slots:
                node.room = len(node.slots)  # there is less room than Ray says
            elif node.stillborn >= _STILLBORN:
                events += self._refuse(node, f"its workers end before they begin ({_short(error)})")
        if slot.task is not None:
            why = f"its worker ({slot.worker} on {node.name}) was lost: {_short(error)}"
            events.append(self._gone(slot, why))
        return events

    def _gone(self, slot: _Slot, why: str) -> Failed:
        assert slot.task is not None
        self._failed_on.setdefault(slot.task.id, set()).add(slot.node.id)
        return Failed(slot.task.id, why, slot.worker, lost=True)

    def _refuse(self, node: _Node, why: str) -> list[Event]:
        """Use a machine no more; return the events that end its tasks."""
        node.refused = why
        slots, node.slots = node.slots, []
        for slot in slots:
            with contextlib.suppress(Exception):
                self._ray.kill(slot.actor)
        notify(f"Job.run: the machine {node.name} is not used: {why}")
        lost = f"the machine {node.name} is not used any more"
        return [self._gone(slot, lost) for slot in slots if slot.task is not None]

    def _give_up(self) -> None:
        """Raise BatchError if there is no one to do the work."""
        if any(s.worker for s in self._slots):
            self._since = time.monotonic()
            return
        alive = [n for n in self._nodes.values() if n.alive]
        refused = [f"{n.name}: {n.refused}" for n in alive if n.refused]
        usable = [n for n in alive if not n.refused and n.room]
        if refused and not usable:
            raise BatchError(f"Job.run: no machine can take part. {'; '.join(refused)}")
        if time.monotonic() - self._since > _PATIENCE:
            if not usable:
                raise BatchError(f"Job.run: {self._no_room()}")
            raise BatchError(
                f"Job.run: no worker has started in {_PATIENCE:.0f} seconds. The CPUs, GPUs or "
                "memory of the cluster may be in use: see `ray status`."
            )

    def _no_room(self) -> str:
        wanted = [f"{self._cpus:g} CPUs"]
        if self._gpus:
            wanted.append(f"{self._gpus:g} GPUs")
        if self._resources.memory:
            wanted.append(f"{self._resources.memory:,} bytes of memory")
        return (
            f"no machine of the cluster has {', '.join(wanted)} for a task. Ask for less with "
            "cpus=, gpus= or memory=, or add machines."
        )

    def stop(self, cancel: bool) -> None:
        """End all workers, and the connection if it was made here."""
        if self._ray is None:
            return
        slots = list(self._slots)
        self._nodes.clear()
        self._waiting.clear()
        if self._requested:
            self._request(0)  # machines that are idle may go
        for slot in slots:
            with contextlib.suppress(Exception):
                self._ray.kill(slot.actor)
        if self._owned:
            self._owned = False
            self._ray.shutdown()


def _reach(address: str) -> None:
    """Raise OSError if nothing listens at an address; Ray would try for minutes."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER).close()


def _gpus(resources: Resources) -> float:
    if resources.gpus is not None:
        return float(resources.gpus)
    return 0.0 if resources.device in ("", "cpu", "reference") else 1.0


def _short(error: BaseException) -> str:
    """Return the first sentence of an error; Ray's fill a screen."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text if len(text) <= 200 else f"{text[:197]}..."
