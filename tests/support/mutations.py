"""Changed constants of fast forms, one at a time, and the rows that must notice them.

``python -m tests.support.mutations`` runs all, or those of files whose names are given, and prints
the constants that no row noticed. A mutant is a source tree whose other files are links to ours.
"""

from __future__ import annotations

import ast
import compileall
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Final, TypeAlias

from tests.support.answers import processors

ROOT = Path(__file__).parents[2]
ENGINES = ROOT / "src" / "dala" / "gpu" / "compute" / "engines"
#: Seconds after which a mutant that is still running counts as noticed.
LIMIT = 240

#: Folders and files of fast forms, with the device that runs them and the filters that they are of.
FORMS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "cpu/rules/blur": ("cpu", ("blur", "gaussian_blur", "sharpen")),
    "cpu/rules/weighted_sum.py": ("cpu", ("sharpen", "grayscale", "emboss")),
    "cpu/rules": ("cpu", ("contrast", "brightness", "gamma", "posterize", "sharpen")),
    "cpu/pixels/over.py": ("cpu", ("compositor", "rasterizer")),
    "cpu/pixels": ("cpu", ("resize", "compositor", "warp_affine", "thumbnail")),
    "cpu/ops/resize": ("cpu", ("resize", "bicubic_scale", "thumbnail", "pixelate")),
    "cpu/ops/warp": ("cpu", ("warp_affine", "warp_perspective", "remap", "rotate")),
    "cpu/ops/yuv/decode.py": ("cpu", ("yuv_to_rgb",)),
    "cpu/ops/yuv/encode.py": ("cpu", ("rgb_to_yuv",)),
    "cpu/ops/yuv": ("cpu", ("yuv_to_rgb", "rgb_to_yuv")),
    "cpu/ops/box_blur.py": ("cpu", ("box_blur",)),
    "cpu/ops/wide_blur.py": ("cpu", ("blur", "gaussian_blur")),
    "cpu/ops/lut_bytes.py": ("cpu", ("lut_apply",)),
    "cpu/ops/map_levels.py": ("cpu", ("equalize", "clahe", "levels", "curves")),
    "cpu/ops/neighborhood.py": ("cpu", ("median", "morphology")),
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

#: Files of those folders that compute no bytes: f32, or the memory of a composer.
LEFT_OUT: Final = {
    "cpu/compose/composer.py",
    "cpu/ops/lut.py",
    "cpu/pixels/float_rows.py",
    "cpu/pixels/gather.py",
    "cpu/ops/resize/float.py",
    "cpu/ops/warp/floats.py",
}

#: Scope, line, first and last byte of a constant, and whether it is in a function.
Place: TypeAlias = tuple[str, int, int, int, bool]

