"""The rules of the house: package layout, private access, wording, typed and documented API.

Each function returns the violations it finds, as text. ``python -m tests.support.house [PREFIX]``
prints them all, or those under a path.
"""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import io
import pathlib
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from tests.support.privates import Library
from tests.support.signatures import signatures, untyped_annotations

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "src" / "dala"

#: Modules in a folder; those that are plain lists of one kind (one file each) may hold more.
MOST_MODULES = 15
MOST_IN_LISTS = 25
LISTS = {
    "cli",
    "gpu/compute/kernels",
    "gpu/compute/engines/cpu/ops",
    "gpu/compute/engines/webgpu/ops",
    "media/scene/nodes",
    "ml/models",
}
MOST_LINES = 500

#: The one file that knows another package's private attributes.
KNOWS_PRIVATES = "gpu/compute/engines/webgpu/calls/ffi.py"

#: The one file that makes locks and threads, and resets them in a forked child.
MAKES_THREADS = "forks.py"
THREADED = {
    *(f"threading.{n}" for n in ("Lock", "RLock", "Condition", "Event", "Thread", "Timer")),
    *(f"threading.{n}" for n in ("Semaphore", "BoundedSemaphore", "Barrier", "local")),
    *(f"queue.{n}" for n in ("Queue", "SimpleQueue", "LifoQueue", "PriorityQueue")),
    *(f"concurrent.futures.{n}" for n in ("ThreadPoolExecutor", "ProcessPoolExecutor")),
    "concurrent.futures.thread.ThreadPoolExecutor",
    "functools.cached_property",  # has a lock in Python 3.11
    "os.register_at_fork",
}

#: Packages whose ``__all__`` is public, with what users import from them.
PUBLIC = (
    "dala.batch",
    "dala.gpu",
    "dala.gpu.command",
    "dala.gpu.compute",
    "dala.media",
    "dala.media.audio",
    "dala.media.camera",
    "dala.media.effects",
    "dala.media.fonts",
    "dala.media.gpu",
    "dala.media.live",
    "dala.media.microphone",
    "dala.media.scene",
    "dala.media.screen",
    "dala.media.subtitles",
    "dala.media.text",
    "dala.media.video",
    "dala.ml",
    "dala.ml.gpu",
    "dala.ml.results",
    "dala.ml.smooth",
    "dala.ml.track",
    "dala.studio",
    "dala.web",
)

#: Words of the old dialect, as patterns, with what to write instead.
DIALECT = {
    r"\bcame\b": "got",
    r"\bmelt(s|ed|ing)?\b": "fuse",
    r"\b(is|are|was|were|be|being) told\b": "is reported, is given, unless set",
    r"\btold\b": "reported",
    r"\bunless told\b": "by default",
    r"\blets? go of\b": "release",
    r"\blet go of\b": "released",
    r"\bin words\b": "as text",
    r"\bgo(es)? along\b": "is passed through",
    r"\bcomes? along\b": "is bundled",
    r"\bwhat lies between\b": "interpolation",
    r"\bgiven back\b": "released, returned",
    r"\bwhoever\b": "the caller, the thread that ...",
    r"\bnobody\b": "no one / nothing",
    r"\bsomebody\b": "a caller",
    r"\bput into words\b": "formatted",
    r"\bwill do\b": "also works",
    r"\bmended\b": "fixed",
    r"\bthe least of\b": "the minimum of",
    r"\bthe house of\b": "the package",
    r"\bto and fro\b": "back and forth",
    r"\bcolou?rless\b": "gray",
    r"\bcolour\w*": "color",
    r"\bneighbour\w*": "neighbor",
    r"\bnormalis\w+": "normalize",
    r"\boptimis\w+": "optimize",
    r"\bspecialis\w+": "specialize",
    r"\bvectoris\w+": "vectorize",
    r"\binitialis\w+": "initialize",
    r"\brecognis\w+": "recognize",
    r"\bgrey\b": "gray",
    r"\bcentre\w*": "center",
    r"\bmisspelt\b": "misspelled",
    r"\bprogramme\b": "program",
}


def modules(root: pathlib.Path = SOURCE) -> list[pathlib.Path]:
    """Every module of the library."""
    return sorted(root.rglob("*.py"))


def name_of(path: pathlib.Path) -> str:
    """A module's path below ``src/dala``, or below the repository."""
    for base in (SOURCE, ROOT):
        if path.is_relative_to(base):
            return path.relative_to(base).as_posix()
    return path.name


def full_folders() -> Iterator[str]:
    """Folders with too many modules."""
    held = defaultdict(list)
    for path in modules():
        if path.name not in ("__init__.py", "__main__.py"):
            held[name_of(path.parent)].append(path)
    for folder, paths in held.items():
        most = MOST_IN_LISTS if folder in LISTS else MOST_MODULES
        if len(paths) > most:
            yield f"{folder}: {len(paths)} modules, at most {most}"


def families() -> Iterator[str]:
    """Three or more modules of a folder with one prefix: they belong into a folder of their own."""
    held = defaultdict(set)
    for path in modules():
        prefix = path.stem.strip("_").split("_")[0]
        held[name_of(path.parent), prefix].add(path.stem)
    for (folder, prefix), stems in held.items():
        if prefix and len(stems) >= 3:
            yield f"{folder}: {', '.join(sorted(stems))} share a prefix; make {prefix}/ of them"


def long_modules() -> Iterator[str]:
    """Modules of more lines than one subject should need, tests included."""
    for path in [*modules(), *(ROOT / "tests").rglob("*.py")]:
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > MOST_LINES:
            yield f"{path.relative_to(ROOT)}: {lines} lines, at most {MOST_LINES}"


