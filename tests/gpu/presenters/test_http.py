"""The server of the browser presenter against clients that stall, flood it or send nonsense."""

import contextlib
import errno
import socket
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest

import dala
from dala.gpu.presenters import browser as browser_module
from dala.gpu.presenters.http import HttpResponse, PageServer, ServerLimits, text_response
from dala.gpu.presenters.requests import (
    MAX_HEAD,
    MAX_HEADERS,
    RequestRefused,
    parse_request,
    read_head,
)
from tests.gpu.presenters.screens import PATIENCE, until

PREFIX = "/secret/"
QUICK = ServerLimits(
    connections=4, per_address=3, request_seconds=0.2, idle_seconds=0.4, retry_seconds=0.01
)
PATIENT = ServerLimits(connections=6, per_address=4)


@contextlib.contextmanager
def serving(limits, respond=lambda path, query: text_response(200, f"{path} {query}")):
    """Run a server; yield it and the exceptions of its threads, which must stay empty."""
    failures, raised = [], []
    before, hook = set(threading.enumerate()), threading.excepthook
    threading.excepthook = raised.append
    server = PageServer(respond, PREFIX, failures.append, limits)
    server.failures = failures
    try:
        yield server
    finally:
        server.close()
        threading.excepthook = hook
    assert raised == []
    assert [t.name for t in threading.enumerate() if t not in before] == []


def dial(server, address="127.0.0.1"):
    at = urlsplit(server.address)
    return socket.create_connection((at.hostname, at.port), PATIENCE, source_address=(address, 0))


