"""A loaded model: pictures or tensors in, typed results out."""

from __future__ import annotations

import asyncio
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypedDict, cast, overload

import numpy as np

from dala import memory
from dala.errors import DtypeError, ModelError, ShapeError
from dala.forks import cached_property
from dala.gpu.compute import Buffer
from dala.gpu.compute.params import CheckedParams, PixelSize, rows_first
from dala.media.frame import Frame
from dala.ml.labels import Labels, check_labels, read_labels
from dala.ml.prepare import Placement, as_input, kernel, on_device, prepared
from dala.ml.runtime.session import Port, Session
from dala.ml.spec import ModelSpec, RawResult
from dala.resources import Closing
from dala.typing import ImageLike, NDArray, ParamValue

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from dala.ml.results import Prediction
    from dala.ml.stream import StreamResult

    #: The type of a model's results.
    R = TypeVar("R", default=Prediction)
else:
    from typing import TypeVar

    R = TypeVar("R")
#: A tensor for a model.
Tensor: TypeAlias = NDArray | Buffer

#: Pictures of a list that run as one batch.
_BATCH: Final = 16

#: A model's input tensor, and the placement of the picture in it.
PreparedInput: TypeAlias = tuple[Tensor, Placement]
#: What a model takes: a picture, or a tensor with the model's axes.
ModelInput: TypeAlias = ImageLike
#: The same from any library, recognized by its attributes, such as ``__dlpack__``.
ForeignInput: TypeAlias = Any


class ModelInfo(TypedDict):
    """Facts about a model; see :attr:`Model.info`."""

    name: str
    task: str
    title: str
    inputs: list[str]
    outputs: list[str]
    labels: tuple[str, ...]
    license: str
    #: The old spelling, for one more version.
    licence: str
    provider: str
    #: What happened with each provider that was tried.
    providers: dict[str, str]
    #: Why the provider was taken.
    reason: str
    #: Whether runs are captured on the GPU ("yes", or "no" and why); "" on other providers.
    capture: str
    path: str
    #: Bytes of the file.
    size: int
    preprocess: dict[str, ParamValue]


