"""Finds uses of private names from outside: ``x._name`` and ``from module import _name``.

What ``x`` is follows from annotations, assignments, loops and imports of its module. The rules:

- ``self``, ``cls``, ``super()``: a class of the library must define the name. A subclass of another
  package's class must not use what only that class defines.
- ``x`` of a known class or module of the library: the user is in its folder or below, and in the
  same room (``ROOMS``), and the class (or one it derives from) defines the name.
- ``x`` of a class or module of another package: never.
- ``x`` of an unknown type: the same module defines the name.
"""

from __future__ import annotations

import ast
import pathlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

#: Parts of the library that know each other by public names only, the most specific first.
ROOMS = ("gpu/compute", "gpu", "media", "ml", "cli", "machine")

#: Documented methods of named tuples and functions of ``sys``, whatever they look like.
DOCUMENTED = ("_asdict", "_replace", "_fields", "_current_frames")

#: Words of annotations that say nothing about the attributes.
GENERIC = {"Any", "None", "object", "Self", "type", "list", "tuple", "dict", "set", "deque"}

#: Functions that return their arguments, or what they contain.
PASSING = ("cast", "next", "iter", "list", "tuple", "zip", "sorted", "reversed", "enumerate")


@dataclass
class Class:
    """A class: its place, bases by name, private names, and the types of its attributes."""

    name: str
    path: pathlib.Path
    bases: list[str]
    privates: set[str]
    attributes: dict[str, set[str]] = field(default_factory=dict)
    methods: dict[str, set[str]] = field(default_factory=dict)


def is_private(name: str) -> bool:
    """Return True for ``_name``; names of the language (``__x__``) and ``_`` are not private."""
    return name.startswith("_") and name != "_" and not name.startswith("__")


class Library:
    """The modules below a folder, and what is known of their names."""

    def __init__(self, root: pathlib.Path, package: str = "dala") -> None:
        self.root, self.package = root, package
        self.trees = {
            path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.py"))
        }
        self.classes: dict[str, list[Class]] = defaultdict(list)
        self.imports: dict[pathlib.Path, dict[str, str]] = {}
        self.owned: dict[pathlib.Path, set[str]] = {}
        self._families: dict[str, list[Class]] = {}
        for path, tree in self.trees.items():
            nodes = list(ast.walk(tree))
            self.imports[path] = _imports(nodes)
            self.owned[path] = {name for name in _definitions(nodes) if is_private(name)}
            for node in nodes:
                if isinstance(node, ast.ClassDef):
                    self._add_class(path, node)

    def _add_class(self, path: pathlib.Path, node: ast.ClassDef) -> None:
        inside = list(ast.walk(node))
        privates = {name for name in _definitions(inside) if is_private(name)}
        bases = [mention for base in node.bases for mention in _mentions(base)]
        found = Class(node.name, path, bases, privates)
        for item in inside:
            if isinstance(item, ast.AnnAssign):
                if isinstance(item.target, ast.Name):
                    found.attributes[item.target.id] = _mentions(item.annotation)
                elif _is_self(item.target):
                    found.attributes[item.target.attr] = _mentions(item.annotation)
        for method in node.body:
            if not isinstance(method, ast.FunctionDef):
                continue
            decorators = {name for d in method.decorator_list for name in _mentions(d)}
            returned = _mentions(method.returns)
            if decorators & {"property", "cached_property"}:
                found.attributes[method.name] = returned
            else:
                found.methods[method.name] = {node.name} if "Self" in returned else returned
            known = _arguments(method)
            for item in ast.walk(method):
                if isinstance(item, ast.Assign):
                    for target in item.targets:
                        if _is_self(target):
                            kinds = _value_kinds(item.value, known)
                            found.attributes.setdefault(target.attr, kinds)
        self.classes[node.name].append(found)

    def family(self, name: str) -> list[Class]:
        """Return the classes of a name and those they derive from."""
        if name in self._families:
            return self._families[name]
        found = self._families[name] = []
        names = [name]
        while names:
            for one in self.classes.get(names.pop(), ()):
                if one not in found:
                    found.append(one)
                    names += one.bases
        return found

    def place(self, path: pathlib.Path) -> str:
        """Return a path below the root."""
        return path.relative_to(self.root).as_posix()

    def room(self, path: pathlib.Path) -> str:
        """Return the room of a module, '' for the modules of the package itself."""
        place = self.place(path)
        return next((room for room in ROOMS if place.startswith(room + "/")), "")

    def may_use(self, user: pathlib.Path, owner: pathlib.Path) -> bool:
        """Return True if a module may use the privates of another: same folder or below it."""
        return self.room(user) == self.room(owner) and user.is_relative_to(owner.parent)

    def violations(self, but: tuple[str, ...] = ()) -> Iterator[str]:
        """Yield every use of a private name that the rules refuse."""
        for path, tree in self.trees.items():
            if self.place(path) not in but:
                yield from _Visitor(self, path).check(tree)


