"""A marker in every place of every kind of URL never comes out of a call that fails."""

from __future__ import annotations

import io
import json
import logging
import re
import socket
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout, suppress
from random import Random

import numpy as np
import pytest

pytest.importorskip("av", reason="needs the media extra")
pytest.importorskip("fsspec", reason="needs the batch extra")

import dala
from dala import batch, web
from dala.batch.storage.remote import Retries
from dala.cli import main
from dala.errors import describe, masked, masked_error
from dala.gpu import Surface
from dala.media import (
    Frame,
    Scene,
    audio,
    camera,
    fonts,
    live,
    load_lut,
    load_scene,
    load_subtitles,
    microphone,
    screen,
    video,
)  # fmt: skip
from dala.media.live.connection import SendingFailed, connection_error
from dala.media.live.destination import destination_of
from dala.media.video.source import source_of
from dala.ml.gpu import load_model
from dala.samples import photo
from dala.trace.metrics import Metrics
from dala.untrusted.secret import SecretUrl
from tests.support.servers import web_server

MARK = "mArKeR7"
#: Each kind of URL with the marker in every place that may be a secret; {0} is a closed port.
URLS = [
    f"http://{MARK}:{MARK}@127.0.0.1:{{0}}/a.mp4?token={MARK}&sig={MARK}#{MARK}",
    f"https://{MARK}@127.0.0.1:{{0}}/a.mp4?key={MARK}",
    f"http://127.0.0.1:{{0}}/a b.mp4?{MARK} {MARK}",
    f"http://127.0.0.1:{{0}}/list.m3u8#{MARK}",
    f"rtmp://{MARK}:{MARK}@127.0.0.1:{{0}}/{MARK}/{MARK}?k={MARK}",
    f'RTMP://127.0.0.1:{{0}}/app/it\'s {MARK} "{MARK}"',
    f"rtmps://127.0.0.1:{{0}}/app/{MARK}",
    f"rtsp://{MARK}:{MARK}@127.0.0.1:{{0}}/{MARK}?{MARK}#{MARK}",
    f"srt://127.0.0.1:{{0}}?passphrase={MARK}{MARK}&streamid={MARK}",
    f"rist://127.0.0.1:{{0}}?secret={MARK}",
    f"tcp://127.0.0.1:{{0}}/{MARK}?{MARK}",
    f"ftp://{MARK}:{MARK}@127.0.0.1:{{0}}/a.mp4?{MARK}",
    f"whip+http://{MARK}:{MARK}@127.0.0.1:{{0}}/{MARK}?token={MARK}#{MARK}",
    f"whip+https://127.0.0.1:{{0}}/whip/{MARK}",
    # Mistakes.
    f"gopher://{MARK}:{MARK}@127.0.0.1:{{0}}/{MARK}?{MARK}",
    f"rtmp:/127.0.0.1:{{0}}/app/{MARK}",
    f"rtmp:127.0.0.1:{{0}}/app/{MARK}",
    f"srt:127.0.0.1:{{0}}?passphrase={MARK}",
    f"http://127.0.0.1:99999/a.mp4?{MARK}",
    f"http://[{MARK}/a.mp4?{MARK}",
    f"http://127.0.0.1:{{0}}/a.mp4?{MARK}\n",
    f"rtmp://127.0.0.1:{{0}}/app/{MARK}\n{MARK}",
    f"rtmp://me:{MARK}/{MARK}@127.0.0.1:{{0}}/app",
    f"rtsp://{'long' * 30}:{MARK}@127.0.0.1:{{0}}/cam",
]


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield


@pytest.fixture(scope="module")
def port():
    """A port of this machine that refuses connections: it is bound, and nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    path = tmp_path_factory.mktemp("clip") / "in.mp4"
    video.write(path, [np.full((48, 64, 3), 40, np.uint8)] * 4, fps=20)
    return path


def texts_of(error):
    """Yield all that an error and those that led to it can show."""
    seen, waiting = set(), [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        waiting += [each.__cause__, each.__context__]
        yield from (str(each), repr(each), repr(each.args), repr(vars(each)))
        yield from traceback.format_exception(each)
        if isinstance(each, OSError):
            yield repr((each.filename, OSError.filename.__get__(each)))
        with suppress(Exception):
            yield repr(each.__reduce__())


class Searched:
    """Runs calls that fail, and searches all that comes out for the marker."""

    def __init__(self) -> None:
        self.failed = 0

    def __call__(self, call, *args, **kwargs):
        out, err, log = io.StringIO(), io.StringIO(), io.StringIO()
        handler = logging.StreamHandler(log)
        root = logging.getLogger()
        root.addHandler(handler)
        found = []
        try:
            with (
                redirect_stdout(out), redirect_stderr(err),
                warnings.catch_warnings(record=True) as told,
            ):  # fmt: skip
                warnings.simplefilter("always")
                try:
                    made = call(*args, **kwargs)
                    found.append(repr(made))
                except (Exception, SystemExit) as error:
                    self.failed += 1
                    found += texts_of(error)
        finally:
            root.removeHandler(handler)
        found += [out.getvalue(), err.getvalue(), log.getvalue(), *(str(w.message) for w in told)]
        for text in found:
            # Frames of this test quote its source, which has the name of the marker only.
            assert MARK not in text, text
        return "".join(found)


@pytest.fixture
def searched():
    made = Searched()
    yield made
    assert made.failed
    assert MARK not in json.dumps(dala.diagnostics(), default=repr)


@pytest.mark.parametrize("template", URLS, ids=range(len(URLS)))
def test_calls_that_read(template, port, clip, tmp_path, searched):
    url = template.format(port)
    searched(video.open, url, timeout=1)
    searched(video.open, url, timeout=1, playlists=True)
    searched(video.open, url, hwaccel="nothing")
    searched(video.open, url, bad_option=1)
    searched(video.open, url, format="nothing")
    searched(video.open, [url])
    searched(audio.open, url)
    searched(audio.open, url, track=9, layout="nothing")
    searched(Frame.open, url)
    searched(load_subtitles, url.replace("\n", ""))
    searched(load_scene, url)
    searched(video.write, tmp_path / "a.mp4", [np.zeros((8, 8, 3), np.uint8)], audio_from=url)
    searched(video.write, tmp_path / "a.mp4", [np.zeros((8, 8, 3), np.uint8)], tracks_from=url)
    searched(video.write, url, [np.zeros((8, 8, 3), np.uint8)], fps=20)
    searched(lambda: repr(source_of(url)))


@pytest.mark.parametrize("template", URLS, ids=range(len(URLS)))
def test_calls_that_take_other_names(template, port, tmp_path, searched, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = template.format(port)
    picture = np.zeros((8, 8, 3), np.uint8)
    with Scene(64, 48) as scene:
        timeline = scene.add_timeline()
        for call in (
            Frame.from_array(picture).save, camera.open, microphone.open, screen.open, fonts.find,
            load_lut, photo, scene.save, lambda: scene.render_to(url, 0.1), timeline.add_video,
            timeline.add_image, load_model, lambda name: web.export(name, "page.html"),
            lambda name: web.export(["sepia"], "page.html", picture=name), web.read_chain,
            lambda name: batch.images(name, "out/", ["sepia"]).run(),
            lambda name: batch.detect(name, model="faces", out="out/").run(), batch.read,
            lambda name: batch.detect("*.png", model=name, out="out/").run(),
        ):  # fmt: skip
            searched(call, url)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("template", URLS, ids=range(len(URLS)))
def test_scenes(template, port, tmp_path, searched):
    url = template.format(port)
    with Scene(64, 48) as scene:
        for add in (scene.add_video, scene.add_audio, scene.add_image, scene.add_overlay):
            searched(add, url)
        searched(scene.add_video, url, bad=1)
        searched(scene.add_effect, "lut_apply", lut=url)
        searched(scene.add_text, "x", font=url)
    for kind in ("video", "audio", "image", "overlay", "subtitles"):
        data = {"dala": 1, "width": 64, "height": 48, "nodes": [{"type": kind, "source": url}]}
        (tmp_path / "scene.json").write_text(json.dumps(data))
        searched(load_scene, tmp_path / "scene.json")
        searched(load_scene, data)


@pytest.mark.parametrize("template", URLS, ids=range(len(URLS)))
def test_live_outputs(template, port, tmp_path, searched, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = template.format(port)
    searched(lambda: repr(destination_of(url, "live.open")))
    searched(live.open, url, (64, 48), fps=0)
    searched(live.open, url, (64, 48), encoder="nothing")
    searched(live.open, [url], (64, 48))
    searched(live.send, "nothing.mp4", url)
    with Scene(64, 48) as scene, Surface(64, 48) as surface:
        searched(scene.live, url, seconds=-1)
        searched(surface.live, url, seconds=-1)
    assert not list(tmp_path.iterdir())  # what is no URL could be a folder


@pytest.mark.parametrize("template", [u for u in URLS if re.match("rtmps?:|rtsp:/|whip.https", u)])
def test_receivers_that_refuse(template, port, searched):
    """A process is started for each."""
    searched(live.open, template.format(port), (64, 48), timeout=20, options={"nothing": MARK})


@pytest.mark.parametrize("template", URLS, ids=range(len(URLS)))
def test_command_lines(template, port, clip, tmp_path, searched, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url, out = template.format(port), str(tmp_path / "out.mp4")
    for words in (
        ["filter", url, out, "--sepia", "--device", "cpu"],
        ["filter", str(clip), out, "--sepia", "--nothing", url],
        ["filter", str(clip), out, "--blur", url],
        ["cut", url, out, "--from", "1", "--copy"],
        ["live", url, "--to", "rtmp://127.0.0.1:1/a", "--fps", "0"],
        ["live", str(clip), "--to", url, "--encoder", "nothing"],
        ["batch", "videos", url, str(tmp_path / "out"), "--sepia", "--nothing"],
        ["batch", "videos", url, str(tmp_path / "out"), "--sepia"],
        ["compose", url, out],
        ["studio", url],
        [url],
    ):
        for more in ([], ["--debug"], ["--json"]):
            searched(main, [*words, *more])


@pytest.mark.parametrize("template", URLS, ids=range(len(URLS)))
def test_studio_and_batch(template, port, clip, tmp_path, searched):
    pytest.importorskip("uvicorn", reason="needs the studio extra")
    from dala import studio

    url = template.format(port)
    with studio.app(folders=[clip.parent], device="cpu") as made:
        session = made.session
        for message in (
            {"do": "open", "path": url},
            {"do": "open", "camera": url},
            {"do": "open", "sample": url},
            {"do": url, "path": url},
            {"do": "render", "path": url},
        ):
            searched(session.do, message)
        session.do({"do": "open", "path": str(clip)})
        searched(session.do, {"do": "add", "kind": "filter", "name": url})
        assert MARK not in json.dumps(session.state(), default=repr)
    searched(studio.app, url)
    scene = {"dala": 1, "width": 64, "height": 48, "nodes": [{"type": "video", "source": url}]}
    (tmp_path / "scene.json").write_text(json.dumps(scene))
    searched(studio.app, tmp_path / "scene.json", device="cpu")  # which may name addresses
    if url.startswith("http://"):
        out = tmp_path / "out"
        searched(lambda: batch.videos(url, out / "{stem}.mp4", ["sepia"]).run())
        searched(lambda: batch.videos(str(clip), f"{url}/{{stem}}.mp4", ["sepia"]).run())
        assert not out.exists()


def test_what_works_shows_no_secret_either(clip, tmp_path, searched):
    with web_server() as web:
        web.files["/a.mp4"] = clip.read_bytes()
        url = f"{web.url.replace('//', f'//me:{MARK}@')}/a.mp4?token={MARK}#{MARK}"
        trace = tmp_path / "run.json"
        with dala.trace(trace) as run, video.open(url) as reader, Scene(64, 48) as scene:
            node = scene.add_video(url)
            scene.render(0)
            metrics = Metrics()
            metrics.update()
            shown = [reader, reader.name, reader.source, node, scene, *scene.nodes.values()]
            assert MARK not in repr(shown) + repr(vars(reader.source))
            scene.save(tmp_path / "scene.json")
        told = [trace.read_text(), str(run.report()), repr(run), metrics.text()]
        assert MARK not in "".join(told)
        assert '"decode"' in told[0]
        # A file that the user saves has what it needs to be opened again.
        assert MARK in (tmp_path / "scene.json").read_text()
        for more in ([], ["--json"]):
            out = str(tmp_path / "out.mp4")
            words = ["--trace", str(trace), "filter", url, out, "--sepia", "--device", "cpu"]
            text = searched(main, [*words, *more])
            assert "out.mp4" in text
            assert MARK not in trace.read_text()
            searched(main, ["why", str(trace), *more])
        searched(video.open, f"{web.url}/none.mp4?{MARK}")
        store = batch.storage.FileStore(retries=Retries(attempts=2, first=0.01))
        for name in ("none", "a.mp4"):
            web.faults[:] = ["503"] * 9
            searched(store.read, f"{url.replace('a.mp4', name)}")
        searched(store.stat, f"{web.url}/none?{MARK}")


def test_a_stream_that_is_sent_shows_no_secret():
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"tcp://127.0.0.1:{server.getsockname()[1]}/{MARK}?tcp_nodelay=1&k={MARK}"
        metrics = Metrics()
        with dala.trace(None) as run, live.open(url, (64, 48), timeout=20) as sink:
            received = server.accept()[0]
            for _ in range(5):
                sink.write(np.zeros((48, 64, 3), np.uint8))
            received.recv(1000)
            received.close()
            metrics.update()
            assert MARK not in repr([sink, vars(sink), vars(sink._connection)])
            assert MARK in sink.where.opened
        assert MARK not in repr([run.events, run.report().json(), metrics.text()])
        assert "done" in repr(run.events)


@pytest.mark.parametrize("template", [u for u in URLS if u.startswith(("rtsp:/", "whip"))])
def test_what_ffmpeg_says_of_a_receiver(template, port):
    where = destination_of(template.format(port), "live.open")
    path = where.opened.split(str(port))[1]
    said = SendingFailed(f"POST {path} to {where.opened}: 404", "")
    found = "".join(texts_of(connection_error("live.open", where, said)))
    assert MARK not in found
    assert "cannot send to" in found


# parts --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("template", URLS, ids=range(len(URLS)))
def test_every_form_of_a_url_is_masked(template, port):
    url = template.format(port)
    secret = SecretUrl(url)
    for text in (
        f"{secret} {secret!r} {[secret]}",
        secret.hide(f"at {url}: no"),
        *(masked(t) for t in (repr(url), repr([url, url]), f"a {url!r} b", json.dumps([url]))),
    ):
        assert MARK not in text, text
    assert SecretUrl(url).reveal() == url
    assert SecretUrl(url) == SecretUrl(url) != url


def test_random_urls_are_masked():
    random = Random(5)
    letters = "abc019.-_~%!$&()*+,;=:@ /?#[]\\'\"<>`|\n\t\0\x85\u2028\u202e\xe9{}^"

    def junk(longest, without=""):
        some = random.choices([c for c in letters if c not in without], k=longest)
        return "".join(some[: random.randrange(longest)])

    for _ in range(4000):
        scheme = random.choice(("rtmp", "srt", "whip+https", "HTTP", "ftp", "wss", "other"))
        shown = scheme in ("HTTP", "ftp", "wss")  # whose paths are no secrets
        login = f"{junk(4, '@/?#[]:')}:{junk(3, '/?#')}{MARK}{junk(3, '/?#')}@"
        user = random.choice(("", f"{MARK}@", login))
        host = random.choice(("h", "127.0.0.1:99", "[::1]:8", "a_b.c:1", ""))
        path = random.choice(("", f"/{junk(6, '?#')}{'' if shown else MARK}{junk(5, '?#')}"))
        query = random.choice(("", f"?{junk(5, '#')}{MARK}{junk(5, '#')}"))
        url = f"{scheme}://{user}{host}{path}{query}{random.choice(('', f'#{MARK}{junk(4)}'))}"
        for text in (
            str(SecretUrl(url)), masked(repr([url])), masked(json.dumps({"in": url})),
            describe(url), str(dala.ParameterError.invalid("open", "path", "a path", url)),
            str(masked_error(OSError(2, "gone", url))), SecretUrl(url).hide(f"no {url} here"),
        ):  # fmt: skip
            assert MARK not in text, (url, text)


@pytest.mark.parametrize(
    "url",
    [
        f"rtmp://host/app/{MARK}", f"rtsp://host/{MARK}", f"rtsp://{MARK}@host/cam",
        f"rtsp://me:{MARK}@host", f"srt://host:1?mode=caller&passphrase={MARK}",
        f"https://host/a.mp4?{MARK}", f"http://host/a.mp4?token={MARK}&x=1", f"tcp://host/a#{MARK}",
    ],
)  # fmt: skip
def test_parts_that_a_log_quotes(url):
    log = (7, "failed", url, ("rtmp", 16, f"stream {MARK} not found, passphrase, token, mode"))
    found = repr(SecretUrl(url).hidden(log))
    assert MARK not in found
    assert "stream *** not found, passphrase, token, mode" in found


def test_causes_of_other_libraries():
    class Foreign(Exception):
        def __init__(self, url):
            super().__init__(7)
            self.url = url

        def __str__(self):
            return f"no answer from {self.url}"

    url = f"https://host/a?{MARK}"
    try:
        try:
            try:
                raise OSError(2, "No such file", url)
            except OSError as error:
                raise Foreign(url) from error
        except Foreign as error:
            raise ValueError((url, 3)) from error
    except ValueError as error:
        found = masked_error(error)
    assert MARK not in "".join(traceback.format_exception(found))
    assert "Foreign: no answer from https://host/a" in "".join(traceback.format_exception(found))
    assert str(found) == "('https://host/a', 3)"
    plain = KeyError("x")
    assert masked_error(plain) is plain


def test_masking_takes_linear_time():
    for text in (
        "a" * 10**6 + ":",
        "a:" * 10**5,
        "http://" * 10**5,
        "'http:" * 10**5,
        ":/@" * 10**5,
    ):
        masked(text)
        masked(text + "//")