#: Calls whose arguments decide no byte: a larger local array, a hint to the cache.
_HINTS = ("local", "prefetch")
#: Names of sizes and thresholds, outside functions: every choice gives the same bytes.
_SIZES = re.compile(
    r"TILE|BLOCK|LINE|COLUMNS|CAPACITY|BATCH|SPAN|AHEAD|PIECE|ROOM|PREFETCH|UNROLLED|VECTORS|GROUP$"
    r"|COST|MAX|MIN|MANY|PARALLEL|CONVERT|_PIXELS|_BYTES$|TAPS|DIRECT|RADIUS|SIZES|RUN|STRIP|STEP"
)
_GROUPS = "filters have two groups of weights; other kernels: engine/cpu/test_rows.py"
_PLACES = "the same numbers for all 256 bytes"
_FLOATS = "results of f32 are outside the contract"
_HINT = "a hint to the cache"
_FORM = "decides between forms that give the same bytes"
_MORE = "more, which nothing reads"
_RGBA = "pictures of four channels are stored by decoders only: engine/ops/test_yuv.py"
_PAIRS = "of 32 * a + b with a < b, dividing by 33 gives a as well"
#: Constants whose change alters no byte, and why: "file: scope", "file: scope: line", or the same
#: with " #n" for one of several in a line.
HARMLESS: Mapping[str, str] = {
    "cpu/rules/blur/rows.py: _IMAGE": "a name",
    "cpu/rules/blur/rows.py: RowBlur.text: self.pointers = [] if self.looped else "
    "[self.row(str(i)) for i in range(2 * r + 1)]": "more pointers, which nothing reads",
    "cpu/rules/blur/rows.py: RowBlur.text: "
    "self.later = f.at(self.row(str(2 * r)), pitch)": "a hint to the cache",
    "cpu/rules/blur/rows.py: RowBlur.text: "
    'wide = f.let(f"add i64 {self.numbers}, {2 * r * c}")': "more sums, which nothing reads",
    "cpu/rules/blur/rows.py: RowBlur.rounded: "
    'more = self.f.let(f"add i64 {count}, {self.step - 1}")': "of chains: test_properties.py",
    "cpu/rules/table.py: SIZE: SIZE: Final = 256": "a larger array",
    "cpu/rules/blur/bytes.py: ByteBlur.sum_columns: "
    "low, high = sums[2 * k : 2 * k + 2] #2": "the last slice ends with the list",
    "cpu/rules/weighted_sum.py: WeightedSumRow.begin: self.weights = "
    "[self.pair(*names[i : i + 2]) for i in range(0, len(names), 2)]": _GROUPS,
    "cpu/rules/weighted_sum.py: WeightedSumRow.totals: "
    'groups += [("zeroinitializer",) * 2] * (len(groups) % 2)': _GROUPS,
    "cpu/rules/weighted_sum.py: WeightedSumRow.totals: "
    "first, second = groups[2 * i][odd], groups[2 * i + 1][odd]": _GROUPS,
    "cpu/ops/box_blur.py: make_box_blur: nbytes = (4 if is_bytes else 8) * -(-height // rows) * 2 "
    "* (width + radius) * channels": "more memory",
    "cpu/ops/neighborhood.py: make_extremes.places: near = "
    "np.clip(given.array.view(np.int32)[: 2 * count], -reach, reach).astype(np.int64)": (
        "more, which nothing reads"
    ),
    "cpu/ops/lut_bytes.py: byte_place: "
    "return x * 257 + (((x + 127) * 32897) >> 23)  # x * 65536 / 255, rounded #3": _PLACES,
    "cpu/ops/neighborhood.py: exchanges: pairs = len(held) // 2": "another order, the same median",
    "cpu/ops/neighborhood.py: median_of_25: a = load(held, pair // 32 * lanes, lanes)": _PAIRS,
    "cpu/ops/neighborhood.py: median_of_25: store(held, pair // 32 * lanes, min(a, b))": _PAIRS,
    "cpu/ops/yuv/decode.py: interpolate_rows: out[k] = f32(plane[near + k * step]) * 0.75 + "
    "f32(plane[far + k * step]) * 0.25 - middle": _FLOATS,
    "cpu/compose/draws.py: draw_scaled": _FORM,
    "cpu/compose/rows.py: expand_row": _FORM,
    "cpu/compose/rows.py: halve_rgb: end = min(count - 7, (len(source) - 64 - 3 * lower_at) // 6 "
    "+ 1)": _FORM,
    "cpu/compose/plans.py: TOLERANCE": _FORM,
    "cpu/compose/plans.py: texels_per_pixel": _MORE,
    "cpu/compose/plans.py: cut_tiles": "tiles of other sizes",
    "cpu/compose/plans.py: fill_tables: sizes = (columns * 65536 + rows) * 65536 + many_x * 64 + "
    "bits_x": "a key",
    "cpu/compose/plans.py: fill_tables: shape = (width * 65536 + height) * 65536 + many_y * 64 + "
    "bits_y": "a key",
    "cpu/compose/coverage.py: spans": "a wider span, whose coverage is computed",
    "cpu/compose/coverage.py: rotated_span": "a wider span, whose coverage is computed",
    "cpu/ops/map_levels.py: map_bytes: whole = (last - i) // 64 * 64 #1": _FORM,
    "cpu/ops/map_levels.py: make_map_levels": "rows of a tile",
    "cpu/ops/map_levels.py: make_map_levels.run": _MORE,
    "cpu/ops/warp/bytes.py: bicubic_any": _FORM,
    "cpu/ops/warp/coordinates.py: distance": _HINT,
    "cpu/ops/warp/coordinates.py: perspective_near": _HINT,
    "cpu/ops/warp/coordinates.py: stored_part": _FLOATS,
    "cpu/ops/warp/sample.py: mixable": _FORM,
    "cpu/ops/warp/sample.py: prefetch_rows": _HINT,
    "cpu/ops/warp/sample.py: sample_level": _MORE,
    "cpu/ops/warp/sample.py: warp": _FORM,
    "cpu/ops/yuv/lanes.py: _BYTES_1": _RGBA,
    "cpu/ops/yuv/lanes.py: _BYTES_2": _RGBA,
    "cpu/ops/yuv/lanes.py: _PAIRS_1": _RGBA,
    "cpu/ops/yuv/lanes.py: _PAIRS_2": _RGBA,
    "cpu/ops/yuv/decode.py: pair": _FLOATS,
    "cpu/ops/yuv/decode.py: write_floats": _FLOATS,
    "cpu/ops/yuv/decode.py: float_coefficients": _FLOATS,
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
    #: Which of the constants of its line it is, from 1.
    number: int

    @property
    def names(self) -> tuple[str, str, str]:
        """What ``HARMLESS`` may call it."""
        scope = f"{self.file}: {self.scope}"
        return scope, f"{scope}: {self.text}", f"{scope}: {self.text} #{self.number}"

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: {self.scope}: {self.text} #{self.number}"
        return f"{place}: {self.old} -> {self.new}"

    @property
    def harmless(self) -> str:
        """Why the change alters no byte; "" if it must."""
        return next((HARMLESS[name] for name in self.names if name in HARMLESS), "")


@cache
def files() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return each file of a fast form with its device and its filters."""
    found = {}
    for place, how in FORMS.items():
        path = ENGINES / place
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            name = str(file.relative_to(ENGINES))
            known = name in LEFT_OUT or name in FORMS or name in found
            if file.suffix in (".py", ".wgsl") and not known:
                found[name] = how
        if path.is_file():
            found[place] = how
    return found


def mutants(file: str) -> Iterator[Mutant]:
    """Yield a mutant for each constant that is an operand of arithmetic."""
    source = (ENGINES / file).read_text()
    find = _in_wgsl if file.endswith(".wgsl") else _in_python
    lines = source.splitlines()
    seen: Counter[int] = Counter()
    for scope, line, begin, end, inside in sorted(find(source), key=itemgetter(1, 2)):
        text = lines[line - 1]
        old = text.encode()[begin:end].decode()
        seen[line] += 1
        made = (old, _changed(old), inside, seen[line])
        yield Mutant(file, scope, line, begin, end, text.strip(), *made)


def _changed(old: str) -> str:
    value = ast.literal_eval(old)
    # One more of thousands would be the same rounding for almost all pixels.
    return repr(value + max(1, value // 8) if isinstance(value, int) else value * 1.25 + 0.125)


def _in_python(source: str) -> Iterator[Place]:
    def walk(node: ast.AST, scope: str, inside: bool, native: bool) -> Iterator[Place]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            scope = f"{scope}.{node.name}".lstrip(".")
            inside = inside or isinstance(node, ast.FunctionDef)
            native = native or any("native" in ast.unparse(d) for d in node.decorator_list)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not scope:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            scope = ast.unparse(target)
            if _SIZES.search(scope):
                return
            if isinstance(node.value, ast.Constant):
                yield from constant(node.value, scope, inside)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _HINTS:
            return
        if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
            for side in (node.left, node.right):
                yield from constant(side, scope, inside)
        for child in ast.iter_child_nodes(node):
            # Ends of native slices bound nothing but the accesses of sanitized code.
            if not (native and isinstance(node, ast.Slice) and child is node.upper):
                yield from walk(child, scope, inside, native)

    def constant(node: ast.AST, scope: str, inside: bool) -> Iterator[Place]:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            assert node.end_col_offset is not None
            yield scope, node.lineno, node.col_offset, node.end_col_offset, inside

    yield from walk(ast.parse(source), "", False, False)


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


#: Reads trees and files of expected checksums, and runs each pair in a fork that imports Dala anew.
#: A fork writes the checksums if the file is empty; else it ends with 3 at the first that differs.
#: One picture of each setting comes first: most mutants fail there.
_RUN = """
import os, signal, sys
import llvmlite.binding, numpy
level, device, limit, *only = sys.argv[1:]
os.environ.update({"DALA_CPU": level} if level else {})

def check(tree, path):
    sys.path.insert(0, tree)
    from dala.answers.cases import rows
    from dala.answers.table import checksum
    seen, first, others = set(), [], []
    for row in rows(*only, share="few"):
        (others if (row.name, row.setting) in seen else first).append(row)
        seen.add((row.name, row.setting))
    every = dict.fromkeys([*first, *others, *rows(*only)])
    with open(path, "r+") as file:
        expected = file.read().split()
        for number, row in enumerate(every):
            found = checksum(row.run(device))
            if not expected:
                print(found, file=file)
            elif found != expected[number]:
                return 3
    return 0

for line in sys.stdin:
    process = os.fork()
    if not process:
        signal.alarm(int(limit))
        try:
            status = check(*line.rstrip().split("|"))
        except BaseException as error:
            print(error, file=sys.stderr)
            status = 1
        os._exit(status)
    print(os.waitpid(process, 0)[1], flush=True)
"""


class Runner:
    """A process that runs the rows of a file's filters for one mutant after the other.

    Mutants share a cache of compiled code, which knows the source that it was compiled from.
    """

    def __init__(self, device: str, only: tuple[str, ...], level: str = "") -> None:
        # Trees link to the bytecode of our files; without it each mutant would compile them all.
        compileall.compile_dir(ROOT / "src", quiet=2)
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name)
        self._expected = self._path / "expected"
        self._expected.touch()
        environment = {
            **os.environ,
            "DALA_CACHE_DIR": str(self._path / "cache"),
            "DALA_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-c", _RUN, level, device, str(LIMIT), *only],
            env=environment, cwd=self._path, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert not self.is_noticed(None), "the rows fail without a change"

    def is_noticed(self, mutant: Mutant | None) -> bool:
        """Return whether a row fails with a change: other bytes, an error, or no end."""
        with tempfile.TemporaryDirectory(dir=self._path) as held:
            pipe, answers = self._process.stdin, self._process.stdout
            assert pipe is not None
            assert answers is not None
            pipe.write(f"{tree(Path(held), mutant)}|{self._expected}\n")
            pipe.flush()
            return int(answers.readline()) != 0

    def close(self) -> None:
        self._process.communicate()
        self._folder.cleanup()


def kept(file: str, some: Iterable[Mutant], *, all_levels: bool = True) -> list[Mutant]:
    """Return the mutants of a file that no row notices, on any level of the processor."""
    device, only = files()[file]
    left = list(some)
    levels = [engine.environment.get("DALA_CPU", "") for engine in processors()]
    for level in levels if all_levels and device == "cpu" else [""]:
        if left:
            with closing(Runner(device, only, level)) as runner:
                left = [mutant for mutant in left if not runner.is_noticed(mutant)]
    return left


def chosen(file: str, count: int) -> list[Mutant]:
    """Return some mutants of the functions of a file, by a hash that other lines do not change."""
    every = [m for m in mutants(file) if m.inside and not m.harmless]
    return sorted(every, key=lambda m: hashed(m.names[-1]))[:count]


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def main(names: list[str]) -> None:
    for file in files():
        if names and not any(name in file for name in names):
            continue
        every = [m for m in mutants(file) if not m.harmless]
        found = kept(file, every)
        lines = [f"{file}: {len(every)} constants, {len(found)} not noticed", *map(str, found)]
        sys.stdout.write("\n  ".join(lines) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