def repeated_classes() -> Iterator[str]:
    """Public class names that are defined more than once."""
    held = defaultdict(list)
    for path in modules():
        for node in ast.walk(_library().trees[path]):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                held[node.name].append(name_of(path))
    for name, places in held.items():
        if len(places) > 1:
            yield f"class {name}: {', '.join(places)}"


def private_access() -> Iterator[str]:
    """Uses of private names of another package; the rules are in ``privates.py``."""
    yield from _library().violations(but=(KNOWS_PRIVATES,))


def unregistered(paths: list[pathlib.Path] | None = None) -> Iterator[str]:
    """Locks, threads, pools and fork hooks that are not made by ``dala.forks``.

    A forked child could not reset them. Annotations may name their types.
    """
    trees = _library().trees
    if paths is not None:
        trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    for path, tree in trees.items():
        if name_of(path) == MAKES_THREADS:
            continue
        imported = dict(_imports(tree))
        for node in _values(tree):
            base, _, rest = _dotted(node).partition(".")
            full = ".".join(filter(None, (imported.get(base, base), rest)))
            if full in THREADED or full.startswith(("_thread.", "multiprocessing.")):
                yield f"{name_of(path)}:{node.lineno}: {full}; use dala.forks"


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that a module imports, with what they stand for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield (
                    name.asname or name.name.partition(".")[0],
                    (name.name if name.asname else name.name.partition(".")[0]),
                )
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                yield name.asname or name.name, f"{node.module}.{name.name}"


def _values(tree: ast.AST) -> Iterator[ast.Name | ast.Attribute]:
    """Names that are evaluated, annotations left out, in the order of the text."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.Name | ast.Attribute):
            yield node
        parts: list[object] = []
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns"):
                parts += value if isinstance(value, list) else [value]
        left += [part for part in reversed(parts) if isinstance(part, ast.AST)]


def _dotted(node: ast.expr) -> str:
    """``a.b.c``; what is no name (the ``f()`` of ``f().c``) is left empty."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


@cache
def _library() -> Library:
    gc.disable()  # syntax trees are millions of objects, and none is freed
    try:
        return Library(SOURCE)
    finally:
        gc.enable()


def forget() -> None:
    """Drop the syntax trees of the library, which take 250 MB."""
    _library.cache_clear()


def dialect(paths: list[pathlib.Path] | None = None) -> Iterator[str]:
    """Words of the old dialect in docstrings, comments, messages and pages."""
    pattern = re.compile("|".join(DIALECT), re.IGNORECASE)
    for path in paths if paths is not None else [*modules(), *pages()]:
        for line, text in _prose(path):
            if path.name == "synonyms.py":  # words of others, in their spelling
                break
            for found in pattern.finditer(text):
                advice = next(a for p, a in DIALECT.items() if re.fullmatch(p, found[0], re.I))
                yield f"{name_of(path)}:{line}: {found[0]!r} (write: {advice})"


#: Words that stand for a noun which a first line could name.
VAGUE = re.compile(r"\b(what|those that|whatever|tells?)\b", re.IGNORECASE)


def first_lines(paths: list[pathlib.Path] | None = None) -> Iterator[tuple[str, str]]:
    """The first lines of docstrings, with their places."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for path in modules() if paths is None else paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, kinds) and (doc := ast.get_docstring(node)):
                yield f"{name_of(path)}:{getattr(node, 'lineno', 1)}", doc.partition("\n")[0]


def pages() -> list[pathlib.Path]:
    """Every page of the documentation."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    return sorted([*found, ROOT / "benchmarks" / "README.md", ROOT / "tests" / "README.md"])


def _prose(path: pathlib.Path) -> Iterator[tuple[int, str]]:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        # The guide ends with pairs of old and new sentences.
        yield from enumerate(text.partition("### Before and after")[0].splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kinds = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1))
        if token.type in kinds:
            for offset, line in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, line


def public_things() -> Iterator[tuple[str, object]]:
    """Every public function and class, by its full name."""
    for package in PUBLIC:
        parent, _, last = package.rpartition(".")
        try:
            module = importlib.import_module(package)
        except ModuleNotFoundError:
            module = getattr(importlib.import_module(parent), last)
        for name in getattr(module, "__all__", [n for n in vars(module) if n[0] != "_"]):
            found = getattr(module, name)
            if inspect.isfunction(found) or inspect.isclass(found):
                yield f"{package}.{name}", found


def without_example() -> Iterator[str]:
    """Public functions and classes whose docstring has no example."""
    for name, found in public_things():
        doc = inspect.getdoc(found) or ""
        if ">>>" not in doc and "::\n" not in doc:
            yield f"{name}: its docstring has no example"


def untyped() -> Iterator[str]:
    """Public signatures with ``Any`` or ``object``, or with an alias that stands for them."""
    found_once: set[str] = set()
    for name, found in public_things():
        for shown, function in signatures(name, found):
            for argument, path in untyped_annotations(function):
                row = f"{shown}: {argument}: {path}"
                if row not in found_once:
                    found_once.add(row)
                    yield row


RULES = (
    full_folders,
    families,
    long_modules,
    repeated_classes,
    private_access,
    unregistered,
    dialect,
    without_example,
    untyped,
)

if __name__ == "__main__":
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    for rule in RULES:
        rows = [row for row in rule() if wanted in row]
        sys.stdout.write("\n    ".join([f"{rule.__name__}: {len(rows)}", *rows]) + "\n")
