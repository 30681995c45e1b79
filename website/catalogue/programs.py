"""The short programs that filter pages show. Running one makes the picture beside it."""

from __future__ import annotations

from dala.cli.common import chain
from dala.gpu.compute.kernels.filter import FilterSpec
from dala.media.filters.calls import example, module_of

#: What the picture is, where it is not the cup of coffee.
_PICTURES = {
    "beauty": ['picture = dala.samples.photo("astronaut")'],
    "clahe": ['picture = dala.samples.photo("chelsea")'],
    "equalize": ['picture = dala.samples.photo("chelsea")'],
    "chroma_key": [
        "y, x = np.mgrid[:400, :600]",
        'photo = np.asarray(dala.samples.photo("coffee"))',
        "cup = np.hypot((x - 320) / 1.5, y - 190)[..., None] < 160",
        "picture = np.where(cup, photo, (41, 191, 61)).astype(np.uint8)  # a cup before a green screen",
    ],
    "virtual_background": [
        'picture = dala.samples.photo("coffee")',
        "y, x = np.mgrid[:400, :600]",
        "mask = np.clip(5 - np.hypot((x - 320) / 1.5, y - 190) / 40, 0, 1)   # or what a model finds",
        "mask = (mask * 255).astype(np.uint8)",
    ],
    "denoise": [
        'photo = np.asarray(dala.samples.photo("coffee"))',
        "noise = np.random.default_rng(0).normal(0, 20, photo.shape)",
        "picture = np.clip(photo + noise, 0, 255).astype(np.uint8)",
    ],
    "yuv_to_rgb": [
        'photo = dala.samples.photo("coffee")',
        "picture = gpu.rgb_to_yuv(photo, format='nv12')     # what cameras and videos have",
    ],
}
_PICTURES["median"] = _PICTURES["bilateral"] = _PICTURES["denoise"]
_PLAIN = ['picture = dala.samples.photo("coffee")']

#: How the second picture, a table or a map is made.
_INPUTS = {
    "over": ['over = gpu.resize(dala.samples.photo("chelsea"), 600, 400)'],
    "second": ['second = gpu.resize(dala.samples.photo("chelsea"), 600, 400)'],
    "picture": ['badge = gpu.thumbnail(dala.samples.photo("astronaut"), size=160)'],
    "map": [
        "y, x = np.mgrid[:400, :600].astype(np.float32)",
        "coordinates = np.dstack([x + 12 * np.sin(y / 20), y])    # where each pixel is read",
    ],
    "lut": [
        "r, g, b = np.meshgrid(*[np.linspace(0, 1, 17, dtype=np.float32)] * 3, indexing='ij')",
        "warm = np.stack([r**0.8, g**0.95, b * 0.7 + 0.1], axis=-1)",
        'save_cube(Cube(warm), "film.cube")',
    ],
}


def program(spec: FilterSpec) -> str:
    """Return a program that runs a filter on a sample, and saves the result."""
    home = module_of(spec)
    body = list(_PICTURES.get(spec.name, _PLAIN))
    for p in spec.parameters:
        if p.required and p.name in _INPUTS:
            body += _INPUTS[p.name]
    body.append(example(spec))
    if spec.name == "virtual_background":
        body[-1] = "result = effects.virtual_background(picture, mask=mask, radius=16)"
    text = "\n".join(body)
    if spec.kind == "conversion" and spec.name != "yuv_to_rgb":
        body.append("print(np.asarray(result).shape, np.asarray(result).dtype)")
    elif "picture = np." in text or spec.name == "yuv_to_rgb":
        body.append(f'Frame.from_array(np.asarray(result)).save("{spec.name}.png")')
    else:
        body.append(f'result.save("{spec.name}.png")')
    text = "\n".join(body)
    homes = sorted({home} | {name for name in ("gpu",) if "gpu." in text})
    frame = ["Frame"] if "Frame." in text else []
    heads = ["import dala"]
    if "np." in text:
        heads.append("import numpy as np")
    if "Cube" in text:
        heads.append("from dala.gpu.compute import Cube, save_cube")
    heads.append(f"from dala.media import {', '.join([*frame, *homes])}")
    return "\n".join([*heads, "", text]) + "\n"


def command(spec: FilterSpec) -> str:
    """Return the option of ``dala filter`` that does the same as the program, or ""."""
    if spec.kind == "conversion":
        return ""
    values = []
    for p in spec.parameters:
        if p.required and p.type == "picture":
            values.append(f"{p.name}={'badge' if p.name == 'picture' else p.name}.png")
        elif p.required and p.type == "map":
            values.append(f"{p.name}=coordinates.npy")
    if spec.name == "virtual_background":
        values.append("mask=mask.png")
    for name, value in _example(spec).items():
        values.append(f"{name}={_value(name, value, spec)}")
    return f"--{spec.name} {','.join(values)}".rstrip()


def _example(spec: FilterSpec) -> dict[str, object]:
    """Return the values of a filter's example; what needs names of its own is an input."""
    if spec.name == "remap":
        return {}
    return eval(f"dict({spec.example})", {"dict": dict})


def _value(name: str, value: object, spec: FilterSpec) -> str:
    if name in chain.params(spec.name) and chain.params(spec.name)[name].type == "size":
        return f"{value[0]}x{value[1]}" if isinstance(value, tuple) else str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ":".join(_value("", v, spec) for v in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
