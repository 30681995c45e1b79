"""Changed constants of fast forms, one at a time, and the rows that must notice them.

``python -m tests.support.mutations`` runs all, or those of files whose names are given, and prints
the constants that no row noticed. A mutant is a source tree whose other files are links to ours.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parents[2]
ENGINES = ROOT / "src" / "dala" / "gpu" / "compute" / "engines"
#: Seconds after which a mutant that is still running counts as noticed.
LIMIT = 240

#: Folders and files of fast forms, with the device that runs them and the filters that they are of.
FORMS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "cpu/rows/forms/blur": ("cpu", ("blur", "gaussian_blur", "sharpen")),
    "cpu/rows/forms/weighted_sum.py": ("cpu", ("sharpen", "grayscale", "emboss")),
    "cpu/rows/forms": ("cpu", ("contrast", "brightness", "gamma", "posterize", "sharpen")),
    "cpu/pixels/over.py": ("cpu", ("compositor", "rasterizer")),
    "cpu/pixels": ("cpu", ("resize", "compositor", "warp_affine", "thumbnail")),
    "cpu/ops/resize": ("cpu", ("resize", "bicubic_scale", "thumbnail", "pixelate")),
    "cpu/ops/warp": ("cpu", ("warp_affine", "warp_perspective", "remap", "rotate")),
    "cpu/ops/yuv/decode.py": ("cpu", ("yuv_to_rgb",)),
    "cpu/ops/yuv/encode.py": ("cpu", ("rgb_to_yuv",)),
    "cpu/ops/yuv": ("cpu", ("yuv_to_rgb", "rgb_to_yuv")),
    "cpu/ops/box_blur.py": ("cpu", ("box_blur",)),
    "cpu/ops/wide_blur.py": ("cpu", ("blur", "gaussian_blur")),
    "cpu/ops/lut.py": ("cpu", ("lut_apply",)),
    "cpu/ops/lut_bytes.py": ("cpu", ("lut_apply",)),
    "cpu/ops/map_levels.py": ("cpu", ("equalize", "clahe", "levels", "curves")),
    "cpu/ops/median.py": ("cpu", ("median",)),
    "cpu/ops/extremes.py": ("cpu", ("morphology",)),
    "cpu/ops/hysteresis.py": ("cpu", ("canny",)),
    "cpu/compose": ("cpu", ("compositor",)),
    "webgpu/wgsl/blur": ("webgpu", ("blur", "gaussian_blur", "box_blur")),
    "webgpu/ops/blur.py": ("webgpu", ("blur", "gaussian_blur", "box_blur")),
    "webgpu/ops/resize.py": ("webgpu", ("resize", "bicubic_scale", "thumbnail")),
    "webgpu/ops/resize.wgsl": ("webgpu", ("resize", "bicubic_scale", "thumbnail")),
    "webgpu/ops/warp.wgsl": ("webgpu", ("warp_affine", "warp_perspective", "remap")),
    "webgpu/ops/lut.py": ("webgpu", ("lut_apply",)),
    "webgpu/compose/compose.wgsl": ("webgpu", ("compositor",)),
}

#: Scope, line, first and last byte of a constant, and whether it is in a function.
Place: TypeAlias = tuple[str, int, int, int, bool]

#: Constants whose change alters no byte: "file: scope: line", or "file: scope", and why.
HARMLESS: Mapping[str, str] = {
    "cpu/compose/halve.py: halve_rgb: "
    "prefetch(source, 3 * upper_at + 6 * done + PREFETCH_BYTES)": "a hint to the cache",
}

_WGSL = re.compile(r"(?<![\w@.])\d+(?:\.\d+)?(?=[uif]?\b)(?!\.)")
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift,
               ast.BitAnd, ast.BitOr, ast.BitXor)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One constant of a file, and its changed text."""

    #: Relative to the folder of engines.
    file: str
    scope: str
    line: int
    begin: int
    end: int
    text: str
    old: str
    new: str

    #: Whether it is in a function; others are mostly sizes and limits.
    inside: bool

    @property
    def name(self) -> str:
        return f"{self.file}: {self.scope}: {self.text}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.scope}: {self.old} -> {self.new} in {self.text!r}"

    @property
    def harmless(self) -> str:
        """Why the change alters no byte; "" if it must."""
        return HARMLESS.get(self.name) or HARMLESS.get(f"{self.file}: {self.scope}", "")


