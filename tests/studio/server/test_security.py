"""Who may talk to a studio, and what they may reach."""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from http.cookies import SimpleCookie

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from dala import studio as studios
from dala.errors import ParameterError
from dala.studio.folders import Folders
from dala.studio.limits import StudioLimits
from dala.studio.security import StudioGuard, cookie_name
from tests.studio.server.client import Refused, Running


def test_the_secret_becomes_a_cookie(server):
    status, headers, _ = server.request("GET", f"/?secret={server.studio.secret}")
    assert status == 303
    assert headers["location"] == "/"
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert cookie.endswith("Path=/")
    assert server.studio.secret not in cookie
    assert cookie.startswith(f"dala_studio_{server.host.rpartition(':')[2]}=")
    assert server.get("/")[0] == 200


@pytest.mark.parametrize("path", ["/", "/catalogue.json", "/files", "/static/studio.js", "/upload"])
def test_nothing_without_the_cookie(server, path):
    name = server.cookie.partition("=")[0]
    for headers in ({}, {"Cookie": f"{name}=guess"}, {"Cookie": name}):
        status, _, body = server.request("GET", path, **headers)
        assert status == 403
        assert b"secret" in body
    assert server.request("GET", f"{path}?secret=guess")[0] == 403


def test_a_wrong_secret_does_not_end_a_visit(server):
    assert server.request("GET", "/?secret=guess", Cookie=server.cookie)[0] == 403
    assert server.get("/")[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "a b", "[::1"])
def test_host_must_be_this_machine(server, host):
    assert server.request("GET", "/", Cookie=server.cookie, Host=host)[0] in (400, 403)


@pytest.mark.parametrize("host", ["localhost:80", "127.0.0.1", "[::1]:8000", "192.0.2.7:1234"])
def test_addresses_are_allowed_as_host(server, host):
    name = cookie_name({"headers": [(b"host", host.encode())]})
    cookie = f"{name}={server.cookie.partition('=')[2]}"
    assert server.request("GET", "/", Cookie=cookie, Host=host)[0] == 200


@pytest.mark.parametrize("origin", [None, "http://evil.example", "null", "https://127.0.0.1"])
def test_other_pages_cannot_connect_or_upload(server, origin):
    headers = {"Cookie": server.cookie}
    address = f"ws://{server.host}/ws"
    with (
        pytest.raises((InvalidStatus, ConnectionClosed)),
        connect(address, additional_headers=headers, origin=origin) as page,
    ):
        page.recv()
    given = {**headers, **({"Origin": origin} if origin else {})}
    assert server.request("POST", "/upload?name=a.png", b"x", **given)[0] == 403


def test_the_socket_needs_the_cookie(server):
    with (
        pytest.raises((InvalidStatus, ConnectionClosed)),
        connect(f"ws://{server.host}/ws", origin=server.base.rstrip("/")) as page,
    ):
        page.recv()


def test_the_policy_allows_nothing_inline(server):
    _, headers, _ = server.get("/")
    rules = dict(
        rule.strip().partition(" ")[::2] for rule in headers["content-security-policy"].split(";")
    )
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == "'self' 'wasm-unsafe-eval'"
    assert rules["style-src"] == "'self'"
    assert "unsafe-inline" not in headers["content-security-policy"]
    assert f"ws://{server.host}" in rules["connect-src"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path", ["/static/../application.py", "/static/%2e%2e/application.py", "/static/..%2fserver.py"]
)
def test_static_files_stay_in_their_folder(server, path):
    assert server.get(path)[0] == 404