class Model(Closing, Generic[R]):
    """A loaded model, made by ``load_model``. Any thread may use it.

    Attributes:
        name: its name.
        spec: its declaration: input preparation, outputs, license.
        labels: the names of its classes.

    Example::

        with load_model("yolo_v5") as model:
            for found in model.predict(photo, score=0.4):
                print(found.label, found.box)
    """

    _instead = "Pass its path, and use load_model(path) there."

    def __init__(
        self,
        session: Session,
        spec: ModelSpec,
        name: str,
        path: str,
        size: tuple[int, int] | None = None,
        labels: Sequence[str] | None = None,
        layout: str | None = None,
    ) -> None:
        self._session = session
        self.spec = spec
        self.name = name
        self.path = path
        known = read_labels(spec.labels) if spec.labels else _own_labels(session.metadata)
        self.labels: tuple[str, ...] = Labels(known if labels is None else labels)
        #: Whether the caller named the classes, so that their number must be right.
        self._labeled = labels is not None
        if labels is not None and session.outputs:
            check_labels("load_model", spec.task, session.outputs[0].shape, self.labels)
        self._port = session.inputs[0] if len(session.inputs) == 1 else None
        self._layout, self._size, self._channels = _laid_out(self._port, layout, size)
        height, width = self._size or (1, 1)
        #: The placement for inputs that are tensors.
        self._whole = Placement((width, height), (1.0, 1.0), (0, 0), (width, height))
        self._steps = {port.name: self._in_step(port) for port in session.outputs}

    def __repr__(self) -> str:
        return f"<Model {self.name} ({self.spec.task}) on {self.provider}>"

    @property
    def recipe(self) -> ModelSpec:
        """The old name of :attr:`spec`."""
        warnings.warn(
            "Model.recipe is deprecated, use Model.spec.", DeprecationWarning, stacklevel=2
        )
        return self.spec

    # facts --------------------------------------------------------------------------------------
    @property
    def provider(self) -> str:
        """The provider that runs it: "cuda", "coreml", "directml", "webgpu" or "cpu"."""
        return self._session.provider

    @property
    def info(self) -> ModelInfo:
        """Facts: inputs, outputs, labels, license, provider, path, file size."""
        return {
            "name": self.name,
            "task": self.spec.task,
            "title": self.spec.title,
            "inputs": [str(port) for port in self._session.inputs],
            "outputs": [str(port) for port in self._session.outputs],
            "labels": self.labels,
            "license": self.spec.license,
            "licence": self.spec.license,
            "provider": self.provider,
            "providers": dict(self._session.choice.tried),
            "reason": self._session.choice.reason,
            "capture": self._session.capture,
            "path": self.path,
            "size": os.path.getsize(self.path) if os.path.exists(self.path) else 0,
            "preprocess": self.preprocess,
        }

    @property
    def preprocess(self) -> dict[str, ParamValue]:
        """Parameters of ``dala.ml.preprocess`` for its input; {} if it does not take pictures."""
        if self._size is None:
            return {}
        return {**self.spec.prepare, "size": PixelSize(*self._size[::-1]), "layout": self._layout}

    @cached_property
    def _params(self) -> CheckedParams:
        return kernel().settle(self.preprocess)

    @property
    def ports(self) -> tuple[Port, ...]:
        """The inputs: name, shape and dtype of each."""
        return self._session.inputs

    @property
    def output_ports(self) -> tuple[Port, ...]:
        """The outputs: name, shape and dtype of each."""
        return self._session.outputs

    @property
    def options(self) -> dict[str, float]:
        """The options of ``predict`` and their defaults."""
        return dict(self.spec.options)

    # running ------------------------------------------------------------------------------------
    @overload
    def predict(self, input: Sequence[ModelInput], **options: float) -> list[R]: ...
    @overload
    def predict(self, input: ModelInput, **options: float) -> R: ...
    def predict(self, input: ModelInput | Sequence[ModelInput], **options: float) -> R | list[R]:
        """Run the model on a picture, a tensor, or a list of them.

        Args:
            input: a picture (array of u8 or f32, Frame, Pillow image), which is preprocessed as
                the model needs it; a tensor (a Buffer or array with the model's axes); or a list
                of either, which returns a list.
            **options: for example ``score``, the minimum score; see ``model.options``.

        Raises:
            ShapeMismatch: the shape of a tensor does not match.
            ModelError: the input contains NaN, or ONNX Runtime failed.
        """
        return self.found(input, self.spec.chosen(options))

    def found(
        self, input: ModelInput | Sequence[ModelInput], options: Mapping[str, float]
    ) -> R | list[R]:
        """Return the result of :meth:`predict`, for options that are checked and complete."""
        if isinstance(input, list | tuple):
            return self._many(list(input), options)
        return self._one(cast(ModelInput, input), options)

    def _one(self, input: ModelInput, options: Mapping[str, float]) -> R | list[R]:
        """Run a picture or a tensor; a tensor of several pictures returns a list."""
        tensor, placement = self._prepared(input)
        if tensor.shape[0] != 1:
            return self._together([(tensor, placement)], options)
        return self._decoded(self._run(tensor), [placement], options)[0]

    @overload
    async def predict_async(self, input: Sequence[ModelInput], **options: float) -> list[R]: ...
    @overload
    async def predict_async(self, input: ModelInput, **options: float) -> R: ...
    async def predict_async(
        self, input: ModelInput | Sequence[ModelInput], **options: float
    ) -> R | list[R]:
        """Run the model as :meth:`predict` does, without blocking the event loop."""
        return await asyncio.to_thread(lambda: self.found(input, self.spec.chosen(options)))

    def run(self, inputs: Mapping[str, Tensor] | Tensor) -> dict[str, NDArray]:
        """Return the model's outputs by name, for inputs by name (or a single input)."""
        if not isinstance(inputs, Mapping):
            inputs = {self._session.inputs[0].name: inputs}
        return self._session.run({name: self._ready(value) for name, value in inputs.items()})

    def _ready(self, value: Tensor) -> Tensor:
        """Return a buffer that the session takes as it is, or an array."""
        if isinstance(value, Buffer) and value.device == self._session.device:
            return value
        return _contiguous(_array(value))

    def warmup(self) -> Model[R]:
        """Run once on zeros. With provider "auto", measure all providers and keep the fastest."""
        ports = self._session.inputs
        zeros = {p.name: np.zeros([n or 1 for n in p.shape], p.dtype) for p in ports}
        if self._size is not None and self._port is not None:
            size, channels = self._size, (self._channels,)
            shape = (1, *channels, *size) if self._layout == "nchw" else (1, *size, *channels)
            zeros[self._port.name] = np.zeros(shape, self._port.dtype)
        self._session.measure(zeros)
        return self

    def stream(
        self, frames: Iterable[ImageLike], policy: str = "latest", **options: float
    ) -> Iterator[StreamResult[R]]:
        """Yield results for the frames of a video, a camera or a generator.

        Args:
            frames: Frames or pictures.
            policy: "latest" drops frames that arrive while the model is busy; "every" makes the
                source wait.
            **options: as for ``predict``.

        Yields:
            ``StreamResult(frame, result, time)``, where ``time`` is the frame's time.
        """
        from dala.ml.stream import stream

        return stream(self, frames, policy, self.spec.chosen(options))

    def follower(self, options: Mapping[str, float]) -> Callable[[ImageLike], R]:
        """Return the function from each frame of a video, in order, to its result."""
        return lambda frame: cast(R, self.found(frame, options))

    def close(self) -> None:
        """Release the model's memory. Closing twice is allowed."""
        self._session.close()

    # internals ----------------------------------------------------------------------------------
    def _many(self, given: list[ModelInput], options: Mapping[str, float]) -> list[R]:
        """Run a list of pictures in batches of bounded size."""
        found: list[R] = []
        for start in range(0, len(given), _BATCH):
            ready = [self._prepared(item) for item in given[start : start + _BATCH]]
            found += self._together(ready, options)
        return found

    def _together(self, ready: list[PreparedInput], options: Mapping[str, float]) -> list[R]:
        """Run tensors as one batch if the model supports it, else one by one."""
        tensors = [_array(tensor) for tensor, _ in ready]
        places = [place for tensor, place in ready for _ in range(len(tensor))]
        rows = [row[None] for tensor in tensors for row in tensor]
        if len({row.shape for row in rows}) == 1 and self._takes_batches(rows[0].shape):
            return self._decoded(self._run(np.concatenate(tensors)), places, options)
        return [
            result
            for row, place in zip(rows, places, strict=True)
            for result in self._decoded(self._run(row), [place], options)
        ]

    def _takes_batches(self, shape: tuple[int, ...]) -> bool:
        """Return whether inputs of this shape can run as a batch."""
        port = self._port
        if port is None or not port.takes(
            shape
        ):  # refused later, with the whole shape in the message
            return True
        return port.shape[:1] == (None,) and all(self._steps.values())

    def _in_step(self, output: Port) -> bool:
        """Return whether an output has one entry per picture, unlike a list of detections."""
        first, port = output.shape[:1], self._port
        if port is None or first != (None,):
            return bool(first)
        named = output.batch != "" and (port.batch != "" or port.shape[:1] != (None,))
        return not named or output.batch == port.batch

    def _prepared(self, input: ModelInput) -> PreparedInput:
        """Return the input tensor, and the placement of the picture in it."""
        port, size = self._port, self._size
        tensor = None if port is None else self._as_tensor(input, port)
        if port is None or (size is None and tensor is None):
            name = ", ".join(map(str, self._session.inputs))
            raise ModelError(
                f"predict: {self.name} takes {name}, not a single picture. Pass arrays by name: "
                "model.run({name: array, ...})."
            )
        if tensor is not None:
            if tensor.dtype.kind == "f" and not _finite(tensor):
                raise ModelError(
                    f"predict: the tensor for {self.name} contains NaN or infinity. Replace them: "
                    "np.nan_to_num(x)."
                )
            return tensor, self._whole
        if isinstance(input, bytes | bytearray | memoryview):
            raise DtypeError(
                "predict: the size of a picture in bytes is unknown. Use an array: "
                "np.frombuffer(data, np.uint8).reshape(height, width, 3)."
            )
        assert size is not None  # otherwise the input is a tensor
        params = self._params
        made = prepared(on_device(input, None, "predict"), params, None, "predict")
        placement = Placement.of(*_picture_size(input), size, params["fit"], params["keep"])
        same = self._channels == 3 and port.dtype == np.float32 and _of_bytes(input)
        if same and made.device == self._session.device:
            return made, placement  # it stays on the GPU
        array = made.numpy()
        if not _of_bytes(input) and not _finite(array):
            raise ModelError(f"predict: the picture for {self.name} contains NaN or infinity.")
        return as_input(array, self._channels, self._layout, port.dtype), placement

    def _as_tensor(self, input: ForeignInput, port: Port) -> NDArray | None:
        """Return an input that is a tensor, with a batch axis; None for pictures."""
        if not isinstance(input, np.ndarray | Buffer) and not hasattr(input, "__dlpack__"):
            return None
        shape = tuple(input.shape)
        if self._size is None:
            return _contiguous(_array(input))
        if len(shape) == 3 and self._layout == "nchw" and port.takes((1, *shape)):
            if shape[2] not in (3, 4):  # otherwise it is more likely a picture
                return _contiguous(_array(input)[None])
            return None
        return None if len(shape) < 4 else _contiguous(_array(input))

    def _run(self, tensor: Tensor) -> dict[str, NDArray]:
        assert self._port is not None
        return self._session.run({self._port.name: tensor})

    def _decoded(
        self,
        outputs: Mapping[str, NDArray],
        placements: Sequence[Placement],
        options: Mapping[str, float],
    ) -> list[R]:
        steps, count = self._steps, len(placements)
        if self._labeled:
            shape = next(iter(outputs.values())).shape
            check_labels("predict", self.spec.task, shape, self.labels)
        made = []
        for k, placement in enumerate(placements):
            own = {
                name: array[k] if steps[name] and len(array) == count else array
                for name, array in outputs.items()
            }
            made.append(self.spec.decode(RawResult(own, placement, self.labels, options)))
        return made


