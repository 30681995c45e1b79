"""The reference: a page for every public module and class, from the living objects.

The library makes many public names when it is imported: filters from their declarations, methods
of scenes from their nodes, drawing calls from one table. Only the objects know their signatures and
docstrings, so the reference asks them and not the source text.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import pathlib
import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from tests.support.house import PUBLIC
from website import docstrings
from website.docstrings import parse, table

ROOT = pathlib.Path(__file__).parents[1]
FOLDER = "reference"
REPOSITORY = "https://github.com/dala-gpu/dala"
#: Modules whose names users import, besides those that the tests of the API know.
MODULES = tuple(
    dict.fromkeys(
        (
            *("dala", "dala.errors", *PUBLIC, "dala.samples", "dala.typing"),
            *("dala.batch", "dala.shaders", "dala.studio", "dala.trace", "dala.web"),
        )
    )
)

#: The search shows guides before the reference.
HEAD = ("---", "search:", "  boost: 0.5", "---", "")
#: Modules whose functions are methods of a class, too.
OWNERS = {"dala.gpu": "Surface", "dala.media.scene": "Scene"}


@dataclass(frozen=True)
class Name:
    """A public name."""

    module: str
    name: str
    value: Any

    @property
    def path(self) -> str:
        """The full name."""
        return f"{self.module}.{self.name}"

    @property
    def is_class(self) -> bool:
        """True for a class that has a page of its own."""
        return inspect.isclass(self.value) and not issubclass(self.value, BaseException)

    @property
    def page(self) -> str:
        """The page that describes it."""
        if self.is_class:
            return f"{FOLDER}/{self.module}/{self.name}.md"
        return f"{FOLDER}/{self.module}/index.md"

    @property
    def anchor(self) -> str:
        """The anchor on that page."""
        return self.path


def module(name: str) -> ModuleType:
    """Return a public module; some are attributes of their package only."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        parent, _, last = name.rpartition(".")
        return getattr(importlib.import_module(parent), last)


def public_names(name: str) -> list[str]:
    """Return the public names of a module, sorted."""
    found = module(name)
    listed = getattr(found, "__all__", None)
    if listed is None:
        listed = [n for n in dir(found) if not n.startswith("_")]
    return sorted(listed, key=lambda n: (n.lower(), n))


@cache
def names() -> tuple[Name, ...]:
    """Return every public name; modules are left out, as they have pages."""
    found = []
    for package in MODULES:
        for name in public_names(package):
            value = getattr(module(package), name)
            if not inspect.ismodule(value):
                found.append(Name(package, name, value))
    return tuple(found)


@cache
def _homes() -> dict[int, Name]:
    """The name under which an object is described, where several modules have it."""
    homes: dict[int, Name] = {}
    for name in sorted(names(), key=lambda n: (-n.module.count("."), n.module)):
        if inspect.isclass(name.value) or inspect.isroutine(name.value):
            homes.setdefault(id(name.value), name)
    for name in names():  # errors are users' to import from dala; they are described once
        if name.module == "dala.errors":
            homes[id(name.value)] = name
    return homes


@cache
def _by_name() -> dict[str, Name]:
    """Names by their full and their short form; short ones only where they are unique."""
    found: dict[str, Name] = {}
    short: dict[str, set[str]] = {}
    for name in names():
        home = _homes().get(id(name.value), name)
        found[name.path] = home
        origin = getattr(name.value, "__module__", "")
        found.setdefault(f"{origin}.{name.name}", home)
        short.setdefault(name.name, set()).add(home.path)
    for name in names():
        if len(short[name.name]) == 1:
            found.setdefault(name.name, _homes().get(id(name.value), name))
    return found


def linker(page: str) -> Callable[[str], str]:
    """Return a function that makes Markdown of a name, with a link if it is public."""
    here = posixpath.dirname(page)

    def link(name: str) -> str:
        found = _by_name().get(name)
        inner = ""
        if found is None and "." in name:  # Buffer.read
            owner, _, inner = name.rpartition(".")
            found = _by_name().get(owner)
            if found is None or not found.is_class or not hasattr(found.value, inner):
                return f"`{name}`"
        if found is None:
            return f"`{name}`"
        anchor = found.anchor + (f".{inner}" if inner else "")
        target = posixpath.relpath(found.page, here)
        return f"[`{name.removeprefix('dala.')}`]({target}#{anchor})"

    return link


