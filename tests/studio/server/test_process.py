"""The command as a process, the application in another one, and what is left after it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount
from websockets.sync.client import connect

from dala import resources
from dala import studio as studios
from dala.studio.limits import StudioLimits
from dala.studio.server import listen
from tests.studio.server.client import Running


class Process:
    """``dala studio`` without a browser; the first line is its address."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dala", "studio", *words, "--no-browser", "--device", "cpu"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        found = re.fullmatch(r"(https?)://([\d.]+):(\d+)/\?secret=(\S+)", self.address)
        assert found, self.address or self._process.stderr.read()
        self.scheme, self.host, self.port, self.secret = found.groups()

    def visit(self) -> str:
        """Return the cookie of a first visit. The socket listens before the address is printed."""
        if self.scheme == "https":
            trust = ssl._create_unverified_context()
            client = http.client.HTTPSConnection(self.host, int(self.port), context=trust)
        else:
            client = http.client.HTTPConnection(self.host, int(self.port))
        try:
            client.request("GET", f"/?secret={self.secret}")
            answer = client.getresponse()
            assert answer.status == 303
            return answer.headers["set-cookie"]
        finally:
            client.close()

    def end(self, number: int) -> tuple[int, str, str]:
        self._process.send_signal(number)
        out, wrong = self._process.communicate(timeout=60)
        return self._process.returncode, out, wrong


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly(folder, number):
    process = Process(str(folder / "quarters.png"))
    assert process.host == "127.0.0.1"
    assert len(process.secret) >= 32
    cookie = process.visit().partition(";")[0]
    origin = f"http://{process.host}:{process.port}"
    with connect(
        f"ws://{process.host}:{process.port}/ws",
        additional_headers={"Cookie": cookie},
        origin=origin,
    ) as page:
        assert "hello" in json.loads(page.recv())
        state = json.loads(page.recv())["state"]
        assert state["tabs"][0]["title"] == "quarters.png"
        assert state["folders"] == [str(folder.resolve())]
        code, out, wrong = process.end(number)
    assert code == 0
    assert out == ""
    assert wrong == ""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_tls_with_a_qr_code():
    process = Process("--tls")
    assert process.scheme == "https"
    assert "Secure" in process.visit()
    code, out, _ = process.end(signal.SIGTERM)
    assert code == 0
    assert len(out.splitlines()) > 10  # the QR code
    assert set("█▀▄ ") & set(out)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["missing.png"], "there is no file 'missing.png'"),
        (["--port", "99999"], "port"),
        (["--folder", "missing"], "a folder that exists"),
        (["--host", "192.0.2.1"], "cannot listen on 192.0.2.1"),
    ],
)
def test_wrong_arguments(words, error, capsys):
    from dala.cli import main

    with pytest.raises(SystemExit) if "--port" in words else _nothing():
        assert main(["studio", *words, "--no-browser", "--device", "cpu"]) == 2
    assert error in capsys.readouterr().err


def _nothing():
    from contextlib import nullcontext

    return nullcontext()


# in another application ---------------------------------------------------------------------------
def test_under_a_prefix(folder):
    studio = studios.app(folder / "quarters.png", device="cpu")
    site = Starlette(routes=[Mount("/tools/studio", studio)])
    listening = listen("127.0.0.1", 0)
    host = f"127.0.0.1:{listening.getsockname()[1]}"
    server = uvicorn.Server(
        uvicorn.Config(site, log_level="critical", ws="websockets-sansio", lifespan="off")
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        client = http.client.HTTPConnection(host)
        client.request("GET", f"/tools/studio/?secret={studio.secret}")
        answer = client.getresponse()
        answer.read()
        assert answer.status == 303
        assert answer.headers["location"] == "/tools/studio/"
        assert "Path=/tools/studio/" in answer.headers["set-cookie"]
        cookie = answer.headers["set-cookie"].partition(";")[0]
        for path, status in (("/tools/studio/", 200), ("/tools/studio/catalogue.json", 200),
                             ("/catalogue.json", 404)):  # fmt: skip
            client.request("GET", path, headers={"Cookie": cookie})
            answer = client.getresponse()
            answer.read()
            assert answer.status == status
        client.close()
        with connect(
            f"ws://{host}/tools/studio/ws",
            additional_headers={"Cookie": cookie},
            origin=f"http://{host}",
        ) as page:
            assert "hello" in json.loads(page.recv())
        assert studio.address(f"http://{host}/tools/studio").startswith(
            f"http://{host}/tools/studio/?secret="
        )
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
        studio.close()


def test_the_page_has_only_relative_addresses():
    from dala.studio.application import STATIC

    text = (STATIC / "index.html").read_text()
    assert not re.findall(r'(?:src|href)="(?:/|https?:)', text)


def test_small_messages_are_sent_at_once():
    """asyncio does so for sockets whose protocol is named; a picture would wait for up to 40 ms."""
    with (
        listen("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname()) as client,
        listening.accept()[0] as accepted,
    ):
        assert accepted.proto == socket.IPPROTO_TCP
        assert client.getpeername() == accepted.getsockname()


# what is left -------------------------------------------------------------------------------------
def counts() -> dict[str, int]:
    return {kind: row["count"] for kind, row in resources.snapshot().items() if row["count"]}


def threads() -> list[str]:
    return sorted(t.name for t in threading.enumerate() if "studio" in t.name or "source" in t.name)


def test_nothing_is_left(folder):
    import gc

    def round_trip() -> None:
        with (
            Running(studios.app(folder / "ramp.mp4", device="cpu")) as server,
            server.page() as page,
        ):
            page.ask("view", width=64, height=48, codec="h264", charts=["histogram"])
            page.ask("add", kind="filter", name="blur")
            page.ask("open", path=str(folder / "quarters.png"))
            page.ask("add", kind="kernel")
            page.picture()
            page.ask("render")
            scratch = server.studio.session.scratch
            assert scratch.is_dir()
        assert not scratch.exists()

    round_trip()
    gc.collect()
    before, running = counts(), threads()
    round_trip()
    gc.collect()
    # What earlier tests left may end meanwhile; nothing may be added.
    assert {kind: n for kind, n in counts().items() if n > before.get(kind, 0)} == {}
    end = time.monotonic() + 300
    while more := [name for name in threads() if name not in running]:
        assert time.monotonic() < end, more
        time.sleep(0.001)


def test_a_closed_studio_refuses(folder):
    studio = studios.app(folder / "quarters.png", device="cpu", limits=StudioLimits())
    studio.close()
    studio.close()
    with pytest.raises(ValueError, match="the studio is closed"):
        studio.session.do({"do": "undo"})
