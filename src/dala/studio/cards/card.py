"""One card of a chain. Cards are values: a change makes a new one, so undo keeps old chains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from dala.errors import ParameterError, did_you_mean
from dala.gpu.compute.kernels.filter import FilterParam
from dala.media.filters.declarations import declared, filter_names
from dala.shaders.files import is_glsl, is_toy
from dala.studio.cards.kernels import CompiledKernel, compile_kernel
from dala.studio.cards.models import MODELS
from dala.studio.catalogue.language import TEMPLATES
from dala.studio.catalogue.parameters import Json, JsonObject, title_of

KINDS: Final = ("filter", "kernel", "model")
#: The longest text of a kernel.
MAX_TEXT: Final = 100_000


@dataclass(frozen=True)
class Card:
    """A filter, a kernel or a model in a chain, with the values that were set.

    >>> Card("c1", "filter", "blur").title
    'Blur'
    """

    id: str
    kind: str
    name: str
    on: bool = True
    params: Mapping[str, Json] = field(default_factory=dict)
    #: The text of a kernel, the last text that compiled, and the file it belongs to.
    text: str = ""
    works: str = ""
    path: str = ""

    @property
    def title(self) -> str:
        """The name as a title."""
        if self.kind == "model":
            return MODELS[self.name].title
        return title_of(self.name)

    @property
    def kernel(self) -> CompiledKernel:
        """The kernel of a kernel card, of its last text that compiled."""
        return compile_kernel(self.works or self.text)

    @property
    def diagnostics(self) -> list[JsonObject]:
        """The mistakes in the text of a kernel card."""
        return [d.json() for d in compile_kernel(self.text).diagnostics]

    @property
    def parameters(self) -> dict[str, FilterParam]:
        """The declared parameters by name."""
        if self.kind == "filter":
            return {p.name: p for p in declared()[self.name].parameters}
        if self.kind == "model":
            return {p.name: p for p in MODELS[self.name].params}
        return {p.name: p for p in self.kernel.params}

    def with_value(self, name: str, value: Json) -> Card:
        """Return the card with a value; None returns to the default.

        Raises:
            ParameterError: there is no such parameter.
        """
        known = self.parameters
        if name not in known:
            hint = did_you_mean(name, known) or f"It has: {', '.join(known) or 'none'}."
            raise ParameterError(
                f"set: {self.name!r} has no parameter {name!r}. {hint}", argument="param"
            )
        params = {k: v for k, v in self.params.items() if k != name}
        if value is not None:
            params[name] = value
        return replace(self, params=params)

    def preset(self) -> JsonObject:
        """Return the card as a preset has it."""
        made: JsonObject = {self.kind: self.text if self.kind == "kernel" else self.name}
        if not self.on:
            made["on"] = False
        if self.params:
            made["params"] = dict(self.params)
        return made


def suffix_of(text: str) -> str:
    """Return the end of the name of a kernel's file.

    >>> suffix_of("def f(px: Pixel): return px"), suffix_of("/*{}*/ void main() {}")
    ('.py', '.fs')
    """
    return (".glsl" if is_toy(text) else ".fs") if is_glsl(text) else ".py"


def new_card(id: str, kind: Json, name: Json, params: Json = None, text: Json = None) -> Card:
    """Return a new card, with its name and parameters checked by their declarations.

    Raises:
        ParameterError: there is no such filter, model or parameter.

    >>> new_card("c1", "filter", "blur", {"radius": 4}).params
    {'radius': 4}
    """
    if kind not in KINDS or not isinstance(kind, str):
        raise ParameterError.invalid("add", "kind", f"one of {', '.join(KINDS)}", kind)
    if kind == "kernel":
        made = _kernel(id, name, text)
    else:
        known = filter_names() if kind == "filter" else list(MODELS)
        if not isinstance(name, str) or name not in known:
            hint = did_you_mean(name, known) if isinstance(name, str) else ""
            raise ParameterError.invalid("add", "name", f"the name of a {kind}", name, hint)
        made = Card(id, kind, name)
    if params is not None and not isinstance(params, dict):
        raise ParameterError.invalid("add", "params", "an object of parameters", params)
    for key, value in (params or {}).items():
        made = made.with_value(key, value)
    return made


def _kernel(id: str, name: Json, text: Json) -> Card:
    if text is None:
        found = {title.lower(): body for title, body in TEMPLATES.items()}
        if name is not None and name not in found:
            raise ParameterError.invalid("add", "name", f"one of {', '.join(found)}", name)
        text = found[name] if isinstance(name, str) else next(iter(found.values()))
    return with_text(Card(id, "kernel", "kernel"), text)


def with_text(card: Card, text: Json) -> Card:
    """Return a kernel card with another text. Values of parameters that are gone are dropped.

    Raises:
        ParameterError: it is not text, or too long.
    """
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        expected = f"text of at most {MAX_TEXT:,} characters"
        raise ParameterError.invalid("kernel", "text", expected, text)
    made = compile_kernel(text)
    if made.kernel is None:
        return replace(card, text=text)
    names = {p.name for p in made.params}
    kept = {k: v for k, v in card.params.items() if k in names}
    return replace(card, text=text, works=text, name=made.kernel.name, params=kept)
