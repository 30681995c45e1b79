"""Serving exported pages: addresses, certificates, what is not served, and the end."""

import http.client
import os
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

import dala.web
from dala.errors import FreedError, ParameterError
from dala.secure import certificate, qr_text
from dala.web.serving import announcement


@pytest.fixture
def folder(tmp_path):
    page = tmp_path / "page"
    (page / "shaders").mkdir(parents=True)
    (page / "index.html").write_text("the page")
    (page / "shaders" / "0.wgsl").write_text("fn main() {}")
    (page / ".hidden").write_text("secret")
    (tmp_path / "outside.txt").write_text("secret")
    return page


def status(server, path):
    host, port = server.address.split("/")[2].rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_only_the_folder_is_served(folder):
    os.symlink(folder.parent / "outside.txt", folder / "link.txt")
    with dala.web.Server(folder, host="127.0.0.1") as server:
        assert server.address.startswith("http://127.0.0.1:")
        answer = urllib.request.urlopen(server.address)
        assert answer.read() == b"the page"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert status(server, "/shaders/0.wgsl") == 200
        for path in (
            "/../outside.txt",
            "/%2e%2e/outside.txt",
            "/link.txt",
            "/.hidden",
            "/shaders/",
        ):
            assert status(server, path) == 404, path
    server.close()
    with pytest.raises(FreedError):
        server.wait()
    with pytest.raises(ConnectionError):
        status(server, "/")


def test_tls_with_a_certificate_made_on_the_spot(folder):
    with dala.web.Server(folder, host="127.0.0.1", tls=True) as server:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        # A connection that says nothing holds up no other.
        port = int(server.address.split(":")[2].strip("/"))
        with socket.create_connection(("127.0.0.1", port)):
            found = urllib.request.urlopen(server.address, context=context, timeout=10).read()
        assert found == b"the page"
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(server.address, timeout=10)


def test_certificates_name_their_hosts():
    from cryptography import x509

    made = x509.load_pem_x509_certificate(certificate(["localhost", "192.0.2.7"], "test")[0])
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["192.0.2.7"]


def test_announcements(folder):
    with dala.web.Server(folder, host="127.0.0.1") as server:
        assert announcement(server) == f"{server.address}\nCtrl-C ends it.\n"
    with dala.web.Server(folder) as server:
        assert server.address.startswith("https://")
        lines = announcement(server).splitlines()
        assert lines[0] == server.address
        assert qr_text(server.address).splitlines()[0] in lines


def test_mistakes(tmp_path):
    with pytest.raises(ParameterError, match="folder must be an exported folder, got"):
        dala.web.Server(tmp_path / "none")
    with pytest.raises(ParameterError, match="port must be an int from 0 to 65535, got 99999"):
        dala.web.Server(tmp_path, port=99999)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_command_serves_until_a_signal(number):
    words = ["export", "--invert", "--serve", "--host", "127.0.0.1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "dala", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**os.environ, "DALA_DEVICE": "cpu"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert b"<dala-chain" in urllib.request.urlopen(address, timeout=20).read()
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert err == ""