class _Visitor(ast.NodeVisitor):
    """Walks one module with the types of its names."""

    def __init__(self, library: Library, path: pathlib.Path) -> None:
        self.library, self.path = library, path
        self.imports = library.imports[path]
        self.scopes: list[dict[str, set[str]]] = [{}]
        self.within: list[str] = []
        self.found: list[str] = []

    def check(self, tree: ast.Module) -> list[str]:
        self._learn(tree)
        self.visit(tree)
        return self.found

    # scopes -----------------------------------------------------------------------------------
    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.within.append(node.name)
        self.generic_visit(node)
        self.within.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.scopes.append(_arguments(node))
        self._learn(node)
        self.generic_visit(node)
        self.scopes.pop()

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.scopes.append({})
        self.generic_visit(node)
        self.scopes.pop()

    def _learn(self, scope: ast.AST) -> None:
        """Record the types of the variables that a scope assigns, twice for uses of uses."""
        known, nodes = self.scopes[-1], _bindings(scope)
        for _ in range(2):
            for node in nodes:
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    known[node.target.id] = _mentions(node.annotation)
                elif isinstance(node, ast.Assign):
                    for target in node.targets:
                        self._bind(target, node.value, known)
                elif isinstance(node, ast.For | ast.comprehension):
                    self._bind(node.target, node.iter, known)
                elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                    self._bind(node.optional_vars, node.context_expr, known)
                elif isinstance(node, ast.NamedExpr):
                    self._bind(node.target, node.value, known)

    def _bind(self, target: ast.AST, value: ast.AST, known: dict[str, set[str]]) -> None:
        if isinstance(target, ast.Name):
            kinds = self.kinds(value)
            if kinds:
                known.setdefault(target.id, set()).update(kinds)
        elif isinstance(target, ast.Tuple):
            values = value.elts if isinstance(value, ast.Tuple) else [value] * len(target.elts)
            for one, of in zip(target.elts, values, strict=False):
                self._bind(one, of, known)

    def kinds(self, value: ast.AST) -> set[str]:
        """Return the class and module names that say what an expression is."""
        if isinstance(value, ast.Name):
            for scope in reversed(self.scopes):
                if value.id in scope:
                    return scope[value.id]
            if value.id in self.imports or value.id in self.library.classes:
                return {value.id}
            return set()
        if isinstance(value, ast.Attribute):
            family = self._family_of(value.value)
            return set().union(*(one.attributes.get(value.attr, set()) for one in family), set())
        if isinstance(value, ast.Call):
            if isinstance(value.func, ast.Name):
                if value.func.id in PASSING:
                    return set().union(*(self.kinds(a) for a in value.args), set())
                return {value.func.id} if value.func.id in self.library.classes else set()
            if isinstance(value.func, ast.Attribute):
                family = self._family_of(value.func.value)
                of = value.func.attr
                return set().union(*(one.methods.get(of, set()) for one in family), set())
            return set()
        if isinstance(value, ast.Tuple | ast.List):
            return set().union(*(self.kinds(item) for item in value.elts), set())
        if isinstance(value, ast.IfExp):
            return self.kinds(value.body) | self.kinds(value.orelse)
        if isinstance(value, ast.BoolOp):
            return set().union(*(self.kinds(item) for item in value.values))
        if isinstance(value, ast.Starred | ast.Subscript | ast.NamedExpr):
            return self.kinds(value.value)
        return set()

    def _family_of(self, value: ast.AST) -> list[Class]:
        """Return the classes that an expression may be of, with those they derive from."""
        owners = self.kinds(value)
        if not owners and isinstance(value, ast.Name) and value.id in ("self", "cls"):
            owners = set(self.within[-1:])
        return [one for owner in owners for one in self.library.family(owner)]

    # uses -------------------------------------------------------------------------------------
    def _report(self, node: ast.AST, name: str, why: str) -> None:
        place = self.library.place(self.path)
        self.found.append(f"{place}:{node.lineno}: {name} {why}")  # type: ignore[attr-defined]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        parts = module.split(".")
        ours = parts[0] == self.library.package
        for name in (*parts, *(alias.name for alias in node.names)):
            if is_private(name) and not (ours and self._is_near(parts)):
                self._report(node, f"{module} ({name})", "is private to another package")

    def _is_near(self, parts: list[str]) -> bool:
        """Return True if this module is in the folder of a module of the library, or below."""
        owner = self.library.root.joinpath(*parts[1:])
        if not owner.is_dir():
            owner = owner.with_suffix(".py")
        else:
            owner /= "__init__.py"
        return self.library.may_use(self.path, owner)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        name = node.attr
        if not is_private(name) or name in DOCUMENTED:
            return
        base = node.value
        caller = base.func if isinstance(base, ast.Call) else base
        if isinstance(caller, ast.Name) and caller.id in ("self", "cls", "super"):
            self._check_own(node)
            return
        kinds = self.kinds(base) - GENERIC
        ours = [c for kind in kinds for c in self.library.family(kind)]
        if ours:
            defining = [c for c in ours if name in c.privates]
            if not defining:
                self._report(node, ast.unparse(node), f"is not defined by {ours[0].name}")
            elif not any(self.library.may_use(self.path, c.path) for c in defining):
                owner = self.library.place(defining[0].path)
                self._report(node, ast.unparse(node), f"is private to {owner}")
            return
        foreign = [k for k in kinds if k in self.imports]
        if foreign and not all(self.imports[k].startswith(self.library.package) for k in foreign):
            self._report(node, ast.unparse(node), "is private to another package")
        elif name not in self.library.owned[self.path]:
            self._report(node, ast.unparse(node), "is not known to be defined in this module")

    def _check_own(self, node: ast.Attribute) -> None:
        """Check a use on the object itself: the library must define the name near this class."""
        if not self.within:
            return
        family = self.library.family(self.within[-1])
        if any(node.attr in one.privates for one in family):
            return
        # A mixin uses what the classes that it is mixed into define.
        for group in self.library.classes.values():
            for one in group:
                if node.attr in one.privates and self.within[-1] in {
                    c.name for c in self.library.family(one.name)
                }:
                    return
        self._report(node, ast.unparse(node), "is defined by no class of the library")


