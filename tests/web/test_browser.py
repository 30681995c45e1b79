"""Exported chains in a browser: the answers of the desktop's WebGPU, and the page around them."""

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dala.web
from dala.gpu.compute import Pipeline, buffer_zeros, from_array, kernel
from dala.media import gpu as filters_gpu
from tests.support.tolerances import assert_close
from tests.support.web import WebPage, noise, on_desktop, start

SIZES = ((48, 64), (29, 37), (1, 1), (1, 9))

#: A handful of chains: pointwise, fused neighborhoods, histograms, tables, resizing.
CHAINS: dict[str, list[Any]] = {
    "pointwise": ["invert", ("brightness", {"value": 0.2}), ("hue", {"degrees": 40.0})],
    "fused": [("blur", {"radius": 1, "sigma": 0.8}), ("sharpen", {"amount": 0.3}), "grayscale"],
    "histogram": ["equalize"],
    "resize": [
        ("resize", {"size": (None, 20), "method": "bicubic"}),
        ("saturation", {"value": 0.5}),
    ],
    "rotate": [("rotate", {"angle": 20.0, "expand": True})],
    "table": [("lut_apply", {"lut": np.random.default_rng(3).random((4, 4, 4, 3), np.float32)})],
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains_give_the_desktops_result(web: WebPage, name: str) -> None:
    made = dala.web.export(CHAINS[name], web.folder / name)
    for height, width in SIZES:
        picture = noise(height, width)
        got = web.run(name, picture)
        want = on_desktop(picture, CHAINS[name]).reshape(got.shape)
        assert_close(got, want, "webgpu", "program")
    if name in ("pointwise", "fused"):
        assert made.plan.dispatches == 1


@pytest.mark.third
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("blur", {"radius": 3, "sigma": 1.2}),
        ("blur", {"radius": 20, "sigma": 9.0}),
        ("blur", {"radius": 70}),
        ("box_blur", {"radius": 5}),
    ],
    ids=["one dispatch", "two", "wide", "box"],
)
def test_blurs_give_the_references_bytes(web: WebPage, name: str, params: dict[str, Any]) -> None:
    folder = f"{name}{params['radius']}"
    dala.web.export([(name, params)], web.folder / folder)
    for sigma in (params.get("sigma"), 2.3):
        changed = {"sigma": sigma} if "sigma" in params else {}
        for picture in (noise(29, 37), noise(48, 64)):
            got = web.run(folder, picture, **changed)
            with dala.device("reference"):
                wanted = np.array(getattr(filters_gpu, name)(picture, **{**params, **changed}))
            np.testing.assert_array_equal(got, wanted.reshape(got.shape))


def test_parameters(web: WebPage) -> None:
    """Sliders are uniforms: one shader for every value, and the desktop's results."""
    if not (web.folder / "fused").exists():
        dala.web.export(CHAINS["fused"], web.folder / "fused")
    picture = noise(24, 31)
    for sigma, amount in ((0.5, 0.1), (1.4, -0.3)):
        got = web.run("fused", picture, sigma=sigma, amount=amount)
        blur = ("blur", {"radius": 1, "sigma": sigma})
        chosen = [blur, ("sharpen", {"amount": amount}), "grayscale"]
        assert_close(got, on_desktop(picture, chosen), "webgpu", "program")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"sigmaa": 1}, "dala: no parameter sigmaa. The chain has: radius, sigma, amount"),
        ({"sigma": "wide"}, 'dala: sigma must be a number, got "wide"'),
        ({"radius": 50}, "dala: the chain was not exported for this size or these parameters"),
        (
            {"blur.border": "wrap"},
            "dala: blur.border cannot be changed: name it in sliders",
        ),
    ],
)
def test_mistakes_are_explained(web: WebPage, params: dict[str, Any], message: str) -> None:
    if not (web.folder / "fused").exists():
        dala.web.export(CHAINS["fused"], web.folder / "fused")
    with pytest.raises(Exception, match=message.replace("(", r"\(").replace(".", r"\.")):
        web.run("fused", noise(4, 4), **params)


