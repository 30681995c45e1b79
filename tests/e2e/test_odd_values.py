"""Values that nobody should pass, to filters, buffers, frames, scenes, surfaces and sounds."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dala
from dala.gpu import compute, create_surface
from dala.gpu.compute.kernels.filter import FILTERS
from dala.gpu.surface import Surface
from dala.media import (
    Frame,
    Scene,
    audio,
    effects,
    gpu,
    load_lut,
    load_scene,
    load_subtitles,
    video,
)
from dala.media.audio import Audio
from tests.faults.operations import NEEDED, OF_TWO, WITH_MODEL
from tests.support.odd import PIXELS, THINGS, VALUES, problem, sweep

NAMES = [name for name in gpu.filters() if name not in WITH_MODEL]


@pytest.mark.third
@pytest.mark.parametrize("name", NAMES)
def test_filters(name, tmp_path):
    call = getattr(gpu, name, None) or getattr(effects, name)
    needed = NEEDED.get(name, lambda _: {})(tmp_path)
    second = (PIXELS,) if name in OF_TWO else ()
    params = [p.name for p in FILTERS[name].parameters if p.type != "picture" or not second]
    wrong = []
    for title, value in VALUES.items():
        tried = {"picture": lambda v=value: call(v(), *second, **needed, device="cpu")}
        if second:
            tried["second"] = lambda v=value: call(PIXELS, v(), **needed, device="cpu")
        for param in params:
            tried[param] = lambda v=value, p=param: call(
                PIXELS, *second, **{**needed, p: v()}, device="cpu"
            )
        wrong += [
            f"{each} = {title}: {problem(act)}" for each, act in tried.items() if problem(act)
        ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("title", VALUES)
def test_pixels_of_objects(title, tmp_path):
    path, value = tmp_path / "a.mp4", VALUES[title]
    with create_surface(8, 8) as surface, Scene(16, 16) as scene:
        for call in (
            scene.add_image,
            surface.set_pixels,
            surface.submit,
            lambda x: surface.load_image(1, x, 16, 16),
            lambda x: surface.load_sprite(1, x, 4, 4),
            lambda x: surface.with_pixels(lambda pixels: x),
            lambda x: video.write(path, x, fps=25),
            lambda x: video.write(path, [x], fps=25),
        ):
            assert not problem(lambda call=call: call(value()))


def test_pointers_are_no_pixels():
    with create_surface(8, 8) as surface, pytest.raises(dala.CommandError):
        surface.load_sprite(1, np.array([[object()] * 2]), 2, 2)


# calls --------------------------------------------------------------------------------------------
#: Right arguments by the name of the parameter; 1 for others.
RIGHT = {
    "path": "nothing.png",
    "file": "nothing.png",
    "image": PIXELS,
    "picture": PIXELS,
    "source": PIXELS,
    "text": "abc",
    "color": "red",
    "fill": "red",
    "points": [(0, 0), (5, 5), (0, 5)],
    "size": (8, 8),
}
#: These wait, show something, or start something.
BESIDES = {
    *("add_camera", "add_live", "add_microphone", "add_screen", "close", "destroy", "free", "live"),
    *("play", "record", "render_to", "save", "serve", "show", "synchronize", "view", "wait_closed"),
    "with_pixels",  # raises what the function raises
}


def methods(cls):
    """Return the names of the public methods of a class that take something."""
    found = []
    for name in dir(cls):
        static = inspect.getattr_static(cls, name)
        plain = not isinstance(static, property) and not inspect.isclass(static)
        if plain and not name.startswith("_") and name not in BESIDES and callable(static):
            found.append(name)
    return found


def right(call):
    """Return arguments for the parameters that a function needs."""
    needed = inspect.signature(call).parameters.values()
    named = [p for p in needed if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return {p.name: RIGHT.get(p.name, 1) for p in named if p.default is p.empty}


@pytest.fixture
def alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # "zzz" is the name of a file as well


def functions(module):
    names = [name for name in dir(module) if not name.startswith("_")]
    found = {name: getattr(module, name) for name in names}
    return {name: f for name, f in found.items() if inspect.isfunction(f)}


@pytest.mark.parametrize("name", functions(compute))
def test_functions_of_buffers(name, alone):
    def buffer():
        return compute.buffer([1.0, 2.0, 3.0, 4.0], device="cpu")

    call = functions(compute)[name]
    with dala.device("cpu"):
        sweep(call, dict.fromkeys(right(call), buffer))


@pytest.mark.parametrize("name", methods(compute.Buffer))
def test_methods_of_buffers(name, alone):
    with compute.buffer([1.0, 2.0, 3.0, 4.0], device="cpu") as made:
        call = getattr(made, name)
        sweep(call, right(call))


@pytest.mark.parametrize("name", methods(Scene))
def test_methods_of_scenes(name, alone):
    with Scene(32, 32) as scene:
        call = getattr(scene, name)
        sweep(call, right(call))
        assert not problem(lambda: scene.render(0.0))


@pytest.mark.parametrize("name", methods(Surface))
def test_methods_of_surfaces(name, alone):
    with create_surface(16, 16) as surface:
        call = getattr(surface, name)
        sweep(call, right(call))
        assert not problem(surface.synchronize)


@pytest.mark.parametrize("name", methods(Audio))
def test_methods_of_sounds(name, alone):
    call = getattr(audio.tone(440, 0.1), name)
    sweep(call, right(call))


@pytest.mark.parametrize("name", methods(Frame))
def test_methods_of_frames(name, alone):
    call = getattr(Frame.from_array(PIXELS), name)
    sweep(call, right(call))


@pytest.mark.parametrize(
    "call",
    [
        *functions(audio).values(), load_lut, load_scene, load_subtitles, video.open,
        Scene.save, Frame.save, Frame.open, Frame.from_array, dala.device, dala.limits,
    ],
    ids=lambda call: call.__qualname__,
)  # fmt: skip
def test_other_calls(call, alone):
    given = right(call)
    if call is Scene.save:
        given = {"self": lambda: Scene(8, 8), "path": "a.json"}
    elif call is Frame.save:
        given = {"self": Frame.from_array(PIXELS), "path": "a.png"}
    sweep(call, given, skip=("self",))


def test_writing_videos(alone):
    given = {"path": "a.mp4", "frames": [PIXELS] * 3, "fps": 25}
    sweep(video.write, given, values=THINGS)


# models, batches and pages ------------------------------------------------------------------------
@pytest.fixture(scope="module")
def faces():
    pytest.importorskip("onnxruntime")
    from dala.ml.gpu import load_model

    with load_model("blazeface", provider="cpu") as model:
        yield model


@pytest.mark.parametrize("name", ["predict", "run", "stream"])
def test_methods_of_models(name, faces, alone):
    call = getattr(faces, name)
    sweep(call, right(call), values=VALUES)


def test_models(faces, alone):
    from dala.ml import Background, FaceHider, preprocess
    from dala.ml.gpu import load_model

    sweep(load_model, {"model": "blazeface", "pull": False}, skip=("pull",))
    sweep(preprocess, {"image": PIXELS})
    sweep(Background, {"model": faces})
    sweep(FaceHider, {"model": faces})


@pytest.mark.parametrize("name", ["images", "videos", "scenes", "faces"])
def test_batches(name, alone):
    pytest.importorskip("pyarrow")
    from dala import batch

    given = {"pattern": "nothing/*.png", "out": "out/{stem}.png", "chain": ["invert"]}
    call = getattr(batch, name)
    sweep(call, {k: v for k, v in given.items() if k in inspect.signature(call).parameters})


def test_pages(alone):
    from dala import web

    few = {name: THINGS[name] for name in ("none", "number", "surrogate", "view", "dict", "vector")}
    sweep(web.export, {"chain": [("blur", {"radius": 2})], "folder": "page"}, values=few)
    sweep(
        web.Server,
        {"folder": web.export(["invert"], "page").path, "host": "127.0.0.1"},
        skip=("host",),
    )


def test_pipelines(alone):
    from dala.media import FramePipeline, TextStyle

    sweep(FramePipeline, {"width": 8, "height": 8})
    with FramePipeline(16, 16) as pipeline:
        sweep(pipeline.process, {"frame": PIXELS, "filters": [("blur", {"radius": 2})]})
    sweep(compute.Pipeline().set_params, {"stage": 0})
    sweep(TextStyle)


SHADER = "/*{}*/ void main() { gl_FragColor = vec4(1.0); }"
IMAGE = "void mainImage(out vec4 c, in vec2 p) { c = vec4(1.0); }"


@pytest.mark.parametrize("title", VALUES)
def test_shaders(title):
    value = VALUES[title]
    tried = {
        "load": lambda: dala.shaders.load(value()),
        "load, limits": lambda: dala.shaders.load("nothing.fs", limits=value()),
        "isf": lambda: dala.shaders.isf(value()),
        "vertex": lambda: dala.shaders.isf(SHADER, vertex=value()),
        "images": lambda: dala.shaders.isf(SHADER, images=value()),
        "name": lambda: dala.shaders.isf(SHADER, name=value()),
        "limits": lambda: dala.shaders.isf(SHADER, limits=value()),
        "image": lambda: dala.shaders.shadertoy(value()),
        "common": lambda: dala.shaders.shadertoy(IMAGE, value()),
        "buffers": lambda: dala.shaders.shadertoy(IMAGE, buffers=value()),
        "a buffer": lambda: dala.shaders.shadertoy(IMAGE, buffers={"A": value()}),
        "channels": lambda: dala.shaders.shadertoy(IMAGE, channels=value()),
        "a channel": lambda: dala.shaders.shadertoy(IMAGE, channels=[value()]),
        "sound": lambda: dala.shaders.shadertoy(IMAGE, channels=["sound"], sound=value()),
        "edge": lambda: dala.shaders.shadertoy(IMAGE, edge=value()),
    }
    wrong = [f"{name} = {title}: {found}" for name, act in tried.items() if (found := problem(act))]
    assert not wrong, "\n".join(wrong)
