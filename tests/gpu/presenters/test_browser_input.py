"""Input of the browser presenter: real events in Chromium, and what strangers may send."""

import contextlib
import json
import os
import random
import socket
import struct
from urllib.parse import urlsplit

import pytest

import dala
from dala.gpu.presenters.browser import MAX_EVENTS, page_events
from dala.gpu.presenters.websocket import MAX_MESSAGE
from tests.gpu.presenters.chromium import chromium
from tests.gpu.presenters.screens import PATIENCE, until

WIDE, HIGH = 160, 100
KEY = "AAAAAAAAAAAAAAAAAAAAAA=="


@pytest.fixture(autouse=True)
def no_browser_of_the_users(monkeypatch):
    monkeypatch.setenv("DALA_BROWSER", "none")


@pytest.fixture
def surface():
    with dala.gpu.create_surface(WIDE, HIGH, show="browser") as s:
        s.clear("navy")
        s.present()
        yield s


def plain(events):
    """Events without their time stamps, and without the size of the page."""
    return [
        {k: v for k, v in e.items() if k not in ("time_stamp", "touches", "ntouches")}
        for e in events
        if e["event_type"] not in ("resize", "focus", "blur")
    ]


# in a browser -----------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def browser():
    if os.name != "posix":
        pytest.skip("Chromium's pipes are handed over as on Unix")
    with chromium() as found:
        yield found


def opened(browser, s, width=WIDE, height=HIGH):
    """Open a page that shows a frame and may send input."""
    page = browser.open(s.presenter.address, width, height)
    until(lambda: page.ask("Boolean(canvas.dataset.frame && document.body.dataset.steers)"), "it")
    return page