def test_kernels_and_pipelines(web: WebPage) -> None:
    swirl = kernel(
        "def swirl(img: Image, *, amount=0.5):\n"
        "    return rgba(mix(img[0, 0].rgb, img[1, 1].bgr, amount), img[0, 0].a)"
    )
    swirl.export_web(web.folder / "swirl", {"amount": 0.75})
    picture = noise(10, 13)
    want = np.asarray(filters_gpu.apply(picture, swirl, amount=0.75, device="webgpu"))
    assert_close(web.run("swirl", picture), want, "webgpu", "program")

    source = buffer_zeros((10, 13, 4), "u8", device="cpu")
    middle = buffer_zeros((10, 13, 4), "u8", device="cpu", transient=True)
    over = from_array(noise(10, 13, seed=4), device="cpu")
    out = buffer_zeros((10, 13, 4), "u8", device="cpu")
    with Pipeline() as pipeline:
        pipeline.add({"op": "run_kernel", "kernel": swirl, "inputs": [source], "output": middle})
        pipeline.add({
            "op": "run_kernel", "kernel": "video_mix", "inputs": [middle, over], "output": out,
            "params": {"t": 0.25},
        })  # fmt: skip
        made = pipeline.export_web(web.folder / "pipeline")
        assert made.plan.size == (13, 10)
        assert made.plan.dispatches == 1
        source.write(picture)
        pipeline.run()
    assert_close(web.run("pipeline", picture), out.numpy(), "webgpu", "program")
    with pytest.raises(Exception, match="takes pictures of 13 x 10, got 5 x 4"):
        web.run("pipeline", noise(4, 5))
    script = """async (folder) => {
        const { Dala } = await import(folder + "dala.js");
        const chain = await Dala.load(folder + "chain.json");
        const result = await chain.run(new ImageData(5, 4), {}, { fit: true });
        const found = [result.width, result.height];
        chain.close();
        try { await chain.run(new ImageData(5, 4)); } catch (error) { found.push(error.message); }
        return found;
    }"""
    scaled = web.page.evaluate(script, f"{web.address}pipeline/")
    assert scaled == [13, 10, "dala: the chain was closed"]


def png(picture: np.ndarray) -> str:
    from dala.png import encode_png

    return base64.b64encode(encode_png(picture)).decode()


def test_exact_bytes_of_pictures(web: WebPage) -> None:
    """Straight alpha and sRGB bytes arrive as they are: blobs, bitmaps, ImageData, odd sizes."""
    dala.web.export([("crop", {"size": (7, 11)})], web.folder / "crop")
    picture = noise(11, 7, seed=8)
    picture[..., 3] = np.maximum(picture[..., 3], 1)  # nothing is hidden, half is transparent
    text = png(picture)
    script = """async ([folder, text]) => {
        const { Dala } = await import(folder + "dala.js");
        const chain = await Dala.load(folder + "chain.json");
        const blob = await (await fetch("data:image/png;base64," + text)).blob();
        const bitmap = await createImageBitmap(blob, { premultiplyAlpha: "none" });
        const found = [];
        for (const source of [blob, bitmap]) {
            found.push(Array.from(await (await chain.run(source)).pixels()));
        }
        const data = new ImageData(new Uint8ClampedArray(found[0]), 7, 11);
        found.push(Array.from(await (await chain.run(data)).pixels()));
        chain.close();
        return found;
    }"""
    for got in web.page.evaluate(script, [f"{web.address}crop/", text]):
        assert np.array_equal(np.array(got, np.uint8).reshape(11, 7, 4), picture)


