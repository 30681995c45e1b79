"""Receivers that people use: nginx for RTMP, hls.js and WebRTC in a browser."""

from __future__ import annotations

import http.server
import json
import subprocess
import tarfile
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import dala
from dala.media import live
from tests.gpu.presenters.chromium import chromium
from tests.media.live.receivers import PATIENCE, free_port, levels, listens, program, until

SIZE = 64, 48
MODULE = Path("/usr/lib/nginx/modules/ngx_rtmp_module.so")


@pytest.fixture(autouse=True)
def on_cpu():
    with dala.device("cpu"):
        yield


@pytest.fixture(scope="module")
def browser():
    program("chromium")
    # So that the page names its addresses, which a server would have.
    with chromium("--disable-features=WebRtcHideLocalIpsWithMdns") as found:
        yield found


def picture(level: int) -> np.ndarray:
    return np.full((SIZE[1], SIZE[0], 3), level, np.uint8)


# nginx ------------------------------------------------------------------------------------------
def test_nginx_records_rtmp(tmp_path):
    nginx = program("nginx")
    if not MODULE.exists():
        pytest.skip("libnginx-mod-rtmp is not installed")
    port, record = free_port(), tmp_path / "record"
    record.mkdir(mode=0o777)
    record.chmod(0o777)
    (tmp_path / "nginx.conf").write_text(
        f"load_module {MODULE};\ndaemon off;\nworker_processes 1;\nuser root;\n"
        f"pid {tmp_path}/pid;\nerror_log {tmp_path}/error.log;\n"
        "events { worker_connections 64; }\n"
        f"rtmp {{ server {{ listen 127.0.0.1:{port}; application live {{ live on; record all; "
        f"record_path {record}; record_unique off; }} }} }}\n"
    )
    server = subprocess.Popen(
        [nginx, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: listens(port), "nginx")
        with live.open(f"rtmp://127.0.0.1:{port}/live/show", SIZE, fps=10, sound=True) as sink:
            for slot in range(20):
                sink.put(picture(20 + 10 * slot), slot)
                assert sink.flush(PATIENCE)
        made = record / "show.flv"
        until(lambda: made.exists() and len(levels(made)) == 20, "the recording")
    finally:
        server.terminate()
        server.wait(PATIENCE)
    assert levels(made) == pytest.approx([20 + 10 * n for n in range(20)], abs=2)


# pages ------------------------------------------------------------------------------------------
class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; an offer that is posted is answered by the test's function."""

    def do_POST(self) -> None:
        """Answer an offer of WHIP."""
        offer = self.rfile.read(int(self.headers["Content-Length"])).decode()
        answer = self.server.answer(offer).encode()  # type: ignore[attr-defined]
        self.send_response(201)
        self.send_header("Content-Type", "application/sdp")
        self.send_header("Location", "/whip/1")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def do_DELETE(self) -> None:
        """End a session of WHIP."""
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder, answer=None):
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Handler, directory=str(folder))
    )
    server.answer = answer
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


#: Reads the mean of what a video shows; null before the first picture.
MEAN = """(() => {
  const v = document.querySelector('video');
  if (!v || !v.videoWidth || v.readyState < 2) return null;
  const c = new OffscreenCanvas(v.videoWidth, v.videoHeight), g = c.getContext('2d');
  g.drawImage(v, 0, 0);
  const d = g.getImageData(0, 0, c.width, c.height).data;
  let sum = 0;
  for (let i = 0; i < d.length; i += 4) sum += d[i];
  return [v.videoWidth, v.videoHeight, sum / (d.length / 4)];
})()"""


@pytest.fixture(scope="module")
def hls_js(tmp_path_factory):
    """The file hls.min.js, from the package registry."""
    folder = tmp_path_factory.mktemp("hls")
    npm = program("npm")
    made = subprocess.run(
        [npm, "pack", "hls.js@1.6.13", "--silent", "--pack-destination", str(folder)],
        cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    packed = next(folder.glob("*.tgz"), None)
    if made.returncode or packed is None:
        pytest.skip(f"hls.js cannot be had: {made.stderr.strip()[-200:]}")
    with tarfile.open(packed) as archive:
        file = archive.extractfile("package/dist/hls.min.js")
        assert file is not None
        return file.read()


def test_hls_js_plays_a_folder(tmp_path, browser, hls_js):
    (tmp_path / "hls.min.js").write_bytes(hls_js)
    (tmp_path / "index.html").write_text(
        "<video muted autoplay></video><script src='hls.min.js'></script><script>"
        "const hls = new Hls(); hls.loadSource('live.m3u8');"
        "hls.attachMedia(document.querySelector('video'));</script>"
    )
    with live.open(tmp_path, SIZE, fps=10, sound=True) as sink:
        for slot in range(50):
            sink.put(picture(90), slot)
            assert sink.flush(PATIENCE)
    with served(tmp_path) as address:
        page = browser.open(f"http://{address}/", 200, 150)
        until(lambda: page.ask(MEAN), "a picture in the browser")
        width, height, mean = page.ask(MEAN)
        duration = page.ask("document.querySelector('video').duration")
        page.close()
    assert (width, height) == SIZE
    assert mean == pytest.approx(90, abs=4)
    assert duration == pytest.approx(5, abs=0.2)


RECEIVER = """
let pc = null, answer = null;
async function receive(offer) {
  pc = new RTCPeerConnection();
  pc.ontrack = e => {
    if (e.track.kind !== 'video') return;
    document.querySelector('video').srcObject = e.streams[0] || new MediaStream([e.track]);
  };
  await pc.setRemoteDescription({type: 'offer', sdp: offer});
  await pc.setLocalDescription(await pc.createAnswer());
  await new Promise(done => {
    if (pc.iceGatheringState === 'complete') return done();
    pc.onicegatheringstatechange = () => pc.iceGatheringState === 'complete' && done();
  });
  answer = pc.localDescription.sdp;
}
"""


def test_whip_answered_by_a_browser(tmp_path, browser):
    (tmp_path / "index.html").write_text(
        f"<video muted autoplay playsinline></video><script>{RECEIVER}</script>"
    )
    asked = threading.Lock()  # the page is driven by one thread at a time
    with served(tmp_path) as pages:
        page = browser.open(f"http://{pages}/", 200, 150)

        def answer(offer: str) -> str:
            # Chromium does not take the group without a description of its second source.
            lines = [line for line in offer.splitlines() if not line.startswith("a=ssrc-group")]
            with asked:
                page.ask(f"void receive({json.dumps(chr(10).join([*lines, '']))})")
                until(lambda: page.ask("answer"), "the answer")
                return page.ask("answer")

        with served(tmp_path, answer) as address:
            url = f"whip+http://{address}/whip"
            with live.open(url, SIZE, fps=20, sound=True, key_frames=0.5, timeout=60) as sink:
                end = time.monotonic() + PATIENCE
                seen = None
                while not seen and time.monotonic() < end:
                    sink.put(picture(170), sink.next_slot)
                    sink.flush()
                    time.sleep(0.05)
                    with asked:
                        seen = page.ask(MEAN)
        page.close()
    assert seen, "no picture arrived"
    assert tuple(seen[:2]) == SIZE
    assert seen[2] == pytest.approx(170, abs=4)