def pages() -> dict[str, tuple[str, str]]:
    """Return the pages of the reference by path: title and Markdown."""
    found = {f"{FOLDER}/index.md": ("All names", "\n".join([*HEAD, *_index()]))}
    for package in MODULES:
        page = f"{FOLDER}/{package}/index.md"
        found[page] = (package, "\n".join([*HEAD, *_module_page(package, page)]))
        for name in names():
            if name.module == package and name.is_class and _is_home(name):
                found[name.page] = (name.name, "\n".join([*HEAD, *_class_page(name)]))
    return found


def _is_home(name: Name) -> bool:
    return _homes().get(id(name.value), name) == name


def _index() -> Iterator[str]:
    page = f"{FOLDER}/index.md"
    yield from (
        "# Reference",
        "",
        "Every public name, from its docstring. Examples run as tests.",
        "",
    )
    rows = []
    for package in MODULES:
        count = sum(name.module == package for name in names())
        summary = parse(module(package).__doc__).summary
        rows.append((f"[`{package}`]({package}/index.md)", str(count), summary))
    yield from table(("module", "names", ""), rows)
    link = linker(page)
    for package in MODULES:
        held = [(_listed(n, link), _summary(n, link)) for n in names() if n.module == package]
        if held:
            yield from (f"## {package}", "")
            yield from table(("name", ""), held)


def _module_page(package: str, page: str) -> Iterator[str]:
    link = linker(page)
    found = parse(module(package).__doc__, link)
    yield from (f"# {package} {{ #{package} }}", "", found.summary, "", found.body, "")
    held = [n for n in names() if n.module == package]
    subs = [n for n in public_names(package) if inspect.ismodule(getattr(module(package), n))]
    for sub in subs:
        if f"{package}.{sub}" in MODULES:
            yield f"- [`{package}.{sub}`](../{package}.{sub}/index.md)"
    yield ""
    if held:
        rows = [(_listed(n, link), _summary(n, link)) for n in held]
        yield from table(("name", ""), rows)
    for name in held:
        if not name.is_class and _is_home(name):
            yield from _entry(name, page, 2)
        elif not name.is_class or not _is_home(name):
            yield from _elsewhere(name, link)


def _elsewhere(name: Name, link: Callable[[str], str]) -> Iterator[str]:
    """A name that is described under another module: an anchor for it, and a link."""
    home = _homes()[id(name.value)]
    yield f'<a id="{name.path}"></a>'
    yield from (f"`{name.path}` is {link(home.path)}.", "")


def _listed(name: Name, link: Callable[[str], str]) -> str:
    shown = link(_homes().get(id(name.value), name).path)
    return re.sub(r"\[`[^`]*`\]", f"[`{name.name}`]", shown, count=1)


def _summary(name: Name, link: Callable[[str], str]) -> str:
    if not (inspect.isclass(name.value) or inspect.isroutine(name.value)):
        return _value(name.value)
    return parse(inspect.getdoc(name.value), link).summary


def _value(value: object) -> str:
    """A constant or an alias of types, shortly."""
    text = repr(value)
    text = text if len(text) <= 100 else text[:97] + "..."
    return f"`{text}`" if "`" not in text and " at 0x" not in text else type(value).__name__


