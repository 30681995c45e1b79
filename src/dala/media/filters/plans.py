"""Plans of filters: the kernels to run, their inputs, and the shapes of their outputs.

A filter is a name and its parameters. Most are one kernel; recipes have several steps. The same
steps run immediately (one call a filter) or as stages of a pipeline (frames).
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

import numpy as np

from dala import memory
from dala.arguments import Items, checked_path
from dala.arguments.paths import missing_file
from dala.errors import (
    DalaError,
    ParameterError,
    ShapeError,
    ShapeMismatch,
    UnknownKernel,
    did_you_mean,
)
from dala.gpu.compute import Buffer, Cube, buffer_zeros, from_dlpack
from dala.gpu.compute.buffer import allocate
from dala.gpu.compute.kernel import Kernel, builtins, find
from dala.gpu.compute.kernel import get as find_kernel
from dala.gpu.compute.kernels.filter import (
    BORDER_OPTIONS,
    FILTERS,
    FilterParam,
    FilterSpec,
    picture_filter,
)
from dala.gpu.compute.operation import Operation, Tensor
from dala.gpu.compute.params import NUMBER_BYTES, check_params, check_values, exact_key, missing
from dala.gpu.compute.passes.program import KernelProgram, Previous
from dala.gpu.compute.runnable import Runnable
from dala.media.filters.declarations import declared, filter_names
from dala.media.filters.luts import load_lut
from dala.media.filters.sizes import custom_inputs, numbers, settle_size
from dala.media.images import (
    Shape,
    SourceImage,
    check_out,
    dtype_of,
    host_memory,
    read,
    second,
    wants_given_dtype,
)
from dala.typing import ImageLike, NDArray, ParamValue, PathLike

#: The picture that a filter is applied to, as an input of one of its steps.
PICTURE: Final = -1

#: The value of a parameter: numbers, a word, a picture, a look-up table or its file, points.
FilterValue: TypeAlias = (
    "ParamValue | ImageLike | Cube | PathLike | Sequence[tuple[float, float]] | Sequence[float]"
)

#: Parameters by name, before or after the kernel or recipe has checked them. Each parameter has a
#: type of its own, which only its declaration knows.
Values: TypeAlias = dict[str, Any]

#: An item of a list of filters: a name or a kernel, alone or with its parameters.
Filter: TypeAlias = "str | Runnable | tuple[str | Runnable, Mapping[str, FilterValue]]"


#: An input of a step: a picture or an earlier result, a result of the frame before, or an array.
StepInput: TypeAlias = "int | Previous | NDArray | Buffer"

#: Declare a function that adds the steps of a filter, or of an effect, to :class:`Steps`.
recipe: Final = partial(picture_filter, is_recipe=True)
effect: Final = partial(recipe, "Effects", kind="effect")


@dataclass(frozen=True)
class Step:
    """One kernel of a plan.

    Inputs are PICTURE, the number of an earlier step, or an array or buffer of the user's.
    """

    kernel: Runnable
    #: Earlier steps, :data:`PICTURE`, results of the frame before, or arrays and buffers.
    inputs: tuple[StepInput, ...]
    shape: Shape
    dtype: str
    params: Values = field(default_factory=dict)
    #: The call that the step belongs to, as errors name it.
    origin: str = ""

    def error(self, error: DalaError) -> DalaError:
        """Return an error of this step with the call and filter named, as planning errors do."""
        return error.within(self.origin) if self.origin else error

    def moved(self, by: int) -> Step:
        """Return the step for a place after ``by`` others, the last of which is its picture."""
        # PICTURE is -1, so that the number after it is that of the first step.
        inputs = tuple(_moved(i, by) for i in self.inputs)
        return replace(self, inputs=inputs)


def _moved(i: StepInput, by: int) -> StepInput:
    if isinstance(i, Previous):
        return Previous(i.step + by)
    return i + by if isinstance(i, int) else i


class Steps(list[Step]):
    """The steps of a filter, while its recipe adds them; shape and dtype are the picture's."""

    def __init__(self, shape: Shape, dtype: str) -> None:
        super().__init__()
        self.shape, self.dtype = shape, dtype

    def add(
        self, kernel: str | Runnable, /, *inputs: StepInput, shape: Shape | None = None,
        dtype: str | None = None, **params: Any,
    ) -> int:  # fmt: skip
        """Add a step, of a kernel or the name of one, and return its number.

        The inputs are those of :class:`Step`, or the picture. The result has the picture's shape
        and dtype if no others are given.
        """
        found = find_kernel(kernel) if isinstance(kernel, str) else kernel
        made = self.shape if shape is None else shape, dtype or self.dtype
        self.append(Step(found, inputs or (PICTURE,), *made, params))
        return len(self) - 1

    def pad(self, before: int, reach: int, border: Values) -> int:
        """Add a border of ``reach`` pixels on each side."""
        wide = (self.shape[0] + 2 * reach, self.shape[1] + 2 * reach, *self.shape[2:])
        return self.add("pad", before, shape=wide, padding=reach, **border)

    def crop(self, before: int, reach: int) -> int:
        """Cut a border of ``reach`` pixels off."""
        last = self[before]
        box = (reach, reach, reach + self.shape[1], reach + self.shape[0])
        size = (*self.shape[:2], *last.shape[2:])
        return self.add("crop", before, shape=size, dtype=last.dtype, box=box)


