"""Messages of the studio's pages, records of batch jobs, and addresses."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlsplit
from xml.etree import ElementTree

import numpy as np

from dala import batch
from dala.batch.storage import records
from dala.batch.tasks import BatchTask
from dala.errors import ParameterError
from dala.png import encode_png
from dala.studio.commands.registry import commands
from dala.studio.session import StudioSession
from dala.studio.viewer import Viewer
from dala.trace.drawing import picture
from dala.trace.export import FORMAT, write
from dala.trace.report import TraceReport
from dala.untrusted.address import Address
from dala.untrusted.requests import HostRequests, OtherHost
from dala.untrusted.secret import SecretUrl
from tests.batch.films import run_inline
from tests.fuzz.target import Failed, Target
from tests.fuzz.targets.texts import RICH, SCENE, material
from tests.support.inline import InlineRunner
from tests.support.pipeline_model import THREADS, Model

#: Commands that start jobs on other threads, or ask for cameras.
WITHOUT = ("render", "export", "cameras")

BEGIN = (
    {"do": "open", "path": "a.png"},
    {"do": "add", "kind": "filter", "name": "blur", "params": {"radius": 2}},
    {"do": "add", "kind": "kernel", "text": "def k(px: Pixel, *, n: int = 2):\n    return px\n"},
)
ON_CARDS = (
    {"do": "set", "card": "c1", "param": "radius", "value": 3, "drag": 1},
    {"do": "kernel", "card": "c2", "text": "def k(px: Pixel):\n    return px * 2\n", "code": True},
    {"do": "kernel_save", "card": "c2", "path": "k.py"},
    {"do": "move", "card": "c1", "to": 1},
    {"do": "switch", "card": "c1", "on": False},
    {"do": "copy", "as": "python"},
    {"do": "plan"},
    {"do": "preset", "value": {"dala": 2, "chain": [{"filter": "sepia", "on": True}]}},
    {"do": "pixel", "x": 1, "y": 1},
    {"do": "undo"},
    {"do": "redo"},
    {"do": "reset", "card": "c1", "param": "radius"},
    {"do": "remove", "card": "c1"},
    {"do": "view", "id": 5, "width": 64, "height": 48, "region": [0, 0, 4, 4], "charts": []},
)
ON_SCENES = (
    {"do": "open", "path": "scene.json"},
    {"do": "node_set", "node": "box", "property": "x", "value": 4},
    {"do": "node_add", "type": "overlay", "properties": {"color": "red", "size": [4, 4]}},
    {"do": "node_add", "type": "image", "properties": {"source": "../../secret.png"}},
    {"do": "key_set", "node": "box", "property": "x", "time": 0.5, "value": 7},
    {"do": "key_remove", "node": "box", "property": "x", "time": 0.5},
    {"do": "node_drag", "node": "box", "dx": 2, "dy": 3},
    {"do": "node_move", "node": "box", "to": 0},
    {"do": "hit", "x": 3, "y": 3},
    {"do": "box", "node": "box"},
    {"do": "seek", "time": 0.4},
    {"do": "loop", "from": 0, "to": 1},
    {"do": "step", "frames": 1},
    {"do": "node_remove", "node": "box"},
    {"do": "scene_save", "path": "other.json"},
    {"do": "close", "tab": "t1"},
)
WORDS = (
    *commands(), "do", "id", "card", "c1", "c2", "t1", "path", "param", "value", "params", "node",
    "property", "kind", "filter", "kernel", "blur", "text", "box", "radius", "time", "../a.png",
    "/etc/passwd", "k.py", "scene.json", "a.png\\n", "http://127.0.0.1:9/a",
)  # fmt: skip
VALUES = ("null", "true", "1e308", "-1", "NaN", "[[[[", "99999999999999999999", "\n")


class Page(Viewer):
    """A page that remembers what it is sent."""

    def __init__(self, session: StudioSession) -> None:
        loop = asyncio.new_event_loop()
        loop.close()
        super().__init__(1, session.limits, loop)
        self.sent: list[str | bytes] = []

    def send(self, message: str | bytes) -> None:
        self.sent.append(message)


@contextmanager
def mistakes() -> Iterator[list[str]]:
    """Yield what is logged as an error in the block."""
    found: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: found.append(logging.Formatter().format(record))  # type: ignore[method-assign]
    logger = logging.getLogger("dala")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


class Messages(Target):
    """Messages of a page to the studio, one a line: each is answered, and the session goes on."""

    name = "messages"
    words = (
        *(f'"{word}"'.encode() for word in WORDS), *(word.encode() for word in VALUES)
    )  # fmt: skip

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="dala-fuzz-studio-"))

    def seeds(self) -> list[bytes]:
        alone = [b'{"do": "undo", "id": 1}', b"[]", b"not json"]
        lists = (
            (*BEGIN, *ON_CARDS[:7]), (*BEGIN, *ON_CARDS[7:]), ON_SCENES[:8],
            (ON_SCENES[0], *ON_SCENES[8:]),
        )  # fmt: skip
        return [*alone, *(b"\n".join(json.dumps(m).encode() for m in each) for each in lists)]

    def read(self, data: bytes) -> str:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        material(self._folder)
        (self._folder / "scene.json").write_text(json.dumps(SCENE))
        (self._folder / "rich.json").write_text(json.dumps(RICH))
        done: list[str] = []
        with mistakes() as wrong, StudioSession([self._folder], device="cpu") as session:
            for line in data.split(b"\n")[:40]:
                done.append(self._answer(session, line.decode("utf-8", "surrogateescape")))
            json.dumps(session.state(), allow_nan=False)
        if wrong:
            raise Failed(wrong[-1][-1500:])
        if set(done) == {"refused"}:
            raise ParameterError("messages: all are refused.")
        return " ".join(done)

    def _answer(self, session: StudioSession, line: str) -> str:
        if any(f'"{name}"' in line for name in WITHOUT):
            return "left out"
        page = Page(session)
        asyncio.run(session.receive(page, line))
        replies = [json.loads(text) for text in page.sent if isinstance(text, str)]
        return "refused" if any("error" in reply for reply in replies) else "done"


class Records(Target):
    """Records of a job over two pictures, which goes on from them, whatever they say.

    The first byte of an input chooses the file; the rest is its text, with or without a checksum
    that fits. The results must be those of an undisturbed job.
    """

    name = "records"
    words = (
        b'"id":', b'"frames":', b'"facts":{}', b'"files":[', b'"failures":[', b'"notices":[',
        b'"size":', b'"stamp":', b'"digest":', b"null", b"-1", b"1e999", b"NaN", b'"../../x"',
        b"[[[[[[[[", b'{"a":{"a":{"a":', b'"job":', b'"beat":', b'"process":', b'"token":',
    )  # fmt: skip

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="dala-fuzz-batch-"))
        for name in ("a", "b"):
            pixels = np.full((4, 4, 4), ord(name), np.uint8)
            (self._folder / f"{name}.png").write_bytes(encode_png(pixels))
        assert self._run(False).ok
        self._names = sorted(
            path.relative_to(self._out).as_posix()
            for path in (self._out / ".dala-batch").rglob("*.json")
        )
        self._files = {path: path.read_bytes() for path in self._out.rglob("*") if path.is_file()}
        self._names.append(".dala-batch/driver.json")
        self._task = BatchTask("a-0", "pictures", "2", str(self._out), {"chain": []}, {})

    @property
    def _out(self) -> Path:
        return self._folder / "out"

    def _run(self, resume: bool) -> batch.BatchReport:
        job = batch.images(
            f"{self._folder}/*.png", out=f"{self._out}/{{stem}}.png", chain=["invert"],
            device="cpu",
        )  # fmt: skip
        return run_inline(job, InlineRunner(), resume=resume, retries=0)

    def seeds(self) -> list[bytes]:
        found = []
        for number, name in enumerate(self._names):
            path = self._out / name
            content = json.loads(path.read_bytes())["record"] if path.exists() else {"job": "x"}
            text = json.dumps(content).encode()
            found += [bytes([number]) + text, bytes([128 + number]) + records.pack(content)]
        return [*found, b"\xff" + self._task.to_json().encode()]

    def read(self, data: bytes) -> str:
        which, text = data[0] if data else 0, data[1:]
        if which == 0xFF:
            return repr(BatchTask.from_json(text))
        for path, content in self._files.items():
            path.write_bytes(content)
        name = self._names[which % 128 % len(self._names)]
        whole = text if which >= 128 else packed(text)
        (self._out / name).write_bytes(whole)
        try:
            with patch("dala.batch.storage.holding._PAUSE", 0.001):
                report = self._run(True)
        finally:
            (self._out / ".dala-batch/driver.json").unlink(missing_ok=True)
        now = {path: path.read_bytes() for path in self._out.glob("*.png")}
        if (
            not report.ok
            or now != {p: c for p, c in self._files.items() if p in now}
            or len(now) < 2
        ):
            raise Failed(f"the job went on wrongly from {name}: {report.failures}")
        return f"{name}: {report.tasks} tasks"


def packed(text: bytes) -> bytes:
    """Return a record of any text, with a checksum that fits."""
    plain = records.pack({})
    return plain.replace(plain[11:43], records._checksum(text))[:54] + text + b"}"


class Traces(Target):
    """Traces for ``dala why``: the report, and its picture."""

    name = "traces"
    words = (
        b'"ph":"C"', b'"ph":"i"', b'"cat":"done"', b'"cat":"wait:queue"', b'"args":{"value":',
        b'"due":', b'"by":', b'"at":', b'"before_ns":', b'"delayed_ns":', b'"frame":', b'"dur":',
        b'"ts":', b"null", b"-1", b"1e999", b"1e300", b"NaN", b'"x"', b"[]", b"{}", b"true",
    )  # fmt: skip

    def __init__(self) -> None:
        self._file = Path(tempfile.mkdtemp(prefix="dala-fuzz-trace-"), "run.json")

    def seeds(self) -> list[bytes]:
        made = []
        for frames in (2, 6):
            write(self._file, Model(1).run(frames), THREADS, {})
            made.append(self._file.read_bytes())
        facts = {"due": 5, "by": 12, "at": 4000, "before_ns": 9, "delayed_ns": 3, "value": 1}
        event = {"pid": 100, "tid": 12, "ts": 1, "name": "dropped: a", "args": facts}
        more = [{**event, "ph": "C"}, {**event, "ph": "X", "dur": 9, "cat": "wait:queue"}]
        more += [{**event, "ph": "i", "cat": "done", "ts": 9 * n} for n in range(3)]
        text = json.dumps({"otherData": {"format": FORMAT}, "traceEvents": more})
        return [*made, text.encode()]

    def read(self, data: bytes) -> str:
        self._file.write_bytes(data)
        report = TraceReport.open(self._file, tolerance=0.1)
        json.dumps(report.json(), allow_nan=False)
        ElementTree.fromstring(picture(report))
        return str(report)


class Addresses(Target):
    """Addresses: what is allowed means the same to all who read it, and HLS stays on its host."""

    name = "addresses"
    words = (
        b"http://", b"https://", b"rtmp://", b"@", b":", b"[::1]", b"%40", b"%2f", b"\\", b"//",
        b"/../", b"?", b"#", b"\t", b"\n", b"\r\n", b" ", b"\xc2\xa0", b"\xe2\x80\xae", b"host",
        b"127.0.0.1", b":80", b":99999", b"\xef\xbc\x8f", b"\xe3\x80\x82", b"file:///etc/passwd",
        b"\xc4\xb0", b"\xc3\x9f", b"concat:", b"subfile,,",
    )  # fmt: skip

    def __init__(self) -> None:
        self._home = HostRequests(SecretUrl("http://host/live/a.m3u8"), 1)

    def seeds(self) -> list[bytes]:
        texts = (
            "http://host/live/1.ts", "https://me:pw@Host:443/a b?token=x#y", "http://[::1]:80/",
            "rtmp://host/app/key", "http://host:80/1.ts", "https://host/1.ts",
        )  # fmt: skip
        return [text.encode() for text in texts]

    def read(self, data: bytes) -> str:
        text = data.decode("utf-8", "surrogateescape")
        schemes = ("http", "https", "rtmp", "rtsp", "whip+https")
        try:
            self._home.check(text)
        except OtherHost:
            inside = False
        else:
            inside = True
        found = Address.parse(text, "example", "source", schemes, "a URL")
        url = found.url.reveal()
        again = Address.parse(url, "example", "source", schemes, "a URL")
        if again != found:
            raise Failed(f"{url!r} is {again!r} the second time")
        if found.scheme not in ("http", "https"):
            return f"{found!r} {inside}"
        parts = urlsplit(url)  # Python makes the requests of these
        host = found.host.strip("[]").partition("%")[0]
        other = (parts.hostname or "").partition("%")[0]
        if (other, parts.port or None) != (host, found.port or None):
            raise Failed(f"urllib asks {parts.hostname!r}:{parts.port} for {url!r}")
        if inside and (host != "host" or found.scheme not in ("http", "https")):
            raise Failed(f"{url!r} is not on the host of the playlist")
        return f"{found!r} {inside}"
