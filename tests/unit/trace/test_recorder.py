"""The recorder: what spans cost where no trace runs, the ring, threads, forks, interrupts."""

import ast
import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import dala
from dala.errors import DalaError, ParameterError
from dala.trace import session
from dala.trace.export import json_events, read
from dala.trace.recorder import MOST, OFF, STEP, Tracer, each, traced, tracer

ROOT = pathlib.Path(dala.__file__).parent
RECORDS = {"span", "wait", "count", "done", "dropped", "new_frame", "here"}


class Ticking:
    """A clock that advances by one millisecond with each look at it."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        self.now += 1_000_000
        return self.now


def start(seconds=1e6, spill=None):
    made = Tracer(Ticking())
    made.start(seconds, spill)
    return made


# where no trace runs ------------------------------------------------------------------------------
def _sites():
    for path in ROOT.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.parent != ROOT / "trace" and "tracer" in text:
            yield path, ast.parse(text)


def _guarded(tree):
    """Calls of the tracer, and whether each runs only where ``tracer.on`` was tested."""

    def visit(node, guarded):
        test = getattr(node, "test", None)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            base = node.func.value
            if isinstance(base, ast.Name) and base.id == "tracer" and node.func.attr in RECORDS:
                yield node, guarded
        if isinstance(node, ast.FunctionDef) and node.name == "_traced":
            guarded = True  # called under a test
        for name, child in ast.iter_fields(node):
            own = guarded or (
                name == "body" and test is not None and "tracer.on" in ast.unparse(test)
            )
            for each_child in child if isinstance(child, list) else [child]:
                if isinstance(each_child, ast.AST):
                    yield from visit(each_child, own)

    return list(visit(tree, False))


def test_every_site_tests_one_attribute():
    calls = 0
    for path, tree in _sites():
        for node, guarded in _guarded(tree):
            calls += 1
            assert guarded, f"{path}:{node.lineno}: {ast.unparse(node)} without `if tracer.on`"
    assert calls > 30  # it has found them


class Counting:
    """The recorder, counting the tests of ``on``; anything else fails the test."""

    tests = 0

    @property
    def on(self):
        Counting.tests += 1
        return False


def test_off_costs_one_test_at_each_site(monkeypatch):
    from dala.trace import recorder

    monkeypatch.setattr(recorder, "tracer", Counting())
    monkeypatch.setattr(Counting, "tests", 0)

    @traced("compose")
    def decorated():
        return 1

    assert decorated() == 1
    assert Counting.tests == 1
    assert list(each("demux", [1, 2])) == [1, 2]
    assert Counting.tests == 1 + 3  # two items and the end


def test_off_records_nothing():
    assert not tracer.on
    with dala.trace.span("mine", a=1) as span:
        span.facts["b"] = 2
    assert tracer.records == []
    assert OFF.facts == {}


# recording ----------------------------------------------------------------------------------------
def test_spans_nest_and_carry_the_frame():
    made = start()
    number = made.new_frame()
    with made.span("encode", "x264"), made.span("mux", frame=7, bytes=3):
        pass
    inner, outer = made.stop()
    assert inner[:2] == ("mux", "")
    assert outer[2] < inner[2] < inner[3] < outer[3]
    assert (inner[5], outer[5]) == (7, number)
    assert inner[6] == {"bytes": 3}


def test_a_span_ends_with_an_exception():
    made = start()
    with pytest.raises(ValueError, match="no"), made.span("pass"):
        raise ValueError("no")
    assert [record[0] for record in made.stop()] == ["pass"]


def test_waits_that_end_at_once_are_left_out():
    clock = Ticking()
    made = Tracer(lambda: 5)
    made.start(10)
    with made.wait("", "frames"):
        pass
    assert made.stop() == []
    made = Tracer(clock)
    made.start(10)
    with made.wait("", "frames") as waited:
        waited.woken((3, 44, 55))
    assert made.stop()[0][6] == {"by": 44, "at": 55}


def test_threads_have_their_own_frames_and_names():
    made = start()
    seen = {}

    def work(n):
        made.frame = n
        with made.span("pass", str(n)):
            seen[n] = made.here()[1]

    threads = [threading.Thread(target=work, args=(n,), name=f"worker {n}") for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = made.stop()
    assert sorted(record[5] for record in records) == list(range(8))
    assert {made.threads[record[4]] for record in records} == {f"worker {n}" for n in range(8)}


def test_the_ring_keeps_the_last_seconds():
    made = start(seconds=1.0)
    for _ in range(3 * STEP):
        with made.span("pass"):
            pass
    records = made.stop()
    span = (records[-1][3] - records[0][3]) / 1e9
    assert span <= 1.0 + 2 * STEP / 1000  # looked at every STEP records
    assert len(records) <= 2 * STEP + 1000


def test_the_ring_is_bounded_however_long_it_is():
    made = start()
    for _ in range(MOST + 2 * STEP):
        made.put(("pass", "", 1, 2, 3, None, None))
    assert len(made.stop()) <= MOST + STEP


def test_all_of_a_run_goes_to_a_file(tmp_path):
    with dala.trace(tmp_path / "run.json", all=True) as run:
        for _ in range(2 * STEP + 5):
            tracer.count("depth", 1)
        assert len(tracer.records) < STEP
    for events in (run.events, read(tmp_path / "run.json")[0]):
        assert sum(record[0] == "counter" for _, record in events) == 2 * STEP + 5


def test_names_are_callable_and_documented(tmp_path):
    assert dala.trace is sys.modules["dala.trace"]
    run = dala.trace(tmp_path / "run.json")
    with run, dala.trace.span("my step", frame=12, size=3):
        pass
    _, record = run.events[0]
    assert record[:2] == ("user", "my step")
    assert record[5] == 12
    assert record[6]["size"] == 3
    assert "ended" in repr(run)


def test_refusals(tmp_path):
    with pytest.raises(ParameterError, match="no such folder"):
        dala.trace(tmp_path / "none" / "run.json")
    with pytest.raises(ParameterError, match="seconds must be a number of seconds above 0"):
        dala.trace(seconds=0)
    with pytest.raises(ParameterError, match="all must be True or False"):
        dala.trace(all=1)
    with dala.trace() as run:
        with pytest.raises(DalaError, match="runs already"), dala.trace():
            pass
        with pytest.raises(DalaError, match="has not ended"):
            run.report()
    assert str(run.report()) == "No frame was shown, written or sent."


def test_what_comes_after_the_end_is_dropped():
    made = start()
    span = made.span("pass")
    with span:
        made.stop()
    assert made.records == []


def test_memory_and_buffers_are_counted():
    made = start()
    made.done("out.mp4", 3)
    counters = {record[1]: record[6]["value"] for record in made.stop() if record[0] == "counter"}
    assert counters["host memory (MiB)"] >= 0
    assert counters["buffers held"] >= 0


# files --------------------------------------------------------------------------------------------
def test_flows_are_complete():
    made = start()
    for _ in range(5):
        made.new_frame()
        with made.span("decode"):
            pass
        with made.span("encode"), made.span("convert"):
            pass
    events = [(1, record) for record in made.stop()]
    flows = {}
    for event in json_events(events, {1: {}}):
        if event["ph"] in "stf":
            flows.setdefault(event["id"], []).append((event["ts"], event["ph"]))
    assert len(flows) == 5
    for points in flows.values():
        assert [phase for _, phase in sorted(points)] == ["s", "f"]


# processes ----------------------------------------------------------------------------------------
def _run(code, *, env=None, until="", signal_number=None):
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, **(env or {})},
    )  # fmt: skip
    if until:
        for line in process.stdout:
            if line.strip() == until:
                process.send_signal(signal_number)
                break
    process.communicate(timeout=60)
    return process.returncode


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("how", ["context", "environment"])
def test_nothing_is_lost_on_ctrl_c(tmp_path, how):
    path = tmp_path / "run.json"
    code = """
        import sys, time, dala
        from contextlib import nullcontext
        with dala.trace(sys.argv[1]) if sys.argv[1:] else nullcontext():
            for n in range(100):
                with dala.trace.span(f"step {n}"):
                    pass
            print("ready", flush=True)
            time.sleep(60)
    """
    code = code.replace("sys.argv[1:]", repr(how == "context"))
    code = code.replace("sys.argv[1]", repr(str(path)))
    env = {"DALA_TRACE": str(path)} if how == "environment" else None
    code = "import dala.trace\n" + textwrap.dedent(code)
    assert _run(code, env=env, until="ready", signal_number=signal.SIGINT) != 0
    names = [record[1] for _, record in read(path)[0]]
    assert [name for name in names if name.startswith("step")] == [f"step {n}" for n in range(100)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_children_add_their_part(tmp_path):
    path = tmp_path / "run.json"
    code = f"""
        import os, subprocess, sys, multiprocessing, dala
        def work(name):
            with dala.trace.span(name):
                pass
        with dala.trace({str(path)!r}):
            work("parent")
            child = os.fork()
            if not child:
                work("forked")
                sys.exit(0)
            os.waitpid(child, 0)
            worker = multiprocessing.get_context("fork").Process(target=work, args=("pool",))
            worker.start()
            worker.join()
            own = "import dala.trace\\nwith dala.trace.span('started'): pass"
            subprocess.run([sys.executable, "-c", own], check=True)
            from dala.trace.session import so_far
            assert {{"forked", "started"}} <= {{record[1] for _, record in so_far()[0]}}
    """
    assert _run(code) == 0
    events, threads, _ = read(path)
    names = {record[1]: process for process, record in events if record[0] == "user"}
    assert set(names) == {"parent", "forked", "pool", "started"}
    assert len(set(names.values())) == 4
    assert set(threads) >= set(names.values())
    begins = {record[1]: record[2] for _, record in events if record[0] == "user"}
    assert sorted(begins, key=begins.get) == ["parent", "forked", "pool", "started"]  # one clock


def test_what_a_child_of_a_long_run_writes_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "_PART_BYTES", 1000)
    record = ("pass", "", 1, 2, 3, None, None)
    for ring in (True, False):
        folder = tmp_path / str(ring)
        folder.mkdir()
        if ring:
            (folder / "ring").touch()
        for _ in range(100):
            session._append(folder, [record])
        events = []
        session._gather(folder, events, {})
        assert events[-1][1] == record
        assert (len(events) < 60) is ring


def test_the_environment_is_left_as_it_was(tmp_path):
    before = dict(os.environ)
    with dala.trace(tmp_path / "run.json"):
        assert "DALA_TRACE_PARTS" in os.environ
        folder = os.environ["DALA_TRACE_PARTS"]
    assert dict(os.environ) == before
    assert not os.path.exists(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    json.loads((tmp_path / "run.json").read_text())


def test_a_child_of_a_traced_program_may_trace_itself(tmp_path):
    code = textwrap.dedent("""
        import dala
        with dala.trace("own.json") as run:
            with dala.trace.span("inside"):
                pass
        print([record[1] for _, record in run.events])
    """)
    with dala.trace(tmp_path / "whole.json"):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
    assert (done.stdout, done.stderr) == ("['inside']\n", "")
    assert (tmp_path / "own.json").is_file()
