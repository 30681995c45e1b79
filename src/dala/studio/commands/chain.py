"""Commands that change the chain of the active tab."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dala.errors import ParameterError
from dala.media.parts import PartFile
from dala.studio.cards.card import Card, new_card, with_text
from dala.studio.cards.kernels import compile_kernel
from dala.studio.cards.values import checked
from dala.studio.catalogue.parameters import Json, JsonObject, parameter
from dala.studio.commands.registry import command
from dala.studio.document.tab import Tab
from dala.studio.message import Message

if TYPE_CHECKING:
    from dala.studio.session import StudioSession


@command("add")
def add(session: StudioSession, message: Message) -> JsonObject:
    """Add a card."""
    tab = session.tab("add")
    cards = tab.contents.cards
    _check_room(session, len(cards) + 1)
    at = message.integer("at", 0, len(cards), len(cards))
    card = new_card(
        tab.next_card(),
        message.get("kind"),
        message.get("name"),
        message.get("params"),
        message.get("text"),
    )
    if card.params:
        checked(card, session.files)
    tab.change((*cards[:at], card, *cards[at:]))
    return {"card": card.id}


@command("remove")
def remove(session: StudioSession, message: Message) -> None:
    """Remove a card."""
    tab, number, _ = _found(session, message, "remove")
    cards = tab.contents.cards
    tab.change((*cards[:number], *cards[number + 1 :]))


@command("move")
def move(session: StudioSession, message: Message) -> None:
    """Move a card to another place."""
    tab, number, card = _found(session, message, "move")
    rest = [c for i, c in enumerate(tab.contents.cards) if i != number]
    rest.insert(message.integer("to", 0, len(rest)), card)
    tab.change(tuple(rest))


@command("switch")
def switch(session: StudioSession, message: Message) -> None:
    """Switch a card on or off."""
    tab, number, card = _found(session, message, "switch")
    _put(tab, number, replace(card, on=message.flag("on")), None)


@command("set")
def set_value(session: StudioSession, message: Message) -> None:
    """Set a parameter of a card."""
    tab, number, card = _found(session, message, "set")
    name = message.text("param", 100)
    made = card.with_value(name, message.get("value"))
    checked(made, session.files)
    _put(tab, number, made, message.mark(tab.id, card.id, name))


@command("reset")
def reset(session: StudioSession, message: Message) -> None:
    """Return a parameter of a card, or all of them, to the default."""
    tab, number, card = _found(session, message, "reset")
    if "param" in message:
        made = card.with_value(message.text("param", 100), None)
    else:
        made = replace(card, params={})
    _put(tab, number, made, None)


@command("preset")
def preset(session: StudioSession, message: Message) -> None:
    """Replace the chain with that of a preset."""
    tab = session.tab("preset")
    tab.change(cards_of(session, tab, message.get("value")))


@command("undo")
def undo(session: StudioSession, message: Message) -> None:
    """Undo the last change of the active tab."""
    session.restore(session.tab("undo"), forward=False)


@command("redo")
def redo(session: StudioSession, message: Message) -> None:
    """Redo what was undone."""
    session.restore(session.tab("redo"), forward=True)


@command("kernel")
def kernel(session: StudioSession, message: Message) -> JsonObject:
    """Replace the text of a kernel card."""
    tab, number, card = _kernel_card(session, message, "kernel")
    made = with_text(card, message.get("text"))
    _put(tab, number, made, message.mark(tab.id, card.id, "text"))
    tab.dirty = tab.dirty or bool(made.path)
    found = compile_kernel(made.text)
    reply: JsonObject = {
        "diagnostics": [d.json() for d in found.diagnostics],
        "params": [parameter(p) for p in made.kernel.params],
    }
    if message.flag("code", False):
        reply |= dict(found.code())
    return reply


@command("kernel_save")
def kernel_save(session: StudioSession, message: Message) -> JsonObject:
    """Write the text of a kernel card to its file, or to another one."""
    tab, number, card = _kernel_card(session, message, "kernel_save")
    target = session.folders.target(message.get("path") or card.path, "kernel_save")
    if target.suffix != ".py":
        raise ParameterError.invalid("kernel_save", "path", "the name of a .py file", target.name)
    with PartFile(target) as part:
        part.path.write_text(card.text, encoding="utf-8")
        part.complete()
    _put(tab, number, replace(card, path=str(target)), None)
    tab.dirty = False
    return {"path": str(target)}


def cards_of(session: StudioSession, tab: Tab, value: Json) -> tuple[Card, ...]:
    """Return the cards of a preset.

    Raises:
        ParameterError: it is not a preset; or a filter, a parameter or a value is refused.
    """
    chain = value.get("chain") if isinstance(value, dict) else None
    if not isinstance(chain, list):
        raise ParameterError.invalid("preset", "value", "an object with a chain", value)
    _check_room(session, len(chain))
    made: list[Card] = []
    for number, item in enumerate(chain):
        kinds = [k for k in ("filter", "kernel", "model") if isinstance(item, dict) and k in item]
        if not isinstance(item, dict) or len(kinds) != 1:
            expected = 'an object with "filter", "kernel" or "model"'
            raise ParameterError.invalid("preset", f"chain[{number}]", expected, item)
        kind = kinds[0]
        name = None if kind == "kernel" else item[kind]
        text = item[kind] if kind == "kernel" else None
        on = item.get("on", True)
        if not isinstance(on, bool):
            raise ParameterError.invalid("preset", f"chain[{number}].on", "true or false", on)
        card = replace(new_card(tab.next_card(), kind, name, item.get("params"), text), on=on)
        checked(card, session.files)
        made.append(card)
    return tuple(made)


def _check_room(session: StudioSession, count: int) -> None:
    if count > session.limits.cards:
        raise ParameterError(f"add: a chain has at most {session.limits.cards} cards.")


def _found(session: StudioSession, message: Message, call: str) -> tuple[Tab, int, Card]:
    tab = session.tab(call)
    return tab, *tab.card(message.get("card"), call)


def _kernel_card(session: StudioSession, message: Message, call: str) -> tuple[Tab, int, Card]:
    tab, number, card = _found(session, message, call)
    if card.kind != "kernel":
        raise ParameterError.invalid(call, "card", "the id of a kernel card", card.id)
    return tab, number, card


def _put(tab: Tab, number: int, card: Card, mark: object) -> None:
    cards = tab.contents.cards
    tab.change((*cards[:number], card, *cards[number + 1 :]), mark)