def plan(
    filters: Sequence[Filter], shape: Shape, dtype: str, call: str, *, listed: bool = True
) -> list[Step]:
    """Return the steps of a list of filters, with inputs numbered over the whole list.

    Errors name the call and, where the user wrote a list, the filter's index in it.
    """
    Items("a list such as [('blur', {'radius': 3})]").check(call, "filters", filters)
    steps: list[Step] = []
    for number, item in enumerate(filters):
        first = len(steps)
        origin = _origin(item, number, call) if listed else call
        for step in _steps(item, shape, dtype, origin):
            params = {name: _hashable(name, value, origin) for name, value in step.params.items()}
            steps.append(replace(step.moved(first), params=params, origin=origin))
        shape = steps[-1].shape
    return steps


def remember(filters: Sequence[Filter]) -> bool:
    """Return True if a filter is a program that remembers frames."""
    items = (f[0] if isinstance(f, tuple) else f for f in filters)
    return any(isinstance(f, Runnable) and f.remembers for f in items)


def _origin(item: object, number: int, call: str) -> str:
    name = item[0] if isinstance(item, tuple | list) and item else item
    name = name.name if isinstance(name, Runnable) else name
    return f"{call}: filters[{number}]" + (f" ({name!r})" if isinstance(name, str) else "")


def _steps(item: Filter, shape: Shape, dtype: str, origin: str) -> list[Step]:
    name, given = parted(item, origin)
    spec = declared().get(name) if isinstance(name, str) else None
    if spec is not None and spec.kind != "conversion":
        try:
            return declared_steps(spec, shape, dtype, given, origin)
        except DalaError as error:
            raise error.within(origin) from error
    kernel = name if isinstance(name, Runnable) else _custom(name, origin)
    if isinstance(kernel, KernelProgram):
        return _program_steps(kernel, shape, dtype, given, origin)
    if not kernel.inputs and not (isinstance(kernel, Kernel) and kernel.decl.pixels):
        raise ParameterError(
            f"{origin}: a custom filter must be a kernel whose first input is the picture, or one "
            "without inputs that returns pixels."
        )
    inputs = custom_inputs(kernel, given, shape, origin).values()
    picture = (PICTURE,) if kernel.inputs else ()  # without inputs, it draws over the picture
    return [Step(kernel, (*picture, *inputs), shape, dtype, given)]