def mouse(page, kind, x, y, **more):
    page.tell("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **more)


def collected(s, count):
    """Wait for so many events, without those of size and focus."""
    found = []
    until(lambda: found.extend(plain(s.events())) or len(found) >= count, f"{count} events")
    return found


def test_mouse_and_keys(surface, browser):
    page = opened(browser, surface, WIDE * 2 + 60, HIGH * 2)  # the picture is at 30, twice as large
    mouse(page, "Moved", 50, 60)
    mouse(page, "Pressed", 50, 60, button="left", buttons=1, clickCount=1)
    mouse(page, "Moved", 10, 60, button="left", buttons=1)  # beside the picture
    mouse(page, "Released", 10, 60, button="left", buttons=0, clickCount=1, modifiers=8)
    found = collected(surface, 5)
    assert [
        (e["event_type"], e["x"], e["y"], e["button"], e["buttons"], e["modifiers"]) for e in found
    ] == [
        ("pointer_enter", 10, 30, 0, (), ()),
        ("pointer_move", 10, 30, 0, (), ()),
        ("pointer_down", 10, 30, 1, (1,), ()),
        ("pointer_move", -10, 30, 0, (1,), ()),
        ("pointer_up", -10, 30, 1, (), ("Shift",)),
    ]
    assert not surface.pointer.inside
    # a second button while the first is held, a double click, the wheel
    mouse(page, "Pressed", 50, 60, button="left", buttons=1, clickCount=1)
    mouse(page, "Pressed", 50, 60, button="right", buttons=3, clickCount=1)
    mouse(page, "Released", 50, 60, button="left", buttons=2, clickCount=1)
    mouse(page, "Released", 50, 60, button="right", buttons=0, clickCount=1)
    found = [e for e in collected(surface, 4) if e["event_type"] != "pointer_move"]
    assert [(e["event_type"], e["button"], e["buttons"]) for e in found] == [
        ("pointer_down", 1, (1,)),
        ("pointer_down", 2, (1, 2)),
        ("pointer_up", 1, (2,)),
        ("pointer_up", 2, ()),
    ]
    for clicks in (1, 2):
        mouse(page, "Pressed", 50, 60, button="left", buttons=1, clickCount=clicks)
        mouse(page, "Released", 50, 60, button="left", buttons=0, clickCount=clicks)
    assert collected(surface, 5)[-1]["event_type"] == "double_click"
    page.tell("Input.dispatchMouseEvent", type="mouseWheel", x=50, y=60, deltaX=0, deltaY=120)
    (wheel,) = collected(surface, 1)
    assert (wheel["event_type"], wheel["dy"], wheel["x"]) == ("wheel", 120, 10)
    # keys
    left = {"key": "ArrowLeft", "code": "ArrowLeft"}
    page.tell("Input.dispatchKeyEvent", type="keyDown", **left)
    page.tell("Input.dispatchKeyEvent", type="keyDown", autoRepeat=True, **left)
    page.tell("Input.dispatchKeyEvent", type="keyDown", key="é", code="Digit2", text="é")
    found = collected(surface, 3)
    assert found == [
        {"event_type": "key_down", "modifiers": (), **left},
        {"event_type": "key_down", "modifiers": (), "key": "é", "code": "Digit2"},
        {"event_type": "char", "data": "é", "modifiers": ()},
    ]
    assert surface.keys == {"ArrowLeft", "é"}
    page.tell("Input.dispatchKeyEvent", type="keyUp", **left)
    until(lambda: surface.keys == {"é"}, "the key's release")
    page.close()
    until(lambda: surface.keys == frozenset(), "the page's end")  # its keys are no longer held


def test_text_of_input_methods(surface, browser):
    page = opened(browser, surface)
    key = {"key": "n", "code": "KeyN"}
    page.tell("Input.dispatchKeyEvent", type="rawKeyDown", windowsVirtualKeyCode=229, **key)
    page.tell("Input.imeSetComposition", text="に", selectionStart=1, selectionEnd=1)
    page.tell("Input.imeSetComposition", text="日本", selectionStart=2, selectionEnd=2)
    page.tell("Input.insertText", text="日本")
    page.tell("Input.insertText", text="😀")  # of a picker
    page.tell("Input.dispatchKeyEvent", type="keyDown", key="é", code="Digit2", text="é")
    found = collected(surface, 4)
    assert [e.get("data", e["event_type"]) for e in found] == ["日本", "😀", "key_down", "é"]
    page.close()


def test_drops(surface, browser, tmp_path):
    page = opened(browser, surface, WIDE * 2, HIGH * 2)
    (tmp_path / "logo.svg").write_text("<svg/>")
    data = {"items": [], "files": [str(tmp_path / "logo.svg")], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        page.tell("Input.dispatchDragEvent", type=kind, x=50, y=60, data=data)
    (dropped,) = collected(surface, 1)
    wanted = {"event_type": "drop", "x": 25, "y": 30, "files": ("logo.svg",), "text": ""}
    assert dropped == wanted
    text = {"mimeType": "text/plain", "data": "grüße"}
    for kind in ("dragEnter", "dragOver", "drop"):
        page.tell(
            "Input.dispatchDragEvent", type=kind, x=20, y=20,
            data={"items": [text], "dragOperationsMask": 1},
        )  # fmt: skip
    assert [(e["text"], e["files"]) for e in collected(surface, 1)] == [("grüße", ())]
    page.close()


def test_positions_on_a_dense_screen(surface, browser):
    page = opened(browser, surface)
    page.tell(
        "Emulation.setDeviceMetricsOverride",
        width=WIDE * 2, height=HIGH * 2 + 20, deviceScaleFactor=2, mobile=False,
    )  # fmt: skip
    until(lambda: surface.scale == 2.0, "the scale")
    mouse(page, "Moved", 50, 70)
    until(lambda: tuple(surface.pointer) == (25, 30, ()), "the move")
    page.close()


def test_touches(surface, browser):
    page = opened(browser, surface)
    points = [{"x": 20, "y": 30, "id": 0}, {"x": 40, "y": 50, "id": 1}]
    page.tell("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    page.tell("Input.dispatchTouchEvent", type="touchStart", touchPoints=points[:1])
    page.tell("Input.dispatchTouchEvent", type="touchStart", touchPoints=points)
    page.tell("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    found = []

    def two_are_up():
        found.extend(surface.events())
        return [e["event_type"] for e in found].count("pointer_up") == 2

    until(two_are_up, "the touches")
    downs = [e for e in found if e["event_type"] == "pointer_down"]
    assert [e["ntouches"] for e in downs] == [1, 2]
    places = [(touch["x"], touch["y"]) for touch in downs[1]["touches"].values()]
    assert places == [(20, 30), (40, 50)]
    assert set(downs[0]["touches"]) < set(downs[1]["touches"])  # ids stay
    ups = [e["ntouches"] for e in found if e["event_type"] == "pointer_up"]
    assert ups == [1, 0]
    page.close()


def test_the_page_follows_the_program(surface, browser):
    surface.cursor = "crosshair"
    page = opened(browser, surface)
    until(lambda: page.ask("canvas.style.cursor") == "crosshair", "the cursor")
    surface.title, surface.cursor = "other", "none"
    until(lambda: page.ask("document.title + canvas.style.cursor") == "othernone", "the title")
    until(lambda: any(e["event_type"] == "resize" for e in surface.events()), "the size")
    assert surface.scale == 1.0
    page.tell(
        "Emulation.setDeviceMetricsOverride",
        width=200,
        height=120,
        deviceScaleFactor=2,
        mobile=False,
    )
    until(lambda: surface.scale == 2.0, "the scale")
    (shown,) = [e for e in surface.events() if e["event_type"] == "resize"][-1:]
    assert (shown["width"], shown["height"], shown["pixel_ratio"]) == (200, 120, 2)
    page.close()


def test_first_visitor_steers_then_the_next(surface, browser):
    pages = [opened(browser, surface) for _ in range(2)]
    assert [page.ask("document.body.dataset.steers") for page in pages] == ["true", "false"]
    surface.events()
    pages[1].ask("steers = true")  # a page that does not keep to it is ignored
    pages[1].ask("send('key_down', {key: 'x'})")
    pages[0].ask("send('key_down', {key: 'a'})")
    assert collected(surface, 1) == [{"event_type": "key_down", "key": "a", "modifiers": ()}]
    pages[0].close()
    until(lambda: pages[1].ask("document.body.dataset.steers") == "true", "its turn")
    pages[1].ask("send('key_down', {key: 'b'})")
    assert collected(surface, 1)[-1]["key"] == "b"
    pages[1].close()


# the connection alone ---------------------------------------------------------------------------
class Visitor:
    """A program that speaks the page's protocol."""

    def __init__(self, s, *, path="input", drop="", **headers):
        at = urlsplit(s.presenter.address)
        given = {
            "Host": at.netloc,
            "Origin": f"http://{at.netloc}",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": KEY,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        given.pop(drop, None)
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        self.raw = socket.create_connection((at.hostname, at.port), timeout=PATIENCE)
        self.raw.sendall(f"GET {at.path}{path} HTTP/1.1\r\n{lines}\r\n".encode())
        self.file = self.raw.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        self.headers = {}
        while (line := self.file.readline().strip()) and b":" in line:
            name, _, value = line.decode().partition(": ")
            self.headers[name.lower()] = value

    def frame(self, opcode, data, *, final=True, mask=b"abcd", length=None):
        size = len(data) if length is None else length
        head = bytes([128 * final | opcode])
        short = size if size < 126 else 126 if size < 65536 else 127
        head += bytes([128 * bool(mask) | short])
        head += {126: struct.pack("!H", size % 65536), 127: struct.pack("!Q", size)}.get(short, b"")
        masked = bytes(b ^ mask[i % 4] for i, b in enumerate(data)) if mask else data
        self.raw.sendall(head + mask + masked)

    def send(self, *events):
        self.frame(1, json.dumps(events).encode())

    def receive(self):
        """Return the opcode and the data of a message; None at the end."""
        head = self.file.read(2)
        if len(head) < 2:
            return None
        size = head[1]
        if size == 126:
            (size,) = struct.unpack("!H", self.file.read(2))
        return head[0] & 15, self.file.read(size)

    def end(self):
        """Return the status with which the connection was closed."""
        try:
            while (message := self.receive()) is not None:
                if message[0] == 8:
                    return struct.unpack("!H", message[1])[0]
        except ConnectionError:
            pass
        return None

    def steers(self):
        """Wait until the visitor may send input."""
        while self.receive() != (1, b'{"steer": true}'):
            pass
        return self

    def close(self):
        self.file.close()
        self.raw.close()


@pytest.fixture
def visit(surface):
    made = []

    def visitor(s=surface, **more):
        made.append(Visitor(s, **more))
        return made[-1]

    yield visitor
    for each in made:
        each.close()


PRESS = {"event_type": "pointer_down", "x": 1, "y": 2, "button": 1}


def test_handshake_and_messages(surface, visit):
    page = visit()
    assert page.status == 101
    assert page.headers["sec-websocket-accept"] == "ICX+Yqv66kxgM0FcWaLWlFLwTAI="
    page.steers()
    page.send(PRESS, {"event_type": "clipboard", "text": "of the page"})
    assert collected(surface, 1)[0]["x"] == 1
    until(lambda: surface.clipboard == "of the page", "the text")
    page.frame(9, b"are you there")
    assert page.receive() == (10, b"are you there")
    half = json.dumps([PRESS]).encode()
    page.frame(1, half[:9], final=False)
    page.frame(9, b"")
    page.frame(0, half[9:])
    assert page.receive() == (10, b"")
    assert collected(surface, 1)[0]["y"] == 2
    surface.clipboard = "ö" * 200
    assert json.loads(page.receive()[1]) == {"clipboard": "ö" * 200}
    assert surface.clipboard == "ö" * 200
    page.frame(8, b"")
    assert page.end() == 1001


@pytest.mark.parametrize(
    "wrong",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1"},
        {"drop": "Origin"},
        {"Upgrade": "h2c"},
        {"Sec_WebSocket_Version": "8"},
        {"Sec_WebSocket_Key": "short"},
        {"drop": "Sec-WebSocket-Key"},
        {"path": "frame"},
        {"Host": "evil.example", "Origin": "http://evil.example"},
        {"path": "../other/input"},
    ],
)
def test_other_sites_and_programs_are_refused(surface, visit, wrong):
    refused = visit(**wrong)
    assert refused.status in (400, 404)
    assert surface.presenter._visitors == []


def test_a_tunnel_may_have_another_port(surface, visit):
    assert visit(Host="localhost:9000", Origin="http://localhost:9000").status == 101


@pytest.mark.parametrize(
    "text",
    [
        "", "5", "null", "{}", '"a"', "[5]", "[[]]", "[null]", "[{}]", '[{"event_type": 5}]',
        '[{"event_type": "close"}]',
        '[{"event_type": "unknown"}]',
        '[{"event_type": "pointer_down", "x": NaN, "y": 1}]',
        '[{"event_type": "pointer_down", "x": Infinity, "y": 1}]',
        '[{"event_type": "pointer_down", "x": 1e999, "y": 1}]',
        '[{"event_type": "pointer_down", "x": "1", "y": 1}]',
        json.dumps([{**PRESS, "touches": {"--3": {"x": 1, "y": 1}}}]),
        json.dumps([{**PRESS, "touches": {"\u0663": {"x": 1, "y": 1}}}]),
        '[{"event_type": "clipboard", "text": 5}]',
        '[{"event_type": "wheel", "dy": ' + "9" * 5000 + "}]",
        '[{"event_type": "key_down", "key": "' + "a" * 65 + '"}]',
        "[" * 50_000,
        json.dumps([PRESS] * (MAX_EVENTS + 1)),
        json.dumps([PRESS, {**PRESS, "x": None}]),
    ],
)  # fmt: skip
def test_wrong_messages_have_no_effect(surface, visit, text):
    with pytest.raises(dala.DalaError):
        page_events(text)
    page = visit().steers()
    page.frame(1, text.encode())
    assert page.end() == 1002
    assert plain(surface.events()) == []
    other = visit().steers()  # the server goes on
    other.send(PRESS)
    assert len(collected(surface, 1)) == 1


@pytest.mark.parametrize(
    ("frame", "status"),
    [
        ({"opcode": 1, "data": b"[]", "mask": b""}, 1002),
        ({"opcode": 2, "data": b"[]"}, 1002),
        ({"opcode": 0, "data": b"[]"}, 1002),
        ({"opcode": 3, "data": b"[]"}, 1002),
        ({"opcode": 11, "data": b""}, 1002),
        ({"opcode": 65, "data": b"[]"}, 1002),
        ({"opcode": 9, "data": b"a" * 126}, 1002),
        ({"opcode": 9, "data": b"", "final": False}, 1002),
        ({"opcode": 1, "data": b"\xff\xfe"}, 1002),
        ({"opcode": 1, "data": b"", "length": MAX_MESSAGE + 1}, 1009),
        ({"opcode": 1, "data": b"", "length": 2**63}, 1009),
    ],
)
def test_wrong_frames_end_the_connection(surface, visit, frame, status):
    page = visit().steers()
    page.frame(**frame)
    assert page.end() == status
    assert plain(surface.events()) == []


def test_a_long_message_in_pieces_is_refused(surface, visit):
    page = visit().steers()
    page.frame(1, b"[" + b" " * 100_000, final=False)
    page.frame(0, b" " * 100_000, final=False)
    assert page.end() == 1009


def test_a_page_that_does_not_read_is_waited_for_once(surface, visit):
    visit().steers()
    (page,) = surface.presenter._visitors
    text = "a" * (1 << 24)  # more than the system keeps for it
    with pytest.raises(OSError, match="timed out"):
        page.send(text)
    until(lambda: surface.presenter._visitors == [], "the end of the connection")


def test_random_bytes(surface, visit):
    dice = random.Random(5)
    for _ in range(60):
        page = visit()
        data = dice.randbytes(dice.randrange(1, 200))
        with contextlib.suppress(OSError):  # the server has closed it already
            page.raw.sendall(data)
            page.raw.shutdown(socket.SHUT_WR)
        page.end()
    until(lambda: surface.presenter._visitors == [], "the end of all")
    assert plain(surface.events()) == []
    assert [str(e) for e in surface.errors] == []
    page = visit().steers()
    page.send(PRESS)
    assert len(collected(surface, 1)) == 1


def test_flood_is_bounded_and_keeps_presses(surface, visit):
    page = visit().steers()
    move = {"event_type": "pointer_move", "y": 2}
    for n in range(40):
        page.send(*({**move, "x": n * 250 + i} for i in range(250)))
        page.send({**PRESS, "x": n})
    found = []

    def done():
        found.extend(plain(surface.events()))
        return sum(e["event_type"] == "pointer_down" for e in found) == 40

    until(done, "the presses")
    assert [e["x"] for e in found if e["event_type"] == "pointer_down"] == list(range(40))


@pytest.mark.parametrize(("steer", "seen"), [("first", "a"), ("all", "ab"), ("none", "")])
def test_who_may_steer(visit, steer, seen):
    with dala.gpu.create_surface(4, 4, show="browser", steer=steer) as s:
        pages = []
        for n in range(2):
            pages.append(visit(s))
            until(lambda n=n: len(s.presenter._visitors) == n + 1, "the page")
        for page, name in zip(pages, "ab", strict=True):
            page.send({"event_type": "key_down", "key": name})
            page.frame(9, b"done")
            while page.receive() != (10, b"done"):
                pass
        assert "".join(sorted(e["key"] for e in s.events())) == seen


def test_closing_tells_the_visitors(visit):
    s = dala.gpu.create_surface(4, 4, show="browser")
    page = visit(s)
    until(lambda: s.presenter._visitors, "the page")
    s.close()
    assert page.end() in (1001, None)
