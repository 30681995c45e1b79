"""Models: loaded from a file, given pictures or tensors, giving typed results."""

from __future__ import annotations

import asyncio
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from dala.errors import (
    DtypeError,
    ModelError,
    ParameterError,
    ShapeError,
    UnknownParameter,
    did_you_mean,
)
from dala.gpu.compute import Buffer
from dala.media.frame import Frame
from dala.ml.labels import read_labels
from dala.ml.prepare import Placement, kernel, prepared
from dala.ml.session import Port, Session
from dala.ml.spec import ModelSpec
from dala.resources import Closing

#: Pictures of a list that go through the model together.
_AT_ONCE: Final = 16
#: What red, green and blue are of gray, for models that take that.
_LUMA: Final = np.array([0.299, 0.587, 0.114], np.float32)


class Model(Closing):
    """A model that is ready to run. ``load_model`` makes one; any thread may use it.

    Attributes:
        name: what it is called.
        spec: its declaration: input preparation, outputs, license.
        labels: names of its classes.
    """

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
        self.labels: tuple[str, ...] = known if labels is None else tuple(labels)
        self._port = session.inputs[0] if len(session.inputs) == 1 else None
        self._layout, self._size, self._channels = _laid_out(self._port, layout, size)
        height, width = self._size or (1, 1)
        #: Where the picture lies in a tensor that was given as such.
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
        """What runs it: "cuda", "coreml", "directml", "webgpu" or "cpu"."""
        return self._session.provider

    @property
    def info(self) -> dict[str, Any]:
        """Inputs, outputs, labels, licence, provider and what became of others, path, bytes."""
        return {
            "name": self.name,
            "task": self.spec.task,
            "title": self.spec.title,
            "inputs": [str(port) for port in self._session.inputs],
            "outputs": [str(port) for port in self._session.outputs],
            "labels": self.labels,
            "license": self.spec.license,
            "licence": self.spec.license,  # the old spelling, for one more version
            "provider": self.provider,
            "providers": dict(self._session.choice.tried),
            "path": self.path,
            "size": os.path.getsize(self.path) if os.path.exists(self.path) else 0,
            "preprocess": self.preprocess,
        }

    @property
    def preprocess(self) -> dict[str, Any]:
        """Parameters of ``dala.ml.preprocess`` that make its input; {} if it takes no pictures."""
        if self._size is None:
            return {}
        return {**self.spec.prepare, "size": self._size, "layout": self._layout}

    @cached_property
    def _settled(self) -> Mapping[str, Any]:
        return kernel().settle(self.preprocess)

    @property
    def ports(self) -> tuple[Port, ...]:
        """Its inputs: name, shape and dtype of each."""
        return self._session.inputs

    @property
    def output_ports(self) -> tuple[Port, ...]:
        """Its outputs: name, shape and dtype of each."""
        return self._session.outputs

    @property
    def options(self) -> dict[str, Any]:
        """Options of ``predict`` and their defaults."""
        return dict(self.spec.options)

    # running ------------------------------------------------------------------------------------
    def predict(self, input: Any, **options: Any) -> Any:
        """What the model finds in a picture, a tensor made by ``preprocess``, or a list of them.

        Args:
            input: a picture (array of u8 or f32, Frame, Pillow image), which is prepared the
                model's way; a tensor (a Buffer or array with the model's own axes); or a list of
                either, for which a list of results comes back.
            **options: such as ``score``, the least score; see ``model.options``.

        Raises:
            ShapeMismatch: a tensor does not fit; both shapes are named.
            ModelError: it holds NaN, or ONNX Runtime failed; its words are in the message.
        """
        chosen = self._chosen(options)
        if isinstance(input, list | tuple):
            return self._many(list(input), chosen)
        tensor, placement = self._prepared(input)
        if len(tensor) != 1:
            return self._together([(tensor, placement)], chosen)
        return self._decoded(self._run(tensor), [placement], chosen)[0]

    async def predict_async(self, input: Any, **options: Any) -> Any:
        """As :meth:`predict`; the event loop goes on meanwhile."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, partial(self.predict, input, **options))

    def run(self, inputs: Mapping[str, Any] | Any) -> dict[str, np.ndarray[Any, Any]]:
        """The model's own outputs by name, for arrays by name (or one array)."""
        if not isinstance(inputs, Mapping):
            inputs = {self._session.inputs[0].name: inputs}
        arrays = {name: np.ascontiguousarray(_array(value)) for name, value in inputs.items()}
        return self._session.run(arrays)

    def warmup(self) -> Model:
        """Runs once on nothing; with provider "auto" and several that work, keeps the quickest."""
        ports = self._session.inputs
        zeros = {p.name: np.zeros([n or 1 for n in p.shape], p.dtype) for p in ports}
        if self._size is not None and self._port is not None:
            zeros[self._port.name] = np.zeros(self._shape(1), self._port.dtype)
        self._session.measure(zeros)
        return self

    def stream(
        self, frames: Iterable[Any], policy: str = "latest", **options: Any
    ) -> Iterator[Any]:
        """Results for frames as they come, each with the frame it is of.

        Args:
            frames: Frames or pictures: a video, a camera, a generator.
            policy: "latest" leaves out frames that came while the model was busy; "every" makes
                the source wait.
            **options: as for ``predict``.

        Yields:
            ``Seen(frame, result, time)``; ``time`` is the frame's own.
        """
        from dala.ml.stream import stream

        return stream(self, frames, policy, self._chosen(options))

    def close(self) -> None:
        """Lets go of the runtime's memory. Closing twice is fine."""
        self._session.close()

    # inside -------------------------------------------------------------------------------------
    def _many(self, given: list[Any], options: Mapping[str, Any]) -> list[Any]:
        """A list of pictures, so many at once that memory does not grow with the list."""
        found: list[Any] = []
        for start in range(0, len(given), _AT_ONCE):
            ready = [self._prepared(item) for item in given[start : start + _AT_ONCE]]
            found += self._together(ready, options)
        return found

    def _together(
        self, ready: list[tuple[np.ndarray[Any, Any], Placement]], options: Mapping[str, Any]
    ) -> list[Any]:
        """Tensors in one run where the model takes batches, else one by one."""
        tensors = [tensor for tensor, _ in ready]
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
        """Whether rows of this shape go in together; False where they must come one by one."""
        port = self._port
        if port is None or not port.takes(shape):  # refused either way: with the whole shape
            return True
        return port.shape[:1] == (None,) and all(self._steps.values())

    def _in_step(self, output: Port) -> bool:
        """Whether an output has an entry for each picture; False for lists of what was found."""
        first, port = output.shape[:1], self._port
        if port is None or first != (None,):
            return bool(first)
        named = output.batch != "" and (port.batch != "" or port.shape[:1] != (None,))
        return not named or output.batch == port.batch

    def _prepared(self, input: Any) -> tuple[np.ndarray[Any, Any], Placement]:
        """A tensor for the model, and where the picture lies in it."""
        port, size = self._port, self._size
        tensor = None if port is None else self._as_tensor(input, port)
        if port is None or (size is None and tensor is None):
            name = ", ".join(map(str, self._session.inputs))
            raise ModelError(
                f"predict: {self.name} takes {name}, which is no single picture. Give arrays by "
                "name: model.run({name: array, ...})."
            )
        if tensor is not None:
            if tensor.dtype.kind == "f" and not _finite(tensor):
                raise ModelError(
                    f"predict: the tensor for {self.name} holds NaN or infinity. Clean it first, "
                    "such as np.nan_to_num(x)."
                )
            return tensor, self._whole
        if isinstance(input, bytes | bytearray | memoryview):
            raise DtypeError(
                "predict: bytes do not tell their size. Make them a picture: "
                "np.frombuffer(data, np.uint8).reshape(height, width, 3)."
            )
        assert size is not None  # or it would have been a tensor
        params = self._settled
        made = prepared(input, params, None, None, "predict")
        placement = Placement.of(*_picture_size(input), size, params["fit"], params["keep"])
        array = made.numpy()
        if self._channels == 1:
            axis = 1 if self._layout == "nchw" else 3
            array = np.expand_dims(np.tensordot(array, _LUMA, (axis, 0)), axis)
        if not _of_bytes(input) and not _finite(array):
            raise ModelError(f"predict: the picture for {self.name} holds NaN or infinity.")
        if np.dtype(port.dtype).kind in "ui":
            limits = np.iinfo(port.dtype)
            array = np.rint(np.clip(array, limits.min, limits.max))
        return array.astype(port.dtype, copy=False), placement

    def _as_tensor(self, input: Any, port: Port) -> np.ndarray[Any, Any] | None:
        """What is a tensor already, with a batch axis; None for pictures."""
        if not isinstance(input, np.ndarray | Buffer) and not hasattr(input, "__dlpack__"):
            return None
        shape = tuple(input.shape)
        if self._size is None:
            return np.ascontiguousarray(_array(input))
        if len(shape) == 3 and self._layout == "nchw" and port.takes((1, *shape)):
            if shape[2] not in (3, 4):  # otherwise a picture, which it far more likely is
                return np.ascontiguousarray(_array(input)[None])
            return None
        if len(shape) < 4:
            return None
        return np.ascontiguousarray(_array(input))

    def _run(self, tensor: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
        assert self._port is not None
        return self._session.run({self._port.name: tensor})

    def _decoded(
        self,
        outputs: Mapping[str, np.ndarray[Any, Any]],
        placements: Sequence[Placement],
        options: Mapping[str, Any],
    ) -> list[Any]:
        steps, count = self._steps, len(placements)
        return [
            self.spec.decode(
                {
                    name: array[k] if steps[name] and len(array) == count else array
                    for name, array in outputs.items()
                },
                placement,
                self.labels,
                options,
            )
            for k, placement in enumerate(placements)
        ]

    def _chosen(self, options: Mapping[str, Any]) -> dict[str, Any]:
        known = self.spec.options
        for name in options:
            if name not in known:
                hint = did_you_mean(name, list(known))
                listed = ", ".join(known) or "none"
                raise UnknownParameter(
                    f"predict: {self.name} has no option {name!r}; it has {listed}. {hint}".rstrip()
                )
        for name, value in options.items():
            _check_option(name, value, known[name])
        return {**known, **options}

    def _shape(self, batch: int) -> tuple[int, ...]:
        assert self._size is not None
        height, width = self._size
        nchw = self._layout == "nchw"
        channels = self._channels
        return (batch, channels, height, width) if nchw else (batch, height, width, channels)


def _check_option(name: str, value: Any, default: Any) -> None:
    """Refuses values of other kinds than the default: counts, shares of 0..1, pixels."""
    if isinstance(default, int):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ParameterError(f"predict: {name} is a whole number from 1 on; {value!r} came.")
        return
    high = 1.0 if default <= 1 else float("inf")
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0 <= value <= high:
        told = "0 to 1" if high == 1 else "0 or more"
        raise ParameterError(f"predict: {name} is a number, {told}; {value!r} came.")


def _laid_out(
    port: Port | None, layout: str | None, size: tuple[int, int] | None
) -> tuple[str, tuple[int, int] | None, int]:
    """Layout, (height, width) and channels of a model's input, as its shape or a user tells.

    The size is None where the input is no picture.
    """
    if layout not in (None, "nchw", "nhwc"):
        raise ParameterError(f"load_model: layout is 'nchw' or 'nhwc'; {layout!r} came.")
    size = None if size is None else _pair(size)
    if port is None or len(port.shape) != 4:
        return "nchw", None, 3
    if layout is None:
        layout = "nhwc" if port.shape[3] in (1, 3) and port.shape[1] not in (1, 3) else "nchw"
    channels = port.shape[1 if layout == "nchw" else 3] or 3
    if channels not in (1, 3):
        return layout, None, 3
    axes = (2, 3) if layout == "nchw" else (1, 2)
    told = tuple(port.shape[a] for a in axes)
    if size is None:
        size = (told[0], told[1]) if None not in told else (224, 224)  # type: ignore[assignment]
    elif any(n is not None and n != m for n, m in zip(told, size, strict=True)):
        raise ShapeError(
            f"load_model: size {size} was given, but the model's input is {port}. Leave it out."
        )
    return layout, size, channels


def _pair(size: Any) -> tuple[int, int]:
    try:
        height, width = size
        fits = all(type(n) is int or isinstance(n, np.integer) for n in (height, width))
        if fits and min(height, width) > 0:
            return int(height), int(width)
    except (TypeError, ValueError):
        pass
    raise ParameterError(
        f"load_model: size is (height, width), whole numbers from 1 on; {size!r} came."
    )


def _own_labels(metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Labels that exporters leave in a file, such as {0: 'person', ...}."""
    import ast

    text = metadata.get("names", "")
    try:
        found = ast.literal_eval(text) if text and len(text) < 1 << 20 else ()
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    if isinstance(found, dict):
        found = [found.get(k, str(k)) for k in range(len(found))]
    return tuple(map(str, found)) if isinstance(found, list | tuple) else ()


def _picture_size(input: Any) -> tuple[int, int]:
    if isinstance(input, Frame):
        return input.height, input.width
    if hasattr(input, "shape"):
        return int(input.shape[0]), int(input.shape[1])
    return int(input.size[1]), int(input.size[0])  # Pillow


def _of_bytes(input: Any) -> bool:
    """Whether a picture is of bytes, which are all finite; False where that is not plain."""
    pixels = input.pixels if isinstance(input, Frame) else input
    if isinstance(pixels, Buffer):
        return pixels.dtype == "u8"
    return isinstance(pixels, np.ndarray) and pixels.dtype == np.uint8


def _array(value: Any) -> np.ndarray[Any, Any]:
    try:
        return value.numpy() if isinstance(value, Buffer) else np.asarray(value)
    except (TypeError, ValueError) as error:
        raise DtypeError(f"predict: {type(value).__name__} is no array ({error}).") from None


def _finite(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array holds neither NaN nor infinity; without memory for an answer each."""
    if not array.size:
        return True
    return math.isfinite(array.max()) and math.isfinite(array.min())