def _entry(name: Name, page: str, level: int) -> Iterator[str]:
    """A function, an error or a constant on its module's page."""
    link = linker(page)
    yield from (f"{'#' * level} {name.name} {{ #{name.anchor} }}", "")
    if inspect.isclass(name.value):
        bases = [b for b in name.value.__mro__[1:] if b not in (object, BaseException)]
        shown = ", ".join(link(b.__name__) for b in bases if issubclass(b, BaseException))
        yield from (f"Bases: {shown}", "")
        yield from _described(name.value, link)
    elif inspect.isroutine(name.value):
        method = _as_method(name)
        if method is not None:
            yield from (
                "```python",
                shown_signature(name.name, signature_of(name.value)),
                "```",
                "",
            )
            yield from (parse(inspect.getdoc(name.value), link).summary, "")
            yield from (f"The same as the method {link(f'{method.path}.{name.name}')}.", "")
        else:
            yield from _function(name.name, name.value, link)
    else:
        yield from (_value(name.value), "")


def _as_method(name: Name) -> Name | None:
    """Return the class whose method a function is, such as Surface for ``clear(surface, ...)``."""
    owner = OWNERS.get(name.module)
    if owner is None:
        return None
    found = _by_name()[f"{name.module}.{owner}"]
    same = getattr(found.value, name.name, None)
    return found if inspect.isroutine(same) and inspect.getdoc(same) else None


def _described(value: Any, link: Callable[[str], str]) -> Iterator[str]:
    found = parse(inspect.getdoc(value), link)
    yield from (found.summary, "", found.body, "")
    if "Attributes" in found.items:
        rows = [(f"`{n}`", text) for n, text in found.items["Attributes"].items()]
        yield from table(("attribute", ""), rows)
    yield from _source(value)


def _function(name: str, value: Any, link: Callable[[str], str], owner: str = "") -> Iterator[str]:
    found = parse(inspect.getdoc(value), link)
    signature = signature_of(value)
    yield from ("```python", shown_signature(name, signature, owner), "```", "")
    yield from (found.summary, "")
    types = {}
    for parameter in signature.parameters.values() if signature else ():
        if parameter.name not in ("self", "cls"):
            types[_starred(parameter)] = (
                linked_type(parameter.annotation, link),
                _default(parameter),
            )
    yield from docstrings.sections(found, types)
    result = signature.return_annotation if signature else inspect.Signature.empty
    if result not in (inspect.Signature.empty, "None", None) and not found.yields:
        yield from (f"Result: {linked_type(result, link)}", "")
    yield from (found.body, "")
    yield from _source(value)


def signature_of(value: Any) -> inspect.Signature | None:
    """Return a signature, or None for what has none."""
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):
        return None


def shown_signature(name: str, signature: inspect.Signature | None, owner: str = "") -> str:
    """Return a call as code: on one line if it fits, else one parameter on each.

    >>> def f(a: int, *, b="x") -> str: ...
    >>> shown_signature("f", inspect.signature(f))
    "f(a: int, *, b='x') -> str"
    """
    full = f"{owner}.{name}" if owner else name
    if signature is None:
        return f"{full}(...)"
    kept = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    bare = signature.replace(
        parameters=[p.replace(annotation=_text(p.annotation)) for p in kept],
        return_annotation=_text(signature.return_annotation),
    )
    text = re.sub(r"(: |-> |\| )'([^']*)'", r"\1\2", f"{full}{bare}")
    if len(text) <= 90:
        return text
    lines, star = [], False
    for p in bare.parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            star = True
        if p.kind is p.KEYWORD_ONLY and not star:
            lines.append("    *,")
            star = True
        shown = re.sub(r": '([^']*)'", r": \1", str(p), count=1)
        lines.append(f"    {shown},")
    result = bare.return_annotation
    arrow = "" if result is inspect.Signature.empty else f" -> {result}"
    return "\n".join([f"{full}(", *lines, f"){arrow}"])


def _starred(p: inspect.Parameter) -> str:
    return {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name


def _text(annotation: Any) -> Any:
    if annotation is inspect.Signature.empty:
        return annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"\b(?:builtins|typing|collections\.abc|numpy|fractions)\.", "", text)
    return _Shown(text.replace("'", ""))


