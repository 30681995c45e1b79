"""Trials that take longer: every card of the catalogue, every type of node, pinching."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.studio.page.driver import Driver

pytestmark = pytest.mark.long


def test_every_filter_has_its_controls(picture: Driver) -> None:
    page = picture.page
    catalogue = page.evaluate("() => fetch('catalogue.json').then(answer => answer.json())")
    for declared in catalogue["filters"]:
        name = declared["name"]
        card = picture.studio.do("add", kind="filter", name=name)["card"]
        own = page.locator(f"[data-card={card}]")
        expect(own.locator(".card-title")).to_have_text(declared["title"])
        more = own.get_by_role("button", name="More: ")
        if more.count():
            more.click()
        if name != "curves":
            expect(own.locator(".control")).to_have_count(len(declared["params"]))
        for slider in own.get_by_role("slider").all():
            slider.press("ArrowRight")
        picture.studio.do("remove", card=card)
        expect(own).to_have_count(0)
    refused = [m["error"]["text"] for m in picture.got if m.get("ok") is False]
    # The last change of a card may come after it was removed.
    refused = [text for text in refused if "must be the id of a card" not in text]
    assert not refused, "\n".join(refused)


def test_every_model_has_its_controls(page: Driver) -> None:
    page.studio.do("open", sample="astronaut")
    page.wait_frames()
    catalogue = page.page.evaluate("() => fetch('catalogue.json').then(answer => answer.json())")
    for declared in catalogue["models"]:
        card = page.studio.do("add", kind="model", name=declared["name"])["card"]
        own = page.page.locator(f"[data-card={card}]")
        expect(own.locator(".control")).to_have_count(len(declared["params"]))
        expect(own.locator(".card-error")).to_have_count(0)
        page.studio.do("remove", card=card)


def test_every_node_has_its_properties(page: Driver) -> None:
    page.open("scene.json")
    catalogue = page.page.evaluate("() => fetch('catalogue.json').then(answer => answer.json())")
    first = {
        "image": {"source": "two.png"},
        "video": {"source": "ramp.mp4"},
        "effect": {"filter": "blur"},
        "text": {"text": "A"},
        "overlay": {"color": "#ff0000", "size": [20, 20]},
        "group": {},
    }
    for declared in catalogue["nodes"]:
        if declared["type"] not in first:
            continue
        node = page.studio.do("node_add", type=declared["type"], properties=first[declared["type"]])
        expect(page.page.get_by_role("treeitem")).to_have_count(3)
        page.page.get_by_role("treeitem").first.click()
        panel = page.page.locator(".properties")
        while panel.locator("details:not([open]) summary").count():
            panel.locator("details:not([open]) summary").first.click()
        expect(panel.locator(".control")).to_have_count(len(declared["params"]))
        page.studio.do("node_remove", node=node["node"])
        expect(page.page.get_by_role("treeitem")).to_have_count(2)


def test_two_fingers_zoom(picture: Driver) -> None:
    session = picture.context.new_cdp_session(picture.page)
    x, y = picture.place(0.5, 0.5)

    def touch(kind: str, apart: float) -> None:
        points = [{"x": x - apart, "y": y, "id": 1}, {"x": x + apart, "y": y, "id": 2}]
        session.send(
            "Input.dispatchTouchEvent",
            {"type": kind, "touchPoints": points if kind != "touchEnd" else []},
        )

    before = int(picture.page.get_by_test_id("zoom").inner_text().removesuffix(" %"))
    touch("touchStart", 40)
    for apart in (50, 60, 70, 80):
        touch("touchMove", apart)
    touch("touchEnd", 0)
    picture.until(
        lambda: (
            int(picture.page.get_by_test_id("zoom").inner_text().removesuffix(" %")) > 1.7 * before
        )
    )