@cache
def files() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return each file of a fast form with its device and its filters."""
    found = {}
    for place, how in FORMS.items():
        path = ENGINES / place
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            name = str(file.relative_to(ENGINES))
            if file.suffix in (".py", ".wgsl") and name not in FORMS | found:
                found[name] = how
        if path.is_file():
            found[place] = how
    return found


def mutants(file: str) -> Iterator[Mutant]:
    """Yield a mutant for each constant that is an operand of arithmetic."""
    source = (ENGINES / file).read_text()
    find = _in_wgsl if file.endswith(".wgsl") else _in_python
    lines = source.splitlines()
    for scope, line, begin, end, inside in find(source):
        text = lines[line - 1]
        old = text.encode()[begin:end].decode()
        yield Mutant(file, scope, line, begin, end, text.strip(), old, _changed(old), inside)


def _changed(old: str) -> str:
    value = ast.literal_eval(old)
    return repr(value + 1) if isinstance(value, int) else repr(value * 1.25 + 0.125)


def _in_python(source: str) -> Iterator[Place]:
    def walk(node: ast.AST, scope: str, inside: bool) -> Iterator[Place]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            scope = f"{scope}.{node.name}".lstrip(".")
            inside = inside or isinstance(node, ast.FunctionDef)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not scope:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            scope = ast.unparse(target)
            if isinstance(node.value, ast.Constant):
                yield from constant(node.value, scope, inside)
        if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
            for side in (node.left, node.right):
                yield from constant(side, scope, inside)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, scope, inside)

    def constant(node: ast.AST, scope: str, inside: bool) -> Iterator[Place]:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            assert node.end_col_offset is not None
            yield scope, node.lineno, node.col_offset, node.end_col_offset, inside

    yield from walk(ast.parse(source), "", False)


def _in_wgsl(source: str) -> Iterator[Place]:
    scope = ""
    for number, line in enumerate(source.splitlines(), 1):
        if found := re.match(r"\s*fn (\w+)", line):
            scope = found[1]
        code = line.partition("//")[0]
        if not scope or code.lstrip().startswith("@"):
            continue
        for match in _WGSL.finditer(code):
            around = code[: match.start()].rstrip()[-1:] + code[match.end() :].lstrip()[:1]
            if set(around) & set("+-*/%&|^<>"):
                yield scope, number, match.start(), match.end(), True


def tree(folder: Path, mutant: Mutant | None) -> Path:
    """Make a source tree of links to ours, with one file changed, and return it."""
    ours, made = ROOT / "src" / "dala", folder / "dala"
    if mutant is None:
        made.symlink_to(ours)
        return folder
    place = (ENGINES / mutant.file).relative_to(ours)
    made.mkdir()
    for depth, part in enumerate(place.parts):
        at, copy = ours.joinpath(*place.parts[:depth]), made.joinpath(*place.parts[:depth])
        for item in at.iterdir():
            if item.name != part:
                (copy / item.name).symlink_to(item)
        if depth < len(place.parts) - 1:
            (copy / part).mkdir()
    lines = (ours / place).read_bytes().splitlines(keepends=True)
    line = lines[mutant.line - 1]
    lines[mutant.line - 1] = line[: mutant.begin] + mutant.new.encode() + line[mutant.end :]
    (made / place).write_bytes(b"".join(lines))
    return folder


#: Prints checksums, or stops with 3 at the first that is not the expected one.
_RUN = """
import sys
from dala.answers.cases import rows
from dala.answers.table import checksum
device, expected, only = sys.argv[1], sys.argv[2].split(), sys.argv[3:]
for number, row in enumerate(rows(*only, share="most")):
    if expected:
        if checksum(row.run(device)) != expected[number]:
            sys.exit(3)
    else:
        print(checksum(row.run(device)))
"""


def run(
    mutant: Mutant | None, device: str, only: tuple[str, ...], expected: str
) -> tuple[int, str]:
    """Run rows with a changed constant in a process of its own, with an empty cache."""
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        (folder / "src").mkdir()
        environment = {
            **os.environ,
            "PYTHONPATH": str(tree(folder / "src", mutant)),
            "DALA_CACHE_DIR": str(folder / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-c", _RUN, device, expected, *only]
        try:
            ran = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=LIMIT, cwd=folder
            )
        except subprocess.TimeoutExpired:
            return 3, ""
        return ran.returncode, ran.stdout if not ran.returncode else ran.stderr


@cache
def answers(device: str, only: tuple[str, ...]) -> str:
    """Return the checksums without a change, which another test compares with the table."""
    code, text = run(None, device, only, "")
    assert code == 0, text[-3000:]
    return text


def is_noticed(mutant: Mutant) -> bool:
    """Return whether a row fails with a changed constant: other bytes, an error, or no end."""
    device, only = files()[mutant.file]
    return run(mutant, device, only, answers(device, only))[0] != 0


def chosen(file: str, count: int) -> list[Mutant]:
    """Return some mutants of the functions of a file, by a hash that other lines do not change."""
    every = [m for m in mutants(file) if m.inside and not m.harmless]
    return sorted(every, key=lambda m: hashed(f"{m.name}/{m.begin}"))[:count]


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def main(names: list[str]) -> None:
    for file in files():
        if names and not any(name in file for name in names):
            continue
        every = [m for m in mutants(file) if not m.harmless]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            kept = [
                m for m, seen in zip(every, pool.map(is_noticed, every), strict=True) if not seen
            ]
        lines = [f"{file}: {len(every)} constants, {len(kept)} not noticed", *map(str, kept)]
        sys.stdout.write("\n  ".join(lines) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
