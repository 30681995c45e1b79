"""``dala kernels``: lists the built-in kernels and filters, or explains one."""

from __future__ import annotations

import argparse
import inspect
import json
from typing import Any, Final

from dala.cli import _chain as chain
from dala.errors import ParameterError, UnknownKernel, did_you_mean

EXAMPLES: Final = """\
examples:
  dala kernels                     all of them
  dala kernels blur                inputs, parameters, what it computes
  dala kernels sepia --source wgsl the code it becomes (python, ir, wgsl or llvm)
  dala kernels sepia --device cpu  the code it becomes on a device
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this command's arguments."""
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", nargs="?", help="explain this one")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.add_argument(
        "--source", choices=("python", "ir", "wgsl", "llvm"), help="print its code in this form"
    )
    parser.add_argument("--device", help="print its code as this device gets it")


def run(args: argparse.Namespace) -> int:
    """Prints the list or the explanation."""
    if args.device and args.source:
        raise ParameterError("--device and --source both say which code; give one of them.")
    if args.name is None:
        if args.source or args.device:
            option = "--source" if args.source else "--device"
            raise ParameterError(f"{option} needs the name of a kernel.")
        _list(args.json)
        return 0
    name = chain.SHORT.get(args.name, args.name)
    if args.source or args.device:
        form = args.source or _form(args.device)
        print(_kernel(name, "--source" if args.source else "--device").source(form))
        return 0
    facts = explain(name)
    print(json.dumps(facts, indent=2) if args.json else _page(facts))
    return 0


def _form(device: str) -> str:
    """What kernels become on a device."""
    import dala
    from dala.gpu import compute

    with dala.device(device):
        return {"cpu": "llvm", "webgpu": "wgsl"}.get(compute.device_info()["backend"], "ir")


def _names() -> list[str]:
    from dala.gpu.compute import kernels

    return sorted({*kernels(), *chain.calls()})


def _kernel(name: str, why: str) -> Any:
    from dala.gpu.compute.kernel import find

    kernel = find(name)
    if kernel is None:
        _unknown(name)
        raise ParameterError(f"{why}: {name!r} is made of several kernels.")
    if not kernel.language:
        raise ParameterError(f"{why}: {name!r} has code of its own for each engine, none to show.")
    return kernel


def _unknown(name: str) -> None:
    if name not in _names():
        hint = did_you_mean(name, _names()) or "`dala kernels` lists all."
        raise UnknownKernel(f"there is no kernel {name!r}. {hint}")


def _list(as_json: bool) -> None:
    names = _names()
    first = {name: _first(name) for name in names}
    if as_json:
        listed = [{"name": n, "filter": n in chain.calls(), "doc": first[n]} for n in names]
        print(json.dumps(listed, indent=2))
        return
    wide = max(map(len, names))
    filters = chain.calls()
    print("Filters: dala filter --NAME, dala.media.gpu.NAME or dala.media.effects.NAME")
    print("\n".join(f"  {n:{wide}}  {first[n]}" for n in names if n in filters))
    print("\nOther kernels: dala.gpu.compute.run_kernel")
    print("\n".join(f"  {n:{wide}}  {first[n]}" for n in names if n not in filters))


def _first(name: str) -> str:
    return chain.summary(name) if name in chain.calls() else _doc(name).splitlines()[0]


def _doc(name: str) -> str:
    from dala.gpu.compute.kernel import find

    kernel = find(name)
    text = (chain.calls()[name].__doc__ if kernel is None else kernel.__doc__) or name
    return inspect.cleandoc(text).partition("\nArgs:")[0].partition("\n>>>")[0].strip()


def explain(name: str) -> dict[str, Any]:
    """Inputs, parameters (type, default, range) and documentation of a kernel or filter.

    Raises:
        UnknownKernel: there is none of that name; the nearest is offered.
    """
    from dala.gpu.compute.kernel import find

    _unknown(name)
    kernel = find(name)
    known = {} if kernel is None else {p.name: p for p in kernel.params}
    is_filter = name in chain.calls()
    if is_filter:
        defaults = chain.params(name)
        names = list(defaults)
    else:
        names = list(known)
        defaults = {p.name: p.default for p in known.values()}
    params = [_param(n, defaults[n], known.get(n)) for n in names]
    inputs = ["img"] if kernel is None else list(kernel.inputs)
    doc = _doc(name)
    return {"name": name, "filter": is_filter, "inputs": inputs, "params": params, "doc": doc}


def _param(name: str, default: Any, declared: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": name, "type": "", "range": ""}
    missing = default is inspect.Parameter.empty
    if declared is not None:
        size = f" x {declared.size}" if declared.size else ""
        facts["type"] = f"{declared.type}{size}"
        facts["range"] = _range(declared)
        missing = missing or (default is None and declared.required)
    elif name in chain.PICTURES:
        facts["type"] = "picture"
    elif name in chain.FILES:
        facts["type"] = {"lut": "file .cube", "map": "file .npy"}[name]
    elif not missing and default is not None:
        facts["type"] = type(default).__name__
    facts["required"] = missing
    facts["default"] = None if missing else default
    return facts


def _range(declared: Any) -> str:
    choices = getattr(declared, "choices", ())
    if choices:
        return ", ".join(choices)
    low, high = declared.low, declared.high
    if low is None or high is None or (abs(low) == abs(high) == float("inf")):
        return ""
    if abs(high) == float("inf"):
        return f"{low:g} or more"
    return f"{low:g} to {high:g}"


def _page(facts: dict[str, Any]) -> str:
    name = facts["name"]
    lines = [facts["doc"], "", f"inputs      {', '.join(facts['inputs'])}"]
    for number, one in enumerate(facts["params"]):
        head = "" if number else "parameters"
        default = "needed" if one["required"] else f"= {_shown(one['default'])}"
        told = "  ".join(filter(None, [one["type"], default, one["range"]]))
        lines.append(f"{head:12}{one['name']:12} {told}")
    if facts["filter"]:
        needed = [f"{p['name']}=..." for p in facts["params"] if p["required"]]
        option = f"--{name} {','.join(needed)}".rstrip()
        lines += ["", f"dala filter in.png out.png {option}"]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if value is None:
        return "by itself"
    if isinstance(value, tuple):
        return ":".join(f"{v:g}" for v in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
