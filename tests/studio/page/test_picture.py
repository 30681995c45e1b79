"""The picture: live, compared, zoomed, measured."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.studio.page.driver import Driver, Studio

RED, BLUE = (200, 60, 40), (40, 60, 200)


def test_h264_arrives_is_shown_and_acknowledged(picture: Driver) -> None:
    picture.wait_pixel(0.2, 0.5, RED)
    picture.wait_pixel(0.8, 0.5, BLUE)
    assert {header["codec"][:5] for header in picture.pictures} == {"avc1."}
    assert {header["which"] for header in picture.pictures} == {"after"}
    picture.until(lambda: picture.last("seen").get("seq") == picture.pictures[-1]["seq"])


#: Decoders that fail instead of decoding, so many of them.
FAILING = """
const Decoder = VideoDecoder;
let failures = COUNT;
globalThis.VideoDecoder = class extends Decoder {
    constructor(options) { super(options); this.options = options; }
    decode(chunk) {
        if (failures-- <= 0) return super.decode(chunk);
        this.close();
        setTimeout(() => this.options.error(new DOMException("taken back", "QuotaExceededError")));
    }
};
"""


@pytest.mark.long
@pytest.mark.parametrize(("failures", "codec"), [(1, "avc1."), (2, "jpeg")])
def test_decoder_that_is_lost(studio: Studio, chromium: object, failures: int, codec: str) -> None:
    studio.clear()
    script = FAILING.replace("COUNT", str(failures))
    with Driver(studio, chromium, script=script) as page:
        page.open("two.png")
        page.wait_pixel(0.2, 0.5, RED)
        page.wait_pixel(0.8, 0.5, BLUE)
        assert page.pictures[-1]["codec"].startswith(codec)
        page.add("invert")  # nothing that failed keeps a place
        page.add("invert")
        page.add("invert")
        page.wait_pixel(0.2, 0.5, (55, 195, 215))
        page.check()


def test_picture_comes_as_large_as_it_is_shown(page: Driver) -> None:
    page.studio.do("open", sample="coffee")
    page.wait_frames()
    page.until(lambda: page.pictures[-1]["width"] == 600)
    header = page.pictures[-1]
    assert (header["width"], header["height"], header["result"]) == (600, 400, [600, 400])


@pytest.mark.long
def test_browser_without_webcodecs_gets_jpeg(studio: Studio, chromium: object) -> None:
    studio.clear()
    with Driver(studio, chromium, script="delete globalThis.VideoDecoder") as page:
        page.open("two.png")
        page.wait_pixel(0.2, 0.5, RED)
        page.wait_pixel(0.8, 0.5, BLUE)
        assert {header["codec"] for header in page.pictures} == {"jpeg"}
        page.check()


def test_split_shows_the_original_and_costs_no_messages(picture: Driver) -> None:
    picture.add("invert")
    inverted = (255 - 200, 255 - 60, 255 - 40)
    picture.wait_pixel(0.2, 0.5, inverted)
    picture.page.keyboard.press("b")
    picture.wait_pixel(0.2, 0.5, RED)
    picture.wait_pixel(0.8, 0.5, (255 - 40, 255 - 60, 255 - 200))
    handle = picture.page.get_by_test_id("split")
    expect(handle).to_have_attribute("aria-valuenow", "50")
    x, y = picture.place(0.5, 0.5)
    picture.page.mouse.move(x, y)
    picture.until(lambda: picture.last("view").get("split") is True)
    count = len([message for message in picture.sent if message["do"] == "view"])
    picture.page.mouse.down()
    picture.page.mouse.move(*picture.place(0.1, 0.5), steps=4)
    picture.page.mouse.up()
    expect(handle).to_have_attribute("aria-valuenow", "10")
    picture.wait_pixel(0.2, 0.5, inverted)
    assert len([message for message in picture.sent if message["do"] == "view"]) == count
    handle.press("End")
    picture.wait_pixel(0.8, 0.5, BLUE)
    picture.page.get_by_test_id("compare").click()
    expect(handle).to_have_count(0)
    picture.wait_pixel(0.2, 0.5, inverted)


@pytest.mark.long
def test_values_under_the_pointer_before_and_after(picture: Driver) -> None:
    picture.add("invert")
    picture.page.mouse.move(*picture.place(0.25, 0.5))
    expect(picture.page.get_by_test_id("values-before")).to_have_text("200 60 40 255")
    expect(picture.page.get_by_test_id("values-after")).to_have_text("55 195 215 255")
    expect(picture.page.locator(".values-place")).to_have_text("16, 24")


def test_zoom_to_exact_pixels(picture: Driver) -> None:
    page = picture.page
    x, y = picture.place(0.5, 0.5)
    page.mouse.move(x, y)
    for _ in range(14):
        page.mouse.wheel(0, -150)
    page.wait_for_function(
        "() => parseInt(document.querySelector('[data-testid=zoom]').textContent) > 3000"
    )
    picture.until(
        lambda: picture.pictures[-1]["codec"] == "rgba" and picture.pictures[-1]["region"][0] > 20
    )
    header = picture.pictures[-1]
    left, _, width, height = header["region"]
    assert 0 < left < 32 < left + width < 64
    assert (header["width"], header["height"]) == (width, height)
    # The edge of the two colors is sharp, and in the middle.
    picture.wait_pixel(0.3, 0.52, RED, near=1)
    picture.wait_pixel(0.7, 0.52, BLUE, near=1)
    page.mouse.move(x - 10, y)
    expect(page.get_by_test_id("values-before")).to_have_text("200 60 40 255")
    page.get_by_test_id("canvas").press("0")
    picture.wait_pixel(0.2, 0.5, RED)
    assert page.get_by_role("button", name="Fit").get_attribute("aria-pressed") == "true"


def test_zoom_by_keys_and_buttons(picture: Driver) -> None:
    page = picture.page
    zoom = page.get_by_test_id("zoom")
    page.get_by_test_id("canvas").focus()
    page.keyboard.press("1")
    expect(zoom).to_have_text("100 %")
    page.keyboard.press("+")
    expect(zoom).to_have_text("150 %")
    page.get_by_role("button", name="Zoom out").click()
    expect(zoom).to_have_text("100 %")


def test_histogram_and_waveform(picture: Driver) -> None:
    page = picture.page
    page.get_by_role("button", name="Histogram").click()
    expect(page.get_by_test_id("histogram")).to_have_attribute("data-ready", "yes")
    label = page.get_by_test_id("histogram").locator("canvas").get_attribute("aria-label")
    assert label == "Histogram; mean red 120, green 60, blue 120 of 255"
    page.keyboard.press("w")
    expect(page.get_by_test_id("waveform")).to_have_attribute("data-ready", "yes")
    drawn = page.evaluate(
        """() => {
            const canvas = document.querySelector('[data-testid=waveform] canvas');
            const [w, h] = [canvas.width, canvas.height];
            const data = canvas.getContext('2d').getImageData(0, 0, w, h).data;
            const column = x => [...Array(h).keys()].filter(y => data[4 * (y * w + x) + 3] > 40);
            return [column(8), column(w - 8)];
        }"""
    )
    # One level of luma in each half: 0.299 r + 0.587 g + 0.114 b, bright at the top.
    lumas = [0.299 * r + 0.587 * g + 0.114 * b for r, g, b in (RED, BLUE)]
    for rows, luma in zip(drawn, lumas, strict=True):
        assert len(rows) == 1
        assert abs(rows[0] - (127 - luma / 2)) <= 1
    page.keyboard.press("h")
    expect(page.get_by_test_id("histogram")).to_have_count(0)


#: Drop a file of some bytes onto the page.
DROP = """([name, bytes]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([new Uint8Array(bytes)], name, {type: "image/png"}));
    const options = {dataTransfer: transfer, bubbles: true, cancelable: true};
    for (const kind of ["dragenter", "dragover", "drop"])
        document.body.dispatchEvent(new DragEvent(kind, options));
}"""


def test_dropped_file_opens_as_a_tab(page: Driver) -> None:
    data = (page.studio.folder / "two.png").read_bytes()
    page.page.evaluate(DROP, ["dropped.png", list(data)])
    expect(page.page.get_by_test_id("tab")).to_have_text("dropped.png")
    page.wait_pixel(0.2, 0.5, RED)


SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 48">
<rect width="64" height="48" fill="rgb(200,60,40)"/>
<path d="M32 0H64V48H32Z" fill="rgb(40,60,200)"/>MORE</svg>"""


