"""The calls of ``dala.media.gpu`` and ``dala.media.effects``, made from the declarations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, cast

import numpy as np

from dala.errors import ParameterError, did_you_mean
from dala.gpu.compute.kernels.filter import FilterParam, FilterSpec
from dala.media.filters.declarations import declared, module_of
from dala.media.filters.plans import FilterValue, Values, apply, declared_steps, run_on
from dala.media.filters.sizes import SCALE
from dala.media.frame import PLANAR, Frame
from dala.media.images import SourceImage, read
from dala.typing import ImageLike, NDArray

#: Types of parameters, as signatures and stubs show them.
_TYPES: Final = {
    "int": "int",
    "float": "float",
    "number": "float",
    "bool": "bool",
    "ints": "Sequence[int]",
    "size": "Sequence[int | None]",  # None keeps the aspect
    "floats": "Sequence[float] | NDArray",
    "picture": "ImageLike",
    "background": "ImageLike | Sequence[float] | str",
    "lut": "Cube | PathLike | NDArray | Buffer",
    "map": "NDArray | Buffer | Sequence[Sequence[float]]",
    "points": "Sequence[tuple[float, float]]",
}


#: What others call drawing text into a picture, in lower case.
_TEXT: Final = ("text", "puttext", "drawtext", "addtext", "writetext")
#: The calls of ``dala.media.gpu`` that are not filters.
_OWN: Final = ("apply", "filters", "process_frame", "start_pipeline", "stop_pipeline")


def call_names(module: str) -> list[str]:
    """Return the names of the calls in a module ("gpu" or "effects"), sorted."""
    return sorted(name for name, spec in declared().items() if module_of(spec) == module)


def public_names(module: str) -> list[str]:
    """Return the sorted names of a module: its filters and its other calls."""
    return sorted([*call_names(module), *(_OWN if module == "gpu" else ())])


def lazy_calls(
    module: str, names: dict[str, object]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a module whose calls are made on first use.

    Args:
        module: the module's name within ``dala.media``.
        names: its globals.
    """

    def get(name: str) -> object:
        if name == "__all__":
            return public_names(module)
        names[name] = made = call(name, module)
        return made

    return get, partial(public_names, module)


def annotation(p: FilterParam) -> str:
    """Return a parameter's type as text.

    >>> annotation(FilterParam("sigma", "float"))
    'float | None'
    """
    kind = _TYPES.get(p.type, "")
    if p.choices:
        kind = f"Literal[{', '.join(map(repr, p.choices))}]"
        if p.name == "normalize":
            kind += " | bool"
    if p.type == "floats" and p.size in (3, 4):
        kind = f"{kind} | str"  # the name of a color
    if p.spread:
        kind = f"float | {kind}"
    return kind if p.required or p.default is not None else f"{kind} | None"


#: Pictures that do not know their size.
BYTES: Final = (bytes, bytearray, memoryview)


#: What may be given in the place of a size.
_SCALE: Final = FilterParam(
    "scale", "float", None, SCALE.low, SCALE.high, doc="of the picture's own size, instead."
)


def ordered(spec: FilterSpec) -> tuple[list[FilterParam], list[FilterParam], list[FilterParam]]:
    """Return a filter's parameters as a call takes them.

    Returns:
        Pictures, which follow the first picture; the first number, which may follow width and
        height by position; the rest, by keyword.
    """
    pictures = [p for p in spec.parameters if p.type == "picture"]
    rest = [p for p in spec.parameters if p not in pictures]
    if spec.sides:
        rest = [replace(p, required=p.required and p.type != "size") for p in rest] + [_SCALE]
    first = rest[:1] if rest and rest[0].type in ("int", "float") else []
    return pictures, first, rest[len(first) :]


