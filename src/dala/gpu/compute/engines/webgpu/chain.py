"""Chains on WebGPU: a blur and the programs after it, in one dispatch.

The programs run on blurred pixels in workgroup memory (``wgsl/blur``). The first may read
neighbors at fixed offsets; all may read the pixel of another image at the same position. Pixels are
rounded between stages as if they were stored, so that the result equals that of separate passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from dala import budget
from dala.gpu.compute.engines.base import Link, Runner, Storage, Task, Tensor, Values
from dala.gpu.compute.engines.stages import stage_by_stage
from dala.gpu.compute.engines.symbols import fixed
from dala.gpu.compute.engines.unroll import has_loops
from dala.gpu.compute.engines.webgpu.ops.blur import blur_device, blur_weights
from dala.gpu.compute.engines.webgpu.rewrite.ranges import are_ordinary, find_ranges
from dala.gpu.compute.engines.webgpu.rewrite.simplify import simplify
from dala.gpu.compute.engines.webgpu.rewrite.turns import without_single_turns
from dala.gpu.compute.engines.webgpu.wgsl.blur.finish import BlurShader, Finish
from dala.gpu.compute.engines.webgpu.wgsl.blur.forms import ONE_DISPATCH_RADIUS, write_blur
from dala.gpu.compute.engines.webgpu.wgsl.blur.strips import BlurStrip
from dala.gpu.compute.engines.webgpu.wgsl.blur.sums import Sums
from dala.gpu.compute.engines.webgpu.wgsl.body import WgslBody
from dala.gpu.compute.engines.webgpu.wgsl.loads import vector
from dala.gpu.compute.engines.webgpu.wgsl.names import Names, param_member
from dala.gpu.compute.engines.webgpu.wgsl.offsets import Offset, fixed_offsets, offset_names
from dala.gpu.compute.engines.webgpu.wgsl.pixels import ImageFormat
from dala.gpu.compute.lang.ir import LOADED, Param, Program, values

if TYPE_CHECKING:
    from dala.gpu.compute.engines.webgpu.engine import WebGPUEngine
    from dala.gpu.compute.engines.webgpu.pipelines import ComputePipeline

#: The most images that a chain reads.
MAX_INPUTS = 7


def make_chain(
    engine: WebGPUEngine, links: Sequence[Link], inputs: Sequence[Tensor]
) -> Runner | None:
    """Return a runner for a chain, or None if it is not a blur followed by programs."""
    task = links[0].work
    if len(links) < 2 or not isinstance(task, Task) or task.op != "blur":
        return None
    radius = fixed(task["radius"])
    device = blur_device(engine)
    if radius > ONE_DISPATCH_RADIUS or device is None:
        return None
    if any(link.store is not None for link in links):
        return None
    programs = [link.work for link in links[1:] if isinstance(link.work, Program)]
    if len(programs) < len(links) - 1:
        return None
    height, width = links[0].out.shape[:2]
    picture, out = ImageFormat.of(links[0].out), ImageFormat.of(links[-1].out)
    if any(link.out.shape[:2] != (height, width) for link in links) or not height * width:
        return None
    kinds = [ImageFormat.of(tensor) for tensor in (*inputs, *(link.out for link in links))]
    if any(k.dtype not in ("u8", "f32") or k.channels not in (1, 3, 4) for k in kinds):
        return None
    if out.words and width % 4:
        return None
    writer = _Writer(links, inputs, ordinary=True)
    finish = writer.write()
    if finish is None:
        return None
    size = device.size(height, width)
    form = device.form(picture, radius, finish, size)
    if form is None or not device.pays(form, picture, size):
        return None

    order = [links[0].sources[0], *writer.beside]
    if len(order) > min(engine.max_bound_inputs, MAX_INPUTS):
        return None
    weights = blur_weights(task, picture)
    whole = not isinstance(form, BlurStrip) or width % 4 == 0

    @cache
    def made(ordinary: bool) -> tuple[BlurShader, ComputePipeline]:
        """Return the shader for parameters of ordinary size, or for any."""
        last = finish if ordinary else _Writer(links, inputs, ordinary=False).write()
        assert last is not None
        shader = write_blur(Sums(picture), last, out, form, whole=whole, workgroup=device.workgroup)
        nbytes = shader.block.packer.size
        return shader, engine.shader(shader.source, len(order), nbytes, "indices")

    types = [param.type for program in programs for param in program.params]
    looping = any(has_loops(p.body) for p in programs)

    @cache
    def apart() -> Runner:
        return stage_by_stage(engine, links)

    def run(given: Sequence[Storage], output: Storage, params: Values) -> None:
        scope = budget.find_scope()
        if looping and scope is not None and scope.limits.iterations is not None:
            apart()(given, output, params)
            return
        shader, pipeline = made(engine.depends_on_values and are_ordinary(types, params))
        block = engine.pack(shader.block, shader.numbers(weights, height, width), params)
        groups = shader.groups(height, width)
        engine.dispatch(pipeline, [*(given[n] for n in order), output], block, groups)

    return run


class _Writer:
    """Writes the programs of a chain as WGSL functions, and the calls that run them on a pixel."""

    def __init__(self, links: Sequence[Link], inputs: Sequence[Tensor], *, ordinary: bool) -> None:
        self._links = links
        self._ordinary = ordinary
        self._inputs = inputs
        self._names = Names()
        self._offsets: set[Offset] = set()
        self._helpers: set[str] = set()
        self._functions: list[str] = []
        self._params: list[tuple[str, str]] = []
        self._length = 0
        #: Inputs of the chain that programs read, except the blurred image.
        self.beside: list[int] = []

    def write(self) -> Finish | None:
        """Write all programs, or return None if one cannot be part of a chain."""
        calls = [call for n in range(1, len(self._links)) if (call := self._program(n)) is not None]
        if len(calls) < len(self._links) - 1:
            return None
        return Finish(
            offsets=tuple(sorted(self._offsets or {(0, 0)})),
            functions="\n".join(self._functions),
            helpers=frozenset(self._helpers),
            calls=tuple(calls),
            params=tuple(self._params),
            length=self._length,
            inputs=tuple(
                (f"given_{n}", ImageFormat.of(self._inputs[n]).element) for n in self.beside
            ),
        )

    def _program(self, number: int) -> str | None:
        link = self._links[number]
        program = link.work
        assert isinstance(program, Program)
        program = simplify(without_single_turns(program))
        offsets = fixed_offsets(program)
        if offsets is None or not program.out.pixels or program.types & {"f64", "s64"}:
            return None
        used = list(values(program.body))
        self._length += len(used)
        called = [self._names.new(f"{arg.name}_{number}") for arg in program.args]
        near = offset_names(self._names, called, offsets)
        pixels = sorted({v.attr[0] for v in used if v.op == "pixel"})
        if any(v.op in ("element", "array") for v in used):
            return None
        signature, given = [], []
        for i, dx, dy in [*near, *((i, 0, 0) for i in pixels)]:
            arg = program.args[i]
            value = self._value(link.sources[i], (dx, dy))
            if value is None:
                return None
            name = near.get((i, dx, dy), called[i]) if arg.kind == "image" else called[i]
            signature.append(f"{name}: {vector(LOADED[arg.dtype], arg.channels)}")
            given.append(value)
        at = self._names.new(f"y_{number}"), self._names.new(f"x_{number}")
        positions = {v.attr for v in used if v.op == "position"}
        signature += [f"{at[k]}: i32" for k in sorted(positions)]
        given += [("{y}", "{x}")[k] for k in sorted(positions)]
        body = WgslBody(
            program, self._names.inner(), loaded=dict(enumerate(called)), positions=at,
            readers={}, params=tuple(self._param(number, p) for p in program.params),
            dims={v.attr: _extent(program, *v.attr) for v in used if v.op == "dim"}, near=near,
            ranges=find_ranges(program) if self._ordinary else {},
        )  # fmt: skip
        lines = body.lines()
        self._helpers |= body.helpers
        name = self._names.new(f"stage_{number}")
        result = vector(LOADED[program.out.dtype], program.out.channels)
        self._functions.append(
            "\n".join([f"fn {name}({', '.join(signature)}) -> {result} {{", *lines, "}", ""])
        )
        return f"{name}({', '.join(given)})"

    def _value(self, source: int, offset: Offset) -> str | None:
        """Return the WGSL of an argument: a blurred pixel, an earlier result, or another pixel."""
        if source == -1:
            self._offsets.add(offset)
            return f"{{{offset[0]},{offset[1]}}}"
        if offset != (0, 0):
            return None
        if source < 0:
            return f"{{{-1 - source}}}"
        picture = ImageFormat.of(self._inputs[source])
        if picture.words or (picture.dtype == "f32" and picture.channels == 3):
            return None  # a pixel cannot be read as one buffer element
        item = f"given_{source}[{{e}}]"
        if source == self._links[0].sources[0]:
            item = "source[{e}]"
        elif source not in self.beside:
            self.beside.append(source)
        if picture.dtype == "u8":
            self._helpers.add("unpack_u8")
            return f"unpack_u8({item})"
        return item

    def _param(self, number: int, param: Param) -> str:
        wish, kind = param_member(param, f"param_{number}")
        self._params.append((self._names.new(wish), kind))
        return f"p.{self._params[-1][0]}"


def _extent(program: Program, argument: int, axis: int) -> str:
    if axis < 2:
        return ("p.height", "p.width")[axis]
    return f"{(program.out if argument < 0 else program.args[argument]).channels}i"