def test_video_frames(web: WebPage) -> None:
    """Frames in RGB are exact; those in NV12 and I420 are converted as the desktop does it."""
    chain = [("contrast", {"value": 0.25})]
    dala.web.export(chain, web.folder / "yuv", yuv=True)
    height, width = 12, 18
    rgb = noise(height, width)
    rgb[..., 3] = 255
    planes = np.random.default_rng(2).integers(16, 236, height * width * 3 // 2, dtype=np.uint8)
    script = """async ([folder, rgb, planes, width, height]) => {
        const { Dala } = await import(folder + "dala.js");
        const chain = await Dala.load(folder + "chain.json");
        const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
        const found = [];
        const space = { matrix: "bt709", primaries: "bt709", transfer: "bt709", fullRange: false };
        for (const [format, text, extra] of [
            ["RGBX", rgb, {}],
            ["NV12", planes, { colorSpace: space }],
            ["I420", planes, { colorSpace: space }],
            ["NV12", planes, { colorSpace: { ...space, matrix: "smpte170m" } }],
        ]) {
            const init = { format, codedWidth: width, codedHeight: height, timestamp: 0, ...extra };
            const frame = new VideoFrame(bytes(text), init);
            const result = await chain.run(frame, {}, { yuv: true });
            found.push([format, frame.colorSpace.matrix, Array.from(await result.pixels())]);
            frame.close();
        }
        chain.close();
        return found;
    }"""
    texts = [base64.b64encode(a.tobytes()).decode() for a in (rgb, planes)]
    found = web.page.evaluate(script, [f"{web.address}yuv/", *texts, width, height])
    for number, (format, matrix, pixels) in enumerate(found):
        got = np.array(pixels, np.uint8).reshape(height, width, 4)
        if format == "RGBX":
            want = on_desktop(rgb, chain)
        else:
            decoded = filters_gpu.yuv_to_rgb(
                planes.reshape(height * 3 // 2, width),
                format=format.lower(),
                matrix={"bt709": "bt709", "smpte170m": "bt601"}[matrix],
                device="webgpu",
            )
            want = on_desktop(np.asarray(decoded), chain)
        assert_close(got[..., :3], want[..., :3], "webgpu", "program")
        assert (got[..., 3] == 255).all(), number


def test_many_runs_leave_nothing_behind(web: WebPage) -> None:
    """Buffers and textures are as many after a hundred runs of many sizes as after one."""
    dala.web.export([("sharpen", {"amount": 0.5}), "equalize"], web.folder / "many")
    script = """async (folder) => {
        const live = new Set();
        for (const [kind, name] of [[GPUDevice, "createBuffer"], [GPUDevice, "createTexture"]]) {
            const make = kind.prototype[name];
            kind.prototype[name] = function (...given) {
                const made = make.apply(this, given);
                live.add(made);
                const destroy = made.destroy.bind(made);
                made.destroy = () => { live.delete(made); destroy(); };
                return made;
            };
        }
        const { Dala } = await import(folder + "dala.js");
        const chain = await Dala.load(folder + "chain.json");
        const canvas = new OffscreenCanvas(1, 1);
        const picture = (n) => new ImageData(8 + (n % 7), 5 + (n % 3));
        const counts = [];
        for (let n = 0; n < 100; n++) {
            const bitmap = await createImageBitmap(picture(n));
            const result = await chain.draw(bitmap, canvas, { amount: n / 100 });
            if (n % 10 === 0) await result.read();
            bitmap.close();
            counts.push(live.size);
        }
        chain.close();
        return [counts[0], Math.max(...counts), live.size];
    }"""
    first, most, left = web.page.evaluate(script, f"{web.address}many/")
    assert first == most
    assert left == 0


def test_a_lost_device_comes_back(web: WebPage) -> None:
    dala.web.export(["invert"], web.folder / "lost")
    script = """async (folder) => {
        const devices = [];
        const request = GPUAdapter.prototype.requestDevice;
        GPUAdapter.prototype.requestDevice = async function (...given) {
            const made = await request.apply(this, given);
            devices.push(made);
            return made;
        };
        const { Dala } = await import(folder + "dala.js?lost");
        const chain = await Dala.load(folder + "chain.json");
        const picture = { data: new Uint8Array([10, 20, 30, 255]), width: 1, height: 1 };
        const first = await (await chain.run(picture)).pixels();
        const old = await chain.run(picture);
        devices[0].destroy();
        await devices[0].lost;
        await Promise.resolve();
        let message = "";
        try { await old.read(); } catch (error) { message = error.message; }
        const second = await (await chain.run(picture)).pixels();
        chain.close();
        return [Array.from(first), Array.from(second), devices.length, message];
    }"""
    first, second, devices, message = web.page.evaluate(script, f"{web.address}lost/")
    assert first == second == [245, 235, 225, 255]
    assert devices == 2
    assert message == "dala: the GPU was lost; run the chain again"


# the page ----------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def shown(web: WebPage) -> str:
    """The folder of a page with a picture of known colors."""
    picture = np.zeros((40, 60, 4), np.uint8)
    picture[..., 0], picture[..., 3] = 200, 255
    chain = [("brightness", {"value": 0.1}), ("flip", {}), ("chroma_key", {})]
    dala.web.export(chain, web.folder / "page", title="A <page>", picture=picture)
    return "page/index.html"


def pixel(page: Any) -> list[int]:
    """Return the middle pixel of the canvas."""
    script = """async () => {
        const view = await document.querySelector("dala-chain").ready;
        const copy = new OffscreenCanvas(view.canvas.width, view.canvas.height).getContext("2d");
        view.set({});
        await view.settled();
        copy.drawImage(view.canvas, 0, 0);
        const { width, height } = view.canvas;
        return Array.from(copy.getImageData(width / 2, height / 2, 1, 1).data);
    }"""
    return list(page.evaluate(script))


def test_page_and_its_controls(web: WebPage, shown: str) -> None:
    page = web.goto(shown)
    assert page.title() == "A <page>"
    assert pixel(page) == pytest.approx([226, 26, 26, 255], abs=1)
    labels = page.locator("label.row > span:first-child").all_inner_texts()
    assert labels == ["value", "direction", "key", "threshold", "softness", "despill"]
    slider = page.get_by_label("value")
    slider.fill("-0.2")
    assert pixel(page) == pytest.approx([149, 0, 0, 255], abs=1)
    assert page.get_by_label("direction").evaluate("e => e.value") == "horizontal"
    assert page.locator(".status").inner_text() == "60 x 40"
    page.get_by_role("button", name="Reset").click()
    assert slider.input_value() == "0.1"
    assert pixel(page) == pytest.approx([226, 26, 26, 255], abs=1)


@pytest.mark.long
def test_page_opens_pictures_and_the_camera(web: WebPage, shown: str) -> None:
    page = web.goto(shown)
    picture = np.full((20, 30, 4), (0, 100, 0, 255), np.uint8)
    content = base64.b64decode(png(picture))
    page.locator("input[type=file]").set_input_files(
        {"name": "a.png", "mimeType": "image/png", "buffer": content}
    )
    page.wait_for_function("""() => document.querySelector("dala-chain").shadowRoot
        .querySelector("canvas").width === 30""")
    page.evaluate("""async () => {
        (await document.querySelector("dala-chain").ready).set({ key: [1, 0, 1], threshold: 0 });
    }""")  # the test camera is green
    page.get_by_role("button", name="Camera").click()
    page.wait_for_function("""() => / frames a second/.test(document.querySelector("dala-chain")
        .shadowRoot.querySelector(".status").textContent)""")
    assert pixel(page)[3] == 255


@pytest.mark.long
def test_page_plays_videos(web: WebPage, shown: str, tmp_path: Path) -> None:
    video = pytest.importorskip("dala.media.video")
    frames = (np.full((48, 64, 3), (40 * n, 60, 90), np.uint8) for n in range(6))
    video.write(tmp_path / "clip.mp4", frames, fps=12)
    page = web.goto(shown)
    page.locator("input[type=file]").set_input_files(tmp_path / "clip.mp4")
    page.wait_for_function("""() => / frames a second/.test(document.querySelector("dala-chain")
        .shadowRoot.querySelector(".status").textContent)""")
    assert page.locator("canvas").evaluate("e => [e.width, e.height]") == [64, 48]
    page.locator("input[type=file]").set_input_files(
        {"name": "a.txt", "mimeType": "text/plain", "buffer": b"no picture"}
    )
    problem = page.get_by_role("alert")
    problem.wait_for()
    assert "could not be decoded" in problem.inner_text()


def test_one_file(web: WebPage) -> None:
    path = web.folder / "one.html"
    made = dala.web.export(["invert"], path)
    assert made.files == ("one.html",)
    page = web.page
    page.goto(path.as_uri())  # from the disk, without a server
    page.evaluate("async () => { await document.querySelector('dala-chain').ready; }")
    assert page.locator("canvas").evaluate("e => [e.width, e.height]") == [600, 400]
    assert pixel(page)[3] == 255
    text = path.read_text().replace("chrome://", "")  # pages of the browser itself
    assert "://" not in text  # nothing comes from elsewhere


@pytest.mark.long
def test_embedding(web: WebPage, shown: str) -> None:
    """``mount`` and the element in other pages: without controls, several at a time, removed."""
    (web.folder / "host.html").write_text(
        '<!doctype html><div id="a"></div><dala-chain src="page/chain.json" ui="none"></dala-chain>'
        '<script type="module" src="page/dala.js"></script>'
    )
    page = web.goto("host.html")
    assert page.locator("dala-chain label").count() == 0
    script = """async () => {
        const view = await Dala.mount(document.querySelector("#a"), {
            src: "page/chain.json", ui: "sliders",
        });
        view.set({ value: 0 });
        await view.settled();
        const found = [view.canvas.width, document.querySelectorAll("#a label").length];
        view.close();
        document.querySelector("dala-chain").remove();
        return found;
    }"""
    assert page.evaluate(script) == [60, 6]


def test_without_webgpu_the_page_shows_the_still(
    playwright: Any, served: tuple[Path, str], web: WebPage, shown: str
) -> None:
    made = start(playwright, "--no-sandbox", "--disable-gpu")
    try:
        page = made.new_page()
        page.set_default_timeout(180_000)
        page.goto(served[1] + shown)
        page.evaluate("async () => { await document.querySelector('dala-chain').ready; }")
        text = page.locator(".problem").inner_text()
        assert "WebGPU" in text
        assert "this is a still picture of the result." in text
        image = page.locator("dala-chain img").last
        page.wait_for_function("""() => document.querySelector("dala-chain").shadowRoot
            .querySelector("img").naturalWidth === 60""")
        assert image.is_visible()
    finally:
        made.close()


def test_still_is_the_result(tmp_path: Path) -> None:
    from PIL import Image

    picture = np.full((8, 8, 4), (10, 20, 30, 255), np.uint8)
    dala.web.export(["invert"], tmp_path, picture=picture)
    document = json.loads((tmp_path / "chain.json").read_text())
    still = np.asarray(Image.open(io.BytesIO((tmp_path / document["still"]).read_bytes())))
    assert still[4, 4].tolist() == pytest.approx([245, 235, 225], abs=2)
