"""Controls from declarations: ranges, units, choices, colors, curves, LUTs, places."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.studio.page.driver import Driver


def test_number_has_range_box_unit_and_reset(picture: Driver) -> None:
    page = picture.page
    picture.add("blur")
    control = page.get_by_test_id("control-radius")
    expect(control.locator(".unit")).to_have_text("pixels")
    box = control.get_by_role("textbox")
    expect(box).to_have_value("3")
    box.fill("500")
    box.press("Enter")
    expect(box).to_have_value("200")  # the declared bound
    box.fill("12")
    box.press("Enter")
    expect(control.get_by_role("slider")).to_have_value("12")
    expect(control).to_have_attribute("data-changed", "true")
    box.press("ArrowUp")
    expect(box).to_have_value("13")
    control.get_by_role("slider").press("ArrowRight")
    expect(box).to_have_value("14")
    control.get_by_role("button", name="Reset Radius").click()
    expect(box).to_have_value("3")
    expect(control).to_have_attribute("data-changed", "false")


@pytest.mark.long
def test_a_reset_comes_after_the_changes_before_it(picture: Driver) -> None:
    """Changes wait while one is unanswered; they were sent after the reset, and undid it."""
    page = picture.page
    picture.add("blur")
    control = page.get_by_test_id("control-radius")
    box = control.get_by_role("textbox")
    box.fill("12")
    box.press("Enter")
    expect(control).to_have_attribute("data-changed", "true")
    control.evaluate("""(control) => {
      window.sent = [];
      const send = WebSocket.prototype.send;
      WebSocket.prototype.send = function (text) {
        const message = JSON.parse(text);
        if (["set", "reset"].includes(message.do)) window.sent.push(message.value ?? message.do);
        send.call(this, text);
      };
      const slider = control.querySelector("input[type=range]");
      for (const value of [20, 30, 40]) {
        slider.value = value;
        slider.dispatchEvent(new Event("input", { bubbles: true }));
      }
      control.querySelector(".reset").click();
    }""")
    expect(box).to_have_value("3")
    expect(control).to_have_attribute("data-changed", "false")
    assert page.evaluate("window.sent") == [20, 40, "reset"]


def test_choice_switch_and_rare_parameters(picture: Driver) -> None:
    page = picture.page
    picture.add("flip")
    page.get_by_role("combobox", name="Direction").select_option("both")
    picture.wait_pixel(0.2, 0.5, (40, 60, 200))
    picture.add("grain")
    page.get_by_role("switch", name="Colored").click()
    expect(page.get_by_role("switch", name="Colored")).to_have_attribute("aria-checked", "true")
    picture.add("sharpen")
    page.get_by_role("button", name="More: border, fill").click()
    expect(page.get_by_role("combobox", name="Border")).to_be_visible()


@pytest.mark.long
def test_color_picker(picture: Driver) -> None:
    page = picture.page
    picture.add("chroma key")
    control = page.get_by_test_id("control-key")
    picker = control.locator("input[type=color]")
    expect(picker).to_have_value("#00ff00")
    picker.fill("#c83c28")
    page.wait_for_function(
        "() => document.querySelector('[data-testid=control-key]').dataset.changed === 'true'"
    )
    page.mouse.move(*picture.place(0.25, 0.5))
    expect(page.get_by_test_id("values-after")).to_contain_text(" 0")  # transparent
    assert [round(each * 255) for each in picture.last("set")["value"]] == [200, 60, 40]


@pytest.mark.long
def test_curve_is_bent_by_pointer_and_keys(picture: Driver) -> None:
    page = picture.page
    picture.add("curves")
    square = page.get_by_test_id("curve-master")
    box = square.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.2, steps=4)
    page.mouse.up()
    expect(square.locator("circle")).to_have_count(3)
    picture.until(
        lambda: np.allclose(picture.last("set")["value"], [[0, 0], [0.5, 0.8], [1, 1]], atol=0.02)
    )
    assert picture.last("set")["param"] == "master"
    # 60 / 255 is lifted far above itself.
    page.mouse.move(*picture.place(0.25, 0.5))
    values = page.get_by_test_id("values-after")
    expect(values).to_have_text(re.compile(r"^\d+ 1\d\d \d+ 255$"))
    square.locator("circle").nth(1).press("Delete")
    expect(square.locator("circle")).to_have_count(2)
    page.get_by_role("tab", name="red").click()
    expect(page.get_by_test_id("curve-red")).to_be_visible()


def test_lut_is_sent_and_applied(picture: Driver) -> None:
    page = picture.page
    picture.add("lut apply")
    expect(page.get_by_test_id("card-lut_apply").locator(".card-error")).to_be_visible()
    rows = [f"{1 - r} {1 - g} {1 - b}" for b in (0, 1) for g in (0, 1) for r in (0, 1)]  # inverts
    text = "\n".join(["LUT_3D_SIZE 2", *rows, ""])
    page.get_by_test_id("control-lut").locator("input[type=file]").set_input_files(
        {"name": "inverts.cube", "mimeType": "text/plain", "buffer": text.encode()}
    )
    expect(page.get_by_test_id("control-lut")).to_contain_text("inverts.cube")
    # A card that has what it needs switches itself on.
    expect(page.get_by_role("switch", name="Lut apply on")).to_have_attribute(
        "aria-checked", "true"
    )
    picture.wait_pixel(0.2, 0.5, (55, 195, 215))


@pytest.mark.long
def test_place_is_dragged_on_the_picture(picture: Driver) -> None:
    page = picture.page
    picture.add("rotate")
    picture.studio.do("set", card=_card(picture), param="angle", value=30)
    picture.studio.do("set", card=_card(picture), param="center", value=[32, 24])
    handle = page.get_by_test_id("place-center")
    expect(handle).to_be_visible()
    page.mouse.move(*picture.place(0.5, 0.5))
    page.mouse.down()
    page.mouse.move(*picture.place(0.25, 0.75), steps=4)
    page.mouse.up()
    picture.until(lambda: np.allclose(picture.last("set")["value"], [16, 36], atol=0.6))
    last = picture.last("set")
    assert last["param"] == "center"
    handle.press("ArrowRight")
    expect(page.get_by_role("textbox", name="Center X")).to_have_value(
        f"{round(last['value'][0] + 1, 1):g}"
    )


def _card(driver: Driver) -> str:
    found = driver.page.locator("[data-card]").first.get_attribute("data-card")
    assert found is not None
    return found