def signature(spec: FilterSpec) -> inspect.Signature:
    """Return the signature of a filter's call."""
    positional, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY

    def parameter(p: FilterParam, *, by_position: bool = False) -> inspect.Parameter:
        default = inspect.Parameter.empty if p.required else p.default
        kind = positional if by_position else keyword
        return inspect.Parameter(p.name, kind, default=default, annotation=annotation(p))

    pictures, first, rest = ordered(spec)
    return inspect.Signature(
        [
            inspect.Parameter("img", positional, annotation="ImageLike"),
            *(parameter(p, by_position=True) for p in pictures),
            inspect.Parameter("width", positional, default=None, annotation="int | None"),
            inspect.Parameter("height", positional, default=None, annotation="int | None"),
            *(parameter(p, by_position=not p.required) for p in first),
            *(parameter(p) for p in rest),
            inspect.Parameter("out", keyword, default=None, annotation="NDArray | None"),
            inspect.Parameter("device", keyword, default=None, annotation="str | None"),
        ],
        return_annotation="ImageLike",
    )


_WIDTH: Final = "    width (pixels): of bytes; other pictures may have their first number here."
_WIDTH_OF_RESULT: Final = (
    "    width (pixels): of bytes; of other pictures that of the result. Without ``height``, and\n"
    "        the other way round, the aspect is kept."
)


def docstring(spec: FilterSpec) -> str:
    """Return the docstring of a filter's call: summary, definition, arguments, an example."""
    pictures, first, rest = ordered(spec)
    lines = [spec.summary, ""]
    if spec.definition:
        lines += [spec.definition, ""]
    lines += ["Args:", "    img: the picture."]
    lines += [_argument(p) for p in pictures]
    lines += [_WIDTH_OF_RESULT if spec.sides else _WIDTH]
    lines += ["    height (pixels): of bytes" + (", or of the result." if spec.sides else ".")]
    lines += [_argument(p) for p in (*first, *rest)]
    lines += ["    out: an array for the result.", "    device: the device; by default the current"]
    lines[-1] += " one, or that of a Frame or Buffer."
    return "\n".join([*lines, "", "Example::", "", f"    {example(spec)}", ""])


def _argument(p: FilterParam) -> str:
    known = ", ".join(filter(None, (p.unit, "" if p.choices else p.range)))
    return f"    {p.name}{f' ({known})' if known else ''}: {p.doc}"


def example(spec: FilterSpec) -> str:
    """Return a line of Python that calls the filter.

    >>> example(declared()["blur"])
    'result = gpu.blur(picture, radius=8)'
    """
    pictures, _, _ = ordered(spec)
    arguments = ["picture", *(p.name if p.name != "picture" else "badge" for p in pictures)]
    if spec.example:
        arguments.append(spec.example)
    return f"result = {module_of(spec)}.{spec.name}({', '.join(arguments)})"


def _instead(name: str) -> str:
    """Return advice for a name that a module does not have: its module, or a similar name."""
    if name.startswith("_"):
        return ""
    if name in declared():
        return f"It is in the other one: dala.media.{module_of(declared()[name])}.{name}."
    if name.lower().replace("_", "") in _TEXT:
        return 'A scene draws text: scene.add_text("Hello", position=(10, 10)).'
    return did_you_mean(name, declared())


