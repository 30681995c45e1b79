"""The studio: pictures a second, and the time from a slider to its picture.

    python -m benchmarks.studio [--seconds 15] [--changes 150]

A client in a process of its own connects to a studio on loopback, acknowledges every picture and
decodes none, so the figures are the server's: decoding the video, four filters, encoding, sending.
The first rows play a video of 1280x720 at 30 frames a second through four filters. The others
change a slider of that chain on a photograph of 1280x720, wait for its picture, and repeat.
CPU times are the server's, all threads together, while pictures are counted.
Results are stored in ``results/studio.json``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import struct
import tempfile
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

import numpy as np

from benchmarks.harness import write

SIZE, FPS, SECONDS = (1280, 720), 30, 5
CHAIN = (
    ("blur", {"radius": 4}),
    ("sharpen", {"amount": 0.4}),
    ("saturation", {"value": 0.3}),
    ("vignette", {"amount": 0.5}),
)


class Client:
    """A page without a browser."""

    def __init__(self, host: str, cookie: str, codec: str) -> None:
        from websockets.sync.client import connect

        self._opening = connect(
            f"ws://{host}/ws",
            additional_headers={"Cookie": cookie},
            origin=f"http://{host}",
            max_size=None,
            compression=None,
        )
        self.socket = self._opening.__enter__()
        self._id = 0
        self.pictures = 0
        self.bytes = 0
        self.stats: dict = {}
        self.ask("view", width=SIZE[0], height=SIZE[1], codec=codec)

    def take(self, timeout: float | None = None) -> dict:
        """Take a message; a picture is acknowledged at once."""
        found = self.socket.recv(timeout=timeout)
        if isinstance(found, bytes):
            (length,) = struct.unpack("<I", found[:4])
            header = json.loads(found[4 : 4 + length])
            self.socket.send(json.dumps({"do": "seen", "seq": header["seq"]}))
            self.pictures += 1
            self.bytes += len(found)
            return {"picture": header}
        message = json.loads(found)
        self.stats = message.get("stats", self.stats)
        return message

    def ask(self, do: str, **arguments: object) -> dict:
        """Send a command and return its reply."""
        self._id += 1
        self.socket.send(json.dumps({"id": self._id, "do": do, **arguments}))
        while (message := self.take()).get("reply") != self._id:
            pass
        assert message["ok"], message
        return message

    def settle(self) -> None:
        """Take messages until there are none for a while."""
        try:
            while True:
                self.take(0.6)
        except TimeoutError:
            return

    def close(self) -> None:
        """Close the connection."""
        self._opening.__exit__(None, None, None)


def play(client: Client, ready: Callable[[], None], path: str, seconds: float) -> dict:
    """Play a video in a loop for a while."""
    client.ask("open", path=path)
    for name, params in CHAIN:
        client.ask("add", kind="filter", name=name, params=params)
    client.settle()  # kernels are compiled
    client.ask("loop", **{"from": 0, "to": SECONDS})
    client.ask("play")
    ready()
    begin, client.pictures, client.bytes = perf_counter(), 0, 0
    while perf_counter() - begin < seconds:
        client.take()
    took = perf_counter() - begin
    return {
        "pictures": client.pictures,
        "pictures_per_second": round(client.pictures / took, 2),
        "megabits_per_second": round(client.bytes * 8e-6 / took, 2),
        "chain_ms": client.stats.get("total"),
        "encode_ms": client.stats.get("encode"),
        "dropped": client.stats.get("dropped"),
    }


def slide(client: Client, ready: Callable[[], None], path: str, changes: int) -> dict:
    """Change a slider, wait for its picture, and repeat."""
    client.ask("open", path=path)
    cards = [client.ask("add", kind="filter", name=n, params=p)["card"] for n, p in CHAIN]
    client.settle()
    times = []
    ready()
    for number in range(changes):
        begin = perf_counter()
        message = {"do": "set", "card": cards[0], "param": "radius", "value": 2 + number % 9}
        client.socket.send(json.dumps({**message, "drag": 1}))
        while "picture" not in client.take():
            pass
        times.append((perf_counter() - begin) * 1e3)
    return {
        "pictures": changes,
        "median_ms": round(median(times), 2),
        "p95_ms": round(quantiles(times, n=20)[-1], 2),
        "worst_ms": round(max(times), 2),
    }


def work(pipe: Connection, host: str, cookie: str, codec: str, what: str, *args: object) -> None:
    """Run a row in a process of its own."""
    client = Client(host, cookie, codec)
    run: Callable[..., dict] = {"play": play, "slide": slide}[what]
    pipe.send(run(client, lambda: pipe.send("ready"), *args))
    client.close()


def row(folder: Path, codec: str, what: str, *args: object) -> dict:
    """Start a studio and a client, and return the figures."""
    import http.client

    from dala import studio
    from dala.studio.server import StudioServer, listen

    app = studio.app(folders=[folder])
    listening = listen("127.0.0.1", 0)
    host = f"127.0.0.1:{listening.getsockname()[1]}"
    server = StudioServer(app, listening)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        visit = http.client.HTTPConnection(host)
        visit.request("GET", f"/?secret={app.secret}")
        cookie = visit.getresponse().headers["set-cookie"].partition(";")[0]
        visit.close()
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=work, args=(theirs, host, cookie, codec, what, *args)
        )
        process.start()
        assert ours.recv() == "ready"
        before, begin = os.times(), perf_counter()
        made = ours.recv()
        now, took = os.times(), perf_counter() - begin
        process.join()
    finally:
        server.stop()
        thread.join()
    spent = now.user + now.system - before.user - before.system
    made["cpu_ms_per_picture"] = round(1e3 * spent / made.pop("pictures"), 2)
    made["cores"] = round(spent / took, 2)
    return made


def sources(folder: Path) -> tuple[str, str]:
    """Write the video and the photograph."""
    from dala import samples
    from dala.media import Frame, gpu, video

    photo = np.asarray(gpu.resize(samples.photo("coffee"), SIZE[0] + 300, SIZE[1] + 200))
    with video.write(folder / "clip.mp4", fps=FPS) as sink:
        for number in range(FPS * SECONDS):
            x, y = number * 2 % 300, number % 200
            sink.write(np.ascontiguousarray(photo[y : y + SIZE[1], x : x + SIZE[0]]))
    Frame.from_array(np.ascontiguousarray(photo[: SIZE[1], : SIZE[0]])).save(folder / "still.png")
    return str(folder / "clip.mp4"), str(folder / "still.png")


def main() -> None:
    """Run all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--changes", type=int, default=150)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clip, still = sources(folder)
        rows = {}
        for codec in ("h264", "jpeg"):
            rows[f"720p, four filters, {codec}"] = row(folder, codec, "play", clip, args.seconds)
            rows[f"slider to picture, {codec}"] = row(folder, codec, "slide", still, args.changes)
    for title, figures in rows.items():
        print(title, json.dumps(figures))
    write("studio", rows, ("av", "starlette", "uvicorn", "websockets"))


if __name__ == "__main__":
    main()
