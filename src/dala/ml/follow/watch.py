"""A model that watches a video node of a scene."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from typing import TYPE_CHECKING, Final, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from dala import forks
from dala.errors import DalaError, FreedError, ModelError, ParameterError, did_you_mean
from dala.media.scene.follow.target import ShownPicture
from dala.media.scene.nodes.property_types import AnchorType
from dala.media.scene.nodes.video import VideoNode
from dala.ml.follow.elements import CUT, Element, Found, Identities, Seen, elements_of
from dala.ml.follow.targets import (
    WatchedBone,
    WatchedBox,
    WatchedEach,
    WatchedPoint,
    WatchedTarget,
)
from dala.ml.gpu import load_model
from dala.ml.landmarks.targets import BoneTarget, PointTarget
from dala.ml.model import Model
from dala.ml.results.names import (
    BODY_POINTS,
    FACE_POINTS,
    HAND_POINTS,
    IRIS_MESH_SIZE,
    IRIS_POINTS,
    MESH_POINTS,
    MESH_SIZE,
    POSE_POINTS,
)
from dala.ml.results.people import check_number
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


def watch(
    video: VideoNode,
    model: PathLike | Model[Prediction],
    *,
    label: str | None = None,
    smooth: bool | float = True,
    least: float = 0.3,
    wait: bool | None = None,
    provider: str = "auto",
    **options: float,
) -> Watcher:
    """Watcher a video node of a scene with a model, so that other nodes can follow what it finds.

    The model runs once on each frame that the video shows, whatever the number of nodes that
    follow. Results are kept by frame, so a frame that is shown again costs nothing and gives the
    same result. The same arguments give the same watch.

    Args:
        video: a node of ``scene.add_video``.
        model: the name of a model of faces, poses or things (``blazeface``, ``movenet``,
            ``nanodet``, ..), the path of an ONNX file, or a loaded model, which stays yours.
        label: the class to find, such as "person"; by default all.
        smooth: whether places are smoothed over time with a One-Euro filter, or its cutoff at
            rest, in Hz; lower is steadier.
        least: the least score of a point. One below it counts as not found.
        wait: True to wait for the model in ``scene.play`` too; by default ``play`` shows the last
            result there is, and everything else waits for that of the frame.
        provider: of ``load_model``.
        **options: of ``model.predict``, such as ``score``.

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
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
        raise ParameterError.invalid(_CALL, "least", "a number from 0 to 1", least)
    if label is not None and not isinstance(label, str):
        raise ParameterError.invalid(_CALL, "label", "the name of a class", label)
    if wait is not None and not isinstance(wait, bool):
        raise ParameterError.invalid(_CALL, "wait", "True, False or None", wait)
    cutoff = _cutoff(smooth)
    named = isinstance(model, Model) or not hasattr(model, "__fspath__")
    name = cast(Hashable, model if named else str(model))
    key = (name, label, cutoff, least, wait, provider, tuple(sorted(options.items())))
    known = _watches.setdefault(video, WeakValueDictionary())
    found = known.get(key)
    if found is None or found.closed:
        found = known[key] = Watcher(video, model, label, cutoff, least, wait, provider, options)
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
        label: str | None,
        cutoff: float | None,
        least: float,
        wait: bool | None,
        provider: str,
        options: Mapping[str, float],
    ) -> None:
        self._closed = True
        self.video = video
        self.least = least
        self.runs = 0
        self._given = model
        self._own = not isinstance(model, Model)
        self._provider = provider
        self._wait = wait
        self._cutoff = cutoff
        self._label = label
        self._options = dict(options)
        loaded = model if isinstance(model, Model) else load_model(model, provider)
        self.model: Model[Prediction] = loaded
        try:
            self._check()
        except BaseException:
            if self._own:
                loaded.close()
            raise
        self._numbers: set[int] = set()
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
                f"{model.spec.task!r}. Use 'blazeface', 'movenet' or 'nanodet'.",
                call=_CALL,
                argument="model",
            )
        if self._label is not None and model.labels and self._label not in model.labels:
            hint = did_you_mean(self._label, model.labels)
            raise ParameterError(
                f"watch: {model.name!r} has no class {self._label!r}. {hint}".rstrip(),
                call=_CALL,
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
        self,
        first: str | int,
        second: str | int,
        which: str | int = "largest",
        *,
        at: float = 0.5,
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
        if isinstance(at, bool) or not isinstance(at, int | float) or not math.isfinite(at):
            raise ParameterError.invalid("Watcher.bone", "at", "a number such as 0.5", at)
        a, b = self._name(first, "first"), self._name(second, "second")
        return WatchedBone(self, self._which(which), a, b, float(at))

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
        place = AnchorType().convert(at, "Watcher.box", "at")
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
        """Return what is in a picture. Without ``wait`` it may be what was in an earlier one."""
        with self._lock:
            if self._closed:
                raise FreedError("watch: it is closed. Create a new one.", call=_CALL)
            self._home.check("watch: the thread of the model", "Watcher the video again here.")
            self._collect(block=False)
            if shown.version == self._version:
                return self._current
            if shown.key is not None and shown.key in self._kept:
                self._kept.move_to_end(shown.key)
                self._version, self._current = shown.version, self._kept[shown.key]
                return self._current
            if wait if self._wait is None else self._wait:
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
        """Return a named point of what was found; None if its score is too low."""
        point: Keypoint | None = one.points.get(name)
        if point is None:
            raise _no_point(self.model.name, name, one.points)
        return None if point.score < self.least else (point.x, point.y)

    # scene files ------------------------------------------------------------------------------
    def saved(self) -> dict[str, JsonData]:
        """Return what a scene file says about it, without the video."""
        made: dict[str, JsonData] = {
            "model": self.model.path if self._is_file() else self.model.name
        }
        if self._label is not None:
            made["label"] = self._label
        if self._cutoff != _CUTOFF:
            made["smooth"] = False if self._cutoff is None else self._cutoff
        if self.least != 0.3:
            made["least"] = self.least
        if self._wait is not None:
            made["wait"] = self._wait
        if self._provider != "auto":
            made["provider"] = self._provider
        if self._options:
            made["options"] = dict(self._options)
        return made

    def _is_file(self) -> bool:
        from dala.ml.models import find_model

        return find_model(self.model.name) is None

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
        if not isinstance(name, str):
            raise ParameterError.invalid("Watcher", argument, "the name of a point", name)
        known = point_names(spec.name, spec.task)
        if known is not None and name not in known:
            raise _no_point(self.model.name, name, known)
        return name

    def _which(self, which: str | int) -> str | int:
        hands = ("left", "right") if self.model.spec.task == "hands" else ()
        if isinstance(which, str) and which in ("largest", "surest", *hands):
            return which
        if isinstance(which, bool) or not isinstance(which, int) or which < 1:
            raise ParameterError.invalid(
                "Watcher", "which", "'largest', 'surest' or an id of at least 1", which
            )
        return which


def point_names(model: str, task: str) -> Sequence[str] | None:
    """Return the names of the points that a model finds; None if they are not known.

    >>> "nose" in point_names("blazeface", "faces"), point_names("nanodet", "detect")
    (True, ())
    """
    by_model = {"facemesh": (*MESH_POINTS, *IRIS_POINTS), "blazepose": POSE_POINTS}
    by_task = {"faces": FACE_POINTS, "poses": BODY_POINTS, "hands": HAND_POINTS, "detect": ()}
    return by_model.get(model, by_task.get(task))


def described_on(video: VideoNode, target: Target) -> WatchedTarget:
    """Return a described point, bone or box as what nodes follow in a video."""
    subject = target.subject
    which = subject.id or subject.side or "largest"
    options: dict[str, float] = target.options
    seen = watch(video, target.model, label=subject.label or None, **options)  # type: ignore[arg-type]
    if isinstance(target, PointTarget):
        return seen.point(target.name, which)
    if isinstance(target, BoneTarget):
        return seen.bone(target.start, target.end, which)
    return seen.box(which)


def _no_point(model: str, name: str, known: Mapping[str, Keypoint] | Sequence[str]) -> DalaError:
    listed = f"It finds {', '.join(known)}." if known else "It finds boxes only."
    advice = did_you_mean(name, known) or listed
    return ParameterError(f"watch: {model!r} finds no point {name!r}. {advice}", call=_CALL)


def _cutoff(smooth: bool | float) -> float | None:
    if isinstance(smooth, bool):
        return _CUTOFF if smooth else None
    if not isinstance(smooth, int | float) or not 0 < smooth < math.inf:
        raise ParameterError.invalid(_CALL, "smooth", "a bool, or a cutoff above 0 Hz", smooth)
    return float(smooth)
