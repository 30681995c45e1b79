"""The calls that add nodes: those of a scene, and the same of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dala.errors import ParameterError, did_you_mean
from dala.gpu.compute.runnable import Runnable
from dala.media.scene.boxes import pip

if TYPE_CHECKING:
    from dala.media.scene.animation.animation import Animation
    from dala.media.scene.nodes.effect import EffectNode
    from dala.media.scene.nodes.group import GroupNode
    from dala.media.scene.nodes.image import ImageNode, OverlayNode
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.nodes.text import SubtitlesNode, TextNode
    from dala.media.scene.nodes.video import SceneNode, VideoNode
    from dala.media.scene.scene import Scene

#: What add_node makes.
TYPES = ("video", "image", "overlay", "text", "subtitles", "effect", "animation", "group", "scene")
#: Options of a video's source.
_SOURCE = ("fps", "offset", "speed", "loop", "end", "stall")


class Adding:
    """``add_video``, ``add_image``, ... Every call takes the properties of nodes by name.

    ``position``, ``size``, ``anchor``, ``fit``, ``crop``, ``rotation``, ``scale``, ``opacity``,
    ``z_index``, ``visible``, ``blend``, ``radius``, ``border``, ``shadow``, and ``id``; see
    ``Node``. Without ``position`` a node lies at the top left, without
    ``size`` it has its own. ``position`` may be a corner ("top-right"), an edge ("bottom") or
    "center", ``margin`` away from the edges.
    """

    __slots__ = ()

    def _into(self) -> GroupNode:
        raise NotImplementedError

    def _scene_of(self) -> Scene:
        raise NotImplementedError

    # nodes ------------------------------------------------------------------------------------
    def add_video(
        self,
        stream: Any,
        *,
        pip: bool | None = None,
        pip_position: Any = None,
        pip_size: Any = None,
        **properties: Any,
    ) -> VideoNode:
        """A video: a path, an open video, an iterator of Frames or arrays, a live source.

        Args:
            stream: what gives the frames; see ``dala.media.sources.open_source``.
            pip: True lays it as a picture in a picture: top right, 200x150, 20 from the edges,
                unless told otherwise.
            pip_position: where then: a corner by name, or (x, y).
            pip_size: how large then: (width, height).
            properties: those of nodes, ``margin`` for named places, and of the source: ``fps`` of
                arrays without a time, ``offset`` (seconds of the scene at which it begins),
                ``speed``, ``loop``, ``end`` and ``stall`` ("freeze" or "hide").
        """
        from dala.media.scene.nodes.video import VideoNode
        from dala.media.sources.source import open_source

        scene = self._scene_of()
        scene._check_open("add_video")
        given = _given(properties, pip, pip_position, pip_size, "add_video")
        options = {name: given.pop(name) for name in _SOURCE if name in given}
        source = open_source(stream, device=scene.device, **options)
        try:
            node = VideoNode(scene, self._into(), source, given)
        except BaseException:
            source.close()
            raise
        node.stream, node.options = stream, options
        return scene._enter(node)

    def add_image(
        self,
        image: Any,
        *,
        pip: bool | None = None,
        pip_position: Any = None,
        pip_size: Any = None,
        **properties: Any,
    ) -> ImageNode:
        """A picture: an array, a Frame, a Pillow image, a path, or a texture or its key."""
        from dala.media.scene.nodes.image import ImageNode

        scene = self._scene_of()
        scene._check_open("add_image")
        given = _given(properties, pip, pip_position, pip_size, "add_image")
        return scene._enter(ImageNode(scene, self._into(), image, given))

    def add_overlay(self, image: Any = None, **properties: Any) -> OverlayNode:
        """A picture over others, or a shape: ``color`` and ``shape`` ("rect", "pill", "circle")."""
        from dala.media.scene.nodes.image import OverlayNode

        scene = self._scene_of()
        scene._check_open("add_overlay")
        return scene._enter(OverlayNode(scene, self._into(), image, dict(properties)))

    def add_text(self, text: str, **properties: Any) -> TextNode:
        """Text; ``properties`` are those of ``TextStyle`` (``size`` is the font's) and of nodes."""
        from dala.media.scene.nodes.text import TextNode

        scene = self._scene_of()
        scene._check_open("add_text")
        return scene._enter(TextNode(scene, self._into(), text, dict(properties)))

    def add_subtitles(
        self, subtitles: Any, *, offset: float = 0.0, **properties: Any
    ) -> SubtitlesNode:
        """Subtitles of an SRT or WebVTT file (or its text), at the bottom unless told otherwise.

        Args:
            subtitles: a path, or the text itself.
            offset: seconds of the scene at which they begin.
            properties: as of ``add_text``.
        """
        from dala.media.scene.nodes.properties import number
        from dala.media.scene.nodes.text import SubtitlesNode
        from dala.media.subtitles import load_subtitles

        scene = self._scene_of()
        scene._check_open("add_subtitles")
        cues = load_subtitles(subtitles)
        start = number()(offset, "add_subtitles: offset")
        given = dict(properties)
        width, height = (scene.width, scene.height)
        if self._into().parent is not None:
            width, height = (int(n) for n in self._into().canvas)
        given.setdefault("size", max(12.0, round(height / 18)))
        given.setdefault("align", "center")
        given.setdefault("outline_width", max(1.0, round(height / 360)))
        if not {"position", "x", "y", "anchor"} & given.keys():
            given |= {"anchor": "bottom", "position": (width / 2, height * 0.94)}
            given.setdefault("width", width * 0.9)
        return scene._enter(SubtitlesNode(scene, self._into(), cues, start, given))

    def add_effect(
        self, type: str | Runnable, input: Node | str | None = None, **params: Any
    ) -> EffectNode:
        """A filter over a node, or over everything below.

        Args:
            type: a filter of ``dala.media.gpu.filters()``, or a kernel of one input.
            input: the node, or its id; None for all that is drawn before it, inside its own box
                (``position``, ``size``), the whole scene where no size is given.
            params: of the filter, and properties of the node. Both can be set and animated.
        """
        from dala.media.scene.nodes.effect import EffectNode

        scene = self._scene_of()
        scene._check_open("add_effect")
        if not isinstance(type, str | Runnable):
            raise ParameterError(f"add_effect: type is a filter's name or a kernel, {type!r} came.")
        target = None if input is None else scene._find(input, "add_effect")
        if isinstance(target, EffectNode):
            target = target.input  # it goes on where that one ended
        return scene._enter(EffectNode(scene, self._into(), type, target, dict(params)))

    def add_animation(
        self,
        node: Node | str,
        property: str,
        from_: Any = None,
        to: Any = None,
        duration: float | None = None,
        easing: Any = "linear",
        **options: Any,
    ) -> Animation:
        """A property on its way from one value to another, or through ``keyframes``.

        See ``Animation`` for ``options``: ``delay``, ``repeat``,
        ``yoyo``, ``on_end``, ``keyframes``.
        """
        from dala.media.scene.animation.animation import Animation

        scene = self._scene_of()
        scene._check_open("add_animation")
        target = scene._find(node, "add_animation")
        if not target.has(property):
            raise target._unknown(property, "add_animation")
        made = Animation(target, property, from_, to, duration, easing, **options)
        return scene.animator.add(made)

    def add_group(
        self, scene: Scene | None = None, *, canvas: Any = None, **properties: Any
    ) -> Any:
        """A group, which has the same ``add_*`` calls; given a scene, as :meth:`add_scene`.

        Args:
            scene: a scene to show inside this one.
            canvas: (width, height) of the group's inside; left out, that of what it lies in.
            properties: those of nodes.
        """
        from dala.media.scene.nodes.group import GroupNode

        if scene is not None:
            return self.add_scene(scene, **properties)
        home = self._scene_of()
        home._check_open("add_group")
        return home._enter(GroupNode(home, self._into(), canvas, dict(properties)))

    def add_scene(self, scene: Scene, **properties: Any) -> SceneNode:
        """A scene inside this one, drawn at this one's time; it stays yours to close."""
        from dala.media.scene.nodes.video import SceneNode
        from dala.media.scene.scene import Scene

        home = self._scene_of()
        home._check_open("add_scene")
        if not isinstance(scene, Scene):
            raise ParameterError(f"add_scene: a Scene is expected, {scene!r} came.")
        return home._enter(SceneNode(home, self._into(), scene, dict(properties)))

    def add_node(self, type: str, *args: Any, **properties: Any) -> Any:
        """A node by its type: ``add_node("image", picture)`` is ``add_image(picture)``."""
        if type not in TYPES:
            hint = did_you_mean(type, TYPES) if isinstance(type, str) else ""
            listed = ", ".join(map(repr, TYPES))
            raise ParameterError(
                f"add_node: type is one of {listed}; {type!r} came. {hint}".rstrip()
            )
        return getattr(self, f"add_{type}")(*args, **properties)


def _given(
    properties: dict[str, Any], wanted: bool | None, place: Any, size: Any, call: str
) -> dict[str, Any]:
    """Properties with those of a picture in a picture among them."""
    given = {k: v for k, v in properties.items() if v is not None}
    options = {"pip": wanted, "pip_position": place, "pip_size": size}
    return pip(given | {k: v for k, v in options.items() if v is not None}, call)