def _laid_out(
    port: Port | None, layout: str | None, size: tuple[int, int] | None
) -> tuple[str, tuple[int, int] | None, int]:
    """Return the layout, (height, width) and channels of a model's input.

    ``size`` is (width, height). The height and width are None if the input is not a picture.
    """
    if port is None or len(port.shape) != 4:
        return "nchw", None, 3
    if layout is None:
        layout = "nhwc" if port.shape[3] in (1, 3) and port.shape[1] not in (1, 3) else "nchw"
    channels = port.shape[1 if layout == "nchw" else 3] or 3
    if channels not in (1, 3):
        return layout, None, 3
    axes = (2, 3) if layout == "nchw" else (1, 2)
    declared = tuple(port.shape[a] for a in axes)
    if size is None:
        found = (declared[0], declared[1]) if None not in declared else (224, 224)
        return layout, found, channels  # type: ignore[return-value]
    if any(n is not None and n != m for n, m in zip(declared, rows_first(size), strict=True)):
        raise ShapeError(
            f"load_model: size must match the model's input {port}, got a width and height of "
            f"{size}. Leave it out."
        )
    return layout, rows_first(size), channels


def _own_labels(metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Return the labels in a file's metadata, such as {0: 'person', ...}."""
    import ast

    text = metadata.get("names", "")
    try:
        found = ast.literal_eval(text) if text and len(text) < 1 << 20 else ()
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    if isinstance(found, dict):
        found = [found.get(k, str(k)) for k in range(len(found))]
    return tuple(map(str, found)) if isinstance(found, list | tuple) else ()


def _picture_size(input: ForeignInput) -> tuple[int, int]:
    if isinstance(input, Frame):
        return input.height, input.width
    if hasattr(input, "shape"):
        return int(input.shape[0]), int(input.shape[1])
    return int(input.size[1]), int(input.size[0])  # Pillow


def _of_bytes(input: ModelInput) -> bool:
    """Return whether a picture is surely of u8, whose values are all finite."""
    pixels = input.pixels if isinstance(input, Frame) else input
    if isinstance(pixels, Buffer):
        return pixels.dtype == "u8"
    return isinstance(pixels, np.ndarray) and pixels.dtype == np.uint8


def _array(value: ModelInput) -> NDArray:
    try:
        return value.numpy() if isinstance(value, Buffer) else np.asarray(value)
    except (TypeError, ValueError) as error:
        raise DtypeError(
            f"predict: {type(value).__name__} cannot be converted to an array ({error})."
        ) from None


def _contiguous(array: NDArray) -> NDArray:
    if not array.flags.c_contiguous:
        memory.check_copy(array.nbytes, "predict")
    return np.ascontiguousarray(array)


def _finite(array: NDArray) -> bool:
    """Return whether an array contains neither NaN nor infinity, without a temporary array."""
    if not array.size:
        return True
    return math.isfinite(array.max()) and math.isfinite(array.min())
