"""One studio for all tests of the server; each test starts without tabs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="needs the studio extra")
pytest.importorskip("av", reason="needs the media extra")

from dala import studio as studios
from dala.studio.limits import StudioLimits
from dala.studio.session import StudioSession
from tests.studio.server.client import Page, Running

#: A picture of four colors, which blurs and flips change in ways that are easy to compute.
COLORS = ((200, 60, 40), (40, 60, 200), (20, 160, 30), (250, 240, 10))


def quarters(height: int = 48, width: int = 64) -> np.ndarray:
    pixels = np.zeros((height, width, 3), np.uint8)
    h, w = height // 2, width // 2
    pixels[:h, :w], pixels[:h, w:], pixels[h:, :w], pixels[h:, w:] = COLORS
    return pixels


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a picture, a video of ten frames, a kernel and a table."""
    from dala.media import Frame, video

    made = tmp_path_factory.mktemp("studio-server")
    Frame.from_array(quarters(), device="cpu").save(made / "quarters.png")
    frames = [np.full((32, 48, 3), 20 + 20 * n, np.uint8) for n in range(10)]
    video.write(made / "ramp.mp4", frames, fps=10, options={"crf": 1}, device="cpu")
    (made / "half.py").write_text(
        "from dala.gpu.compute.language import *\n\n\n@kernel\n"
        "def half(px: Pixel, *, amount: Within[float, 0.0, 1.0] = 0.5):\n"
        "    return rgba(px.rgb * amount, px.a)\n"
    )
    (made / "swap.cube").write_text(
        "LUT_3D_SIZE 2\n"
        + "".join(f"{b} {g} {r}\n" for b in (0, 1) for g in (0, 1) for r in (0, 1))
    )
    return made


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[Running]:
    limits = StudioLimits(viewers=4, upload=100_000, message=20_000, tabs=6)
    with Running(studios.app(folders=[folder], device="cpu", limits=limits)) as made:
        yield made


@pytest.fixture
def page(server: Running) -> Iterator[Page]:
    """A connected page; what it opened is closed at its end."""
    with server.page() as made:
        yield made
        for tab in [t["id"] for t in made.state["tabs"]]:
            made.ask("close", tab=tab)


@pytest.fixture
def session(folder: Path) -> Iterator[StudioSession]:
    """A session without a server."""
    with StudioSession([folder], device="cpu") as made:
        yield made


def result(session: StudioSession, time=0) -> np.ndarray:
    links, problems = session._runner.prepare(session.active.contents.cards)
    assert problems == []
    return np.asarray(session._runner.run(session.active.source.at(time), links)).copy()
