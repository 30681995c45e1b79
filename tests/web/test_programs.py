"""Exported programs in a browser: the desktop's bytes frame by frame, the clock and the panel."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

import dala.web
from dala.gpu.compute import kernel, program
from dala.shaders import isf, shadertoy
from tests.support.web import WebPage, noise

TEXT = """
@program
def drift(img: Image, *, keep: Within[float, 0.0, 1.0] = 0.75):
    def light(light: Image, *, n: FrameNumber):
        y, x = position()
        old = light.sample(x + 1.5, y + 0.5, edge="repeat")
        return mix(img[0, 0].rgb, old.rgb, 0.0 if n == 0 else keep)

    @target(size=("max(width // 2, 1)", "max(height // 2, 1)"), dtype="f32")
    def small(light: Image):
        y, x = position()
        return light.sample(2 * x + 0.5, 2 * y + 0.5)

    def picture(light: Pixel, small: Image, *, time: Time, at: Pointer):
        y, x = position()
        return light.rgb + 0.25 * small.sample(x / 2 - 0.25, y / 2 - 0.25).rgb * time + at.x / 1000
"""

RUN = """async ([folder, width, height, bytes, frames]) => {
    const { Dala } = await import(folder + "dala.js");
    const chain = await Dala.load(folder + "chain.json");
    const data = Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0));
    const made = [];
    for (const [frame, time, x, params] of frames) {
        const moment = { frame, time, pointer: [x, 0, 0] };
        const result = await chain.run({ data, width, height }, params, moment);
        made.push(btoa(String.fromCharCode(...await result.read())));
    }
    chain.close();
    return made;
}"""


LEVELS = TEXT.replace("light.rgb + 0.25", "light.rgb * 0.5 + light_of(img, keep) + 0.25").replace(
    "    def picture",
    "    def light_of(img: Image, lod):\n"
    "        return img.sample_uv(0.4, 0.7, lod=lod * 6).rgb * 0.5\n\n    def picture",
)


@pytest.mark.parametrize("text", [TEXT, LEVELS])
def test_frames_have_the_bytes_of_the_desktop(web: WebPage, text: str):
    made = program(text)
    page = dala.web.export(made, web.folder / "drift")
    assert page.plan.roles == ("time", "frame", "pointer")
    assert page.plan.size is None
    picture = noise(18, 31)
    frames: list[tuple[int, float, float, dict[str, float]]] = [
        (0, 0.0, 0, {}), (1, 0.5, 10, {}), (2, 1.0, 20, {"keep": 0.5}), (2, 1.0, 30, {}),
        (3, 1.5, 0, {}), (0, 0.0, 0, {}), (1, 0.25, 0, {}),
    ]  # fmt: skip
    encoded = base64.b64encode(picture.tobytes()).decode()
    found = web.page.evaluate(RUN, [f"{web.address}drift/", 31, 18, encoded, frames])
    with made.start(31, 18, device="cpu") as state:
        for (n, time, x, params), text in zip(frames, found, strict=True):
            wanted = state.render(picture, frame=n, time=time, pointer=(x, 0, 0), **params)
            seen = np.frombuffer(base64.b64decode(text), np.uint8).reshape(18, 31, 4)
            assert np.abs(seen.astype(int) - np.asarray(wanted)).max() <= 1, (n, time, x)
            if n == 0:
                assert (seen == np.asarray(wanted)).all()


SQUARES = """def squares(*, time: Time, at: Pointer, size: Resolution, red=0.25):
    y, x = position()
    near = 1.0 if abs(x - at.x) < 9 and abs(y - at.y) < 9 else 0.0
    return rgba(red, near, time / 10, 1.0)