def _program_steps(
    program: KernelProgram, shape: Shape, dtype: str, given: Values, origin: str
) -> list[Step]:
    """Return the steps of a program of several passes; one without a picture draws over it."""
    found: dict[str, StepInput] = dict.fromkeys(program.inputs[:1], PICTURE)
    found |= custom_inputs(program, given, shape, origin)
    found |= program.images
    shapes = {name: i.shape for name, i in found.items() if isinstance(i, np.ndarray | Buffer)}
    return [
        Step(p.kernel, tuple(found[i] if isinstance(i, str) else i for i in p.inputs), *p[2:])
        for p in program.planned(shape, dtype, given, shapes)
    ]


def parted(item: object, origin: str) -> tuple[str | Runnable, dict[str, FilterValue]]:
    """Return a filter of a list, and the parameters that it is given.

    >>> parted(("blur", {"radius": 3, "border": None}), "plan"), parted("sepia", "plan")
    (('blur', {'radius': 3}), ('sepia', {}))
    """
    name, params = item if isinstance(item, tuple | list) and len(item) == 2 else (item, {})
    if isinstance(name, str | Runnable) and isinstance(params, Mapping):
        return name, {str(key): value for key, value in params.items() if value is not None}
    raise ParameterError(
        f"{origin}: a filter must be a name, or a name and its parameters such as "
        f"('blur', {{'radius': 3}}), got {item!r}."
    )


def _custom(name: str, origin: str) -> Runnable:
    kernel = find(name)
    if kernel is not None and name not in builtins():
        return kernel
    hint = did_you_mean(name, filter_names()) or "dala.media.gpu.filters() lists all."
    problem = "is a kernel, but not a filter" if kernel is not None else "is not a filter"
    raise UnknownKernel(f"{origin} {problem}. {hint}")


def _hashable(name: str, value: ParamValue, origin: str) -> ParamValue:
    """Return lists and arrays of numbers as tuples, so that two frames' can be compared."""
    if not isinstance(value, list | np.ndarray):
        return value
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):  # rows of different lengths
        raise ParameterError.invalid(origin, name, "numbers", value) from None
    memory.check_copy(array.size * NUMBER_BYTES, origin)
    return tuple(array.reshape(-1).tolist())


# steps of declared filters ----------------------------------------------------------------------
def declared_steps(
    spec: FilterSpec, shape: Shape, dtype: str, params: Mapping[str, FilterValue], origin: str
) -> list[Step]:
    """Return the steps of a declared filter; errors name the filter.

    Args:
        spec: the filter.
        shape: of the picture.
        dtype: of the picture.
        params: the parameters; None values are left out.
        origin: the call, for missing files.
    """
    given: Values = dict(params)  # the kernel or recipe checks the types
    settle_size(spec, given, shape)
    _check_names(spec, given)
    if spec.reach is not None:
        return _with_border(spec, shape, dtype, given, origin)
    return _own_steps(spec, shape, dtype, given, origin)


def _own_steps(
    spec: FilterSpec, shape: Shape, dtype: str, given: Values, origin: str
) -> list[Step]:
    """Return the steps of a filter without those for its border."""
    given = dict(given)
    if spec.is_recipe:
        numbers = {o.name: given.pop(o.name) for o in spec.options if o.name in given}
        values = dict(check_values(spec.name, spec.options, numbers))
        recipe_steps = Steps(shape, dtype)
        spec.source(recipe_steps, {**values, **given})
        return recipe_steps
    kernel = spec.kernel
    assert kernel is not None
    inputs: list[int | NDArray | Buffer] = [PICTURE]
    for p in spec.parameters:
        if not p.is_input:
            break  # inputs are first
        found, more = _input(p, given, shape, spec.name, origin)
        inputs.append(found)
        given = {**more, **given}
    made = Tensor(shape, dtype)
    if spec.resizes and isinstance(kernel, Operation):
        others = [i for i in inputs[1:] if not isinstance(i, int)]
        tensors = (made, *(Tensor(tuple(i.shape), dtype_of(i)) for i in others))
        values = dict(check_values(spec.name, kernel.params, given))
        made = kernel.result(tensors, values) or made
    elif spec.channels is not None:
        made = Tensor((*shape[:2], spec.channels), dtype)
    kernels = [kernel] if spec.passes is None else spec.kernels(given)
    steps = [Step(kernels[0], tuple(inputs), made.shape, made.dtype, given)]
    steps += [replace(steps[0], kernel=k, inputs=(n,)) for n, k in enumerate(kernels[1:])]
    return steps


