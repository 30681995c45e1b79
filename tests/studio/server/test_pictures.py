"""Pictures on the way to pages: values, regions, codecs, shared renders, the newest first."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest

from dala.media import gpu
from tests.studio.server.client import Picture
from tests.studio.server.conftest import quarters


def decoded(pictures: list[Picture]) -> list[np.ndarray]:
    """Return H.264 pictures as RGB, as a page decodes them: one message, one picture."""
    import av

    decoder = av.CodecContext.create("h264", "r")
    made = []
    for picture in pictures:
        frames = decoder.decode(av.Packet(picture.data))
        frames += decoder.decode(None) if picture is pictures[-1] else []
        made += [frame.to_ndarray(format="rgb24") for frame in frames]
    return made


@pytest.fixture
def opened(page, folder):
    page.ask("open", path=str(folder / "quarters.png"))
    return page


def test_the_picture_is_the_result_of_the_chain(opened):
    opened.ask("view", width=200, height=200, codec="rgba")
    first = opened.picture()
    np.testing.assert_array_equal(first.pixels[..., :3], quarters())
    assert (first.pixels[..., 3] == 255).all()
    assert first.header["region"] == [0, 0, 64, 48]
    assert first.header["result"] == [64, 48]
    opened.ask("add", kind="filter", name="blur", params={"radius": 4})
    opened.ask("add", kind="filter", name="invert")
    expected = gpu.invert(gpu.blur(quarters(), radius=4, device="cpu"), device="cpu")
    opened.picture(lambda p: np.array_equal(p.pixels[..., :3], expected))
    assert opened.ask("pixel", x=31, y=23) | {"reply": 0} == {
        "reply": 0,
        "ok": True,
        "before": [*quarters()[23, 31].tolist(), 255],
        "after": [*expected[23, 31].tolist(), 255],
    }
    outside = opened.ask("pixel", x=64, y=0)
    assert outside["before"] is None
    assert outside["after"] is None


def test_regions_and_sizes(opened):
    opened.ask("view", width=400, height=400, codec="rgba", region=[30, 20, 5, 7])
    part = opened.picture(lambda p: p.header["region"] == [30, 20, 5, 7])
    np.testing.assert_array_equal(part.pixels[..., :3], quarters()[20:27, 30:35])
    opened.ask("view", region=[-10, 40, 1000, 1000])  # limited to the picture
    part = opened.picture(lambda p: p.header["region"] == [0, 40, 64, 8])
    assert part.pixels.shape == (8, 64, 4)
    opened.ask("view", region=None, width=32, height=1000)
    small = opened.picture(lambda p: p.header["width"] == 32)
    expected = gpu.resize(quarters(), size=(32, 24), device="cpu")
    difference = np.abs(small.pixels[..., :3].astype(int) - expected.astype(int))
    assert difference.max() <= 1


def test_before_and_after(opened):
    opened.ask("add", kind="filter", name="resize", params={"size": [32, 24]})
    opened.ask("add", kind="filter", name="flip")
    opened.ask("view", width=200, height=200, codec="rgba", split=True)
    after = opened.picture(lambda p: p.header["which"] == "after")
    (before,) = [p for p in opened.pictures if p.header["seq"] == after.header["seq"]][:-1]
    assert before.header["which"] == "before"
    assert after.pixels.shape == before.pixels.shape == (24, 32, 4)
    expected = gpu.resize(quarters(), size=(32, 24), device="cpu").astype(int)
    assert np.abs(before.pixels[..., :3] - expected).max() <= 1
    assert np.abs(after.pixels[..., :3] - expected[:, ::-1]).max() <= 1


def test_jpeg(opened):
    from PIL import Image

    opened.ask("view", width=200, height=200, codec="jpeg")
    picture = opened.picture()
    assert picture.header["codec"] == "jpeg"
    made = np.asarray(Image.open(io.BytesIO(picture.data)))
    assert np.abs(made.astype(int) - quarters()).mean() < 6


def test_h264_is_annex_b_with_key_pictures_that_stand_alone(opened):
    opened.ask("view", width=200, height=200, codec="h264")
    first = opened.picture()
    assert first.header["codec"].startswith("avc1.42")
    assert first.header["key"] is True
    assert first.data[:4] == b"\0\0\0\1"
    opened.ask("add", kind="filter", name="invert")
    second = opened.picture(lambda p: p.header["seq"] > first.header["seq"])
    assert second.header["key"] is False
    made = decoded([first, second])
    assert np.abs(made[0].astype(int) - quarters()).mean() < 6
    assert np.abs(made[1].astype(int) - (255 - quarters())).mean() < 6


def test_odd_sides_of_h264(page, tmp_path, folder):
    from dala.media import Frame

    Frame.from_array(quarters(51, 67), device="cpu").save(folder / "odd.png")
    page.ask("open", path=str(folder / "odd.png"))
    page.ask("view", width=200, height=200, codec="h264")
    picture = page.picture()
    assert picture.header["region"] == [0, 0, 66, 50]
    assert decoded([picture])[0].shape == (50, 66, 3)
    page.ask("view", region=[0, 0, 9, 9])  # too small for H.264
    page.picture(lambda p: p.header["codec"] == "jpeg")


def test_transparent_pixels_show_a_board(page, folder):
    from PIL import Image

    pixels = np.zeros((32, 32, 4), np.uint8)
    pixels[:, 16:] = (255, 0, 0, 255)
    Image.fromarray(pixels).save(folder / "clear.png")
    page.ask("open", path=str(folder / "clear.png"))
    page.ask("view", width=32, height=32, codec="rgba")
    np.testing.assert_array_equal(page.picture().pixels, pixels)
    page.ask("view", codec="jpeg")
    made = np.asarray(Image.open(io.BytesIO(page.picture().data))).astype(int)
    assert abs(made[4, 4, 0] - made[4, 12, 0]) > 20  # two grays
    assert np.abs(made[4, 28] - (255, 0, 0)).max() < 30


def test_the_newest_picture_wins_and_always_arrives(server, folder):
    with server.page(acknowledge=False) as page:
        tab = page.ask("open", path=str(folder / "quarters.png"))["tab"]
        page.ask("view", width=64, height=48, codec="rgba")
        page.until(lambda: page.pictures)  # else one picture may stand for both
        card = page.ask("add", kind="filter", name="brightness")["card"]
        page.until(lambda: len(page.pictures) == 2)
        for number in range(20):
            page.ask("set", card=card, param="value", value=number / 100)
        assert len(page.pictures) == 2  # both are on their way; the others wait or are dropped
        expected = gpu.brightness(quarters(), value=0.19, device="cpu")
        page.send({"do": "seen", "seq": page.pictures[-1].header["seq"]})
        page.acknowledge = True  # earlier ones may come first
        page.picture(lambda p: np.array_equal(p.pixels[..., :3], expected))
        page.ask("close", tab=tab)


def test_after_dropped_pictures_comes_a_key_picture(server, folder):
    with server.page(acknowledge=False) as page:
        tab = page.ask("open", path=str(folder / "quarters.png"))["tab"]
        page.ask("view", width=64, height=48, codec="h264")
        page.until(lambda: page.pictures)  # else one picture may stand for both
        card = page.ask("add", kind="filter", name="brightness")["card"]
        page.until(lambda: len(page.pictures) == 2)
        assert [p.header["key"] for p in page.pictures] == [True, False]
        with server.page() as other:  # it keeps the channel going
            other.ask("view", width=64, height=48, codec="h264")
            other.ask("set", card=card, param="value", value=0.5)
            other.picture()
            other.ask("set", card=card, param="value", value=0.6)
            other.picture(lambda p: not p.header["key"])
        seen = page.pictures[-1].header["seq"]
        page.send({"do": "seen", "seq": seen})
        assert page.picture(lambda p: p.header["seq"] > seen).header["key"] is True
        page.ask("close", tab=tab)


def test_a_page_that_lost_its_decoder_gets_a_key_picture(opened):
    opened.ask("view", width=64, height=48, codec="h264")
    first = opened.picture()
    opened.ask("add", kind="filter", name="invert")
    second = opened.picture(lambda p: p.header["seq"] > first.header["seq"])
    assert second.header["key"] is False
    opened.ask("view", key=True)
    again = opened.picture(lambda p: p.header["seq"] > second.header["seq"])
    assert again.header["key"] is True
    assert np.abs(decoded([again])[0].astype(int) - (255 - quarters())).mean() < 6
    opened.ask("view", key=True)  # the newest picture stands alone already: it is sent again
    same = opened.picture(lambda p: p.header["seq"] >= again.header["seq"])
    assert (same.header["key"], same.data) == (True, again.data)


def test_a_second_viewer_costs_no_second_render(server, folder, monkeypatch):
    renderer = server.studio.session.renderer
    runs, encoded = [], []
    run, encode = renderer._processed, renderer.publisher._encode

    def counted(*args):  # not the runs that measure the cards
        runs.append(args)
        return run(*args)

    def counted_encode(*args):
        encoded.append(args)
        return encode(*args)

    monkeypatch.setattr(renderer, "_processed", counted)
    monkeypatch.setattr(renderer.publisher, "_encode", counted_encode)
    with server.page() as a, server.page() as b:
        tab = a.ask("open", path=str(folder / "quarters.png"))["tab"]
        for page in (a, b):
            page.ask("view", width=64, height=48, codec="h264")
        a.picture(), b.picture()
        a.until(lambda: a.state["viewers"] == 2)
        renders, pictures = len(runs), len(encoded)
        a.ask("add", kind="filter", name="invert")
        first = a.picture(lambda p: p.header["seq"] > 0)
        second = b.picture(lambda p: p.header["seq"] >= first.header["seq"])
        assert len(runs) == renders + 1
        assert len(encoded) == pictures + 1
        assert first.header["seq"] == second.header["seq"]
        assert first.data == second.data
        a.ask("close", tab=tab)


def test_charts_count_pixels(opened):
    opened.ask("view", width=64, height=48, codec="rgba", charts=["histogram", "waveform"])
    charts = opened.message("charts")
    quarter = 24 * 32
    assert charts["histogram"]["r"][200] == quarter
    assert charts["histogram"]["g"][60] == 2 * quarter
    assert sum(charts["histogram"]["b"]) == 4 * quarter
    lumas = {((9798 * r + 19235 * g + 3735 * b + 16384) >> 15) for r, g, b in
             ((200, 60, 40), (40, 60, 200), (20, 160, 30), (250, 240, 10))}  # fmt: skip
    assert {i for i, n in enumerate(charts["histogram"]["luma"]) if n} == lumas
    wave = charts["waveform"]
    values = np.frombuffer(base64.b64decode(wave["values"]), np.uint8)
    values = values.reshape(wave["height"], wave["width"])
    rows = {wave["height"] - 1 - luma * wave["height"] // 256 for luma in lumas}
    assert {int(y) for y in np.nonzero(values.any(1))[0]} == rows
    # Half of a column has a color, and the square root is shown.
    assert set(values[values > 0].tolist()) == {int(np.ceil(np.sqrt(0.5) * 255))}


def test_costs_and_plan(opened):
    opened.ask("view", width=64, height=48, codec="rgba")
    for name in ("blur", "invert", "sepia"):
        opened.ask("add", kind="filter", name=name)
    stats = opened.message("stats", lambda s: len(s["cards"]) == 3)
    assert set(stats["cards"]) == {c["id"] for c in opened.state["chain"]}
    assert all(ms > 0 for ms in stats["cards"].values())
    assert stats["device"] == "cpu"
    plan = opened.ask("plan")
    assert plan["passes"] == stats["passes"] == 1  # fused
    (step,) = plan["steps"]
    assert (step["kind"], step["stages"]) == ("pass", ["blur", "invert", "sepia"])
    assert step["bytes"] > 0


def test_a_page_that_is_hidden_gets_nothing(opened):
    opened.ask("view", width=64, height=48, codec="rgba")
    opened.picture()
    opened.ask("view", paused=True)
    opened.ask("add", kind="filter", name="invert")
    count = len(opened.pictures)
    opened.ask("pixel", x=0, y=0)
    assert len(opened.pictures) <= count + 1  # one may have been on its way
    opened.ask("view", paused=False)
    opened.picture(lambda p: np.array_equal(p.pixels[..., :3], 255 - quarters()))


@pytest.mark.parametrize(
    "view",
    [{"width": 0}, {"height": "x"}, {"key": 1}, {"codec": "gif"},
     {"region": [1, 2, 3]}, {"split": "no"}, {"region": [0, 0, 0, 5]},
     {"charts": ["pie"]}, {"charts": 3}, {"width": 1e9}],
)  # fmt: skip
def test_wrong_views_are_refused(opened, view):
    from tests.studio.server.client import Refused

    with pytest.raises(Refused):
        opened.ask("view", **{"width": 10, "height": 10, **view})


PROGRAM = """from dala.gpu.compute import Pixel, Time, program

@program
def trail(px: Pixel, *, keep: float = 0.5, time: Time = 0.0):
    def light(light: Pixel):
        return light.rgb + keep / 10

    def picture(px: Pixel, light: Pixel):
        return px.rgb * 0.25 + light.rgb + 0.0 * time
"""


def test_programs_move_on_still_pictures(opened):
    """A program that remembers frames goes on by itself, with a control for its parameter."""
    opened.ask("view", width=64, height=48, codec="rgba")
    opened.picture()
    opened.ask("add", kind="kernel", text=PROGRAM)
    first = opened.picture(lambda p: p.pixels[0, 0, 0] > 70)
    later = opened.picture(lambda p: p.pixels[0, 0, 0] > first.pixels[0, 0, 0])
    assert later.pixels.mean() > first.pixels.mean()
