"""Videos of strangers: FFmpeg opens nothing but the file, stream or host that the caller named."""

from __future__ import annotations

import contextlib
import http.server
import io
import os
import socket
import socketserver
import struct
import threading

import av as pyav
import numpy as np
import pytest

import dala
from dala.errors import AudioError, ParameterError, VideoError, VideoNotFound
from dala.media import Frame, audio, video
from dala.media.video import reach
from dala.untrusted.requests import HostRequests
from dala.untrusted.secret import SecretUrl
from tests.media.video.clips import encode, numbered
from tests.support.canary import Canary
from tests.support.servers import web_server

PICTURES = list(np.random.default_rng(1).integers(0, 256, (3, 48, 64, 3), np.uint8))


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """A folder with the same three frames as MP4 and MPEG-TS."""
    folder = tmp_path_factory.mktemp("clips")
    for name in ("secret.mp4", "secret.ts"):
        encode(folder / name, numbered(3), options={"g": "1", "bf": "0"})
    return folder


@pytest.fixture
def canary(clips):
    with Canary(clips / "secret.mp4", clips / "secret.ts") as made:
        yield made


def count(source, **options):
    with video.open(source, **options) as reader:
        return sum(1 for _ in reader)


def hls(*lines):
    body = "\n#EXTINF:1,\n".join(("#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:9", *lines))
    return f"{body}\n#EXT-X-ENDLIST\n"


def playlists(clips, port):
    """Texts that name the canary, by file and by host."""
    mp4, ts, url = clips / "secret.mp4", clips / "secret.ts", f"http://127.0.0.1:{port}/a.ts"
    return {
        "concat": f"ffconcat version 1.0\nfile '{mp4}'\n",
        "concat of a url": f"ffconcat version 1.0\nfile {url}\n",
        "concat of options": f"ffconcat version 1.0\nfile 'subfile,,start,0,end,99,,:{mp4}'\n",
        "hls": hls(f"{ts}"),
        "hls with file:": hls(f"file://{ts}"),
        "hls with concat:": hls(f"concat:{ts}|{ts}"),
        "hls with subfile": hls(f"subfile,,start,0,end,9999,,:{ts}"),
        "hls with data:": hls("data:video/mp2t;base64,R0BAEA=="),
        "hls of a url": hls(url),
        "hls with a key": hls(f"{ts}").replace(
            "#EXTINF", f'#EXT-X-KEY:METHOD=AES-128,URI="{url}"\n#EXTINF', 1
        ),
        "hls of hls": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n" + url + "\n",
        "dash": '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
        'mediaPresentationDuration="PT1S"><Period><AdaptationSet><Representation id="1" '
        f'bandwidth="1"><BaseURL>{url}</BaseURL></Representation></AdaptationSet></Period></MPD>',
        "sdp": f"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\n"
        f"m=video {port} TCP/RTP/AVP 33\n",
        "vobsub": "# VobSub index file, v7\nid: en, index: 0\n",
        "svg": f'<svg xmlns="http://www.w3.org/2000/svg"><image href="{url}"/></svg>',
    }


