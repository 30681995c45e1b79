"""The fuzz targets, by name."""

from __future__ import annotations

import importlib
import importlib.util

from tests.fuzz.target import Target

#: For each target: its module, its class, and the package it needs, if any.
TABLE = {
    "streams": ("streams", "Streams", ""),
    "kernels": ("kernels", "Kernels", ""),
    "shaders": ("shaders", "Shaders", "PIL"),
    "cube": ("tables", "CubeFiles", ""),
    "lut": ("tables", "LutFiles", "PyOpenColorIO"),
    "subtitles": ("texts", "SubtitleFiles", "PIL"),
    "scenes": ("texts", "SceneFiles", "PIL"),
    "fonts": ("texts", "Fonts", "freetype"),
    "arrays": ("texts", "Arrays", "PIL"),
    "png": ("pictures", "Png", "PIL"),
    "pictures": ("pictures", "Pictures", "PIL"),
    "torch": ("weights", "Torch", ""),
    "tflite": ("weights", "TfLite", ""),
    "tfjs": ("weights", "TfJs", ""),
    "onnx": ("weights", "Onnx", "onnxruntime"),
    "requests": ("web", "Requests", ""),
    "addresses": ("documents", "Addresses", ""),
    "messages": ("documents", "Messages", "starlette"),
    "svg": ("drawings", "SvgFiles", ""),
    "paths": ("drawings", "PathTexts", ""),
    "events": ("drawings", "PageEvents", ""),
    "traces": ("documents", "Traces", ""),
    "records": ("documents", "Records", "PIL"),
}


def available() -> list[str]:
    """Return the targets whose packages are installed."""
    return [
        name
        for name, (_, _, package) in TABLE.items()
        if not package or importlib.util.find_spec(package) is not None
    ]


def make(name: str) -> Target:
    """Return a target."""
    module, kind, _ = TABLE[name]
    found = getattr(importlib.import_module(f"tests.fuzz.targets.{module}"), kind)()
    assert isinstance(found, Target)
    assert found.name == name
    return found
