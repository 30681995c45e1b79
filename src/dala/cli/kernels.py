"""List the built-in kernels, or explain one."""

from __future__ import annotations

import argparse
import inspect
import json
from typing import TYPE_CHECKING, Final, TypedDict

from dala.cli.common import chain
from dala.errors import ParameterError, UnknownKernel, did_you_mean

if TYPE_CHECKING:
    from dala.gpu.compute.kernel import Kernel
    from dala.typing import ParamValue

EXAMPLES: Final = """\
examples:
  dala kernels                     all of them
  dala kernels blur                inputs, parameters, definition
  dala kernels sepia --source wgsl generated code (python, ir, wgsl or llvm)
  dala kernels sepia --device cpu  the code that a device runs
"""


class ParamFacts(TypedDict):
    """A parameter of a kernel or filter."""

    name: str
    type: str
    range: str
    unit: str
    doc: str
    required: bool
    default: ParamValue


class KernelFacts(TypedDict):
    """The inputs, parameters and documentation of a kernel or filter."""

    name: str
    filter: bool
    inputs: list[str]
    params: list[ParamFacts]
    doc: str


def configure(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("name", nargs="?", help="explain this kernel")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.add_argument(
        "--source", choices=("python", "ir", "wgsl", "llvm"), help="print its code in this form"
    )
    parser.add_argument("--device", help="print its code as this device runs it")


def run(args: argparse.Namespace) -> int:
    """Print the list or the explanation."""
    if args.device and args.source:
        raise ParameterError("--device and --source both select the code; give one of them.")
    if args.name is None:
        if args.source or args.device:
            option = "--source" if args.source else "--device"
            raise ParameterError(f"{option} needs the name of a kernel.")
        _list(args.json)
        return 0
    name = chain.SHORT.get(args.name, args.name)
    if args.source or args.device:
        form = args.source or _form(args.device)
        source = _kernel(name, "--source" if args.source else "--device").source(form)
        facts_of = {"name": name, "form": form, "source": source}
        print(json.dumps(facts_of, indent=2) if args.json else source)
        return 0
    facts = explain(name)
    print(json.dumps(facts, indent=2) if args.json else _page(facts))
    return 0


def _form(device: str) -> str:
    """Return the form of kernels on a device."""
    import dala
    from dala.gpu import compute

    with dala.device(device):
        return {"cpu": "llvm", "webgpu": "wgsl"}.get(str(compute.device_info()["backend"]), "ir")


def _names() -> list[str]:
    from dala.gpu.compute import kernels

    return sorted({*kernels(), *chain.filters()})


def _kernel(name: str, option: str) -> Kernel:
    from dala.gpu.compute.kernel import Kernel, find

    kernel = find(name)
    if kernel is None:
        _check_name(name)
        raise ParameterError(f"{option}: {name!r} consists of several kernels.")
    if not isinstance(kernel, Kernel):
        raise ParameterError(f"{option}: {name!r} has separate code for each engine.")
    return kernel


def _check_name(name: str) -> None:
    if name not in _names():
        hint = did_you_mean(name, _names()) or "`dala kernels` lists all."
        raise UnknownKernel(f"there is no kernel {name!r}. {hint}")


def _list(as_json: bool) -> None:
    names = _names()
    filters = chain.filters()
    first = {name: _doc(name).splitlines()[0] for name in names}
    if as_json:
        listed = [{"name": n, "filter": n in filters, "doc": first[n]} for n in names]
        print(json.dumps(listed, indent=2))
        return
    wide = max(map(len, names))
    print("Filters: dala filter --NAME, dala.media.gpu.NAME or dala.media.effects.NAME")
    print("\n".join(f"  {n:{wide}}  {first[n]}" for n in names if n in filters))
    print("\nOther kernels: dala.gpu.compute.run_kernel")
    print("\n".join(f"  {n:{wide}}  {first[n]}" for n in names if n not in filters))


def _doc(name: str) -> str:
    """Return the summary and the definition of a kernel or filter."""
    from dala.gpu.compute.kernel import find
    from dala.media.filters.declarations import declared

    spec = declared().get(name)
    if spec is not None:
        return f"{spec.summary}\n\n{spec.definition}".strip()
    kernel = find(name)
    text = (kernel.__doc__ if kernel is not None else "") or name
    return inspect.cleandoc(text).partition("\nArgs:")[0].partition("\n>>>")[0].strip()


def explain(name: str) -> KernelFacts:
    """Return the inputs, parameters (type, default, range) and documentation of a kernel or filter.

    Raises:
        UnknownKernel: there is no kernel of that name; the nearest is suggested.
    """
    from dala.gpu.compute.kernel import find
    from dala.gpu.compute.kernels.filter import parameter_of
    from dala.media.filters.declarations import declared

    _check_name(name)
    spec, kernel = declared().get(name), find(name)
    if spec is not None:
        params = spec.parameters
    else:
        params = tuple(parameter_of(p) for p in kernel.params) if kernel is not None else ()
    return {
        "name": name,
        "filter": name in chain.filters(),
        "inputs": ["img"] if kernel is None else list(kernel.inputs),
        "params": [
            {
                "name": p.name,
                "type": f"{p.type} x {p.size}" if p.size else p.type,
                "range": p.range,
                "unit": p.unit,
                "doc": p.doc,
                "required": p.required,
                "default": None if p.required else p.default,
            }
            for p in params
        ],
        "doc": _doc(name),
    }


def _page(facts: KernelFacts) -> str:
    name = facts["name"]
    lines = [facts["doc"], "", f"inputs      {', '.join(facts['inputs'])}"]
    for number, one in enumerate(facts["params"]):
        head = "" if number else "parameters"
        default = "required" if one["required"] else f"= {_default(one['default'])}"
        shown = "  ".join(filter(None, [one["type"], default, one["range"], one["unit"]]))
        lines.append(f"{head:12}{one['name']:12} {shown}")
        if one["doc"]:
            lines.append(f"{'':25}{one['doc']}")
    if facts["filter"]:
        option = f"--{name} {chain.metavar(name)}".rstrip()
        lines += ["", f"dala filter in.png out.png {option}"]
    return "\n".join(lines)


def _default(value: ParamValue) -> str:
    if value is None:
        return "automatic"
    if isinstance(value, tuple):
        return ":".join(f"{v:g}" for v in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
