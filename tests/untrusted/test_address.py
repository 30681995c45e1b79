"""Addresses: parsed once, refused or allowed, and built again."""

from __future__ import annotations

import pytest

from dala.arguments import refuse_url
from dala.errors import ParameterError
from dala.untrusted.address import Address, has_control, scheme_of

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
     "http://h:80x/", "http://h\\@evil/", "http://[::1/a", "http://[::1]x/", "http://a b/", "x://h"],
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
