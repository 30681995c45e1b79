"""Every case of the table: a filter with parameters on a picture, a scene, or drawing commands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from dala.answers import material, scenes
from dala.answers.settings import STORED, Settings, settings
from dala.gpu.compute.kernels.filter import FilterParam, FilterSpec
from dala.gpu.compute.params import PixelSize
from dala.media.filters.calls import call
from dala.media.filters.declarations import declared, module_of
from dala.media.filters.plans import FilterValue
from dala.typing import NDArray

#: How much of the table is run.
Share: TypeAlias = Literal["all", "most", "few"]
#: Filters that the contract of bytes leaves out, and why.
OUTSIDE: Final = {"preprocess": "its result is f32, for models"}
#: Channels of the pictures, with their names in the ids of rows.
KINDS: Final = {"gray": 1, "rgb": 3, "rgba": 4}
#: Filters that refuse gray pictures: with a table of colors, or a number for each color.
COLOR_ONLY: Final = ("lut_apply", "levels", "rgb_to_yuv")
#: Conversions whose planes of half the size need even pictures.
PLANAR: Final = ("yuv_to_rgb", "rgb_to_yuv")


@dataclass(frozen=True)
class Row:
    """One case; ``id`` names it in the table, in reports and in tests."""

    #: The filter, or a group of scenes.
    name: str
    #: The name of its parameters, or the scene.
    setting: str
    #: "gray", "rgb" or "rgba"; "" for scenes.
    kind: str = ""
    #: The picture of ``material.py``; "" for scenes.
    picture: str = ""

    @property
    def id(self) -> str:
        """The name of the row.

        >>> Row("blur", "max", "rgb", "photo").id
        'blur/max/rgb/photo'
        """
        return "/".join(filter(None, (self.name, self.setting, self.kind, self.picture)))

    def runs_on(self, backend: str) -> bool:
        """Return whether an engine computes this row; the rasterizer is the processor's."""
        return self.name != "rasterizer" or backend != "webgpu"

    def run(self, device: str) -> NDArray:
        """Return the result on a device."""
        if not self.kind:
            return scenes.draw(self.name, self.setting, device)
        run = call(self.name, module_of(declared()[self.name]))
        return np.asarray(run(self.source(), device=device, **self.arguments()))

    def arguments(self) -> dict[str, FilterValue]:
        """Return the parameters with inputs."""
        given, image = self.parameters(), self.source()
        for p in declared()[self.name].parameters:
            if p.is_input and (p.required or p.name == "mask" or given.get(p.name) == STORED):
                given[p.name] = self.input(p, image)
        return given

    def source(self) -> NDArray:
        """Return the picture that the filter is applied to."""
        image = material.picture(self.picture, KINDS[self.kind])
        if self.name in PLANAR and self.picture == "wide":
            image = np.concatenate([image, image[:, ::-1]], 1)  # their blocks are of 1,024 pixels
        height, width = image.shape[0] & ~1, image.shape[1] & ~1
        if self.name not in PLANAR or self.parameters().get("format") == "yuv444":
            return image
        if self.name == "yuv_to_rgb":
            return material.noise((height * 3 // 2, width), self.picture)
        return np.ascontiguousarray(image[:height, :width])

    def input(self, p: FilterParam, image: NDArray) -> FilterValue:
        """Return the stored input of a type, for a picture."""
        height, width = image.shape[:2]
        channels = 1 if image.ndim == 2 else image.shape[2]
        match p.type, p.name:
            case "picture", "mask":
                return material.mask(height, width)
            case "picture", "picture":
                return material.second(11, 17, 4)
            case "picture" | "background", _:
                return material.second(height, width, channels)
            case "lut", _:
                return material.lut()
            case "map", "element":
                return material.element()
            case "map", _:
                return material.coordinates(height, width)
        raise LookupError(f"answers: no input of type {p.type!r} is stored. Add one to Row.input.")

    def parameters(self) -> dict[str, FilterValue]:
        """Return the parameters without inputs."""
        given: dict[str, Any] = dict(_settings(self.name)[self.setting])
        for p in declared()[self.name].parameters:
            if p.type == "size" and p.name in given:
                given[p.name] = PixelSize(*given[p.name])
        return given


@cache
def _settings(name: str) -> Settings:
    return settings(declared()[name])


def names() -> list[str]:
    """Return the filters and groups of scenes that have rows, in the table's order."""
    return [*sorted(declared().keys() - OUTSIDE.keys()), *scenes.GROUPS]


def rows(*only: str, share: Share = "all") -> Iterator[Row]:
    """Yield all rows, or those of some filters.

    Args:
        *only: names of filters and groups of scenes; none for all.
        share: "all"; "most", without random parameters; "few", with one kind of picture for each
            setting of these.
    """
    for name in only or names():
        if name in scenes.GROUPS:
            for scene in scenes.GROUPS[name]:
                yield Row(name, scene)
            continue
        for setting in _settings(name):
            if share != "all" and setting.startswith("random"):
                continue
            kinds = _kinds(declared()[name], setting)
            if share == "few":
                at = material.number(f"{name}/{setting}", len(kinds))
                kinds = kinds[at : at + 1]
            for kind in kinds:
                for picture in material.PICTURES:
                    yield Row(name, setting, kind, picture)


def _kinds(spec: FilterSpec, setting: str) -> tuple[str, ...]:
    """Return the kinds of pictures that a filter takes."""
    if spec.name == "yuv_to_rgb":
        return ("rgb",) if _settings(spec.name)[setting].get("format") == "yuv444" else ("gray",)
    if spec.name in COLOR_ONLY:
        return ("rgb", "rgba")
    return tuple(KINDS)
