"""The chain: cards from the palette, their order, their cost, undo, presets and the plan."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.studio.page.driver import Driver

RED = (200, 60, 40)


def test_palette_is_searched_and_left_by_keys(picture: Driver) -> None:
    page = picture.page
    page.get_by_test_id("add").click()
    search = page.get_by_test_id("palette-search")
    expect(search).to_be_focused()
    search.fill("gauss")
    first = page.get_by_role("option").first
    expect(first).to_contain_text("Gaussian blur")
    expect(first).to_have_attribute("aria-selected", "true")
    search.press("ArrowDown")
    expect(first).to_have_attribute("aria-selected", "false")
    search.fill("hflip")  # what ffmpeg calls it
    expect(first).to_contain_text("Flip")
    search.fill("there is no such filter")
    expect(page.get_by_role("option")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(search).to_have_count(0)
    assert picture.cards() == []
    picture.add("sepia")
    assert picture.cards() == ["Sepia"]
    expect(page.get_by_test_id("cost")).to_contain_text("ms")


def test_order_is_changed_by_dragging_and_by_keys(picture: Driver) -> None:
    page = picture.page
    picture.add("brightness")
    picture.studio.do("set", card=card_id(picture, 0), param="value", value=0.2)
    picture.add("invert")
    # (c + 0.2), then inverted
    picture.wait_pixel(0.2, 0.5, (4, 144, 164), near=8)
    grip = page.get_by_role("button", name="Move Invert")
    box = grip.bounding_box()
    above = page.get_by_role("button", name="Move Brightness").bounding_box()
    assert box is not None
    assert above is not None
    page.mouse.move(box["x"] + 8, box["y"] + 12)
    page.mouse.down()
    page.mouse.move(box["x"] + 8, above["y"] - 12, steps=5)
    page.mouse.up()
    expect(page.locator(".card-title")).to_have_text(["Invert", "Brightness"])
    # inverted, then (c + 0.2)
    picture.wait_pixel(0.2, 0.5, (106, 246, 255), near=8)
    grip.press("ArrowDown")
    expect(page.locator(".card-title")).to_have_text(["Brightness", "Invert"])
    expect(page.locator(".chain .spoken")).to_have_text("Invert is now 2 of 2.")
    picture.wait_pixel(0.2, 0.5, (4, 144, 164), near=8)


def test_cards_are_switched_duplicated_and_removed(picture: Driver) -> None:
    page = picture.page
    picture.add("invert")
    picture.wait_pixel(0.2, 0.5, (55, 195, 215))
    switch = page.get_by_role("switch", name="Invert on")
    switch.click()
    expect(switch).to_have_attribute("aria-checked", "false")
    picture.wait_pixel(0.2, 0.5, RED)
    switch.press("Space")
    picture.wait_pixel(0.2, 0.5, (55, 195, 215))
    page.get_by_role("button", name="More for Invert").click()
    page.get_by_role("menuitem", name="Duplicate").click()
    expect(page.locator("[data-card]")).to_have_count(2)
    picture.wait_pixel(0.2, 0.5, RED)
    page.get_by_role("button", name="More for Invert").first.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.locator("[data-card]")).to_have_count(1)


@pytest.mark.long
def test_a_drag_is_one_step_of_undo(picture: Driver) -> None:
    page = picture.page
    picture.add("brightness")
    slider = page.get_by_test_id("control-value").get_by_role("slider")
    box = slider.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, y)
    page.mouse.down()
    for share in (0.55, 0.6, 0.65, 0.7, 0.75):
        page.mouse.move(box["x"] + box["width"] * share, y)
    page.mouse.up()
    value = page.get_by_role("textbox", name="Value, value")
    expect(value).not_to_have_value("0")
    picture.wait_pixel(0.2, 0.5, (255, 190, 170), near=25)
    page.get_by_test_id("canvas").focus()
    page.keyboard.press("Control+z")
    expect(value).to_have_value("0")
    picture.wait_pixel(0.2, 0.5, RED)
    expect(page.get_by_test_id("card-brightness")).to_be_visible()
    page.keyboard.press("Control+Shift+z")
    expect(value).not_to_have_value("0")
    page.get_by_test_id("undo").click()
    page.get_by_test_id("undo").click()
    expect(page.get_by_test_id("card-brightness")).to_have_count(0)
    expect(page.get_by_test_id("undo")).to_be_disabled()
    page.get_by_test_id("redo").click()
    expect(page.get_by_test_id("card-brightness")).to_be_visible()


def test_refused_value_is_reported_and_changes_nothing(picture: Driver) -> None:
    page = picture.page
    picture.add("crop")
    box = page.get_by_role("textbox", name="Size W", exact=True)
    box.fill("0")
    box.press("Enter")
    expect(box).to_have_value("1")  # clamped by the control
    picture.studio.do("undo")
    picture.add("warp affine")
    area = page.get_by_test_id("control-matrix").get_by_role("textbox").first
    area.fill("nonsense")
    area.press("Enter")
    assert not [m for m in picture.sent if m["do"] == "set" and m.get("value") == "nonsense"]


def card_id(driver: Driver, index: int) -> str:
    """The id of a card."""
    found = driver.page.locator("[data-card]").nth(index).get_attribute("data-card")
    assert found is not None
    return found
