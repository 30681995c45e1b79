"""What a frame of a scene file costs, known from the file alone, before anything is made."""

from __future__ import annotations

from typing import Final, NamedTuple, Self

from dala import budget, memory
from dala.errors.describing import counted
from dala.media.scene.file.ids import walk
from dala.media.scene.nodes.json_types import JsonValue
from dala.media.scene.nodes.nested import nesting, too_nested

#: Bytes of memory that the object of a node takes, about.
NODE_BYTES: Final = 4096


class SceneCost(NamedTuple):
    """The scenes of a file, and the pixels of a frame: those of its scenes, together.

    A scene that is shown twice counts twice, with all inside it.

    >>> inner = {"width": 4, "height": 2, "nodes": []}
    >>> outer = {"width": 8, "height": 8, "nodes": [{"type": "scene", "scene": inner}] * 2}
    >>> SceneCost.of(outer)
    SceneCost(nodes=2, depth=2, scenes=3, pixels=80)
    """

    nodes: int
    #: Scenes inside each other, the outermost included.
    depth: int
    scenes: int
    pixels: int

    @classmethod
    def of(cls, data: JsonValue, found: dict[int, Self] | None = None) -> Self:
        """Return the cost of a file; ``found`` has that of inner scenes already."""
        found = {} if found is None else found
        if id(data) not in found:
            nodes = [item for _, item in walk(data)]
            inside = [cls.of(item["scene"], found) for item in nodes if "scene" in item]
            depth, scenes = nesting([(each.depth, each.scenes) for each in inside])
            pixels = _side(data, "width") * _side(data, "height")
            found[id(data)] = cls(
                len(nodes) + sum(each.nodes for each in inside), depth, scenes,
                pixels + sum(each.pixels for each in inside),
            )  # fmt: skip
        return found[id(data)]

    @property
    def nbytes(self) -> int:
        """The least memory that the frames of all scenes need."""
        return 4 * self.pixels

    def problem(self, given: int | str | None) -> str:
        """Return the limit that the file exceeds, as text; an empty text if it exceeds none."""
        most = limit(given)
        if found := too_nested((self.depth, self.scenes)):
            return found
        if self.scenes == 1 or self.nbytes <= most:
            return ""  # one scene is refused when it is rendered
        return (
            f"a frame of its {self.scenes} scenes has {self.pixels:,} pixels, at least "
            f"{memory.human(self.nbytes)}, and the scene may use {memory.human(most)}. "
            "Make inner scenes smaller, or allow more: load_scene(..., memory='8 GiB')."
        )

    def __str__(self) -> str:
        return (
            f"{counted(self.nodes, 'nodes')}, {counted(self.scenes, 'scenes')} in "
            f"{counted(self.depth, 'levels')}; {self.pixels:,} pixels a frame, at least "
            f"{memory.human(self.nbytes)} of memory"
        )


def limit(given: int | str | None) -> int:
    """Return the memory that a scene with such an argument may use, in bytes.

    >>> limit(1000)
    1000
    """
    found, block = memory.object_limit("load_scene", given), budget.current().memory
    return found if block is None else min(found, block)


def _side(data: JsonValue, key: str) -> int:
    """Return the width or height of a scene; 0 if it is none, which is a mistake of its own."""
    side = data.get(key) if isinstance(data, dict) else None
    return int(side) if isinstance(side, int | float) and 1 <= side <= 16384 else 0
