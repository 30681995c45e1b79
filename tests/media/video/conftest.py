"""Each module of these tests starts without threads that earlier ones left to the collector."""

from __future__ import annotations

import gc
import threading

import pytest

from tests.media.video.clips import encode, numbered
from tests.media.video.waiting import CONTAINERS


@pytest.fixture(scope="module", autouse=True)
def no_threads_of_other_modules() -> None:
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith("dala video"):
            thread.join(30)


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """The same 60 numbered pictures in many containers, a key frame every 12, with B-frames."""
    folder = tmp_path_factory.mktemp("clips")
    for suffix, (codec, pixels) in CONTAINERS.items():
        options = {} if codec == "mjpeg" else {"g": "12", "bf": "2"}
        encode(folder / f"a.{suffix}", numbered(60), codec=codec, pixels=pixels, options=options)
    return folder


@pytest.fixture(scope="module")
def with_sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "a.mp4"
    return encode(path, numbered(50), tone=True)
