"""Exported chains in a browser with WebGPU on SwiftShader, beside the desktop's results."""

import base64
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dala.media import FramePipeline
from dala.media.filters.declarations import declared

#: Flags with which headless Chromium runs WebGPU without a GPU, and shows WebGPU canvases.
FLAGS = (
    "--no-sandbox",
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--enable-features=Vulkan",
    "--use-vulkan=swiftshader",
    "--use-angle=vulkan",
    "--disable-gpu-watchdog",  # SwiftShader compiles long shaders for seconds
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--disable-background-timer-throttling",
)

RUN = """async ([folder, width, height, bytes, params]) => {
    const { Dala } = await import(folder + "dala.js");
    const chain = await Dala.load(folder + "chain.json");
    try {
        const data = Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0));
        const result = await chain.run({ data, width, height }, params);
        const read = new Uint8Array((await result.read()).buffer);
        let text = "";
        for (let i = 0; i < read.length; i += 4096) {
            text += String.fromCharCode(...read.subarray(i, i + 4096));
        }
        return [[result.height, result.width, result.channels], result.dtype, btoa(text)];
    } finally {
        chain.close();
    }
}"""


@dataclass
class WebPage:
    """A page of a browser, and the folder that is served to it."""

    page: Any
    folder: Path
    address: str

    def run(self, name: str, picture: np.ndarray, **params: object) -> np.ndarray:
        """Run an exported chain on a picture, in the browser."""
        height, width = picture.shape[:2]
        data = base64.b64encode(np.ascontiguousarray(picture).tobytes()).decode()
        arguments = [f"{self.address}{name}/", width, height, data, params]
        shape, dtype, text = self.page.evaluate(RUN, arguments)
        kind = np.uint8 if dtype == "u8" else np.float32
        return np.frombuffer(base64.b64decode(text), kind).reshape(shape)

    def goto(self, path: str) -> Any:
        """Open a path, and wait until its chain is shown."""
        self.page.goto(self.address + path)
        self.page.evaluate("async () => { await document.querySelector('dala-chain').ready; }")
        return self.page


def start(playwright: Any, *flags: str) -> Any:
    return playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(flags))


def on_desktop(picture: np.ndarray, filters: list[Any], device: str = "webgpu") -> np.ndarray:
    """Return the desktop's result, as one fused pipeline."""
    with FramePipeline(picture.shape[1], picture.shape[0], device=device) as pipeline:
        return np.array(pipeline.process(picture, filters))


def noise(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Return a picture of smooth noise with all levels, alpha included."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (height, width, 4), dtype=np.uint8)


#: Small, odd, and not a multiple of four wide.
HEIGHT, WIDTH = 43, 61


def example(name: str) -> dict[str, object]:
    """Return parameters for a filter: its example's, and pictures and tables where it needs any."""
    spec = declared()[name]
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32)
    coordinates = np.stack([x * 0.9 + 1.5, y * 1.1 - 2.25], axis=-1)
    text = spec.example if "film.cube" not in spec.example else ""
    given: dict[str, object] = eval(f"dict({text})", {"coordinates": coordinates})
    for p in spec.parameters:
        if p.type == "lut":
            given[p.name] = np.random.default_rng(5).random((5, 5, 5, 3), np.float32)
        elif p.type == "picture":
            other = noise(HEIGHT, WIDTH, seed=9)
            given[p.name] = other[..., 0].copy() if p.name == "mask" else other
    if name == "crop":
        given = {"box": (5, 3, 40, 30)}
    if name == "resize":
        given = {"size": (50, 30)}
    if name == "thumbnail":
        given = {"size": 24}
    if name in ("blur", "box_blur"):
        given = {"radius": 2}
    if name == "gaussian_blur":
        given = {"sigma": 0.6}
    if name == "canny":
        given = {"low": 0.3, "high": 0.7}
    return given
