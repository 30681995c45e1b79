"""Traces as files: Perfetto's trace-event format, written and read.

A span is a complete event ("X"); a frame's spans are joined by flow events ("s", "t", "f") with the
frame's id. What the report needs is kept in ``args``, so that a file gives the same report as the
run that wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import dala
from dala.errors import ParameterError
from dala.extensions import unfinished
from dala.trace.recorder import Record

#: A record with the process that made it.
Event: TypeAlias = "tuple[int, Record]"
#: Names of threads by process and number.
Threads: TypeAlias = "Mapping[int, Mapping[int, str]]"
Json: TypeAlias = "dict[str, Any]"

#: What the file says that it is, for ``dala why``.
FORMAT: Final = "dala trace 1"
#: Facts that the report calculates with.
_NUMBERS: Final = ("at", "before_ns", "by", "delayed_ns", "due", "value")
#: The largest file that is read.
MOST_BYTES: Final = 2 << 30


def json_events(events: Iterable[Event], threads: Threads) -> Iterator[Json]:
    """Yield the events of a trace as JSON objects."""
    for process, names in threads.items():
        yield _meta("process_name", process, 0, "dala")
        for number, name in names.items():
            yield _meta("thread_name", process, number, name)
    flows: dict[int, list[tuple[int, int, int]]] = {}
    ends: dict[tuple[int, int], tuple[int, int | None]] = {}
    for process, record in sorted(events, key=lambda e: (e[1][2], -e[1][3])):
        stage, name, begin, end, thread, frame, facts = record
        place: Json = {"pid": process, "tid": thread, "ts": begin / 1000}
        if stage == "counter":
            yield {"ph": "C", "name": name, **place, "args": facts}
            continue
        args: Json = {**({} if frame is None else {"frame": frame}), **(facts or {})}
        label = f"{stage.removeprefix('wait:')} {name}".rstrip() if stage != "user" else name
        if stage == "done":
            yield {"ph": "i", "s": "t", "name": f"done {name}", "cat": stage, **place, "args": args}
            continue
        label = f"wait for {label}" if stage.startswith("wait:") else label
        yield {
            "ph": "X", "name": label, "cat": stage, **place, "dur": (end - begin) / 1000,
            "args": {**args, "what": name},
        }  # fmt: skip
        covered, of = ends.get((process, thread), (0, None))
        if end > covered:
            ends[process, thread] = end, frame
        if frame is not None and not (end <= covered and of == frame):
            flows.setdefault(frame, []).append((begin + (end - begin) // 2, process, thread))
    for frame, points in flows.items():
        points.sort()
        for at, (time, process, thread) in enumerate(points if len(points) > 1 else ()):
            phase = "s" if at == 0 else "f" if at == len(points) - 1 else "t"
            yield {
                "ph": phase, "id": frame, "name": "frame", "cat": "frame", "pid": process,
                "tid": thread, "ts": time / 1000, **({"bp": "e"} if phase != "s" else {}),
            }  # fmt: skip


def _meta(kind: str, process: int, thread: int, name: str) -> Json:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def write(path: Path, events: Iterable[Event], threads: Threads, notes: Mapping[str, Any]) -> None:
    """Write a trace; the file appears when it is complete."""
    with unfinished(path) as part:
        with part.path.open("w", encoding="utf-8") as file:
            _write(file, json_events(events, threads), notes)
        part.complete()


def _write(file: IO[str], made: Iterator[Json], notes: Mapping[str, Any]) -> None:
    facts = {"format": FORMAT, "dala": dala.__version__, **notes}
    file.write(f'{{"otherData": {json.dumps(facts, default=str)}, "traceEvents": [')
    before = "\n"
    for event in made:
        file.write(before + json.dumps(event, default=str))
        before = ",\n"
    file.write("\n]}\n")


def read(path: Path) -> tuple[list[Event], dict[int, dict[int, str]], Json]:
    """Return the events, threads and notes of a file that :func:`write` made.

    Raises:
        ParameterError: it is no trace of Dala.
    """
    if not path.is_file():
        raise ParameterError(f"no such file: {str(path)!r}.")
    if path.stat().st_size > MOST_BYTES:
        raise ParameterError(f"{str(path)!r} has more than {MOST_BYTES >> 30} GiB.")
    try:
        found = json.loads(path.read_bytes())
        notes = found["otherData"]
        if notes["format"] != FORMAT:
            raise ValueError
        events: list[Event] = []
        threads: dict[int, dict[int, str]] = {}
        for event in found["traceEvents"]:
            _take(event, events, threads)
    except (ValueError, ArithmeticError, KeyError, TypeError, AttributeError, RecursionError):
        raise ParameterError(
            f"{str(path)!r} is no trace of Dala. `dala --trace {path.name} COMMAND` writes one."
        ) from None
    return events, threads, notes


def _plain(text: object) -> str:
    """Return a name as it can be printed: a trace may come from a stranger."""
    return "".join(c if c.isprintable() else "\ufffd" for c in str(text))


def _take(event: Json, events: list[Event], threads: dict[int, dict[int, str]]) -> None:
    phase, process, thread = event["ph"], int(event["pid"]), int(event["tid"])
    if phase == "M" and event["name"] == "thread_name":
        threads.setdefault(process, {})[thread] = _plain(event["args"]["name"])
    if phase not in "XiC":
        return
    begin = round(event["ts"] * 1000)
    end = begin + round(event.get("dur", 0) * 1000)
    args: Json = dict(event.get("args") or {})
    frame = args.pop("frame", None)
    for key in _NUMBERS:
        if args.get(key) is not None and not abs(args[key]) < 1 << 63:
            raise ValueError
    if phase == "C" and args["value"] is None:
        raise ValueError
    stage, name = map(_plain, (event.get("cat", "counter"), args.pop("what", event["name"])))
    if stage == "done":
        name = name.removeprefix("done ")
    number = None if frame is None else int(frame)
    events.append((process, (stage, name, begin, end, thread, number, args or None)))
