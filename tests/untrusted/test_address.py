"""Addresses: parsed once, refused or allowed, and built again."""

from __future__ import annotations

import http.server
import socket
import ssl
import threading
from urllib.parse import urlsplit

import pytest

from dala.arguments import refuse_url
from dala.errors import ParameterError
from dala.secure import certificate_files
from dala.untrusted.address import Address, has_control, scheme_of
from dala.untrusted.requests import HostRequests, OtherHost
from dala.untrusted.secret import SecretUrl
from tests.support.servers import web_server

SCHEMES = ("http", "https", "rtmp", "udp", "tcp", "unix", "srt")


def parse(text, schemes=SCHEMES):
    return Address.parse(text, "open", "source", schemes, "a URL")


@pytest.mark.parametrize(
    ("text", "host", "port", "opened"),
    [
        ("http://host/a.mp4", "host", None, "http://host/a.mp4"),
        ("HTTPS://Host:8443/A?b=C#d", "host", 8443, "https://Host:8443/A?b=C"),
        ("http://me:p@ss@host/a b", "host", None, "http://me:p@ss@host/a%20b"),
        ("http://[::1]:80/a", "[::1]", 80, "http://[::1]:80/a"),
        ("http://bücher.example/", "bücher.example", None, "http://bücher.example/"),
        ("rtmp://host/app/key live=1#x", "host", None, "rtmp://host/app/key live=1#x"),
        ("udp://@239.0.0.1:1234", "239.0.0.1", 1234, "udp://@239.0.0.1:1234"),
        ("tcp://:9000?listen", "", 9000, "tcp://:9000?listen"),
        ("unix:///tmp/socket", "", None, "unix:///tmp/socket"),
        ("srt://host_1:9?streamid=a/b:c", "host_1", 9, "srt://host_1:9?streamid=a/b:c"),
    ],
)
def test_parts(text, host, port, opened):
    found = parse(text)
    assert (found.scheme, found.host, found.port) == (scheme_of(text), host, port)
    assert found.url.reveal() == opened
    assert parse(opened) == found


@pytest.mark.parametrize("place", ["{}http://h/a", "http:{}//h/a", "http://{}h/a", "http://h{}/a",
                                   "http://h:8{}0/a", "http://u{}@h/a", "http://h/a{}b",
                                   "http://h/a?b{}", "http://h/a#{}", "http://h/a{}"])  # fmt: skip
@pytest.mark.parametrize(
    "control", ["\n", "\r", "\t", "\0", "\x1b", "\x7f", "\x85", "\u2028", "\u202e", "\u200b"]
)
def test_control_characters_are_refused_everywhere(place, control):
    assert has_control(place.format(control), url=True)
    with pytest.raises(ParameterError, match="must be a URL"):
        parse(place.format(control))


@pytest.mark.parametrize(
    "text",
    ["", "a.mp4", "file:///a", "http:/h/a", "C://a", "http://h/a ", " http://h/a", "http://h:99999/",
     "http://h:80x/", "http://h\\@evil/", "http://[::1/a", "http://[::1]x/", "http://[1]/",
     "http://a b/", "x://h"],
)  # fmt: skip
def test_what_is_no_address(text):
    with pytest.raises(ParameterError, match="must be"):
        parse(text)


def test_only_the_schemes_that_are_allowed():
    with pytest.raises(ParameterError, match=r"source must be a URL, got 'udp://h/\.\.\.'"):
        parse("udp://h/secret", ("http",))


def test_urls_in_place_of_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for text in ("http://host/a.png?key=1", "gopher://host", "rtmp:/host/app/key"):
        with pytest.raises(ParameterError, match="path must be a path, not a URL") as raised:
            refuse_url("Frame.open", "path", text)
        assert "key" not in str(raised.value)
    for path in ("a.png", b"http://host", tmp_path, 7):
        refuse_url("Frame.open", "path", path)
    (tmp_path / "http:").mkdir()
    (tmp_path / "http:" / "a.png").write_bytes(b"")
    refuse_url("Frame.open", "path", "http://a.png")  # a file of that name


@pytest.fixture
def rebound(monkeypatch):
    """A name that leads to this machine once, and to 127.0.0.2 from then on."""
    asked = []
    real = socket.getaddrinfo

    def lookup(host, port, *args, **more):
        if host != "rebound.test":
            return real(host, port, *args, **more)
        asked.append(port)
        return real("127.0.0.1" if len(asked) == 1 else "127.0.0.2", port, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    return asked


@pytest.fixture
def no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_a_host_is_looked_up_once(rebound, no_proxy):
    """DNS of the playlist's host cannot lead later requests to another machine."""
    with web_server() as web:
        port = urlsplit(web.url).port
        web.files |= {"/list.m3u8": b"#EXTM3U", "/1.ts": b"one"}
        requests = HostRequests(SecretUrl(f"http://rebound.test:{port}/list.m3u8"), 5)
        for path, data in (("list.m3u8", b"#EXTM3U"), ("1.ts", b"one"), ("1.ts", b"one")):
            answer = requests.open(f"http://Rebound.test:{port}/{path}", 0, {})
            assert answer.read(99) == data
            answer.close()
        assert rebound == [port]


class Segment(http.server.BaseHTTPRequestHandler):
    """Answers every request with a segment."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"one")

    def log_message(self, *_):
        pass


def test_a_host_is_looked_up_once_with_tls(rebound, no_proxy, tmp_path, monkeypatch):
    """The certificate must be that of the host's name all the same."""
    with certificate_files(["rebound.test"], "test") as (cert, key):
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Segment)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="test server")
        thread.start()
        try:
            port = server.server_address[1]
            requests = HostRequests(SecretUrl(f"https://rebound.test:{port}/list.m3u8"), 5)
            for _ in range(2):
                assert requests.open(f"https://rebound.test:{port}/1.ts", 0, {}).read(99) == b"one"
            other = HostRequests(SecretUrl(f"https://127.0.0.1:{port}/list.m3u8"), 5)
            with pytest.raises(OSError, match=r"(?i)certificate"):
                other.open(f"https://127.0.0.1:{port}/1.ts", 0, {})
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
    assert rebound == [port]


def test_what_is_asked_for_is_the_parsed_address(no_proxy):
    """Not the text of the playlist, which urllib may read in another way."""
    with web_server() as web:
        web.files["/1.ts"] = b"one"
        requests = HostRequests(SecretUrl(f"{web.url}/list.m3u8"), 5)
        url = web.url.replace("http://", "http://[@") + "/1.ts"
        assert requests.open(url, 0, {}).read(99) == b"one"
        with pytest.raises(OtherHost):
            requests.open(url.replace("[@", "[/@"), 0, {})
