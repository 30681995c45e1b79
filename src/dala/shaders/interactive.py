"""ISF files (Interactive Shader Format 2): the header, its inputs and its passes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from dala.budget import Limits
from dala.errors import LimitExceeded, ParameterError, printable
from dala.gpu.compute.kernel import check_limits
from dala.gpu.compute.lang.limits import MAX_SOURCE
from dala.gpu.compute.passes.program import MAX_PASSES, KernelProgram, ProgramPass
from dala.gpu.compute.passes.sizes import PassSize
from dala.shaders.glsl.entry import (
    NAMED,
    SAMPLER,
    TEXT,
    Given,
    ShaderText,
    identifier,
    make_kernel,
    parameter,
)
from dala.shaders.glsl.tree import BOOL, FLOAT, INT, VEC2, VEC4
from dala.shaders.sound import spectrum, wave
from dala.typing import ImageLike, NDArray, PathLike

_HEADER: Final = re.compile(r"\s*/\*(\s*\{.*?\}\s*)\*/", re.DOTALL)
#: Larger numbers of the header count as missing, as infinite ones do.
_LARGEST: Final = 2.0**63
_SOUNDS: Final = {"audio": wave, "audioFFT": spectrum}
_IMAGES: Final = ("image", *_SOUNDS, "cube")
#: Samples, and bands of a spectrum, if a file does not say how many it wants; and the most.
_WIDTH, _MOST = 256, 4096
#: Letters of a label that are kept.
_LABEL: Final = 80

Json = Mapping[str, object]


@dataclass(frozen=True)
class IsfInput:
    """One input: its name, type and numbers."""

    name: str
    type: str
    default: object = None
    low: float | None = None
    high: float | None = None
    values: tuple[int, ...] = ()
    label: str = ""


@dataclass(frozen=True)
class IsfPass:
    """One pass: the buffer that it writes ("" for the result), and its size as expressions."""

    target: str = ""
    floats: bool = False
    width: str = ""
    height: str = ""


@dataclass(frozen=True)
class IsfHeader:
    """The JSON at the start of an ISF file."""

    description: str
    inputs: tuple[IsfInput, ...]
    passes: tuple[IsfPass, ...]
    #: Paths of images, by the names of their variables.
    imported: Mapping[str, str]

    @property
    def images(self) -> tuple[str, ...]:
        """Names of the inputs that are pictures."""
        return tuple(i.name for i in self.inputs if i.type in ("image", "cube"))

    @property
    def sounds(self) -> dict[str, Callable[[NDArray], NDArray]]:
        """The inputs that are sound, each with a function that makes its picture of samples."""
        return {
            parameter(i.name): partial(
                _SOUNDS[i.type], width=int(min(max(i.high or _WIDTH, 1), _MOST))
            )
            for i in self.inputs
            if i.type in _SOUNDS
        }


def read_header(text: str, call: str = "dala.shaders.load") -> IsfHeader:
    """Return the header of an ISF file.

    >>> read_header('/*{"INPUTS": [{"NAME": "level", "TYPE": "float"}]}*/').inputs[0].name
    'level'
    """
    found = _HEADER.match(text[:MAX_SOURCE].lstrip("\ufeff"))
    try:
        data = json.loads(found[1], strict=False) if found else None
    except (ValueError, RecursionError) as error:
        raise _wrong(call, f"its JSON is not valid: {error}") from None
    if not isinstance(data, dict):
        raise _wrong(call, "it does not start with a JSON header in /* */")
    inputs = tuple(_input(call, item) for item in _list(data.get("INPUTS")))
    passes = [_pass(item) for item in _list(data.get("PASSES"))]
    old = data.get("PERSISTENT_BUFFERS")  # of ISF 1: a list of names, or sizes by name
    passes = [_kept(p, old if isinstance(old, Mapping) else {}) for p in passes] or [IsfPass()]
    if len(passes) > MAX_PASSES:
        raise _wrong(call, f"it has {len(passes)} passes; the limit is {MAX_PASSES}")
    imported = data.get("IMPORTED") or {}
    if isinstance(imported, list):
        imported = {str(item.get("NAME")): item for item in _list(imported)}
    paths = {n: str(v["PATH"]) for n, v in imported.items() if isinstance(v, dict) and "PATH" in v}
    return IsfHeader(
        str(data.get("DESCRIPTION") or ""),
        inputs,
        tuple(passes),
        paths,
    )


def _wrong(call: str, problem: str) -> ParameterError:
    return ParameterError.invalid(
        call, "shader", "an ISF file", problem, "See https://isf.video for the format."
    )


def _list(value: object, kind: type = dict) -> list:  # type: ignore[type-arg]
    return [v for v in value if isinstance(v, kind)] if isinstance(value, list) else []


def _kept(made: IsfPass, kept: Mapping[str, object]) -> IsfPass:
    spec = kept.get(made.target)
    if not isinstance(spec, Mapping):
        return made
    width, height = (str(spec.get(k) or "") for k in ("WIDTH", "HEIGHT"))
    floats = bool(spec.get("FLOAT")) or made.floats
    return IsfPass(made.target, floats, width or made.width, height or made.height)


def _input(call: str, item: Json) -> IsfInput:
    name, kind = str(item.get("NAME") or ""), str(item.get("TYPE") or "")
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise _wrong(call, f"the input {name!r} has no valid name")
    if kind not in (*_IMAGES, "float", "bool", "long", "event", "color", "point2D"):
        raise _wrong(call, f"the input {name!r} has the unknown type {kind!r}")
    numbers = [_number(v) for v in _list(item.get("VALUES"), object)]
    values = tuple(int(v) for v in numbers if v is not None)
    low, high = (_number(item.get(k)) for k in ("MIN", "MAX"))
    label = " ".join(str(item.get("LABEL") or "").split())[:_LABEL]
    return IsfInput(name, kind, item.get("DEFAULT"), low, high, values, printable(label))


def _number(value: object) -> float | None:
    fits = isinstance(value, int | float) and abs(value) <= _LARGEST
    return float(value) if fits else None  # type: ignore[arg-type]


def _pass(item: Json) -> IsfPass:
    width, height = (str(item.get(k) or "").replace("$", "") for k in ("WIDTH", "HEIGHT"))
    flag = item.get("FLOAT")
    floats = flag.lower() in ("true", "yes", "1") if isinstance(flag, str) else bool(flag)
    return IsfPass(str(item.get("TARGET") or ""), floats, width, height)


# kernels ----------------------------------------------------------------------------------------
def given_of(spec: IsfInput) -> Given:
    """Return an input as a variable of the shader and a parameter of the kernel."""
    return _declared(spec)._replace(label=spec.label)


def _declared(spec: IsfInput) -> Given:
    if spec.type in _IMAGES:
        return Given(spec.name, SAMPLER)
    if spec.type in ("bool", "event"):
        return Given(spec.name, BOOL, f"bool = {bool(spec.default)}")
    if spec.type == "color":
        return Given(spec.name, VEC4, f"vec4 = {_numbers(spec.default, (1.0, 1.0, 1.0, 1.0))}")
    if spec.type == "point2D":
        return Given(spec.name, VEC2, f"vec2 = {_numbers(spec.default, (0.0, 0.0))}")
    whole = spec.type == "long"
    low, high = spec.low, spec.high
    if whole and spec.values:
        low, high = min(spec.values), max(spec.values)
    default = _number(spec.default)
    if default is None:
        default = (low + high) / 2 if low is not None and high is not None and not whole else low
    default = default or 0.0
    kind, number = ("int", int) if whole else ("float", float)
    if low is None or high is None or low > high:
        return Given(spec.name, INT if whole else FLOAT, f"{kind} = {number(default)!r}")
    default = min(max(default, low), high)
    bounds = f"Within[{kind}, {number(low)!r}, {number(high)!r}]"
    return Given(spec.name, INT if whole else FLOAT, f"{bounds} = {number(default)!r}")


def _numbers(value: object, default: tuple[float, ...]) -> tuple[float, ...]:
    found = [_number(v) for v in value] if isinstance(value, list) else []
    given = tuple(v for v in found if v is not None)
    return (given + default[len(given) :])[: len(default)]


_CLOCK: Final = (
    Given("TIME", FLOAT, "Time"),
    Given("FRAMEINDEX", INT, "FrameNumber"),
    Given("DATE", VEC4, "Date"),
)


def isf(
    fragment: str,
    *,
    vertex: str = "",
    images: Mapping[str, ImageLike | PathLike] | None = None,
    name: str = "shader",
    limits: Limits | None = None,
) -> KernelProgram:
    """Return the program of an ISF text; :func:`dala.shaders.load` reads a file.

    Args:
        fragment: the text, with its header.
        vertex: the text of its vertex shader.
        images: the pictures that the header imports, or their paths, by their names.
        name: the program's name.
        limits: ``dala.limits(...)`` for each pass, as for text from strangers.

    >>> red = isf('/*{"INPUTS": []}*/ void main() { gl_FragColor = vec4(1.0, 0.0, 0.0, 1.0); }')
    >>> with red.start(1, 1, device="cpu") as state:
    ...     state.render().numpy().tolist()
    [[[255, 0, 0, 255]]]
    """
    for argument, value in (("fragment", fragment), ("vertex", vertex), ("name", name)):
        TEXT.check("isf", argument, value)
    check_limits("isf", limits)
    NAMED.check_optional("isf", "images", images)
    header = read_header(fragment)
    missing = [n for n in header.imported if n not in (images or {})]
    if missing:
        raise ParameterError.invalid("isf", "images", f"a picture for {missing[0]!r}", images)
    name = identifier(name)
    targets = dict.fromkeys(p.target for p in header.passes if p.target)
    given = [given_of(i) for i in header.inputs]
    known = {g.name for g in given}
    given += [Given(n, SAMPLER) for n in (*header.imported, *targets) if n not in known]
    given += [g for g in _CLOCK if g.name not in known]
    special = {} if "TIMEDELTA" in known else {"TIMEDELTA": (FLOAT, "1.0 / 60.0")}
    text = ShaderText(name, fragment, given, vertex, special=special, doc=header.description)
    passes = [
        ProgramPass(
            make_kernel(replace(text, values={"PASSINDEX": index}), limits),
            p.target,
            _size(p),
            "f32" if p.floats and p.target else "",
        )
        for index, p in enumerate(header.passes)
    ]
    inputs = [parameter(n) for n in header.images]
    from dala.media.frame import MAX_PIXELS
    from dala.media.pictures.pixels import Pixels, to_rgba

    pictures: dict[str, Pixels] = {}
    for imported in header.imported:
        pictures[parameter(imported)] = to_rgba((images or {})[imported], "isf")
        if sum(p.size for p in pictures.values()) > 4 * MAX_PIXELS:
            problem = f"isf: imported pictures have more than {MAX_PIXELS:,} pixels together."
            raise LimitExceeded(problem)
    return KernelProgram(name, passes, header.description, inputs, pictures, header.sounds)


def _size(p: IsfPass) -> PassSize:
    """Return the size of a pass's buffer as the formulas of programs."""
    if not p.target or not (p.width or p.height):
        return 1.0
    width, height = (
        re.sub(r"\b(WIDTH|HEIGHT)\b", lambda found: found[1].lower(), side or whole)
        for side, whole in ((p.width, "WIDTH"), (p.height, "HEIGHT"))
    )
    return width, height
