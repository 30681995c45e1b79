"""The browser presenter: its page in headless Chromium, and its server."""

import contextlib
import http.client
import json
import os
import socket
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest

import dala
from dala.gpu.presenters import browser as browser_module
from dala.trace.recorder import tracer
from tests.gpu.presenters.chromium import Refused, chromium
from tests.gpu.presenters.screens import CLOSE, PATIENCE, difference, over_black, picture, until

WIDE, HIGH = 160, 100

#: The headers of a WebSocket's handshake, for a Host.
HANDSHAKE = (
    "Origin: http://{}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


@pytest.fixture(autouse=True)
def no_browser_of_the_users(monkeypatch):
    monkeypatch.setenv("DALA_BROWSER", "none")


@pytest.fixture
def surface():
    before = set(threading.enumerate())
    with dala.gpu.create_surface(WIDE, HIGH, show="browser", title="a <test> & {{vsync}}") as s:
        yield s
    left = [t.name for t in threading.enumerate() if t not in before and t.name.startswith("dala-")]
    assert left == []


def get(address, path="", host=None):
    """Send a request; return status, headers and body."""
    at = urlsplit(address)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=PATIENCE)
    try:
        connection.request("GET", at.path + path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


# in a browser -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    if os.name != "posix":
        pytest.skip("Chromium's pipes are handed over as on Unix")
    with chromium() as found:
        yield found


def sees(page, wanted):
    until(lambda: difference(page.screenshot(), wanted) <= CLOSE, "the picture on the page")


def draw(s, w, h, seed):
    s.set_pixels(picture(w, h, seed))
    s.present()
    pixels = np.frombuffer(s.get_pixels(), np.uint8).reshape(h, w, 4)
    assert np.array_equal(pixels, picture(w, h, seed))
    return over_black(pixels)


def test_page_shows_the_pixels(surface, browser):
    wanted = draw(surface, WIDE, HIGH, 0)
    page = browser.open(surface.presenter.address, WIDE, HIGH)
    sees(page, wanted)
    sees(page, draw(surface, WIDE, HIGH, 4))
    assert page.ask("document.title") == "a <test> & {{vsync}}"
    # A page of another shape keeps the aspect, on black.
    page.size(WIDE + 60, HIGH)
    surface.clear("#c83232")
    surface.present()
    wide = np.zeros((HIGH, WIDE + 60, 3), np.uint8)
    wide[:, 30:-30] = (200, 50, 50)
    sees(page, wide)
    # So does a resized surface.
    surface.resize(WIDE // 2, HIGH)
    surface.clear("#3232c8")
    surface.present()
    narrow = np.zeros((HIGH, WIDE + 60, 3), np.uint8)
    narrow[:, 70:150] = (50, 50, 200)
    sees(page, narrow)
    page.close()


def test_f8_shows_the_strip_of_frame_times(surface, browser):
    draw(surface, WIDE, HIGH, 0)
    page = browser.open(surface.presenter.address, WIDE, HIGH)
    press = "window.dispatchEvent(new KeyboardEvent('keydown', {key: 'F8', cancelable: true}))"
    assert page.ask("document.getElementById('strip').hidden") is True
    assert not tracer.on
    page.ask(press)
    until(lambda: tracer.on, "the trace of the strip")

    def frames():
        surface.present()
        return int(page.ask("document.getElementById('strip').dataset.frames || '0'"))

    until(lambda: frames() > 3, "frames on the strip")
    status, _, body = get(surface.presenter.address, "strip")
    found = json.loads(body)
    assert status == 200
    assert "draw" in found["colors"] or "present" in found["colors"]
    assert all(ms > 0 for _, ms, _ in found["frames"])
    with dala.trace() as own:  # the page's gives way
        surface.present()
        surface.get_pixels()
    assert own.events
    page.ask(press)
    assert page.ask("document.getElementById('strip').hidden") is True
    page.close()


def gone(page):
    with contextlib.suppress(Refused):
        return page.ask("typeof canvas !== 'undefined' && window.oldPage === undefined")
    return False


def test_two_pages_and_a_reload(surface, browser):
    wanted = draw(surface, WIDE, HIGH, 1)
    pages = [browser.open(surface.presenter.address, WIDE, HIGH) for _ in range(2)]
    for page in pages:
        sees(page, wanted)
    pages[0].ask("window.oldPage = 1")
    pages[0].tell("Page.reload")
    until(lambda: gone(pages[0]), "the page anew")
    pages[0].loaded(surface.presenter.address)
    sees(pages[0], wanted)
    pages[0].close()
    wanted = draw(surface, WIDE, HIGH, 2)
    sees(pages[1], wanted)
    assert dala.gpu.wait_closed(surface, 0) is False
    pages[1].close()
    assert dala.gpu.wait_closed(surface, PATIENCE) is True
    surface.clear("red")
    surface.present()
    assert surface.read_pixels(0, 0, 1, 1) == b"\xff\x00\x00\xff"  # the surface is still usable


def test_page_reports_a_closed_surface(surface, browser):
    draw(surface, WIDE, HIGH, 1)
    page = browser.open(surface.presenter.address, WIDE, HIGH)
    until(lambda: page.ask("document.readyState === 'complete' && canvas.dataset.frame"), "a frame")
    assert page.ask("document.body.className") == ""
    surface.close()
    until(lambda: page.ask("document.body.className") == "ended", "the page's last words")
    page.close()


# the server alone -------------------------------------------------------------------------------


def test_frames_over_http(surface):
    address = surface.presenter.address
    draw(surface, WIDE, HIGH, 3)
    status, headers, body = get(address, "frame?after=0")
    assert status == 200
    assert (headers["X-Width"], headers["X-Height"]) == (str(WIDE), str(HIGH))
    assert body == surface.get_pixels()
    number = headers["X-Frame"]
    assert surface.presenter.shown == 1
    # The same frame for another page is not counted twice.
    assert get(address, "frame?after=0")[2] == body
    assert surface.presenter.shown == 1
    # A request waits until there is a newer frame.
    threading.Timer(0.3, lambda: (surface.clear("red"), surface.present())).start()
    status, headers, body = get(address, f"frame?after={number}")
    assert status == 200
    assert body == b"\xff\x00\x00\xff" * (WIDE * HIGH)
    assert int(headers["X-Frame"]) > int(number)


def test_unfetched_frames_are_dropped(surface):
    for i in range(5):
        surface.clear((i, 0, 0))
        surface.present()
    surface.synchronize()
    assert surface.stats["dropped"] == 4
    assert get(surface.presenter.address, "frame?after=0")[2][:4] == b"\x04\x00\x00\xff"
    surface.present()
    surface.synchronize()
    assert surface.stats["dropped"] == 4


def test_request_without_a_new_frame_times_out(surface, monkeypatch):
    monkeypatch.setattr(browser_module, "RESPONSE_SECONDS", 0.1)
    assert get(surface.presenter.address, "frame?after=0")[0] == 204


def test_requests_without_the_secret_are_refused(surface):
    surface.clear("red")
    surface.present()
    at = urlsplit(surface.presenter.address)
    root = f"http://{at.netloc}/"
    assert at.hostname == "127.0.0.1"
    assert len(at.path) > 20
    for path in ("", "frame?after=0", "a" * (len(at.path) - 2) + "/", "../" * 5 + "etc/passwd"):
        assert get(root, path)[0] == 404
    for host in ("evil.example", f"evil.example:{at.port}", "127.0.0.1.evil.example:80", "", ":80"):
        assert get(surface.presenter.address, "frame?after=0", host=host)[0] == 404
    assert get(surface.presenter.address, "frame?after=0", host="localhost:9000")[0] == 200
    assert get(surface.presenter.address, "other")[0] == 404
    for bad in ("", "-1", "x", "9" * 400, "%D9%A3"):
        assert get(surface.presenter.address, f"frame?after={bad}")[0] == 400
    status, headers, page = get(surface.presenter.address)
    assert status == 200
    assert b"<title>a &lt;test&gt; &amp; {{vsync}}</title>" in page
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    with socket.create_connection((at.hostname, at.port), timeout=PATIENCE) as raw:
        raw.sendall(b"\x16\x03\x01 nonsense\r\n\r\n")
        while raw.recv(4096):
            pass
    assert get(surface.presenter.address)[0] == 200  # the server is still up


def test_closing_with_connections_open(surface):
    at = urlsplit(surface.presenter.address)
    held = []
    for path, more in (("input", HANDSHAKE.format(at.netloc)), ("frame?after=0", "")):
        raw = socket.create_connection((at.hostname, at.port), timeout=PATIENCE)
        raw.sendall(f"GET {at.path}{path} HTTP/1.1\r\nHost: {at.netloc}\r\n{more}\r\n".encode())
        held.append(raw)
    held.append(socket.create_connection((at.hostname, at.port), timeout=PATIENCE))  # sends nothing
    until(lambda: len(surface.presenter._visitors) == 1, "the page that stays")
    surface.close()
    for raw in held:
        with contextlib.suppress(ConnectionResetError), raw:
            while raw.recv(4096):
                pass
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((at.hostname, at.port), timeout=PATIENCE)


def test_stalled_reader_delays_nothing():
    with dala.gpu.create_surface(2000, 2000, show="browser") as s:
        s.clear("red")
        s.present()
        at = urlsplit(s.presenter.address)
        raw = socket.create_connection((at.hostname, at.port), timeout=PATIENCE)
        raw.sendall(f"GET {at.path}frame?after=0 HTTP/1.1\r\nHost: {at.netloc}\r\n\r\n".encode())
        assert raw.recv(4)  # then stops reading
        s.clear("lime")
        s.present()
        assert s.read_pixels(0, 0, 1, 1) == b"\x00\xff\x00\xff"
        assert get(s.presenter.address, "frame?after=0")[2][:4] == b"\x00\xff\x00\xff"
    raw.close()


def test_collected_surface_closes_its_page():
    s = dala.gpu.create_surface(4, 4, show="browser")
    presenter = s.presenter
    del s
    until(lambda: not presenter._watcher.is_alive(), "the end of the server")
    assert presenter.closed
    names = [t.name for t in threading.enumerate()]
    assert not any(name.startswith(("dala-http", "dala-browser")) for name in names)


def test_address_is_printed_and_the_browser_opened(monkeypatch, capsys):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address))
    monkeypatch.setenv("BROWSER", "some-browser")
    monkeypatch.delenv("DALA_BROWSER")
    with dala.gpu.create_surface(4, 4, show="browser", title="mine") as s:
        address = s.presenter.address
        s.present()
        s.synchronize()
    assert opened == [address]
    assert capsys.readouterr().err == f"dala: mine is shown at {address}\n"
    monkeypatch.setenv("DALA_BROWSER", "none")
    with dala.gpu.create_surface(4, 4, show="browser"):
        pass
    assert len(opened) == 1
