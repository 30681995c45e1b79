"""One studio and one browser for all tests of the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.studio.page.driver import Driver, Studio, browser

pytest.importorskip("playwright", reason="needs the playwright package")
pytest.importorskip("uvicorn", reason="needs the studio extra")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the studio: a picture of two colors, a short video and a scene."""
    from dala.media import Frame, video

    made = tmp_path_factory.mktemp("studio")
    pixels = np.zeros((48, 64, 3), np.uint8)
    pixels[:, :32] = (200, 60, 40)
    pixels[:, 32:] = (40, 60, 200)
    Frame.from_array(pixels).save(made / "two.png")
    frames = [np.full((48, 64, 3), 20 + 7 * n, np.uint8) for n in range(30)]
    video.write(made / "ramp.mp4", frames, fps=10)
    (made / "scene.json").write_text(SCENE)
    return made


#: A scene with a box that is easy to find, a title, and an animation.
SCENE = """{
  "dala": 2,
  "width": 320,
  "height": 180,
  "fps": 10,
  "duration": 2,
  "background": "#101010",
  "nodes": [
    {"type": "overlay", "id": "box", "color": "#ff0000", "position": [40, 50], "size": [80, 60]},
    {"type": "text", "id": "title", "text": "Hello", "size": 24, "position": [180, 20]}
  ],
  "animations": [
    {"node": "title", "property": "opacity", "keyframes": [[0, 0.2], [1, 1.0]]}
  ]
}
"""


@pytest.fixture(scope="module")
def studio(folder: Path) -> Iterator[Studio]:
    """A running studio without an open source."""
    with Studio(folder) as made:
        yield made


@pytest.fixture(scope="module")
def chromium() -> Iterator[object]:
    """A browser. Its loop runs in this thread: tests of asyncio must not find it."""
    if shutil.which("chromium") is None:
        pytest.skip("needs Chromium (Debian: apt-get install chromium)")
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def window(studio: Studio, chromium: object) -> Iterator[Driver]:
    """A window of the browser, which every test loads the page in."""
    with Driver(studio, chromium) as driver:
        yield driver


@pytest.fixture
def page(window: Driver) -> Iterator[Driver]:
    """A page of the studio, with no source open; nothing may be logged as an error."""
    window.studio.clear()
    window.load()
    yield window
    window.check()


@pytest.fixture
def picture(page: Driver) -> Driver:
    """A page with the picture of two colors."""
    page.open("two.png")
    return page


@pytest.fixture
def moving(page: Driver) -> Driver:
    """A page with the short video."""
    page.open("ramp.mp4")
    return page
