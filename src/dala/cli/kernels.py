"""List the built-in kernels, or explain one.

examples:
  dala kernels                     all of them
  dala kernels blur                inputs, parameters, definition
  dala kernels sepia --source wgsl generated code (python, ir, wgsl or llvm)
  dala kernels sepia --device cpu  the code that a device runs
"""

from __future__ import annotations

import argparse
import inspect
from typing import TYPE_CHECKING, Final

import dala
from dala.cli.common import arguments, chain
from dala.cli.common.arguments import Report, argument, switch
from dala.errors import ParameterError, UnknownKernel, did_you_mean
from dala.gpu import compute
from dala.gpu.compute.kernel import Kernel, find
from dala.gpu.compute.kernels.filter import parameter_of
from dala.media.filters.declarations import declared

if TYPE_CHECKING:
    from dala.typing import ParamValue

ARGUMENTS: Final[arguments.Options] = {
    "name": argument("explain this kernel", nargs="?"),
    "--json": switch("print as JSON"),
    "--source": argument("print its code in this form", choices=("python", "ir", "wgsl", "llvm")),
    "--device": argument("print its code as this device runs it"),
}


def run(args: argparse.Namespace) -> int:
    """Print the list or the explanation."""
    if args.device and args.source:
        raise ParameterError("--device and --source both select the code; give one of them.")
    if args.name is None:
        if args.source or args.device:
            option = "--source" if args.source else "--device"
            raise ParameterError(f"{option} needs the name of a kernel.")
        return _list(args)
    name = chain.SHORT.get(args.name, args.name)
    if args.source or args.device:
        form = args.source or _form(args.device)
        source = _kernel(name, "--source" if args.source else "--device").source(form)
        return arguments.show(args, {"name": name, "form": form, "source": source}, source)
    facts = explain(name)
    return arguments.show(args, facts, _page(facts))


def _form(device: str) -> str:
    """Return the form of kernels on a device."""
    with dala.device(device):
        return {"cpu": "llvm", "webgpu": "wgsl"}.get(str(compute.device_info()["backend"]), "ir")


def _names() -> list[str]:
    return sorted({*compute.kernels(), *chain.filters()})


def _kernel(name: str, option: str) -> Kernel:
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


def _list(args: argparse.Namespace) -> int:
    names = _names()
    filters = chain.filters()
    first = {name: _doc(name).splitlines()[0] for name in names}
    listed = [{"name": n, "filter": n in filters, "doc": first[n]} for n in names]
    wide = max(map(len, names))
    lines = {n: f"  {n:{wide}}  {first[n]}" for n in names}
    page = [
        "Filters: dala filter --NAME, dala.media.gpu.NAME or dala.media.effects.NAME",
        *(line for n, line in lines.items() if n in filters),
        "\nOther kernels: dala.gpu.compute.run_kernel",
        *(line for n, line in lines.items() if n not in filters),
    ]
    return arguments.show(args, listed, "\n".join(page))


def _doc(name: str) -> str:
    """Return the summary and the definition of a kernel or filter."""
    spec = declared().get(name)
    if spec is not None:
        return f"{spec.summary}\n\n{spec.definition}".strip()
    kernel = find(name)
    text = (kernel.__doc__ if kernel is not None else "") or name
    return inspect.cleandoc(text).partition("\nArgs:")[0].partition("\n>>>")[0].strip()


def explain(name: str) -> Report:
    """Return the inputs, parameters (type, default, range) and documentation of a kernel or filter.

    Raises:
        UnknownKernel: there is no kernel of that name; the nearest is suggested.
    """
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


def _page(facts: Report) -> str:
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