def request(path="", **headers):
    lines = [f"GET {PREFIX}{path} HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def rest(raw):
    """Return what the server sends until it ends the connection."""
    data = b""
    with contextlib.suppress(ConnectionError), raw:
        while part := raw.recv(65536):
            data += part
    return data


def answer(raw):
    """Return status and body of one response."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += (part := raw.recv(4096))
        assert part, data
    head, _, body = data.partition(b"\r\n\r\n")
    size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(body) < size:
        body += raw.recv(4096)
    return int(head.split()[1]), body


def status(data):
    return int(data.split()[1]) if data else None


# parsing --------------------------------------------------------------------------------------


def test_requests_are_parsed():
    found = parse_request(b"GET /a/b?after=3&x=%20y HTTP/1.1\r\nHost: LocalHost:80\r\nX: 1")
    assert (found.method, found.host, found.path) == ("GET", "localhost", "/a/b")
    assert found.query == {"after": "3", "x": " y"}
    assert found.keep_alive
    assert parse_request(b"GET / HTTP/1.1\nHost: [::1]:8\nConnection: x, Close").host == "[::1]"
    assert not parse_request(b"GET / HTTP/1.1\nHost: a\nConnection: x, Close").keep_alive
    assert not parse_request(b"GET / HTTP/1.0").keep_alive
    absolute = parse_request(b"GET http://evil.example/a?b=c HTTP/1.1\r\nHost: localhost")
    assert (absolute.host, absolute.path, absolute.query) == ("evil.example", "/a", {"b": "c"})
    for host in (b"a:b:c", b"[::1", b"::1", b"localhost:x"):
        assert parse_request(b"GET / HTTP/1.1\r\nHost: " + host).host == ""


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (b"", 400),
        (b"GET", 400),
        (b"GET /", 400),
        (b"GET  / HTTP/1.1", 400),
        (b"GET / HTTP/1.1 x", 400),
        (b"G\xe4T / HTTP/1.1", 400),
        (b"GET /\xff HTTP/1.1", 400),
        (b"GET /\0 HTTP/1.1", 400),
        (b"GET / HTTP/1.x", 400),
        (b"GET / HTTP/2.0\r\nHost: a", 505),
        (b"GET / HTTP/1.1", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\n folded", 400),
        (b"GET / HTTP/1.1\r\nHost: a\rX: b", 400),
        (b"GET / HTTP/1.1\r\nno colon", 400),
        (b"GET / HTTP/1.1\r\n: no name", 400),
        (b"GET / HTTP/1.1\r\nHost : a", 400),
        (b"POST / HTTP/1.1\r\nHost: a", 405),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5", 413),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1", 413),
        (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked", 413),
        (b"GET /?" + b"&".join([b"a=b"] * 9) + b" HTTP/1.1\r\nHost: a", 400),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * (MAX_HEADERS + 1), 431),
        (b"GET http://[ HTTP/1.1", 404),
    ],
)
def test_malformed_requests_get_a_status(head, code):
    if code == 404:  # well-formed, for a host that is not here
        assert parse_request(head).host == ""
    else:
        with pytest.raises(RequestRefused) as caught:
            parse_request(head)
        assert caught.value.status == code
    with serving(PATIENT) as server, dial(server) as raw:
        raw.sendall(head + b"\r\n\r\n" if head else b"x\r\n\r\n")
        assert status(rest(raw)) == code


def test_requests_arrive_in_pieces_and_together():
    with serving(PATIENT) as server:
        with dial(server) as raw:
            for byte in b"\r\n" + request("a"):
                raw.sendall(bytes([byte]))
            assert answer(raw) == (200, b"a {}\n")
        with dial(server) as raw:
            raw.sendall(request("a") + request("b?c=d", Connection="close"))
            data = rest(raw)
        assert data.count(b"HTTP/1.1 200 OK") == 2
        assert data.index(b"a {}\n") < data.index(b"b {'c': 'd'}\n")
        with dial(server) as raw:
            raw.sendall(request("a", Connection="close").replace(b"GET", b"HEAD"))
            assert rest(raw).endswith(b"Connection: close\r\n\r\n")


def test_request_without_end_is_refused_by_size():
    with serving(PATIENT) as server:
        for start in (b"GET /", b"GET / HTTP/1.1\r\nX: "):
            with dial(server) as raw:
                raw.sendall(start + b"a" * (MAX_HEAD + 1))
                assert status(rest(raw)) == 431


# time -------------------------------------------------------------------------------------------


def test_silent_and_slow_connections_are_closed():
    with serving(QUICK) as server:
        with dial(server) as raw:
            assert rest(raw) == b""  # nothing sent, nothing said
        with dial(server) as raw:
            raw.sendall(b"GET / HT")
            assert status(rest(raw)) == 408
        until(lambda: server.connections == 0, "the end of the connections")


class Dripping:
    """A socket that has one more byte of a header at every moment of a clock."""

    def __init__(self, monkeypatch, step):
        self.now, self.step = 0.0, step
        monkeypatch.setattr("dala.gpu.presenters.requests.time.monotonic", lambda: self.now)

    def settimeout(self, seconds):
        assert seconds > 0

    def recv(self, size):
        self.now += self.step
        return b"x"


def test_dripped_request_has_a_deadline_in_all(monkeypatch):
    drip = Dripping(monkeypatch, step=0.5)
    with pytest.raises(RequestRefused, match="took more than 10 seconds"):
        read_head(drip, bytearray(), idle=30.0, seconds=10.0)
    assert drip.now == 10.5


def test_idle_connection_is_closed_after_a_request():
    with serving(QUICK) as server, dial(server) as raw:
        raw.sendall(request("a"))
        assert answer(raw)[0] == 200
        assert rest(raw) == b""


def test_client_that_reads_nothing_is_dropped():
    body = bytes(64 << 20)
    with serving(QUICK, lambda path, query: HttpResponse(200, body)) as server:
        raw = dial(server)
        raw.sendall(request("a"))
        assert raw.recv(4)
        until(lambda: server.connections == 0, "the end of the connection")
        with dial(server) as other:
            other.sendall(request("a"))
            assert other.recv(12) == b"HTTP/1.1 200"
        raw.close()


# numbers ----------------------------------------------------------------------------------------


def known(server, address="127.0.0.1"):
    raw = dial(server, address)
    raw.sendall(request("a"))
    assert answer(raw)[0] == 200
    return raw


def test_connections_are_capped_per_address_and_in_all():
    with serving(PATIENT) as server, contextlib.ExitStack() as held:
        for _ in range(4):
            held.enter_context(known(server))
        assert status(rest(dial(server))) == 503
        for _ in range(2):
            held.enter_context(known(server, "127.0.0.2"))
        assert status(rest(dial(server, "127.0.0.2"))) == 503
        assert server.connections == 6
        assert server.refused == 2
        held.close()
        until(lambda: server.connections == 0, "the end of the connections")
        known(server).close()


def test_connections_without_the_secret_give_way():
    with serving(PATIENT) as server, contextlib.ExitStack() as held:
        mine = held.enter_context(known(server))
        strangers = [held.enter_context(dial(server)) for _ in range(50)]
        late = held.enter_context(known(server))
        assert server.connections <= 4
        for stranger in strangers[:47]:
            assert rest(stranger) == b""
        for page in (mine, late):
            page.sendall(request("b"))
            assert answer(page) == (200, b"b {}\n")


def test_wrong_secret_ends_the_connection():
    with serving(PATIENT) as server, dial(server) as raw:
        raw.sendall(request().replace(b"secret", b"guess") * 2)
        data = rest(raw)
        assert status(data) == 404
        assert data.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
def test_server_waits_when_descriptors_run_out(number):
    with serving(QUICK) as server:
        listener, calls, free = server._listener, [], threading.Event()

        class Exhausted:
            def accept(self):
                if free.is_set():
                    return listener.accept()
                calls.append(1)
                raise OSError(number, "exhausted")

        pauses = []
        closed = server._closed

        class Clock:
            def __getattr__(self, name):
                return getattr(closed, name)

            def wait(self, seconds):
                pauses.append(seconds)
                if len(pauses) == 10:
                    free.set()

        server._closed = Clock()
        server._listener = Exhausted()
        assert rest(dial(server)) == b""  # taken by the accept() that was waiting; it gives way
        assert free.wait(PATIENCE)
        known(server).close()
        server._closed, server._listener = closed, listener
        assert len(calls) == 10
        assert pauses == [min(0.01 * 2**n, 1.0) for n in range(10)]


def test_server_survives_a_real_shortage_of_descriptors():
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with serving(PATIENT) as server, contextlib.ExitStack() as held:
        stranger = held.enter_context(dial(server))
        until(lambda: server.connections == 1, "the connection")
        waiting = socket.socket()
        held.enter_context(waiting)
        waiting.settimeout(PATIENCE)
        at = urlsplit(server.address)
        # The lowest free descriptor would be the limit: whatever opens one more fails.
        with socket.socket() as probe:
            lowest = probe.fileno()
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
        try:
            waiting.connect((at.hostname, at.port))
            waiting.sendall(request("a"))
            # The stranger gives its descriptor up for the one that waits.
            assert answer(waiting) == (200, b"a {}\n")
            assert rest(stranger) == b""
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_thread_that_cannot_start_costs_only_its_connection(monkeypatch):
    with serving(QUICK) as server:
        start, failed = threading.Thread.start, []

        def refuse(thread):
            if thread.name == "dala-http-connection" and not failed:
                failed.append(thread)
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert rest(dial(server)) == b""
        known(server).close()
        assert failed


# failures ---------------------------------------------------------------------------------------


def test_failing_response_is_reported_once_and_gets_500():
    def fail(path, query):
        raise MemoryError("no room")

    with serving(PATIENT, fail) as server:
        with dial(server) as raw:
            raw.sendall(request("a"))
            assert answer(raw)[0] == 500
        assert [str(error) for error in server.failures] == ["no room"]


def test_slow_pages_hold_a_bounded_number_of_frames(monkeypatch):
    monkeypatch.setenv("DALA_BROWSER", "none")
    monkeypatch.setattr(browser_module, "RESPONSE_SECONDS", 0.0)
    monkeypatch.setattr(browser_module, "MAX_COPIES", 2)
    with dala.gpu.create_surface(8, 8, show="browser") as s:
        held = []
        for n in range(3):
            s.clear((n, 0, 0))
            s.present()
            s.synchronize()
            held.append(s.presenter._respond("frame", {"after": "0"}))
        assert [response.status for response in held] == [200, 200, 204]
        del held[0]
        last = s.presenter._respond("frame", {"after": "0"})
        assert last.status == 200
        assert np.frombuffer(last.body, np.uint8)[0] == 2
