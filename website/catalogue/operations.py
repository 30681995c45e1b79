"""A page for every operation and kernel that is not a filter of pictures."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from dala.gpu.compute import kernels
from dala.gpu.compute.kernel import find
from dala.gpu.compute.kernels.filter import parameter_of
from dala.gpu.compute.operation import Operation
from dala.gpu.compute.runnable import Runnable
from dala.media.filters.declarations import declared
from dala.ml.models import NAMES
from tests.support.filter_stubs import row
from website.catalogue import costs, examples
from website.catalogue.pictures import Pictures
from website.docstrings import parse, table

#: What each domain of kernels is about, by the module that declares it.
DOMAINS = {
    "elementwise": "Numbers",
    "reduce": "Reductions",
    "scan": "Reductions",
    "norm": "Reductions",
    "linalg": "Linear algebra",
    "conv": "Linear algebra",
    "fft": "Linear algebra",
    "reshape": "Shapes",
    "hdr": "Color",
    "deep": "Color",
    "generate": "Pictures",
    "signal": "Linear algebra",
}


def pages(pictures: Pictures) -> dict[str, tuple[str, str]]:
    """Return the pages of all operations, and their list."""
    names = [name for name in kernels() if name not in declared() and name not in NAMES]
    found = {"index": ("Operations", "\n".join(_index(names)))}
    for name in names:
        found[name] = (name, "\n".join(_page(name)))
    return found


def _domain(name: str) -> str:
    kernel = find(name)
    module = type(kernel).__module__ if isinstance(kernel, Operation) else ""
    if not module.startswith("dala.gpu.compute.kernels."):
        module = "elementwise" if name != "generate_gradient" else "generate"
    return DOMAINS.get(module.rpartition(".")[2], "Pictures")


def _index(names: list[str]) -> Iterator[str]:
    yield from (
        "# Operations",
        "",
        "Kernels for numbers and arrays: run them by name with `run_kernel`, in pipelines, or through the "
        "functions and operators of buffers. Each page has an example that was run, with its result.",
        "",
        "Guides: [linear algebra](../../compute/operations/linalg.md), [reductions](../../compute/operations/reduce.md), "
        "[color](../../compute/operations/color.md), [geometry](../../compute/operations/geometry.md), "
        "[buffers as arrays](../../compute/arrays.md).",
        "",
    )
    domains: dict[str, list[str]] = {}
    for name in names:
        domains.setdefault(_domain(name), []).append(name)
    for domain in sorted(domains):
        yield from (f"## {domain}", "")
        yield from table(
            ("operation", ""),
            [(f"[`{n}`]({n}.md)", parse(find(n).__doc__).summary) for n in domains[domain]],
        )


def _page(name: str) -> Iterator[str]:
    kernel = find(name)
    doc = parse(inspect.cleandoc(kernel.__doc__ or ""))
    body, fence, example = doc.body.partition("```pycon")
    yield from (f"# {name}", "", doc.summary, "", body, "")
    yield from ("## Example", "", fence + example, "")
    yield from ("## Inputs and result", "", *examples.facts(name, kernel))
    if kernel.params:
        described = doc.items.get("Args", {})
        yield from ("## Parameters", "", "| parameter | default | range | |", "|---|---|---|---|")
        for declaration in kernel.params:
            p = parameter_of(declaration)
            text = row(p)
            if p.name in described:
                text = text.rstrip("| ") + f" | {described[p.name]} |"
            yield text
        yield ""
    yield from ("## Python", "", "```py", *forms(name, kernel), "```", "")
    yield from (f"`dala kernels {name}` explains it in a terminal.", "")
    yield from costs.section(name)


def forms(name: str, kernel: Runnable) -> Iterator[str]:
    """Yield the ways to call a kernel with buffers."""
    call = examples.call_of(name, kernel)
    shown = {p.name: p.default for p in kernel.params} | (call.params if call else {})
    pairs = [f'"{key}": {_literal(value)}' for key, value in shown.items()]
    line = f"params = {{{', '.join(pairs)}}}"
    if len(line) > 90:
        yield from ("params = {", *(f"    {pair}," for pair in pairs), "}")
    elif pairs:
        yield line
    given = f'"{name}", [{", ".join(kernel.inputs)}], out{", params" if pairs else ""}'
    yield f"run_kernel({given})"
    yield f"await run_kernel_async({given})        # in asyncio"
    stage = f'"op": "run_kernel", "kernel": "{name}", "inputs": [{", ".join(kernel.inputs)}]'
    more = ', "params": params' if pairs else ""
    yield f'pipeline.add({{{stage}, "output": out{more}}})'


def _literal(value: Any) -> str:
    """Return a parameter's value as Python writes it, tuples of equal numbers as one of them."""
    if isinstance(value, tuple) and len(value) == 2 and value[0] == value[1]:
        value = value[0]
    return f'"{value}"' if isinstance(value, str) else repr(value)