def _with_border(
    spec: FilterSpec, shape: Shape, dtype: str, given: Values, origin: str
) -> list[Step]:
    """Return a filter's steps, with steps that pad the picture and crop the result around them.

    The steps clamp at the border. A border of as many pixels as the filter reads keeps that away
    from the result.
    """
    own = {o.name: given.pop(o.name) for o in BORDER_OPTIONS if o.name in given}
    chosen = dict(check_values(spec.name, BORDER_OPTIONS, own))
    if chosen["border"] == "clamp" or 0 in shape:
        return _own_steps(spec, shape, dtype, given, origin)
    _own_steps(spec, shape, dtype, given, origin)  # checks the values
    reach = spec.pixels_around(given)
    steps = Steps(shape, dtype)
    steps.pad(PICTURE, reach, chosen)
    steps += [s.moved(1) for s in _own_steps(spec, steps[0].shape, dtype, given, origin)]
    steps.crop(len(steps) - 1, reach)
    return steps


def _check_names(spec: FilterSpec, given: Values) -> None:
    if not given.keys() <= spec.names:
        check_params(spec.name, given, [p.name for p in spec.parameters])
    for p in spec.parameters:
        if p.required and p.name not in given:
            if spec.sides and p.name == "size":
                raise ParameterError(
                    f"{spec.name}: missing required parameter 'size'. Give size=(width, height), "
                    "width=, height= or scale=.",
                    argument="size",
                )
            raise missing(spec.name, p.name)


def _input(
    p: FilterParam, given: Values, shape: Shape, call: str, origin: str
) -> tuple[NDArray | Buffer, Values]:
    """Take an input besides the picture; return it, and the parameters that come with it."""
    value = given.pop(p.name)
    if p.type == "picture":
        return same_size(p.name, second(value, shape, call), shape, call), {}
    if p.type == "lut":
        if isinstance(value, str | os.PathLike):
            path = str(checked_path(call, p.name, value))
            try:
                value = _cube(path, os.stat(path).st_mtime_ns)
            except FileNotFoundError:
                raise missing_file(path, origin) from None
        if isinstance(value, Cube):
            return value.packed, dict(value.params)
    return numbers(value, p.name, call), {}


def same_size(name: str, found: NDArray | Buffer, shape: Shape, call: str) -> NDArray | Buffer:
    """Return a second picture; raise unless it has the size of the first."""
    if found.shape[:2] != shape[:2]:
        raise ShapeMismatch.invalid(
            call,
            name,
            f"a picture of the same size, {shape[1]} x {shape[0]}",
            f"{found.shape[1]} x {found.shape[0]}",
            "Resize it first.",
        )
    return found


@lru_cache(8)
def _cube(path: str, changed: int) -> Cube:
    """Read a table once, and again when its file has changed."""
    return load_lut(path)


#: Steps of single filters by name, shape, dtype and parameters, with the declaration they are of.
_PLANS: Final[dict[tuple[Hashable, ...], tuple[FilterSpec, list[Step]]]] = {}
_MAX_PLANS: Final = 256


# running ----------------------------------------------------------------------------------------
def apply(
    img: ImageLike,
    width: int | None,
    height: int | None,
    kernel: str | Runnable,
    params: Mapping[str, FilterValue],
    out: NDArray | None,
    device: str | None,
) -> ImageLike:
    """Apply a filter or a kernel to one picture of any kind and return a picture of that kind."""
    name = kernel if isinstance(kernel, str) and kernel in declared() else ""
    picture = read(img, width, height, name or "apply")
    if name:
        steps = _plan_one(name, params, picture.shape, picture.dtype)
    else:
        origin = f"apply: {kernel!r}" if isinstance(kernel, str) else "apply"
        steps = plan([(kernel, params)], picture.shape, picture.dtype, origin, listed=False)
    return run_on(picture, steps, out, device, name or "apply")