# files --------------------------------------------------------------------------------------------
@pytest.fixture
def roots(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret.png").write_bytes(b"secret")
    (inside / "own.png").write_bytes(b"own")
    (inside / "link.png").symlink_to(outside / "secret.png")
    (inside / "door").symlink_to(outside)
    (inside / "same.png").symlink_to(inside / "own.png")
    os.symlink("circle", inside / "circle")
    return inside, outside


@pytest.mark.parametrize(
    "name",
    ["../outside/secret.png", "link.png", "door/secret.png", "circle", "a\0b", "", "x" * 5000, 7,
     None, ["own.png"], "\ud800"],
)  # fmt: skip
def test_paths_outside_are_refused(roots, name):
    folders = Folders([roots[0]])
    with pytest.raises(ParameterError):
        folders.open(name, "open")
    if isinstance(name, str) and name:
        with pytest.raises(ParameterError):
            folders.open(str(roots[0] / "x" / ".." / name), "open")


def test_paths_inside_are_found(roots):
    folders = Folders([roots[0]])
    own = roots[0].resolve() / "own.png"
    for name in ("own.png", "same.png", str(own), "./own.png", "door/../own.png"):
        try:
            assert folders.open(name, "open").name == own
        except ParameterError:
            assert name.startswith("door")  # the link is followed first


def test_listings_leave_out_what_leads_outside(roots):
    found = Folders([roots[0]]).listing(str(roots[0]))
    assert [f["name"] for f in found["files"]] == ["own.png", "same.png"]
    assert found["folders"] == []
    assert found["parent"] is None


def test_files_over_http(server, folder):
    found = json.loads(server.get("/files")[2])
    assert found["folders"] == [str(folder.resolve())]
    listed = json.loads(server.get(f"/files?under={folder.resolve()}")[2])
    kinds = {f["name"]: f["kind"] for f in listed["files"]}
    assert kinds["quarters.png"] == "picture"
    assert kinds["half.py"] == "kernel"
    status, _, body = server.get("/files?under=/etc")
    assert status == 400
    assert "allowed folder" in json.loads(body)["error"]["text"]


def test_pages_cannot_open_files_outside(page, tmp_path):
    (tmp_path / "other.png").write_bytes(b"x")
    with pytest.raises(Refused, match="allowed folder"):
        page.ask("open", path=str(tmp_path / "other.png"))
    page.ask("open", sample="coffee")
    card = page.ask("add", kind="filter", name="lut_apply")["card"]
    with pytest.raises(Refused, match="allowed folder"):
        page.ask("set", card=card, param="lut", value="/etc/passwd")
    with pytest.raises(Refused, match="allowed folder"):
        page.ask("render", path=str(tmp_path / "out.png"))
    assert not (tmp_path / "out.png").exists()


# sizes and counts ---------------------------------------------------------------------------------
def test_uploads_are_bounded(server, folder):
    picture = (folder / "quarters.png").read_bytes()
    status, _, body = server.post("/upload?name=../../a%20b;c.png", picture)
    assert status == 200
    path = json.loads(body)["path"]
    assert path.endswith("/a b_c.png")
    with server.page() as page:
        tab = page.ask("open", path=path)["tab"]
        assert page.state["tabs"][-1]["width"] == 64
        page.ask("close", tab=tab)
    status, _, body = server.post("/upload?name=big.png", bytes(100_001))
    assert status == 413
    assert "100,000 bytes" in json.loads(body)["error"]["text"]


def test_long_messages_end_the_connection(server):
    with server.page() as page, pytest.raises(ConnectionClosed):
        page.ask("kernel", card="c1", text="x" * 30_000)


def test_too_many_pages_are_refused(server):
    pages = [server.page() for _ in range(4)]
    try:
        with pytest.raises((InvalidStatus, ConnectionClosed)):
            server.page()
    finally:
        for page in pages:
            page.close()


def test_connections_that_send_nothing_are_dropped():
    limits = StudioLimits(patience=0.3, connections=2)
    with Running(studios.app(device="cpu", limits=limits)) as server:
        host, port = server.host.split(":")
        quiet = socket.create_connection((host, int(port)))
        slow = socket.create_connection((host, int(port)))
        slow.sendall(b"GET / HTTP/1.1\r\nHost: ")
        third = socket.create_connection((host, int(port)))
        for waiting in (third, quiet, slow):
            waiting.settimeout(60)
            with suppress(ConnectionResetError):
                assert waiting.recv(1) == b""
            waiting.close()
        assert server.get("/")[0] == 200


def test_a_page_that_does_not_read_is_dropped():
    limits = StudioLimits(queue=8, viewers=2)
    with Running(studios.app(device="cpu", limits=limits)) as server:
        with server.page(acknowledge=False) as page:
            session = server.studio.session
            (viewer,) = session.viewers
            # The event loop cannot empty the queue faster than one call fills it.
            for number in range(10_000):
                viewer.send(f"{number:05}")
                if viewer.ended:
                    break
            assert viewer.ended == "the page does not keep up"
            with pytest.raises(ConnectionClosed):
                while True:
                    page._socket.recv(timeout=60)
        with server.page() as other:
            assert other.state["viewers"] == 1


# guards -------------------------------------------------------------------------------------------
def test_an_application_without_a_secret():
    with Running(studios.app(device="cpu", secret="")) as server:
        assert server.request("GET", "/")[0] == 200
        assert server.request("GET", "/", Host="evil.example")[0] == 403
        assert server.studio.address("http://x/y") == "http://x/y/"


def test_two_studios_of_one_host_keep_their_visitors():
    jar = SimpleCookie()  # a browser's: by name, whichever the port
    with Running(studios.app(device="cpu")) as one, Running(studios.app(device="cpu")) as two:
        for server in (one, two):
            _, headers, _ = server.request("GET", f"/?secret={server.studio.secret}")
            jar.load(headers["set-cookie"])
        sent = "; ".join(f"{name}={found.value}" for name, found in jar.items())
        for server in (one, two, one):
            assert server.request("GET", "/files", Cookie=sent)[0] == 200


@pytest.mark.parametrize(
    ("scheme", "host", "port"),
    [("http", "a", 80), ("wss", "a", 443), ("https", "[::1]:8443", 8443), ("ws", "a:8000", 8000),
     ("http", "[::1]", 80), ("http", "a:123456", 80), ("http", "a:x", 80)],
)  # fmt: skip
def test_the_cookie_is_that_of_a_port(scheme, host, port):
    scope = {"type": "http", "headers": [(b"host", host.encode())], "scheme": scheme}
    assert cookie_name(scope) == f"dala_studio_{port}"


def test_cookies_of_other_studios_do_not_open_this_one():
    a, b = StudioGuard("same"), StudioGuard("same")
    scope = {"type": "http", "headers": [], "root_path": "/studio", "scheme": "https"}
    cookie = a.cookie(scope)
    assert "Path=/studio/" in cookie
    assert cookie.endswith("; Secure")
    scope["headers"] = [(b"cookie", cookie.partition(";")[0].encode())]
    assert a.has_cookie(scope)
    assert not b.has_cookie(scope)