def call(name: str, module: str) -> Callable[..., ImageLike]:
    """Return the call of a filter in a module.

    Raises:
        AttributeError: the module has no such filter.
    """
    spec = None if name.startswith("_") else declared().get(name)
    if spec is None or module_of(spec) != module:
        wrong = f"module 'dala.media.{module}' has no attribute {name!r}"
        raise AttributeError(f"{wrong}. {_instead(name)}".removesuffix(" "), name=name)
    made = signature(spec)
    pictures, first, _ = ordered(spec)
    leading = [p.name for p in pictures]
    # Pictures that know their size take the first parameter in the place of width.
    lead = first[0].name if first and spec.kind != "conversion" else ""
    needed = [p.name for p in pictures if p.required]
    sized = any(p.type == "size" for p in spec.parameters)
    meant = ", as size=(width, height)" if sized else ""
    positional = [*leading, "width", "height", *(p.name for p in first if not p.required)]
    run = convert if spec.kind == "conversion" else apply

    def function(
        img: ImageLike,
        *args: FilterValue,
        out: NDArray | None = None,
        device: str | None = None,
        **given: FilterValue,
    ) -> ImageLike:
        if args:
            if len(args) > len(positional) or not given.keys().isdisjoint(positional[: len(args)]):
                refuse(img, *args, out=out, device=device, **given)
            given.update(zip(positional, args, strict=False))
            if lead and len(args) == len(leading) + 1 and not isinstance(img, BYTES):
                # brightness(picture, 0.2): the first number
                if lead in given:
                    raise TypeError(f"{name}(): multiple values for argument {lead!r}")
                given[lead] = given.pop("width")
        for required in needed:
            if required not in given:
                refuse(img, **given)
        width, height = (cast("int | None", given.get(side)) for side in ("width", "height"))
        if isinstance(width, Sequence) and height is None:  # resize(picture, (640, 360))
            raise TypeError(
                f"{name}(): width must be a number, got {width!r}. Give other parameters by their "
                f"names{meant}."
            )
        if spec.sides and not isinstance(img, BYTES):  # the sides of the result
            return run(img, None, None, name, _given(given), out, device)
        given.pop("width", None)
        given.pop("height", None)
        return run(img, width, height, name, given, out, device)

    def refuse(*args: FilterValue | ImageLike, **given: FilterValue) -> None:
        """Raise the TypeError of wrong arguments."""
        try:
            made.bind(*args, **given)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None

    function.__name__ = function.__qualname__ = name
    function.__module__ = f"dala.media.{module}"
    function.__doc__ = docstring(spec)
    function.__signature__ = made  # type: ignore[attr-defined]
    function.__annotations__ = {
        **{p.name: p.annotation for p in made.parameters.values()},
        "return": made.return_annotation,
    }
    return function


def _given(params: Mapping[str, FilterValue]) -> dict[str, FilterValue]:
    return {name: value for name, value in params.items() if value is not None}


# conversions --------------------------------------------------------------------------------------
_CODING: Final = ("matrix", "range", "siting")


def convert(
    img: ImageLike,
    width: int | None,
    height: int | None,
    name: str,
    params: Mapping[str, FilterValue],
    out: NDArray | None,
    device: str | None,
) -> ImageLike:
    """Apply a conversion to a picture, or to planes of one, of any kind.

    Frames become Frames, and their format, matrix, range and siting are used; ``preprocess`` makes
    a Buffer of a Frame or a Buffer, and an array of everything else.
    """
    given = _given(params)
    if isinstance(img, Frame) and name == "rgb_to_yuv":
        return _frame_to_planes(img, given, device)
    if name == "preprocess" and isinstance(given.get("normalize"), bool):
        given["normalize"] = "imagenet" if given["normalize"] else "raw"
    if isinstance(img, Frame) and name == "yuv_to_rgb" and img.format in PLANAR:
        given = {"format": img.format, **{key: getattr(img, key) for key in _CODING}, **given}
        picture = SourceImage("frame", img.pixels, img)
    elif name == "yuv_to_rgb" and isinstance(img, bytes | bytearray | memoryview):
        picture = _planes(img, width, height, given)
    else:
        picture = read(img, width, height, name)
    if name == "preprocess":
        picture.kind = "buffer" if picture.kind in ("frame", "buffer") else "array"
        picture.given = picture.pixels  # the result is numbers for a model, not a picture
    steps = declared_steps(declared()[name], picture.shape, picture.dtype, given, name)
    return run_on(picture, steps, out, device, name)


def _planes(
    data: bytes | bytearray | memoryview,
    width: int | None,
    height: int | None,
    given: Mapping[str, FilterValue],
) -> SourceImage:
    """Return bytes of planes as an array of (height * 3 / 2, width)."""
    if given.get("format") in PLANAR and width and height:
        array = np.frombuffer(data, np.uint8)
        if array.size == width * height * 3 // 2:
            return SourceImage("bytes", array.reshape(height * 3 // 2, width), data)
    return read(data, width, height, "yuv_to_rgb")


def _frame_to_planes(frame: Frame, given: Mapping[str, FilterValue], device: str | None) -> Frame:
    known: Values = {"format": "nv12", **given}
    if known["format"] not in PLANAR:
        raise ParameterError.invalid(
            "rgb_to_yuv", "format", "'nv12' or 'i420' for a Frame", known["format"]
        )
    return frame.to(device=device, **known)
