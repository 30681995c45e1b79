"""The strip and the metrics of a run, from the model's records; no real time passes."""

import re
import xml.etree.ElementTree as ET

import pytest

from dala.trace.drawing import picture
from dala.trace.metrics import Metrics
from dala.trace.report import TraceReport
from dala.trace.strip import FrameStrip
from tests.support.pipeline_model import THREADS, Model

LINE = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"\})? [-+0-9.e]+|# (HELP|TYPE) [a-z_]+ .+')


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setattr("dala.trace.strip.getpid", lambda: 100)
    return Model(2, {("encode", 70): 150.0})


def test_strip_takes_in_what_is_new(model):
    strip = FrameStrip(source=model.tracer)
    assert strip.update() == []
    model.run(40)
    first = strip.update()
    assert len(first) == 39  # the first has none before it
    assert strip.update() == []
    for number in range(40, 100):
        model.frame(number)
    assert len(strip.update()) == 60
    assert len(strip.frames) == 99
    worst = max(strip.frames, key=lambda f: f.ms)
    assert max(worst.stages, key=worst.stages.get) == "encode"
    assert sum(worst.stages.values()) == pytest.approx(worst.ms)
    assert "encode" in strip.text()
    shown = strip.json()
    assert len(shown["frames"]) == 99
    assert shown["frames"][-1][0] == 0
    assert shown["budget"] == pytest.approx(strip.line, abs=1e-3)


def test_strip_is_as_long_as_asked(model):
    model.run(300)
    strip = FrameStrip(0.5, source=model.tracer)
    strip.update()
    assert strip.frames[-1].done - strip.frames[0].done <= 0.5e9
    assert strip.count == {"out": 300}


def test_equal_to_the_report(model):
    events = model.run(100)
    strip = FrameStrip(source=model.tracer)
    strip.update()
    report = TraceReport(events, THREADS)
    assert [f.ms for f in strip.frames] == [f.gap for f in report.frames]


def test_metrics_are_prometheus_text(model):
    metrics = Metrics(FrameStrip(source=model.tracer))
    model.run(100)
    model.now = model.tracer.records[-1][3] + 1
    model.tracer.dropped('a "sink"\\', 3)
    metrics.update()
    text = metrics.text({"live latency_ms": 41.5})
    lines = text.splitlines()
    for line in lines:
        assert LINE.fullmatch(line.replace(r"\\", "").replace(r"\"", "")), line
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert values['dala_frames_total{sink="out"}'] == "100"
    assert values["dala_frame_seconds_count"] == "99"
    assert values['dala_frame_seconds_bucket{le="+Inf"}'] == "99"
    counts = [int(v) for k, v in values.items() if k.startswith("dala_frame_seconds_bucket")]
    assert counts == sorted(counts)
    assert values['dala_frames_dropped_total{at="a \\"sink\\"\\\\"}'] == "3"
    assert values["dala_live_latency_ms"] == "41.5"
    path = sum(float(v) for k, v in values.items() if k.startswith("dala_critical_path_seconds"))
    assert path == pytest.approx(float(values["dala_frame_seconds_sum"]), rel=1e-4)


def test_picture_of_the_slowest_frames(model):
    report = TraceReport(model.run(100), THREADS)
    root = ET.fromstring(picture(report))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any(text.startswith("frame 71, ") for text in texts)
    assert f"+{report.worst:.0f}" in texts
    assert "encode" in texts
    assert picture(TraceReport([], {})).startswith("<svg")