def test_dropped_svg_is_drawn(page: Driver) -> None:
    page.page.evaluate(DROP, ["logo.svg", list(SVG.replace("MORE", "").encode())])
    expect(page.page.get_by_test_id("tab")).to_have_text("logo.svg")
    page.wait_pixel(0.2, 0.5, RED)
    page.wait_pixel(0.8, 0.5, BLUE)


def test_dropped_svg_that_names_an_address_is_refused(page: Driver) -> None:
    named = '<image href="http://127.0.0.1:9/a.png" width="9" height="9"/>'
    page.page.evaluate(DROP, ["spy.svg", list(SVG.replace("MORE", named).encode())])
    expect(page.page.get_by_role("alert")).to_contain_text("spy.svg names something outside it")
    expect(page.page.get_by_test_id("tab")).to_have_count(0)


def test_dropped_nonsense_is_reported(page: Driver) -> None:
    page.page.evaluate(DROP, ["nonsense.png", [1, 2, 3]])
    expect(page.page.get_by_role("alert")).to_contain_text("nonsense.png")
    expect(page.page.get_by_test_id("tab")).to_have_count(0)


@pytest.mark.long
def test_tabs_are_switched_and_closed(picture: Driver) -> None:
    page = picture.page
    frames = picture.frames()
    page.get_by_test_id("open").click()
    page.get_by_role("button", name="ramp.mp4").click()
    tabs = page.get_by_role("tablist", name="Open sources").get_by_role("tab")
    expect(tabs).to_have_text(["two.png", "ramp.mp4"])
    expect(tabs.nth(1)).to_have_attribute("aria-selected", "true")
    picture.wait_frames(frames)
    picture.wait_pixel(0.5, 0.5, (20, 20, 20))
    tabs.nth(1).press("ArrowLeft")
    expect(tabs.nth(0)).to_have_attribute("aria-selected", "true")
    picture.wait_pixel(0.2, 0.5, RED)
    page.get_by_role("button", name="Close two.png").click()
    expect(tabs).to_have_text(["ramp.mp4"])