def _plan_one(name: str, params: Mapping[str, FilterValue], shape: Shape, dtype: str) -> list[Step]:
    """Return the steps of one filter; they are cached if they depend on plain values only."""
    try:
        key = (name, shape, dtype, *((n, exact_key(v)) for n, v in params.items()))
        spec, steps = _PLANS.get(key, (None, []))
    except (TypeError, ValueError):  # an array, a list or a memoryview
        return plan([(name, params)], shape, dtype, name, listed=False)
    if spec is None or spec is not FILTERS.get(name):
        steps = plan([(name, params)], shape, dtype, name, listed=False)
        if all(isinstance(i, int) for step in steps for i in step.inputs):
            if len(_PLANS) >= _MAX_PLANS:
                _PLANS.clear()
            _PLANS[key] = FILTERS[name], steps
    return steps


def run_on(
    picture: SourceImage, steps: Sequence[Step], out: NDArray | None, device: str | None, call: str
) -> ImageLike:
    """Run steps on a picture and return the result as the picture's kind, or in ``out``."""
    if out is not None and wants_given_dtype(picture, out, steps[-1].shape):
        np.copyto(out, np.asarray(run_on(picture, steps, None, device, call)))
        return out
    if out is not None:
        check_out(out, picture.kind, steps[-1].shape, steps[-1].dtype, call)
    source = picture.buffer(device)
    target = None if out is None else _target(picture, source, out, device)
    result = run(steps, source, target, call)
    if out is None:
        return picture.give(result)
    if result is not target:
        np.copyto(out, result.numpy())
    return out


def _target(
    picture: SourceImage, source: Buffer, out: NDArray, device: str | None
) -> Buffer | None:
    """Return a buffer over the caller's array, where the device can write to it directly."""
    assert isinstance(picture.pixels, np.ndarray)
    if not out.flags.c_contiguous or not out.size or host_memory(source) is None:
        return None
    if np.may_share_memory(picture.pixels, out):
        return None
    return from_dlpack(out, device=device)


def run(steps: Sequence[Step], source: Buffer, target: Buffer | None, call: str) -> Buffer:
    """Run steps one after another; the last one writes ``target``, if given."""
    made: list[Buffer] = []
    for number, step in enumerate(steps):
        inputs = [_buffer(i, source, made, steps) for i in step.inputs]
        output = target if number == len(steps) - 1 else None
        if output is None:
            output = allocate(source.engine, step.shape, step.dtype, zero=False, call=call)
        try:
            step.kernel.run(inputs, output, step.params)
        except DalaError as error:
            raise step.error(error) from error
        made.append(output)
    return made[-1]


def _buffer(i: StepInput, source: Buffer, made: Sequence[Buffer], steps: Sequence[Step]) -> Buffer:
    if isinstance(i, int):
        return source if i == PICTURE else made[i]
    if isinstance(i, Previous):  # of a single picture, which is the first frame
        return buffer_zeros(steps[i.step].shape, steps[i.step].dtype, device=source.device)
    if isinstance(i, Buffer):
        return i.to(source.device)
    return from_dlpack(np.ascontiguousarray(i), device=source.device)


def check(item: Filter, call: str, shape: Shape = (64, 64, 4), dtype: str = "u8") -> None:
    """Check a filter's parameters before there is a picture, on the null engine.

    Shapes are not checked: a second picture may have the size that the first will have.

    Raises:
        ParameterError: a parameter is unknown, missing or out of its range.
    """
    try:
        steps = plan([item], shape, dtype, call, listed=False)
        run(steps, buffer_zeros(shape, dtype, device="null"), None, call)
    except ShapeError:
        return