class _Shown(str):
    """Text whose repr is the text: a signature shows annotations by repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _default(p: inspect.Parameter) -> str:
    if p.default is p.empty:
        return "required" if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) else ""
    text = repr(p.default)
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def linked_type(annotation: Any, link: Callable[[str], str]) -> str:
    """Return a type as Markdown, with links to public classes."""
    text = _text(annotation)
    if text is inspect.Signature.empty:
        return ""
    parts = re.split(r"([A-Za-z_][\w.]*)", str(text))
    shown = [link(p) if n % 2 and p in _by_name() else p for n, p in enumerate(parts)]
    if shown == parts:
        return f"`{text}`"
    return "".join(p if p.startswith("[`") else _escaped(p) for p in shown)


def _escaped(text: str) -> str:
    return re.sub(r"([\[\]<>*_])", r"\\\1", text)


def _source(value: Any) -> Iterator[str]:
    try:
        unwrapped = inspect.unwrap(value)
        path = pathlib.Path(inspect.getsourcefile(unwrapped) or "").resolve()
        line = inspect.getsourcelines(unwrapped)[1]
    except (TypeError, OSError):
        return
    if path.is_relative_to(ROOT):
        name = path.relative_to(ROOT).as_posix()
        yield from (f"[Source]({REPOSITORY}/blob/HEAD/{name}#L{line})", "")


# classes -----------------------------------------------------------------------------------------


def _class_page(name: Name) -> Iterator[str]:
    link = linker(name.page)
    kind = name.value
    yield from (f"# {name.name} {{ #{name.anchor} }}", "")
    yield from (f"`from {name.module} import {name.name}`", "")
    bases = [link(b.__name__) for b in kind.__bases__ if b.__name__ in _by_name()]
    if bases:
        yield from (f"Bases: {', '.join(bases)}", "")
    found = parse(kind.__doc__, link)
    yield from (found.summary, "", found.body, "")
    init = signature_of(kind)
    if init is not None and not issubclass(kind, enum.Enum) and init.parameters:
        init = init.replace(return_annotation=inspect.Signature.empty)
        yield from ("```python", shown_signature(name.name, init), "```", "")
        own = parse(getattr(kind.__init__, "__doc__", ""), link)
        own.items["Args"] = found.items.get("Args", {}) | own.items.get("Args", {})
        own.items["Raises"] = found.items.get("Raises", {}) | own.items.get("Raises", {})
        own.items = {key: rows for key, rows in own.items.items() if rows}
        types = {
            _starred(p): (linked_type(p.annotation, link), _default(p))
            for p in init.parameters.values()
        }
        yield from docstrings.sections(own, types)
    if "Attributes" in found.items:
        rows = [(f"`{n}`", text) for n, text in found.items["Attributes"].items()]
        yield from table(("attribute", ""), rows)
    yield from _source(kind)
    methods, values = members(kind)
    if values:
        yield from ("## Attributes", "")
        rows = []
        for member, value in values.items():
            doc = parse(inspect.getdoc(value) if not isinstance(value, str) else value, link)
            shown = f'<a id="{name.anchor}.{member}"></a>`{member}`'
            getter = getattr(value, "fget", None)
            result = signature_of(getter) if getter else None
            kind_ = linked_type(result.return_annotation, link) if result else ""
            rows.append((shown, kind_, doc.summary))
        yield from table(("attribute", "type", ""), rows)
    if methods:
        yield from ("## Methods", "")
    for member, value in methods.items():
        yield from (f"### {member} {{ #{name.anchor}.{member} }}", "")
        yield from _function(member, value, link, owner=_receiver(name.name))


def _receiver(name: str) -> str:
    """The variable that a method is shown on: ``frame_pipeline`` for FramePipeline."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def members(kind: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the public methods and the other public attributes of a class and its bases."""
    methods: dict[str, Any] = {}
    values: dict[str, Any] = {}
    seen: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("dala"):
            continue
        for member, raw in vars(base).items():
            if member.startswith("_") or member in seen:
                continue
            seen.add(member)
            value = getattr(kind, member, raw)
            if inspect.isroutine(value):
                if inspect.getdoc(value):
                    methods[member] = value
            elif hasattr(raw, "__get__") and inspect.getdoc(raw):
                values[member] = raw
    return dict(sorted(methods.items())), dict(sorted(values.items()))
