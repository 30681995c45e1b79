"""Check the dicts that describe commands and stages (``submit``, ``Pipeline.add``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, NotRequired, TypedDict

from dala.errors import (
    ArityError,
    DeviceMismatch,
    DtypeMismatch,
    ParameterError,
    ShapeMismatch,
    did_you_mean,
)
from dala.gpu.compute.buffer import Buffer
from dala.gpu.compute.kernel import get as find_kernel
from dala.gpu.compute.runnable import NO_PARAMS, Runnable
from dala.typing import Params


class Spec(TypedDict):
    """A dict that describes a command or a pipeline stage: a kernel, a copy or a barrier.

    >>> from dala.gpu.compute import Spec, buffer, submit
    >>> a = buffer([-1.0, 2.0], device="cpu")
    >>> spec: Spec = {"op": "run_kernel", "kernel": "relu", "inputs": [a], "output": a}
    >>> submit(spec).result()
    >>> a.read_list()
    [0.0, 2.0]
    """

    op: str
    kernel: NotRequired[Runnable | str | None]
    inputs: NotRequired[Sequence[Buffer]]
    output: NotRequired[Buffer | None]
    params: NotRequired[Params | None]
    src: NotRequired[Buffer]
    dst: NotRequired[Buffer]


class CheckedSpec(NamedTuple):
    """The contents of a checked spec; a copy has no kernel, and a barrier no output.

    Inputs and output of a kernel are as they were given: the kernel checks them.
    """

    op: str
    kernel: Runnable | None = None
    inputs: Sequence[Buffer] = ()
    output: Buffer | None = None
    params: Params = NO_PARAMS


#: Required and optional keys of each operation.
_KEYS: Final = {
    "run_kernel": (("kernel", "inputs", "output"), ("params",)),
    "copy_buffer": (("src", "dst"), ()),
    "barrier": ((), ()),
}

#: Keys that any spec may have with an empty value.
_EMPTY_KEYS: Final = ("kernel", "inputs", "output", "params", "src", "dst")


# Any: the values of a spec are checked where they are used.
def read_spec(spec: Spec, call: str) -> CheckedSpec:
    """Check a spec, the buffers of a copy included; those of a kernel are left to the kernel.

    ``copy_buffer`` accepts ``inputs`` (a list of one buffer) and ``output`` in place of ``src`` and
    ``dst``. Keys that an operation does not use may have an empty value.
    """
    if not isinstance(spec, Mapping):
        raise ParameterError.invalid(
            call, "spec", "a dict such as {'op': 'run_kernel', ...}", type(spec)
        )
    op = spec.get("op")
    if not isinstance(op, str) or op not in _KEYS:
        expected = f"one of {', '.join(map(repr, _KEYS))}"
        raise ParameterError.invalid(call, "op", expected, op)
    needed, optional = _KEYS[op]
    given: dict[str, Any] = {key: spec[key] for key in spec}  # type: ignore[literal-required]
    if op == "copy_buffer" and "src" not in given and "dst" not in given and "inputs" in given:
        inputs = given.pop("inputs")
        if not isinstance(inputs, Sequence) or len(inputs) != 1:
            raise ArityError.invalid(call, "inputs of copy_buffer", "a list of one buffer", inputs)
        given["src"], given["dst"] = inputs[0], given.pop("output", None)
    known = {"op", *needed, *optional}
    for key in [key for key in given if key not in known]:
        listed = isinstance(given[key], Sequence | Mapping)
        if key in _EMPTY_KEYS and (given[key] is None or (listed and not len(given[key]))):
            del given[key]
            continue
        advice = did_you_mean(str(key), known) or f"It takes: {', '.join(sorted(known))}."
        raise ParameterError(f"{call}: {op} has no key {key!r}. {advice}", call=call)
    missing = [repr(key) for key in needed if key not in given]
    if missing:
        raise ParameterError(f"{call}: {op} requires {' and '.join(missing)}.", call=call)
    if op == "run_kernel":
        kernel, params = find_kernel(given["kernel"], call), given.get("params")
        return CheckedSpec(
            op, kernel, given["inputs"], given["output"], {} if params is None else params
        )
    if op == "barrier":
        return CheckedSpec(op)
    check_copy(given["src"], given["dst"], call)
    return CheckedSpec(op, None, [given["src"]], given["dst"])


def check_copy(source: Buffer, target: Buffer, call: str) -> None:
    """Check the buffers of a copy: not freed, same device, dtype and shape."""
    for which, given in (("src", source), ("dst", target)):
        if not isinstance(given, Buffer):
            advice = "Make one with buffer(...) or from_array(...)."
            raise ArityError.invalid(call, f"{which} of copy_buffer", "a Buffer", given, advice)
        given.storage(call, f"{which} of copy_buffer")
    name = "dst of copy_buffer"
    if target.engine is not source.engine:
        expected = f"on the device of src, {source.engine.id!r}"
        advice = f"Move one: src.to({target.engine.id!r})."
        raise DeviceMismatch.invalid(call, name, expected, target.engine.id, advice)
    if source.dtype != target.dtype:
        expected = f"of the dtype of src, {source.dtype!r}"
        raise DtypeMismatch.invalid(call, name, expected, target.dtype)
    if source.shape != target.shape:
        expected = f"of the shape of src, {source.shape}"
        raise ShapeMismatch.invalid(call, name, expected, target.shape)
    target.check_writable(f"{call}(copy_buffer)")