KINDS = list(playlists(__import__("pathlib").Path("/"), 1))
SUFFIXES = (".mp4", ".m3u8", ".ffconcat", ".mpd", ".sdp", ".idx", ".svg", ".txt", "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_playlist_reaches_nothing_whatever_its_name(clips, canary, tmp_path, kind):
    text = playlists(clips, canary.port)[kind]
    for suffix in SUFFIXES:
        path = tmp_path / f"holiday{suffix}"
        path.write_text(text)
        with pytest.raises(VideoError, match="cannot open"):
            count(path, timeout=1)
        with pytest.raises(VideoError, match="cannot open"):
            video.write(tmp_path / "out.mp4", audio_from=path)
    data = text.encode()
    for source in (data, io.BytesIO(data)):
        with pytest.raises(VideoError, match="cannot open"):
            count(source, timeout=1)
    with pytest.raises(ParameterError):
        Frame.open(tmp_path / "holiday.mp4")
    assert not canary.touched


def test_the_canary_sings(clips, canary):
    assert count(clips / "secret.ts") == 3
    assert canary.touched or not os.path.exists("/proc")
    socket.create_connection(("127.0.0.1", canary.port)).close()
    assert canary.connected


def test_playlists_of_trusted_files(clips, tmp_path):
    path = tmp_path / "list.ffconcat"
    path.write_text(
        f"ffconcat version 1.0\nfile '{clips / 'secret.ts'}'\nfile '{clips / 'secret.ts'}'"
    )
    with pytest.raises(VideoError, match=r"It is a playlist.*playlists=True"):
        count(path)
    assert count(path, playlists=True) == 6
    (clips / "list.m3u8").write_text(hls("secret.ts"))
    assert count(clips / "list.m3u8", playlists=True) == 3


def test_numbered_pictures_are_not_a_video_unless_asked_for(tmp_path):
    for n, picture in enumerate(PICTURES):
        Frame.from_array(picture).save(tmp_path / f"shot{n}.png")
    with Canary(tmp_path / "shot1.png") as canary:
        for name in ("shot%d.png", "shot?.png", "shot*.png", "shot{1,2}.png"):
            (tmp_path / name).write_bytes((tmp_path / "shot0.png").read_bytes())
            assert count(tmp_path / name) == 1
        assert not canary.touched
    assert count(tmp_path / "shot%d.png", playlists=True) == 3


@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp", "tif", "ppm", "webp", "gif", "jp2"])
def test_a_picture_is_a_video_of_one_frame(tmp_path, suffix):
    Frame.from_array(PICTURES[0]).save(tmp_path / f"a.{suffix}")
    assert count(tmp_path / f"a.{suffix}") == 1


@pytest.mark.parametrize(
    "name",
    [
        "concat:{0}|{0}",
        "concat:http://127.0.0.1:{1}/a|file://{0}",
        "subfile,,start,0,end,9999,,:{0}",
        "subfile,,start,0,end,9999,,:file://{0}",
        "data:video/mp2t;base64,R0BAEA==",
        "async:{0}",
        "cache:http://127.0.0.1:{1}/a",
        "crypto+http://127.0.0.1:{1}/a",
        "concat://{0}",
        "lavfi://testsrc",
        "pipe://0",
        "fd://0",
        "tee://{0}",
        "gopher://127.0.0.1:{1}/a",
    ],
)
def test_protocols_that_are_not_urls(clips, canary, name):
    name = name.format(clips / "secret.ts", canary.port)
    with pytest.raises((VideoNotFound, ParameterError)):
        count(name, timeout=1)
    assert not canary.touched


# hosts ------------------------------------------------------------------------------------------
@pytest.fixture
def served(clips):
    """A server of texts and clips; returns its address and the dict of texts."""
    texts, asked = {}, []
    clip = (clips / "secret.ts").read_bytes()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            where = texts.get(self.path)
            if isinstance(where, str) and where.startswith("Location: "):
                self.send_response(302)
                self.send_header("Location", where[10:])
                self.end_headers()
                return
            data = clip if where is None else where.encode()
            self.send_response(200)
            if self.path.endswith("m3u8"):
                self.send_header("Content-Type", "application/vnd.apple.mpegurl")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="test server")
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", texts, asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_url_may_be_a_playlist_of_its_host(served):
    url, texts, asked = served
    texts["/list.m3u8"] = hls(f"{url}/one.ts?token=a")
    texts["/main.m3u8"] = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlist.m3u8\n"
    texts["/moved.ts"] = f"Location: {url}/one.ts"
    texts["/moves.m3u8"] = hls("moved.ts")
    for name, led in (
        ("list", {"/one.ts?token=a"}),
        ("main", {"/list.m3u8", "/one.ts?token=a"}),
        ("moves", {"/moved.ts", "/one.ts"}),
    ):
        asked.clear()
        with video.open(f"{url}/{name}.m3u8", timeout=20) as reader:
            assert sum(1 for _ in reader) == 3
            reader.seek(0)
            next(reader)
        assert {*asked} == {f"/{name}.m3u8", *led}
    with pytest.raises(AudioError, match="has no sound"):
        audio.open(f"{url}/list.m3u8")
    texts["/gone.m3u8"] = hls("none\x01.ts", "a b\xe9.ts")
    with pytest.raises(VideoError):
        count(f"{url}/gone.m3u8", timeout=2)


