"""Whatever a page sends, the session answers and goes on."""

from __future__ import annotations

import asyncio
import json
import logging
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dala.studio.commands.registry import commands
from dala.studio.session import StudioSession
from dala.studio.viewer import Viewer
from tests.studio.server.test_scenes import TEXT

#: Commands that write files or start work are not part of every example.
QUIET = sorted({*commands(), "view", "seen"} - {"render", "export", "open", "cameras"})

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(("c1", "c2", "n1", "n2", "t1", "t2", "radius", "opacity", "position"))
    | st.sampled_from(("filter", "kernel", "blur", "sepia", "text", "overlay"))
    | st.sampled_from((0, 1, 0.5, -1, 1e300, 10**40, "\ud800", "\0"))
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=8,
)
KEYS = (
    "id", "card", "param", "value", "drag", "kind", "name", "params", "text", "at", "to", "on",
    "code", "time", "frames", "from", "width", "height", "region", "split", "codec", "charts",
    "paused", "x", "y", "type", "parent", "properties", "node", "property", "easing", "dx", "dy",
    "as", "job", "tab", "seq", "path", "sample", "camera",
)  # fmt: skip
messages = st.builds(
    lambda do, rest: {"do": do, **rest},
    st.sampled_from(QUIET) | values,
    st.dictionaries(st.sampled_from(KEYS), values, max_size=6),
)


#: No page has a loop of its own here.
_LOOP = asyncio.new_event_loop()
_LOOP.close()
#: What was logged as an error: mistakes of ours, which pages are told of, too.
MISTAKES: list[str] = []


class Log(logging.Handler):
    """Remembers errors, with their traceback."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            MISTAKES.append(logging.Formatter().format(record))


class Sink(Viewer):
    """A page that remembers what it is sent."""

    def __init__(self, session: StudioSession) -> None:
        super().__init__(1, session.limits, _LOOP)
        self.messages: list[str | bytes] = []

    def send(self, message: str | bytes) -> None:
        self.messages.append(message)


@pytest.fixture(scope="module")
def fuzzed(folder):
    (folder / "fuzzed.json").write_text(TEXT)
    logger, log = logging.getLogger("dala"), Log()
    logger.addHandler(log)
    with StudioSession([folder], device="cpu") as session:
        session.do({"do": "open", "path": "quarters.png"})
        session.do({"do": "open", "path": "fuzzed.json"})
        yield session
        logger.removeHandler(log)
        # After everything, it still works.
        session.do({"do": "open", "path": "quarters.png"})
        session.do({"do": "add", "kind": "filter", "name": "invert"})
        assert session.state()["chain"][-1]["name"] == "invert"


def answered(session: StudioSession, data: str | bytes) -> list[dict]:
    """Send a message, and return what the page is answered; every answer is JSON."""
    sink = Sink(session)
    asyncio.run(session.receive(sink, data))
    made = [json.loads(message) for message in sink.messages]
    json.dumps(session.state(), allow_nan=False)
    assert not MISTAKES, MISTAKES.pop()
    return made


@settings(max_examples=150)
@given(messages)
@example({"do": "view", "id": 1})
@example({"do": "view", "id": 2, "width": 64, "height": 48.0, "region": [0, 0, 1e300, 4]})
@example({"do": "view", "id": 3, "width": 64, "height": 48, "charts": "histogram"})
@example({"do": "seen", "id": 4, "seq": -1})
def test_messages_of_any_form(fuzzed, message):
    made = answered(fuzzed, json.dumps(message))
    id = message.get("id")
    for reply in made:
        assert reply.keys() <= {"reply", "ok", "error"} or reply["ok"]
    plain = isinstance(id, int | float) and not isinstance(id, bool) and math.isfinite(id)
    if plain and message.get("do") != "seen":
        assert [reply.get("reply") for reply in made] == [id]


@settings(max_examples=60)
@given(st.binary(max_size=64) | st.text(max_size=64))
def test_bytes_and_text_of_any_form(fuzzed, data):
    made = answered(fuzzed, data)
    assert len(made) == 1
    assert "error" in made[0]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 5000 + "1" + "}" * 5000,
        '{"do": "undo", "id": ' + "9" * 5000 + "}",
        '{"do": NaN}',
        '{"do": "set", "value": Infinity}',
        "null",
        "[]",
        '"undo"',
        '{"id": 1}',
        '{"do": "seen", "seq": [1]}',
        "",
        "\ufeff{}",
        '{"do": "kernel", "card": "c1", "text": "' + "(" * 5000 + '"}',
        '{"do": "set", "card": "c1", "param": "radius", "value": ' + "[" * 70 + "]" * 70 + "}",
    ],
    ids=lambda text: text[:20],
)
def test_hostile_messages(fuzzed, text):
    made = answered(fuzzed, text)
    assert all("error" in reply for reply in made)


@settings(max_examples=40)
@given(text=st.text(alphabet="def f(px):*=\n rgba.+-0123,[]@\"'#\\ü", max_size=80))
def test_kernels_of_any_text(fuzzed, text):
    fuzzed.do({"do": "tab", "tab": "t1"}) if "t1" in fuzzed.tabs else None
    if fuzzed.active is None:
        fuzzed.do({"do": "open", "path": "quarters.png"})
    card = fuzzed.do({"do": "add", "kind": "kernel", "name": "color"})["card"]
    try:
        (reply,) = answered(
            fuzzed, json.dumps({"do": "kernel", "card": card, "text": text, "id": 1, "code": True})
        )
        assert reply["ok"] is True
        lines = text.replace("\r\n", "\n").split("\n")
        for found in reply["diagnostics"]:
            assert 1 <= found["line"] <= found["end_line"] <= max(len(lines), 1)
            assert found["column"] >= 1
    finally:
        fuzzed.do({"do": "remove", "card": card})
