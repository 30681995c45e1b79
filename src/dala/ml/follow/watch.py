"""A model that watches a video node of a scene."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from dala import forks
from dala.arguments import Integer, Quantity, Text
from dala.errors import (
    DalaError,
    FreedError,
    ModelError,
    ParameterError,
    UnknownModel,
    did_you_mean,
)
from dala.media.scene.follow.follower import ShownPicture
from dala.media.scene.nodes.property_types import AnchorType
from dala.media.scene.nodes.video import VideoNode
from dala.ml.follow.elements import CUT, Element, Identities, Seen, elements_of
from dala.ml.follow.targets import WatchedBone, WatchedBox, WatchedEach, WatchedPoint, WatchedTarget
from dala.ml.gpu import available_models, load_model
from dala.ml.landmarks.targets import BoneTarget, Found, PointTarget
from dala.ml.model import Model
from dala.ml.options import WatchOptions
from dala.ml.results.names import HAND_POINTS, IRIS_MESH_SIZE, MESH_SIZE, point_names
from dala.ml.results.people import check_number
from dala.options import takes
from dala.resources import Closing

if TYPE_CHECKING:
    from collections.abc import Callable

    from dala.media.scene.nodes.json_types import JsonData
    from dala.ml.landmarks.targets import Target
    from dala.ml.results import Keypoint, Prediction
    from dala.typing import ImageLike, PathLike

_CALL: Final = "watch"
#: Tasks of models that find things with places.
_TASKS: Final = ("faces", "poses", "detect", "hands", "meshes")
#: The number of frames whose results are kept.
_KEPT: Final = 4096
#: The cutoff of smoothing at rest in Hz, and its growth with the speed, in sizes a second.
_CUTOFF: Final = 1.5
_BETA: Final = 10.0

#: The watches of each video node, by what they were made with.
_watches: WeakKeyDictionary[VideoNode, WeakValueDictionary[Hashable, Watcher]] = WeakKeyDictionary()


@takes(WatchOptions)
def watch(
    video: VideoNode, model: PathLike | Model[Prediction], **given: float | str | None
) -> Watcher:
    """Watch a video node of a scene with a model, so that other nodes can follow its findings.

    The model runs once on each frame that the video shows, whatever the number of nodes that
    follow. Results are kept by frame, so a frame that is shown again costs nothing and gives the
    same result. The same arguments give the same watch. Options of ``model.predict``, such as
    ``score``, are taken too.

    Args:
        video: a node of ``scene.add_video``.
        model: the name of a model of faces, poses or things (``blazeface``, ``movenet``,
            ``nanodet``, ..), the path of an ONNX file, or a loaded model, which stays yours.

    Raises:
        ParameterError: an argument is invalid.
        ModelError: the model does not find things with places.

    Example::

        with Scene(1280, 720) as scene:
            video = scene.add_video("talk.mp4")
            hat = scene.add_image("hat.png")
            face = dala.ml.watch(video, "blazeface")
            scene.follow(hat, face.bone("right_eye", "left_eye"), scale=3, offset=(0, -1.2))
            scene.render_to("hat.mp4")
    """
    if not isinstance(video, VideoNode):
        raise ParameterError.invalid(_CALL, "video", "a node of scene.add_video", video)
    specs = WatchOptions.specs()
    options = WatchOptions.checked(_CALL, {n: v for n, v in given.items() if n in specs})
    own = {n: cast(float, v) for n, v in given.items() if n not in specs}
    named = isinstance(model, Model) or not hasattr(model, "__fspath__")
    name = cast(Hashable, model if named else str(model))
    key = (name, options, tuple(sorted(own.items())))
    known = _watches.setdefault(video, WeakValueDictionary())
    found = known.get(key)
    if found is None or found.closed:
        found = known[key] = Watcher(video, model, options, own)
    return found


class Watcher(Closing):
    """A model that watches a video node, as :func:`watch` returns it.

    Attributes:
        video: the video node.
        model: the model.
        runs: the number of times that the model ran.

    Example::

        face = dala.ml.watch(video, "blazeface")
        scene.follow(hat, face.point("nose"), offset=(0, -1), scale=1.2)
    """

    def __init__(
        self,
        video: VideoNode,
        model: PathLike | Model[Prediction],
        watching: WatchOptions,
        options: Mapping[str, float],
    ) -> None:
        self._closed = True
        self.video = video
        self.least = watching.least
        self.runs = 0
        self._own = not isinstance(model, Model)
        self._watching = watching
        self._label, smooth = watching.label, watching.smooth
        self._options = dict(options)
        loaded = model if isinstance(model, Model) else load_model(model, watching.provider)
        self.model: Model[Prediction] = loaded
        try:
            self._check()
        except BaseException:
            if self._own:
                loaded.close()
            raise
        self._numbers: set[int] = set()
        cutoff = (_CUTOFF if smooth else None) if isinstance(smooth, bool) else smooth
        self._identities = Identities(cutoff, _BETA)
        self._find: Callable[[ImageLike], Prediction] | None = None
        self._time = -math.inf
        self._kept: OrderedDict[Hashable, Seen] = OrderedDict()
        self._version: int | None = None
        self._current = Seen()
        self._running: tuple[Future[list[Element]], ShownPicture] | None = None
        self._pool = forks.pool(1, "dala-watch")
        self._lock = forks.lock()
        self._home = forks.Home()
        self._closed = False

    def _check(self) -> None:
        model = self.model
        if model.spec.task not in _TASKS:
            raise ModelError(
                f"watch: model must find faces, people or things, got {model.name!r} for "
                f"{model.spec.task!r}. Use 'blazeface', 'movenet' or 'nanodet'."
            )
        if self._label is not None and model.labels and self._label not in model.labels:
            hint = did_you_mean(self._label, model.labels)
            raise ParameterError(
                f"watch: {model.name!r} has no class {self._label!r}. {hint}".rstrip(),
                argument="label",
            )
        try:
            model.spec.chosen(self._options)
        except DalaError as error:
            raise error.within(_CALL) from error

    def __repr__(self) -> str:
        return f"<Watcher of {self.video.id!r} by {self.model.name}, {self.runs} runs>"

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    # targets ----------------------------------------------------------------------------------
    def point(self, name: str | int, which: str | int = "largest") -> WatchedPoint:
        """Return a named point as a target, such as "nose"; its size is that of the whole.

        Args:
            name: the name of a keypoint of the model, or the number of a point of a mesh or hand.
            which: whose: "largest", "surest", an id, or of hands "left" or "right".

        Example::

            scene.follow(clown_nose, face.point("nose"), scale=0.3)
        """
        return WatchedPoint(self, self._which(which), self._name(name, "name"))

    def bone(
        self, first: str | int, second: str | int, which: str | int = "largest", *, at: float = 0.5
    ) -> WatchedBone:
        """Return the connection of two named points as a target, with its angle and length.

        Args:
            first: the name of the point where it begins.
            second: the name of the point where it ends.
            which: whose: "largest", "surest", an id, or of hands "left" or "right".
            at: where on the bone the target is, from 0 at the first point to 1 at the second.

        Example::

            scene.follow(sleeve, pose.bone("left_wrist", "left_elbow"))
        """
        place = Quantity(words="a number such as 0.5").check("Watcher.bone", "at", at)
        a, b = self._name(first, "first"), self._name(second, "second")
        return WatchedBone(self, self._which(which), a, b, place)

    def box(
        self, which: str | int = "largest", *, at: str | Sequence[float] = "center"
    ) -> WatchedBox:
        """Return a bounding box as a target.

        Args:
            which: whose: "largest", "surest", an id, or of hands "left" or "right".
            at: the point of the box where the target is: fractions of its size, or a name.

        Example::

            scene.follow(frame, people.box(3), fit=True)
        """
        place = AnchorType().check("Watcher.box", "at", at)
        return WatchedBox(self, self._which(which), place)

    def boxes(self, *, at: str | Sequence[float] = "center") -> WatchedEach:
        """Return the boxes of everyone that is found, for ``scene.follow_each``.

        Example::

            scene.follow_each(people.boxes(at="top"), lambda id: scene.add_text(f"#{id}"))
        """
        return WatchedEach(self.box(at=at))

    def points(self, name: str | int) -> WatchedEach:
        """Return a named point of everyone that is found, for ``scene.follow_each``.

        Example::

            scene.follow_each(faces.points("nose"), lambda id: scene.add_image("clown.png"))
        """
        return WatchedEach(self.point(name))

    def bones(self, first: str | int, second: str | int, *, at: float = 0.5) -> WatchedEach:
        """Return a bone of everyone that is found, for ``scene.follow_each``.

        Example::

            scene.follow_each(faces.bones("right_eye", "left_eye"), add_glasses, scale=2)
        """
        return WatchedEach(self.bone(first, second, at=at))

    # results ----------------------------------------------------------------------------------
    def seen(self, shown: ShownPicture, wait: bool) -> Seen:
        """Return the findings in a picture; without ``wait``, perhaps those in an earlier one."""
        with self._lock:
            if self._closed:
                raise FreedError("watch: it is closed. Create a new one.")
            self._home.check("watch: the thread of the model", "Watch the video again here.")
            self._collect(block=False)
            if shown.version == self._version:
                return self._current
            if shown.key is not None and shown.key in self._kept:
                self._kept.move_to_end(shown.key)
                self._version, self._current = shown.version, self._kept[shown.key]
                return self._current
            own = self._watching.wait
            if wait if own is None else own:
                self._collect(block=True)
                self._take(self._run(shown.picture, shown.time), shown)
            elif self._running is None:
                picture = shown.picture
                if isinstance(picture, np.ndarray):
                    picture = picture.copy()  # its owner may write to it meanwhile
                here = copy_context()  # the device and limits of the caller
                self._running = self._pool.submit(here.run, self._run, picture, shown.time), shown
            return self._current

    def _collect(self, block: bool) -> None:
        """Take the result of the thread, if there is one."""
        if self._running is None or not (block or self._running[0].done()):
            return
        (future, shown), self._running = self._running, None
        self._take(future.result(), shown)

    def _run(self, picture: ImageLike, time: float) -> list[Element]:
        """Run the model; one that carries regions from frame to frame begins anew after a cut."""
        if self._find is None or not self._time < time <= self._time + CUT:
            self._find = self.model.follower(self.model.spec.chosen(self._options))
        self._time = time
        result = self._find(picture)
        self.runs += 1
        return elements_of(cast("Sequence[Found]", result), self._label, self._numbers)

    def _take(self, found: list[Element], shown: ShownPicture) -> None:
        self._current = self._identities.update(found, shown.time)
        self._version = shown.version
        if shown.key is not None:
            self._kept[shown.key] = self._current
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)

    def point_of(self, one: Element, name: str) -> tuple[float, float] | None:
        """Return a named point of a finding; None if its score is too low."""
        point: Keypoint | None = one.points.get(name)
        if point is None:
            raise _no_point(self.model.name, name, one.points)
        return None if point.score < self.least else (point.x, point.y)

    # scene files ------------------------------------------------------------------------------
    def saved(self) -> dict[str, JsonData]:
        """Return its form in a scene file, without the video."""
        from dala.ml.models import find_model

        known = find_model(self.model.name) is not None
        made = {"model": self.model.name if known else self.model.path, **self._watching.changed()}
        return {**made, "options": dict(self._options)} if self._options else made

    def close(self) -> None:
        """Stop, and close the model unless it was given. Nodes can no longer follow."""
        if self._closed:
            return
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)
        if self._own:
            self.model.close()

    # arguments --------------------------------------------------------------------------------
    def _name(self, name: str | int, argument: str) -> str:
        spec = self.model.spec
        count = 0
        if spec.name in ("facemesh", "hands"):
            iris = bool({**spec.options, **self._options}.get("iris"))
            mesh = IRIS_MESH_SIZE if iris else MESH_SIZE
            count = mesh if spec.name == "facemesh" else len(HAND_POINTS)
        if isinstance(name, int) and count:
            check_number("Watcher", name, count)
            if name not in self._numbers:
                self._numbers.add(name)
                self._kept.clear()  # results without it
                self._version = None
            return str(name)
        text = Text("the name of a point").check("Watcher", argument, name)
        known = point_names(spec.name, spec.task)
        if known is not None and text not in known:
            raise _no_point(self.model.name, text, known)
        return text

    def _which(self, which: str | int) -> str | int:
        hands = ("left", "right") if self.model.spec.task == "hands" else ()
        if isinstance(which, str) and which in ("largest", "surest", *hands):
            return which
        Integer(1, words="'largest', 'surest' or an id of at least 1").check(
            "Watcher", "which", which
        )
        return which


def described_on(video: VideoNode, target: Target) -> WatchedTarget:
    """Return a described point, bone or box as a target in a video."""
    subject = target.subject
    which = subject.id or subject.side or "largest"
    options: dict[str, float] = target.options
    seen = watch(video, target.model, label=subject.label or None, **options)
    if isinstance(target, PointTarget):
        return seen.point(target.name, which)
    if isinstance(target, BoneTarget):
        return seen.bone(target.start, target.end, which)
    return seen.box(which)


def target_of(video: VideoNode, item: Mapping[str, Any]) -> WatchedTarget:
    """Return the target that an entry of a scene file describes, on a video node of the scene."""
    given = dict(item)
    model = given.pop("model")
    if model.replace("-", "_").isidentifier() and model not in available_models():
        raise UnknownModel.invalid("watch", "model", "the name of a model or of a file", model)
    which = given.pop("which", "largest")
    which = int(which) if isinstance(which, float) else which
    place = given.pop("at", None)
    point, bone = given.pop("point", None), given.pop("bone", None)
    given.pop("box", None)
    options = given.pop("options", {})
    seen = watch(video, model, **given, **options)
    if point is not None:
        if place is not None:
            raise ParameterError("watch: at is for bones and boxes, not for points.")
        return seen.point(point, which)
    if bone is not None:
        first, second = bone
        return seen.bone(first, second, which, at=0.5 if place is None else place)
    return seen.box(which, at="center" if place is None else place)


def _no_point(model: str, name: str, known: Mapping[str, Keypoint] | Sequence[str]) -> DalaError:
    listed = f"It finds {', '.join(known)}." if known else "It finds boxes only."
    advice = did_you_mean(name, known) or listed
    return ParameterError(f"watch: {model!r} finds no point {name!r}. {advice}")
