"""The time of messages: connections whose bytes take their time, on a clock of the test's own."""

from types import SimpleNamespace

import pytest

from dala.gpu.presenters import websocket
from dala.gpu.presenters.websocket import MESSAGE_SECONDS, WebSocket

MASK = b"\0\0\0\0"


class SlowConnection:
    """A connection that gives a byte, or an empty time-out, every second."""

    def __init__(self, *given):
        self.seconds = 0.0
        self.given = list(given)

    def monotonic(self):
        return self.seconds

    def recv(self, count):
        self.seconds += 1
        part = self.given.pop(0) if self.given else None
        if part is None:
            raise TimeoutError
        return bytes([part])


def received(monkeypatch, *given):
    connection = SlowConnection(*given)
    monkeypatch.setattr(websocket, "time", SimpleNamespace(monotonic=connection.monotonic))
    return WebSocket(connection, lambda: False), connection


def piece(data, *, first=True, last=True):
    return [last << 7 | first, 128 | len(data), *MASK, *data]


def test_a_message_within_its_time(monkeypatch):
    page, _ = received(monkeypatch, *[None] * 100, *piece(b"[]"))
    assert page.receive() == "[]"


@pytest.mark.parametrize(
    "given",
    [
        piece(b"[          ]"),
        [*piece(b"[", last=False), *piece(b"]", first=False)],
        [*piece(b"[", last=False), *[137, 128, *MASK] * 9],
        [129],
    ],
    ids=["bytes", "pieces", "pings", "one"],
)
def test_a_message_has_its_time_in_all(monkeypatch, given):
    page, connection = received(monkeypatch, *given)
    monkeypatch.setattr(page, "_send", lambda opcode, data: None)
    with pytest.raises(TimeoutError):
        page.receive()
    assert connection.seconds <= MESSAGE_SECONDS + 3


def test_pings_between_messages_take_no_time(monkeypatch):
    page, _ = received(monkeypatch, *[137, 128, *MASK] * 9, *piece(b"[]"))
    monkeypatch.setattr(page, "_send", lambda opcode, data: None)
    assert page.receive() == "[]"
