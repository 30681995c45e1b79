"""The node types of scenes, and the builder methods derived from their declarations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from dala.media.scene.builder_methods import BuilderMethods
from dala.media.scene.nodes.properties import REQUIRED, PairProperty

if TYPE_CHECKING:
    from dala.media.scene.builder import NodeBuilder
    from dala.media.scene.nodes.node import Node
    from dala.media.scene.nodes.property_types import Value

#: Node classes by type name, in the order they were declared.
NODE_TYPES: dict[str, type[Node]] = {}


def register_node(cls: type[Node]) -> None:
    """Make a node class known: scenes and groups get its method ``add_<type>``.

    Declaring a subclass of Node that sets ``type`` calls this.
    """
    NODE_TYPES[cls.type] = cls
    setattr(BuilderMethods, f"add_{cls.type}", _builder_method(cls))


def signature_of(cls: type[Node]) -> inspect.Signature:
    """Return the signature of a node class's builder method, with annotations as text."""
    kinds = inspect.Parameter
    found = [kinds("self", kinds.POSITIONAL_OR_KEYWORD)]
    rows = {name: (annotation, default) for name, annotation, default, _ in _parameters(cls)}
    for name in dict.fromkeys((*cls.POSITIONAL, *rows)):
        kind = kinds.POSITIONAL_OR_KEYWORD if name in cls.POSITIONAL else kinds.KEYWORD_ONLY
        annotation, default = rows[name]
        default = kinds.empty if default is REQUIRED else default
        found.append(kinds(name, kind, annotation=annotation, default=default))
    if cls.EXTRA:
        found.append(kinds(cls.EXTRA, kinds.VAR_KEYWORD, annotation="ParamValue"))
    return inspect.Signature(found, return_annotation=cls.__name__)


def docstring_of(cls: type[Node]) -> str:
    """Return the docstring of a node class's builder method: the class's own, and all arguments."""
    text, prompt, example = inspect.cleandoc(cls.__doc__ or "").partition(">>> ")
    lines = [f"Add a node: {text[:1].lower()}{text[1:].rstrip()}", "", "Args:"]
    lines += [f"    {name}: {description}" for name, _, _, description in _parameters(cls)]
    if cls.EXTRA:
        lines.append(f"    **{cls.EXTRA}: {cls.EXTRA_DESCRIPTION}")
    lines += ["", "Returns:", "    The new node."]
    return "\n".join([*lines, "", prompt + example] if prompt else lines)


def _parameters(cls: type[Node]) -> Iterator[tuple[str, str, Value, str]]:
    """Yield name, annotation, default and description of each argument and property."""
    rows = [(name, a.type, a.default, a.description) for name, a in cls.ARGUMENTS.items()]
    for name, item in cls.PROPERTIES.items():
        rows.append((name, item.type, REQUIRED if item.required else item.default, item.summary))
    for name, type, default, description in rows:
        unset = default is None and not type.annotation.endswith("| None")
        yield name, type.annotation + " | None" * unset, default, description


def _builder_method(cls: type[Node]) -> Callable[..., Node]:
    name = f"add_{cls.type}"
    unset = {k for k, p in cls.PROPERTIES.items() if isinstance(p, PairProperty)} | {*cls.ARGUMENTS}
    required = [argument for argument, _, default, _ in _parameters(cls) if default is REQUIRED]

    def method(self: NodeBuilder, *args: Value, **given: Value) -> Node:
        if len(args) > len(cls.POSITIONAL):
            raise TypeError(
                f"{name}() takes at most {len(cls.POSITIONAL)} positional arguments, "
                f"got {len(args)}"
            )
        for argument, value in zip(cls.POSITIONAL, args, strict=False):
            if argument in given:
                raise TypeError(f"{name}() got multiple values for argument {argument!r}")
            given[argument] = value
        for argument in required:
            if argument not in given:
                raise TypeError(f"{name}() missing required argument: {argument!r}")
        given = {k: v for k, v in given.items() if v is not None or k not in unset}
        scene = self.scene_of()._check_open(name)
        home = self.container()
        clip = home.take_clip(cls.type, given, name)
        return scene._enter(cls.create(scene, home, given), clip)

    method.__name__ = name
    method.__qualname__ = f"{BuilderMethods.__name__}.{name}"
    method.__doc__ = docstring_of(cls)
    signature = signature_of(cls)
    method.__signature__ = signature  # type: ignore[attr-defined]
    method.__annotations__ = {
        p.name: p.annotation for p in signature.parameters.values() if p.annotation is not p.empty
    } | {"return": signature.return_annotation}
    return method