@pytest.mark.parametrize("name", ["list.m3u8", "list.mp4"])
@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "user@localhost"])
@pytest.mark.parametrize("kind", ["hls of a url", "hls of hls", "hls with a key", "dash", "moved"])
def test_a_playlist_of_a_host_leads_to_no_other(served, clips, name, host, kind):
    """Another port is another host."""
    url, texts, asked = served
    with Canary(clips / "secret.ts") as other:
        texts["/moved.ts"] = f"Location: http://{host}:{other.port}/a.ts"
        text = hls("moved.ts") if kind == "moved" else playlists(clips, other.port)[kind]
        texts[f"/{name}"] = text.replace("127.0.0.1", host)
        told = name.endswith("m3u8") and kind != "dash"
        with pytest.raises(VideoError, match=r"playlists=True" if told else "cannot open"):
            count(f"{url}/{name}", timeout=5)
        with pytest.raises(AudioError, match="cannot open"):
            audio.open(f"{url}/{name}").close()
        assert not other.connected
    assert set(asked) <= {f"/{name}", "/moved.ts"}


def drips(send):
    """Send a playlist for ever, a line at a time."""
    send(b"HTTP/1.1 200 OK\r\n\r\n#EXTM3U\n#EXT-X-TARGETDURATION:9\n")
    while True:
        send(b"#EXTINF:1,\n1.ts\n")
        never.wait(0.05)


def floods(send):
    """Send a playlist without end."""
    send(b"HTTP/1.1 200 OK\r\n\r\n#EXTM3U\n#EXT-X-TARGETDURATION:9\n")
    while True:
        send(b"#EXTINF:1,\n1.ts\n" * 10_000)


def hesitates(send):
    """Send a header for ever, a line at a time."""
    send(b"HTTP/1.1 200 OK\r\n")
    while True:
        send(b"X: 1\r\n")
        never.wait(0.05)


never = threading.Event()


