"""An inventory of the public names: removing or renaming one fails here."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dala
import dala.gpu.compute as compute
from dala import errors
from tests.support.api_names import COMMAND, COMPUTE, GPU, SURFACE, TOP

#: Of ``dala.media.gpu`` and ``dala.media.effects``, besides a call for each filter kernel.
MEDIA = {
    "blur": "(img, width=None, height=None, radius=3, *, sigma=None, border='clamp', fill=0.0, "
    "out=None, device=None)",
    "brightness": "(img, width=None, height=None, value=0.0, *, out=None, device=None)",
    "contrast": "(img, width=None, height=None, value=0.0, *, out=None, device=None)",
    "filters": "()",
    "grayscale": "(img, width=None, height=None, *, out=None, device=None)",
    "process_frame": "(ctx, rgba, filters, *, width=None, height=None, out=None)",
    "sharpen": "(img, width=None, height=None, amount=0.5, *, border='clamp', fill=0.0, out=None, "
    "device=None)",
    "start_pipeline": "(width, height, *, device=None)",
    "stop_pipeline": "(ctx)",
}
EFFECTS = {"curves", "grade", "overlay", "temperature", "virtual_background"}
FRAME = {
    "close", "device", "dtype", "format", "from_array", "height", "matrix", "numpy", "open",
    "pixels", "primaries", "pts", "range", "save", "shape", "show", "time", "time_base", "to",
    "transfer", "width",
}  # fmt: skip

#: Of a scene; groups have the ``add_*`` calls too.
ADD_CALLS = {
    "add_animation", "add_effect", "add_group", "add_image", "add_node", "add_overlay",
    "add_scene", "add_subtitles", "add_text", "add_video",
}  # fmt: skip
SCENE = ADD_CALLS | {
    "animator", "background", "close", "device", "errors", "explain", "fps", "frame_count",
    "frames_skipped", "grid", "height", "nodes", "remove_node", "render", "set_pip_transform",
    "side_by_side", "stack", "stats", "textures", "time", "width",
}  # fmt: skip
#: Properties that every node has.
NODE = {
    "anchor", "blend", "border", "border_color", "border_width", "crop", "end", "fit", "height",
    "opacity", "position", "radius", "rotation", "scale", "shadow", "size", "start", "visible",
    "width", "x", "y", "z_index",
}  # fmt: skip

BUILTIN_KERNELS = {
    "argmax",
    "beauty",
    "bicubic_scale",
    "blur",
    "brightness",
    "chroma_key",
    "contrast",
    "conv2d",
    "convolve1d",
    "cumsum",
    "denoise",
    "dilate",
    "edge_detect",
    "elementwise_add",
    "elementwise_div",
    "elementwise_mul",
    "elementwise_sub",
    "erode",
    "fft",
    "gamma",
    "gather",
    "gaussian_blur",
    "generate_gradient",
    "grayscale",
    "histogram",
    "hue",
    "ifft",
    "invert",
    "layer_norm",
    "lut_apply",
    "matmul",
    "median",
    "overlay_alpha",
    "preprocess",
    "reduce_max",
    "reduce_min",
    "reduce_sum",
    "relu",
    "remap",
    "reshape",
    "resize",
    "rgb_to_yuv",
    "saturation",
    "scalar_mul",
    "sepia",
    "sharpen",
    "sigmoid",
    "softmax",
    "tanh",
    "transpose",
    "video_mix",
    "vignette",
    "warp_affine",
    "warp_perspective",
    "yuv_to_rgb",
}


def test_names_at_the_top():
    assert set(dir(dala)) >= TOP
    for name in TOP:
        assert getattr(dala, name) is not None


def test_every_error_is_public_and_a_dala_error():
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, dala.DalaError)
        assert getattr(dala, name) is kind


#: Blocking calls and their asynchronous counterparts.
ASYNC_CALLS = [
    ("run_kernel", "run_kernel_async"),
    ("read", "read_async"),
    ("pipeline_run", "pipeline_run_async"),
]


@pytest.mark.parametrize(("plain", "other"), ASYNC_CALLS)
def test_async_calls_have_the_same_signature(plain, other):
    calls = [inspect.signature(getattr(compute, name)) for name in (plain, other)]
    assert calls[0].parameters == calls[1].parameters


#: Calls that are methods too, by the class that has them.
METHODS = {
    compute.Buffer: [
        "dtype", "free", "read", "read_async", "read_binary", "read_list", "shape", "to_array",
    ],
    compute.Command: ["cancel", "poll", "wait"],
    compute.Stream: ["submit"],
    compute.Kernel: ["run"],
}  # fmt: skip


def test_calls_that_are_methods_too():
    for kind, names in METHODS.items():
        for name in names:
            assert hasattr(kind, name), (kind, name)
    for name in ("read", "read_async", "read_binary", "read_list", "to_array"):
        function = [*inspect.signature(getattr(compute, name)).parameters.values()][1:]
        method = [*inspect.signature(getattr(compute.Buffer, name)).parameters.values()][1:]
        assert [(p.name, p.default) for p in function] == [(p.name, p.default) for p in method]


@pytest.mark.parametrize(
    ("room", "names"), [(compute, COMPUTE), (dala.gpu, GPU), (dala.gpu.command, COMMAND)]
)
def test_names_and_arguments_of_the_packages(room, names):
    assert set(room.__all__) == set(names)
    assert set(dir(room)) >= set(names)
    for name, wanted in names.items():
        found = getattr(room, name)
        if wanted is None:
            continue
        signature = inspect.signature(found)
        plain = signature.replace(
            parameters=[
                p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()
            ],
            return_annotation=inspect.Signature.empty,
        )
        assert str(plain) == wanted, name


def test_names_of_a_surface():
    with dala.gpu.create_surface(1, 1) as s:
        found = {name for name in dir(s) if not name.startswith("_")}
    calls = {name for name, wanted in GPU.items() if wanted is not None} - {"create_surface"}
    assert found == calls | SURFACE


def test_names_of_media():
    media = dala.media
    rooms = {"effects", "gpu", "scene", "video"}
    assert set(dir(media)) >= {"Frame", "FramePipeline", "Scene", "TexturePool"} | rooms
    assert set(dir(media)) >= {"TextStyle", "load_scene", "load_subtitles", "set_text"}
    assert all(callable(getattr(media, name)) for name in ("load_scene", "set_text"))
    assert set(media.gpu.__all__) >= set(MEDIA)
    for name, wanted in MEDIA.items():
        signature = inspect.signature(getattr(media.gpu, name))
        plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        assert str(inspect.Signature(plain)) == wanted, name
    assert set(media.effects.__all__) == EFFECTS
    assert set(media.gpu.filters()) >= EFFECTS
    assert set(dir(media.Frame)) >= FRAME
    assert set(dir(media.FramePipeline)) >= {"close", "explain", "passes", "process", "stream"}


def test_names_of_a_scene():
    with dala.media.Scene(1, 1, device="reference") as scene:
        assert {name for name in dir(scene) if not name.startswith("_")} >= SCENE
        node = scene.add_image(np.zeros((1, 1), np.uint8))
        assert set(node.PROPERTIES) == NODE
        group = scene.add_group()
        assert set(dir(group)) >= ADD_CALLS
    signature = inspect.signature(dala.media.Scene)
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    wanted = (
        "(width, height, *, background='black', fps=30, device=None, blend_space='srgb', "
        "memory=None)"
    )
    assert str(inspect.Signature(plain)) == wanted
    assert dala.media.scene.Scene is dala.media.Scene


ML = {
    "available_models": "()",
    "load_model": (
        "(model, provider='auto', *, task=None, labels=None, size=None, layout=None, "
        "preprocess=None, decode=None, threads=None, pull=True)"
    ),
    "load_model_async": (
        "(model, provider='auto', *, task=None, labels=None, size=None, layout=None, "
        "preprocess=None, decode=None, threads=None, pull=True)"
    ),
    "predict": "(model, input, **options)",
    "predict_async": "(model, input, **options)",
    "top_k": "(output, k=5, labels=None)",
}
MODEL = {"close", "info", "labels", "options", "predict", "predict_async", "preprocess", "provider",
         "run", "stream", "warmup"}  # fmt: skip


def test_names_of_ml():
    ml = dala.ml
    assert set(dir(ml)) >= {"Background", "Model", "gpu", "preprocess", "results"}
    assert set(ml.gpu.__all__) == set(ML)
    for name, wanted in ML.items():
        signature = inspect.signature(getattr(ml.gpu, name))
        plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        assert str(inspect.Signature(plain)) == wanted, name
    assert set(dir(ml.Model)) | {"labels"} >= MODEL
    first = list(inspect.signature(ml.preprocess).parameters)[:2]
    assert first == ["image", "size"]
    assert inspect.signature(ml.preprocess).parameters["size"].default == (224, 224)
    sync, other = (inspect.signature(getattr(ml.gpu, n)) for n in ("predict", "predict_async"))
    assert sync.parameters == other.parameters


def test_models_are_kernels():
    assert set(compute.kernels()) >= set(dala.ml.gpu.available_models())


def test_built_in_kernels():
    assert set(compute.kernels()) >= BUILTIN_KERNELS


def test_submodules_do_not_hide_the_calls_of_their_name():
    for name in ("buffer", "kernel", "kernels", "pipeline"):
        assert callable(getattr(compute, name))


def test_elementwise_calls_return_their_output():
    with dala.device("reference"):
        a, b = compute.buffer([[4.0, 2.0]]), compute.buffer([[2.0, 1.0]])
        for name in ("add", "subtract", "multiply", "divide"):
            call, out = getattr(compute, name), compute.buffer_zeros((1, 2))
            assert call(a, b, out) is out
            assert call(a, b).read_list() == out.read_list()
        for name in ("relu", "sigmoid", "tanh", "softmax"):
            call, out = getattr(compute, name), compute.buffer_zeros((1, 2))
            assert call(a, out) is out
            assert call(a).read_list() == out.read_list()
        assert compute.scale(a, 10).read_list() == [40.0, 20.0]
        assert compute.matmul(a, compute.buffer([[1.0], [2.0]])).read_list() == [8.0]
        assert a.ref is a
