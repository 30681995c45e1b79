"""A studio on a port of this machine, and a page without a browser."""

from __future__ import annotations

import http.client
import json
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from websockets.sync.client import connect

from dala.studio.application import StudioApp
from dala.studio.server import StudioServer, address_of, listen

PATIENCE = 20.0


class Running:
    """A studio that is served on a free port, by a thread."""

    def __init__(self, studio: StudioApp) -> None:
        self.studio = studio
        listening = listen("127.0.0.1", 0)
        self.base = address_of(listening, tls=False)
        self.host = self.base.removeprefix("http://").rstrip("/")
        self._server = StudioServer(studio, listening)
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        self._cookie = ""

    def close(self) -> None:
        self._server.stop()
        self._thread.join()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    # requests -------------------------------------------------------------------------------------
    def request(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE)
        try:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body=body, headers=given)
            answer = connection.getresponse()
            found = {k.lower(): v for k, v in answer.getheaders()}
            return answer.status, found, answer.read()
        finally:
            connection.close()

    @property
    def cookie(self) -> str:
        """The cookie of a visitor who had the secret."""
        if not self._cookie:
            status, headers, _ = self.request("GET", f"/?secret={self.studio.secret}")
            assert status == 303
            self._cookie = headers["set-cookie"].partition(";")[0]
        return self._cookie

    def get(self, path: str) -> tuple[int, dict[str, str], bytes]:
        return self.request("GET", path, Cookie=self.cookie)

    def post(self, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        origin = self.base.rstrip("/")
        return self.request("POST", path, body, Cookie=self.cookie, Origin=origin)

    def page(self, **options: Any) -> Page:
        return Page(self, **options)


@dataclass
class Picture:
    header: dict[str, Any]
    data: bytes

    @property
    def pixels(self) -> np.ndarray:
        assert self.header["codec"] == "rgba"
        shape = self.header["height"], self.header["width"], 4
        return np.frombuffer(self.data, np.uint8).reshape(shape)


class Refused(Exception):
    """The error of a reply."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["text"])
        self.error = error


class Page:
    """A connection to the WebSocket, which acknowledges pictures and keeps the state."""

    def __init__(self, server: Running, acknowledge: bool = True) -> None:
        self.acknowledge = acknowledge
        self._opening = connect(
            f"ws://{server.host}/ws",
            additional_headers={"Cookie": server.cookie},
            origin=server.base.rstrip("/"),
            max_size=None,
        )
        self._socket = self._opening.__enter__()
        self._id = self._asked = self._told = 0
        self.state: dict[str, Any] = {}
        self.messages: list[dict[str, Any]] = []
        self.pictures: list[Picture] = []
        self.hello = self.receive()["hello"]
        while not self.state:
            self.receive()

    def close(self) -> None:
        self._opening.__exit__(None, None, None)

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    # messages -------------------------------------------------------------------------------------
    def send(self, message: object) -> None:
        text = message if isinstance(message, str | bytes) else json.dumps(message)
        self._socket.send(text)

    def receive(self) -> dict[str, Any]:
        """Take the next message; pictures return their header."""
        found = self._socket.recv(timeout=PATIENCE)
        if isinstance(found, bytes):
            (length,) = struct.unpack("<I", found[:4])
            picture = Picture(json.loads(found[4 : 4 + length]), found[4 + length :])
            self.pictures.append(picture)
            if self.acknowledge and picture.header["which"] == "after":
                self.send({"do": "seen", "seq": picture.header["seq"]})
            return {"picture": picture.header}
        message = json.loads(found)
        if "state" in message:
            self.state |= message["state"]
        self.messages.append(message)
        return message

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send a command and return its reply."""
        self._id += 1
        self._asked, self._told = len(self.pictures), len(self.messages)
        self.send({"id": self._id, "do": do, **arguments})
        while True:
            message = self.receive()
            if message.get("reply") == self._id:
                if not message["ok"]:
                    raise Refused(message["error"])
                return message

    def until(self, condition: Callable[[], bool]) -> None:
        """Take messages until a condition holds."""
        while not condition():
            self.receive()

    def picture(self, condition: Callable[[Picture], bool] = lambda p: True) -> Picture:
        """Return the first picture since the last command for which a condition holds."""
        begin = self._asked
        while True:
            for picture in self.pictures[begin:]:
                if condition(picture):
                    return picture
            begin = len(self.pictures)
            self.receive()

    def message(self, key: str, condition: Callable[[Any], bool] = lambda v: True) -> Any:
        """Return the first message since the last command with a key, and a value as wanted."""
        begin = self._told
        while True:
            for message in self.messages[begin:]:
                if "reply" not in message and key in message and condition(message[key]):
                    return message[key]
            begin = len(self.messages)
            self.receive()
