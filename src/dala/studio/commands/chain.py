"""Commands that change the chain of the active tab."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dala.arguments import Flag
from dala.errors import ParameterError
from dala.extensions import write_whole
from dala.media.filters.sizes import takes_size, turned
from dala.shaders.files import SUFFIXES
from dala.studio.cards.card import KINDS, Card, new_card, suffix_of, with_text
from dala.studio.cards.kernels import compile_kernel
from dala.studio.cards.values import checked
from dala.studio.catalogue.parameters import Json, JsonObject, parameter
from dala.studio.commands.registry import PageRequest, command
from dala.studio.document.tab import Tab

if TYPE_CHECKING:
    from dala.studio.session import StudioSession


@command
def add(request: PageRequest) -> JsonObject:
    """Add a card."""
    tab = request.tab
    cards = tab.contents.cards
    _check_room(request.session, len(cards) + 1)
    at = request.integer("at", 0, len(cards), len(cards))
    card = new_card(
        tab.next_card(),
        request.get("kind"),
        request.get("name"),
        request.get("params"),
        request.get("text"),
    )
    if card.params:
        checked(card, request.session.files)
    tab.change((*cards[:at], card, *cards[at:]))
    return {"card": card.id}


@command
def remove(request: PageRequest) -> None:
    """Remove a card."""
    tab, number, _ = request.card()
    _put(tab, number)


@command
def move(request: PageRequest) -> None:
    """Move a card to another place."""
    tab, number, card = request.card()
    rest = [c for i, c in enumerate(tab.contents.cards) if i != number]
    rest.insert(request.integer("to", 0, len(rest)), card)
    tab.change(tuple(rest))


@command
def switch(request: PageRequest) -> None:
    """Switch a card on or off."""
    tab, number, card = request.card()
    _put(tab, number, replace(card, on=request.flag("on")))


@command
def set_(request: PageRequest) -> None:
    """Set a parameter of a card."""
    tab, number, card = request.card()
    name = request.text("param", 100)
    made = card.with_value(name, request.get("value"))
    checked(made, request.session.files)
    _put(tab, number, made, mark=request.mark(tab.id, card.id, name))


@command
def reset(request: PageRequest) -> None:
    """Return a parameter of a card, or all of them, to the default."""
    tab, number, card = request.card()
    if "param" in request:
        made = card.with_value(request.text("param", 100), None)
    else:
        made = replace(card, params={})
    _put(tab, number, made)


@command
def preset(request: PageRequest) -> None:
    """Replace the chain with that of a preset."""
    tab = request.tab
    tab.change(cards_of(request.session, tab, request.get("value")))


@command
def undo(request: PageRequest) -> None:
    """Undo the last change of the active tab."""
    request.session.restore(request.tab, forward=False)


@command
def redo(request: PageRequest) -> None:
    """Redo the last undone change."""
    request.session.restore(request.tab, forward=True)


@command
def kernel(request: PageRequest) -> JsonObject:
    """Replace the text of a kernel card."""
    tab, number, card = request.card("kernel")
    made = with_text(card, request.get("text"))
    _put(tab, number, made, mark=request.mark(tab.id, card.id, "text"))
    tab.dirty = tab.dirty or bool(made.path)
    found = compile_kernel(made.text)
    reply: JsonObject = {
        "diagnostics": [d.json() for d in found.diagnostics],
        "params": [parameter(p) for p in made.kernel.params],
    }
    if request.flag("code", False):
        reply |= dict(found.code())
    return reply


@command
def kernel_save(request: PageRequest) -> JsonObject:
    """Write the text of a kernel card to its file, or to another one."""
    tab, number, card = request.card("kernel")
    if (wrong := compile_kernel(card.text)).kernel is None:
        raise ParameterError(
            f"kernel_save: the text is no kernel: {wrong.diagnostics[0].message}. Correct it first."
        )
    target = request.target(card.path)
    suffix = suffix_of(card.text)
    if target.name.suffix not in (SUFFIXES if suffix in SUFFIXES else (".py",)):
        request.fail("path", f"the name of a {suffix} file")
    write_whole(target, card.text.encode())
    request.session.own(target.name)
    _put(tab, number, replace(card, path=str(target.name)))
    tab.dirty = False
    return {"path": str(target.name)}


def cards_of(session: StudioSession, tab: Tab, value: Json) -> tuple[Card, ...]:
    """Return the cards of a preset.

    Raises:
        ParameterError: it is not a preset; or a filter, a parameter or a value is refused.
    """
    chain = value.get("chain") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(chain, list):
        raise ParameterError.invalid("preset", "value", "an object with a chain", value)
    older = value.get("dala") == 1
    _check_room(session, len(chain))
    made: list[Card] = []
    for number, item in enumerate(chain):
        kinds = [kind for kind in KINDS if isinstance(item, dict) and kind in item]
        if not isinstance(item, dict) or len(kinds) != 1:
            expected = 'an object with "filter", "kernel" or "model"'
            raise ParameterError.invalid("preset", f"chain[{number}]", expected, item)
        on = Flag("true or false").check("preset", f"chain[{number}].on", item.get("on", True))
        what, params = item[kinds[0]], item.get("params")  # a name, or the text of a kernel
        if older and isinstance(params, dict) and "size" in params and takes_size(str(what)):
            params = params | {"size": turned(params["size"])}
        card = new_card(tab.next_card(), kinds[0], what, params, what)
        checked(card, session.files)
        made.append(replace(card, on=on))
    return tuple(made)


def _check_room(session: StudioSession, count: int) -> None:
    if count > session.limits.cards:
        raise ParameterError(f"add: a chain has at most {session.limits.cards} cards.")


def _put(tab: Tab, number: int, *made: Card, mark: object = None) -> None:
    """Replace a card, or remove it."""
    cards = tab.contents.cards
    tab.change((*cards[:number], *made, *cards[number + 1 :]), mark)
