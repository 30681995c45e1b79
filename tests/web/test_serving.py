"""Serving exported pages: addresses, certificates, what is not served, and the end."""

import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import ExitStack, suppress
from dataclasses import replace

import numpy as np
import pytest

import dala.web
from dala.cli import main
from dala.errors import FreedError, ParameterError
from dala.secure import certificate, qr_text
from dala.web import serving
from dala.web.serving import MAX_OF_ADDRESS, announcement
from tests.gpu.presenters.screens import until


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A folder whose files are all the kinds that an export writes."""
    table = np.random.default_rng(5).random((17, 17, 17, 3)).astype("f4")
    return dala.web.export([("lut_apply", {"lut": table})], tmp_path_factory.mktemp("web") / "page")


@pytest.fixture
def folder(exported, tmp_path):
    """The same, with strangers in it and beside it."""
    page = shutil.copytree(exported.path, tmp_path / "page")
    for stranger in (
        ".hidden",
        "notes.txt",
        "shaders/notes.txt",
        "data/9999.bin",
        "../outside.txt",
    ):
        (page / stranger).write_text("secret")
    return page


def as_local(server):
    host, port = server.address.split("/")[2].rsplit(":", 1)
    assert host == "127.0.0.1"
    return int(port)


def status(server, path):
    connection = http.client.HTTPConnection("127.0.0.1", as_local(server), timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


#: What a stranger asks for, in a folder and beside one file.
OTHERS = [
    *("/notes.txt", "/.hidden", "/shaders/", "/shaders", "/shaders/notes.txt", "/data/9999.bin"),
    *("/../outside.txt", "/%2e%2e/outside.txt", "/shaders/..%2f..%2foutside.txt", "//outside.txt"),
    *(
        "/outside.txt",
        "/page/notes.txt",
        "/page",
        "/etc/passwd",
        "//etc/passwd",
        "/%00",
        "/.",
        "/..",
    ),
    *("/index.html/", "/index.html/../notes.txt", "/shaders/../notes.txt", "*"),
]


def test_only_files_of_the_export_are_served(exported, folder):
    assert {"data/0.bin", "shaders/0.wgsl", "picture.jpg"} <= set(exported.files)
    with dala.web.Server(folder) as server:
        answer = urllib.request.urlopen(server.address)
        assert answer.read() == (folder / "index.html").read_bytes()
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        for name in exported.files:
            found = urllib.request.urlopen(server.address + name).read()
            assert found == (exported.path / name).read_bytes(), name
        assert status(server, "/dala.js?version=2") == 200
        for path in OTHERS:
            assert status(server, path) == 404, path
    server.close()
    with pytest.raises(FreedError):
        server.wait()
    with pytest.raises(ConnectionError):
        status(server, "/")


def test_one_file_is_served_alone(folder):
    """The page was the key to its whole folder."""
    for name in ("page one.html", "s\u00e4pia.html"):
        made = dala.web.export(["sepia"], folder.parent / name)
        os.symlink(folder / "notes.txt", folder.parent / "link.txt")
        with dala.web.Server(made.path) as server:
            for address in (server.address, server.address.rpartition("/")[0] + "/"):
                assert urllib.request.urlopen(address).read() == made.path.read_bytes()
            inside = [f"/page/{file}" for file in ("index.html", "chain.json", "shaders/0.wgsl")]
            for path in (*OTHERS, *inside, "/link.txt", "/chain.json", "/index.html"):
                assert status(server, path) == 404, path
        os.remove(folder.parent / "link.txt")


def test_links_are_not_followed(folder):
    os.replace(folder / "still.jpg", folder.parent / "still.jpg")
    os.symlink(folder.parent / "still.jpg", folder / "still.jpg")
    os.rename(folder / "shaders", folder.parent / "shaders")
    os.symlink(folder.parent / "shaders", folder / "shaders")
    os.symlink(folder, folder.parent / "another")
    for path in (folder, folder.parent / "another"):  # a link to the page itself is the user's own
        with dala.web.Server(path) as server:
            assert status(server, "/picture.jpg") == 200
            assert status(server, "/still.jpg") == 404
            assert status(server, "/shaders/0.wgsl") == 404


@pytest.mark.parametrize("name", ["../outside.txt", "/etc/hostname", "shaders/../notes.txt", "."])
def test_documents_name_no_other_files(folder, name):
    document = json.loads((folder / "chain.json").read_text())
    (folder / "chain.json").write_text(json.dumps({**document, "still": name}))
    with dala.web.Server(folder) as server:
        for path in (f"/{name}", name, urllib.parse.quote(f"/{name}", safe="")):
            assert status(server, path) == 404, path


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "7", "{}", '{"format": "dala-chain"}', "[" * 100_000, "\xff"]
)
def test_other_folders_are_refused(folder, text):
    (folder / "chain.json").write_text(text, encoding="latin-1")
    with pytest.raises(ParameterError, match=r"folder must be a folder or an HTML file that dala"):
        dala.web.Server(folder)


def test_tls_with_a_certificate_made_on_the_spot(folder):
    with dala.web.Server(folder, tls=True) as server:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        # A connection that says nothing holds up no other.
        with socket.create_connection(("127.0.0.1", as_local(server))):
            found = urllib.request.urlopen(server.address, context=context, timeout=10).read()
        assert found == (folder / "index.html").read_bytes()
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(server.address, timeout=10)


def test_certificates_name_their_hosts():
    from cryptography import x509

    made = x509.load_pem_x509_certificate(certificate(["localhost", "192.0.2.7"], "test")[0])
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["192.0.2.7"]


#: Those of the server, in less time.
QUICK = replace(serving._LIMITS, request_seconds=0.3, idle_seconds=0.3, least_rate=1e12)


@pytest.mark.parametrize("tls", [False, True])
def test_a_slow_request_is_dropped_after_its_time_in_all(folder, tls, monkeypatch):
    """Each byte started the time again."""
    monkeypatch.setattr(serving, "_LIMITS", QUICK)
    with dala.web.Server(folder, tls=tls) as server:
        with socket.create_connection(("127.0.0.1", as_local(server)), timeout=60) as client:
            data, begin = b"", time.monotonic()
            client.settimeout(0.05)
            with suppress(ConnectionError):
                for byte in b"GET / HTTP/1.0\r\nHost: " + b"x" * 1000:
                    client.sendall(bytes([byte]))
                    with suppress(TimeoutError):
                        if not (part := client.recv(100)):
                            break
                        data += part
            assert time.monotonic() - begin < 30
        assert tls or b"408" in data
        if not tls:
            assert status(server, "/") == 200


def test_a_slow_reader_is_dropped_and_holds_up_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(serving, "_LIMITS", QUICK)
    page = tmp_path / "page.html"
    with page.open("wb") as file:
        file.truncate(64 << 20)
    with dala.web.Server(page) as server, ExitStack() as held:
        place = ("127.0.0.1", as_local(server))
        client = held.enter_context(socket.create_connection(place, timeout=60))
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        got = len(client.recv(100))
        assert status(server, "/x") == 404
        until(lambda: server._http.connections == 0, "the end of the slow connection")
        with suppress(ConnectionResetError):
            while data := client.recv(1 << 20):
                got += len(data)
        assert got < 64 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="needs a second address of this machine")
def test_one_address_leaves_room_for_others(folder):
    with dala.web.Server(folder) as server, ExitStack() as held:
        for _ in range(MAX_OF_ADDRESS):
            other = http.client.HTTPConnection("127.0.0.1", as_local(server), 60)
            held.callback(other.close)
            other.request("GET", "/dala.d.ts")
            assert other.getresponse().read()
        assert status(server, "/") == 503
        for _ in range(2):
            source = ("127.0.0.2", 0)
            other = http.client.HTTPConnection(
                "127.0.0.1", as_local(server), 60, source_address=source
            )
            other.request("GET", "/")
            assert other.getresponse().status == 200
            other.close()


def test_a_file_that_becomes_a_link_is_not_served(folder):
    with dala.web.Server(folder) as server:
        assert status(server, "/still.jpg") == 200
        os.remove(folder / "still.jpg")
        for target in (folder / "notes.txt", folder.parent / "outside.txt", "picture.jpg"):
            os.symlink(target, folder / "still.jpg")
            assert status(server, "/still.jpg") == 404
            os.remove(folder / "still.jpg")
        os.mkfifo(folder / "still.jpg")
        assert status(server, "/still.jpg") == 404


@pytest.mark.parametrize(
    "words", [["--phone"], ["--serve", "--phone", "--host", "127.0.0.1"], ["--phone", "-o", "x"]]
)
def test_phones_need_a_server_of_their_own(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["export", "--invert", *words]) != 0
    assert "--phone goes with --serve" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "host"), [([], "127.0.0.1"), (["--phone"], "0.0.0.0"), (["--host", "::1"], "::1")]
)
def test_hosts_of_the_command(words, host, monkeypatch, capsys):
    """Only what is asked for is served to others."""
    seen = []

    class Seen(dala.web.Server):
        def __init__(self, folder, **given):
            seen.append(given["host"])
            raise ParameterError("enough.")

    monkeypatch.setattr(dala.web, "Server", Seen)
    main(["export", "--invert", "--serve", *words])
    assert seen == [host]
    assert "enough" in capsys.readouterr().err


def test_announcements(folder):
    with dala.web.Server(folder) as server:
        lines = announcement(server).splitlines()
        assert (lines[0], lines[2:]) == (server.address, ["Ctrl-C ends it."])
        assert "host 0.0.0.0" in lines[1]
    with dala.web.Server(folder, host="0.0.0.0") as server:
        assert server.address.startswith("https://")
        lines = announcement(server).splitlines()
        assert lines[0] == server.address
        assert qr_text(server.address).splitlines()[0] in lines


def test_mistakes(folder, tmp_path):
    with pytest.raises(ParameterError, match="folder must be a folder or an HTML file that"):
        dala.web.Server(tmp_path / "none")
    with pytest.raises(ParameterError, match="port must be an int from 0 to 65535, got 99999"):
        dala.web.Server(folder, port=99999)


@pytest.mark.third
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("out", [None, "page.html", "."])
def test_command_serves_until_a_signal(number, out, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    words = ["export", "--invert", "--serve", *([] if out is None else ["-o", out])]
    process = subprocess.Popen(
        [sys.executable, "-m", "dala", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**os.environ, "DALA_DEVICE": "cpu"}, cwd=tmp_path,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        assert b"<dala-chain" in urllib.request.urlopen(address, timeout=20).read()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(address.rpartition("/")[0] + "/secret.txt", timeout=20)
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert err == ""