"""


VIEW = "await document.querySelector('dala-chain').ready"


def shown(page: Any) -> list[int]:
    """Return size and numbers of the picture as the page computed it last."""
    return page.evaluate("""async () => {
        const view = await document.querySelector("dala-chain").ready;
        await view.settled();
        const { canvas, clock, chain } = view;
        const result = await chain.run(
            { width: canvas.width, height: canvas.height }, {},
            { time: clock.time, frame: clock.frame, pointer: view.pointer },
        );
        const data = await result.read();
        const at = (x, y) => Array.from(data.slice(4 * (y * canvas.width + x)).slice(0, 4));
        return [canvas.width, canvas.height, ...at(100, 50), ...at(5, 200)];
    }""")


@pytest.fixture
def opened(web: WebPage):
    dala.web.export(kernel(SQUARES), web.folder / "squares", title="Squares")
    web.page.set_viewport_size({"width": 800, "height": 400})
    yield web.goto("squares/index.html")
    web.page.set_viewport_size({"width": 1280, "height": 720})


@pytest.mark.long
def test_the_clock_plays_pauses_and_begins_again(opened):
    play = opened.get_by_role("button", name="Pause")
    opened.wait_for_function(f"async () => ({VIEW}).clock.time > 0.2")
    play.click()
    assert opened.get_by_role("button", name="Play").is_visible()
    clock = f"async () => {{ const {{ clock }} = {VIEW}; return [clock.time, clock.frame]; }}"
    before = opened.evaluate(clock)
    assert before[0] > 0  # of the last frame that was drawn, which may be an earlier one
    assert before[1] > 0
    opened.wait_for_timeout(200)
    assert opened.evaluate(clock) == before
    opened.get_by_role("button", name="Restart").click()
    assert opened.evaluate(clock) == [0, 0]
    assert shown(opened)[2:6] == [64, 0, 0, 255]
    opened.get_by_label("Speed").select_option("4")
    assert opened.evaluate(f"async () => ({VIEW}).clock.speed") == 4


def test_a_drawing_fills_the_window_and_follows_the_pointer(opened):
    opened.get_by_role("button", name="Pause").click()
    assert shown(opened)[:2] == [800, 400]
    opened.mouse.move(100, 50)
    made = shown(opened)
    assert made[3] == 255
    assert made[7] == 0
    opened.set_viewport_size({"width": 390, "height": 600})
    opened.wait_for_function(f"async () => ({VIEW}).canvas.width === 390")
    assert shown(opened)[0] == 390


def test_the_panel_hides(opened):
    panel = opened.locator(".side")
    assert panel.is_visible()
    assert opened.locator("h1").text_content() == "Squares"
    opened.keyboard.press("h")
    assert panel.is_hidden()
    opened.get_by_role("button", name="Show the controls (H)").click()
    assert panel.is_visible()


@pytest.mark.long
def test_phones_show_the_picture_first(web: WebPage, opened):
    opened.set_viewport_size({"width": 390, "height": 844})
    page = web.goto("squares/index.html")
    assert page.locator(".side").is_hidden()
    page.locator(".toggle").click()
    box = page.locator(".side").bounding_box()
    view = page.locator(".view").bounding_box()
    assert box["width"] == 390
    assert view["y"] + view["height"] <= box["y"] + 1
    for button in page.locator(".side button").all():
        assert button.bounding_box()["height"] >= 44


HEARD = """async ([folder, pitch]) => {
    const { Dala } = await import(folder + "dala.js");
    const chain = await Dala.load(folder + "chain.json");
    const context = new OfflineAudioContext(1, 4096, 48000);
    const tone = new OscillatorNode(context, { frequency: pitch });
    const sound = Dala.analyser(tone);
    sound.connect(context.destination);
    tone.start();
    await context.startRendering();
    const samples = new Float32Array(2048);
    sound.getFloatTimeDomainData(samples);
    const made = [];
    for (const options of [{}, { sound }]) {
        const result = await chain.run({ width: 64, height: 2 }, {}, options);
        made.push(Array.from(await result.read()));
    }
    chain.close();
    return [chain.animated, chain.document.roles, Array.from(samples), ...made];
}"""

LISTENERS = {
    "wave": '/*{"INPUTS": [{"NAME": "s", "TYPE": "audio", "MAX": 64}]}*/',
    "spectrum": '/*{"INPUTS": [{"NAME": "s", "TYPE": "audioFFT", "MAX": 64}]}*/',
    "toy": "",
}


@pytest.mark.parametrize(
    "kind", [pytest.param(n, marks=[pytest.mark.long] * (n != "spectrum")) for n in LISTENERS]
)
def test_pages_hear_what_the_desktop_hears(web: WebPage, kind: str):
    head = LISTENERS[kind]
    if head:
        body = "void main() { gl_FragColor = IMG_NORM_PIXEL(s, isf_FragNormCoord); }"
        made = isf(head + body)
    else:
        read = "texture(iChannel0, vec2(p.x / 512.0, p.y / iResolution.y))"
        body = f"void mainImage(out vec4 c, vec2 p) {{ c = {read}; }}"
        made = shadertoy(body, channels=["sound"])
    dala.web.export(made, web.folder / kind)
    animated, roles, samples, quiet, loud = web.page.evaluate(HEARD, [f"{web.address}{kind}/", 900])
    assert (animated, roles[-1]) == (True, "sound")
    with made.start(64, 2, device="cpu") as state:
        frames = [np.asarray(state.render()), np.asarray(state.render(sound=np.array(samples)))]
    for seen, wanted in zip((quiet, loud), frames, strict=True):
        apart = np.abs(np.array(seen).reshape(2, 64, 4).astype(int) - wanted)
        assert apart.max() <= 1
    assert np.ptp(frames[1][..., 0]) > 50