@pytest.mark.third
@pytest.mark.parametrize("behave", [drips, floods, hesitates])
@pytest.mark.parametrize("limited", [False, True])
def test_a_host_that_sends_for_ever_is_left(behave, limited):
    """Of a host that sent a line now and then, a playlist was read for as long as it liked."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(65536)
            with contextlib.suppress(OSError):
                behave(self.request.sendall)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="test server")
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/list.m3u8"
        limits = dala.limits(time=0.6) if limited else contextlib.nullcontext()
        kind = (VideoError, dala.CommandTimeout) if limited else VideoError
        try:
            with pytest.raises(kind), limits:
                count(url, timeout=60 if limited and behave is not floods else 0.5)
            requests = HostRequests(SecretUrl(url), 0.3)
            with pytest.raises(OSError, match=r"slowly|timed out|more than|too many"):
                answer = requests.open(url, 0, {})
                while answer.read(1 << 16):
                    pass
        finally:
            server.shutdown()
            thread.join()


def test_segments_that_are_parts_of_a_file(clips):
    data = (clips / "secret.ts").read_bytes()
    with web_server() as web:
        web.files["/all.ts"] = bytes(188 * 7) + data
        text = hls("all.ts").replace("all.ts", f"#EXT-X-BYTERANGE:{len(data)}@{188 * 7}\nall.ts")
        web.files["/list.m3u8"] = text.encode()
        assert count(f"{web.url}/list.m3u8", timeout=20) == 3
        assert (188 * 7, 188 * 7 + len(data)) in web.asked
        web.ranges = False
        with pytest.raises(VideoError, match="sends no parts of files"):
            count(f"{web.url}/list.m3u8", timeout=5)


def test_a_trusted_playlist_of_a_host_may_name_others_but_no_files(served, clips, canary):
    url, texts, asked = served
    for name in ("one.ts", f"{url.replace('127.0.0.1', 'localhost')}/one.ts"):
        asked.clear()
        texts["/list.m3u8"] = hls(name)
        assert count(f"{url}/list.m3u8", playlists=True) == 3
        assert set(asked) == {"/list.m3u8", "/one.ts"}
    for kind, text in playlists(clips, canary.port).items():
        if kind in ("hls", "dash") or kind.endswith(("url", "key", "of hls", "data:")):
            continue
        texts["/list.m3u8"] = text
        with pytest.raises(VideoError):
            count(f"{url}/list.m3u8", timeout=2, playlists=True)
    assert not canary.touched


# Paths without a protocol are paths of the host.
@pytest.mark.parametrize(
    "kind", [k for k in KINDS if k != "hls" and not k.endswith(("url", "key", "of hls"))]
)
def test_a_playlist_of_a_host_reaches_no_file(served, clips, canary, kind):
    url, texts, _ = served
    texts["/list.m3u8"] = texts["/list.mp4"] = playlists(clips, canary.port)[kind]
    texts["/moved.mp4"] = f"Location: file://{clips / 'secret.ts'}"
    for name in ("list.m3u8", "list.mp4", "moved.mp4"):
        with pytest.raises(VideoError):
            count(f"{url}/{name}", timeout=2)
    assert not canary.touched


def test_no_playlist_from_far_away_reaches_files():
    for scheme in reach.PROTOCOLS:
        options = reach.container_options(scheme, playlists=True)
        protocols = options["protocol_whitelist"].split(",")
        formats = options["format_whitelist"].split(",")
        assert ("file" in protocols) == ("concat" in formats) == (scheme == "file")
        assert not {"subfile", "pipe", "fd", "concat"} & {*protocols}


# references in MOV --------------------------------------------------------------------------------
def boxes(data):
    at = 0
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        yield kind, data[at + 8 : at + size]
        at += size


def with_reference(data, path):
    """Return a MOV whose track is in another file, by its path."""
    name = os.fsencode(path)
    short = name.rsplit(b"/", 1)[-1]
    # Ten bytes, then the names of the volume and the file.
    alias = b"\0" * 6 + struct.pack(">HH", 200, 2) + bytes([4]) + b"root".ljust(27, b"\0")
    alias += b"\0" * 12 + bytes([len(short)]) + short[:63].ljust(63, b"\0") + b"\0" * 16
    alias += struct.pack(">hh", -1, -1) + b"\0" * 16
    for number, text in ((2, b"root:" + name), (18, name)):
        alias += struct.pack(">hH", number, len(text)) + text + b"\0" * (len(text) % 2)
    alias += struct.pack(">hH", -1, 0)
    body = b"\0\0\0\0" + alias
    entry = struct.pack(">I4s", 8 + len(body), b"alis") + body

    def rebuilt(data):
        made = b""
        for kind, inside in boxes(data):
            if kind in (b"moov", b"trak", b"mdia", b"minf", b"dinf"):
                inside = rebuilt(inside)
            elif kind == b"dref":
                inside = struct.pack(">II", 0, 1) + entry
            made += struct.pack(">I4s", 8 + len(inside), kind) + inside
        return made

    return rebuilt(data)


def test_a_mov_that_refers_to_another_file(clips, canary, tmp_path):
    plain = tmp_path / "plain.mov"
    encode(plain, numbered(3), options={"g": "1", "bf": "0"})
    data = plain.read_bytes()
    assert data.index(b"mdat") < data.index(b"moov")  # so that the offsets stay right
    path = tmp_path / "refers.mov"
    path.write_bytes(with_reference(data, clips / "secret.mp4"))
    with pytest.raises(VideoError):
        count(path)
    assert not canary.touched
    # The same file does reach the other one where references are followed.
    options = {"enable_drefs": "1", "use_absolute_path": "1"}
    with contextlib.suppress(pyav.FFmpegError):  # the offsets need not fit
        pyav.open(str(path), container_options=options).close()
    assert canary.touched or not os.path.exists("/proc")


# the lists ----------------------------------------------------------------------------------------
def test_formats_that_reach_out_or_run_scripts_are_not_listed():
    known = set(reach.FORMATS)
    assert len(known) == len(reach.FORMATS)
    for name in (
        "hls", "applehttp", "dash", "concat", "imf", "image2", "lavfi", "tty", "sdp", "rtsp",
        "rtp", "sap", "vobsub", "webm_dash_manifest", "avisynth", "vapoursynth", "libopenmpt",
        "alsa", "x11grab", "v4l2", "fbdev", "svg_pipe", "ffmetadata", "mlv", "dshow",
    ):  # fmt: skip
        assert name not in known


@pytest.mark.parametrize(
    "name", ["mp4", "mkv", "webm", "mov", "avi", "mpg", "ts", "flv", "nut", "y4m"]
)
def test_usual_containers_open(tmp_path, name):
    path = tmp_path / f"a b:c%d'{name}.{name}"  # names that FFmpeg could take for something else
    video.write(path, PICTURES, fps=25, codec="mpeg2video" if name == "mpg" else None)
    assert count(path) == 3
    assert count(path.read_bytes()) == 3