def _is_self(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("self", "cls")
    )


def _bindings(scope: ast.AST) -> list[ast.AST]:
    """Return the nodes of a scope that bind names, without those of functions in it."""
    found, waiting = [], list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        if isinstance(node, _BINDING):
            found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Constant | ast.Name):
            waiting.extend(ast.iter_child_nodes(node))
    return found


_BINDING = (ast.AnnAssign, ast.Assign, ast.For, ast.comprehension, ast.withitem, ast.NamedExpr)


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, set[str]]:
    args = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    args += [arg for arg in (node.args.vararg, node.args.kwarg) if arg is not None]
    return {arg.arg: _mentions(arg.annotation) for arg in args}


def _mentions(annotation: ast.AST | None) -> set[str]:
    """Return the names in an annotation; quoted ones are parsed."""
    found: set[str] = set()
    for node in ast.walk(annotation) if annotation is not None else ():
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                found |= _mentions(ast.parse(node.value, mode="eval"))
            except SyntaxError:
                continue
    return found


def _value_kinds(value: ast.AST, known: dict[str, set[str]]) -> set[str]:
    if isinstance(value, ast.Name):
        return known.get(value.id, set())
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return {value.func.id}
    return set()


def _imports(nodes: list[ast.AST]) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[(alias.asname or alias.name).split(".")[0]] = alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def _definitions(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the names that a module or class defines: functions, variables, attributes, slots."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node):
            yield node.attr
        elif isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "__slots__" for t in node.targets
        ):
            yield from (
                str(item.value) for item in ast.walk(node.value) if isinstance(item, ast.Constant)
            )
