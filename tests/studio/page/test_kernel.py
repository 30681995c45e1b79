"""The kernel editor: errors as one types, completion, documentation, sliders and code."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.studio.page.driver import Driver

#: The editor indents the second line.
GOOD = (
    "def gain(px: Pixel, *, amount: Within[float, 0.0, 2.0] = 0.5):\n"
    "return rgba(px.rgb * amount, px.a)"
)


def write(driver: Driver, text: str) -> None:
    """Replace the text of the editor by typing."""
    driver.page.get_by_test_id("editor").get_by_role("textbox").click()
    driver.page.keyboard.press("Control+a")
    driver.page.keyboard.type(text)
    driver.page.keyboard.press("Escape")


def test_typing_changes_the_picture_and_makes_sliders(picture: Driver) -> None:
    page = picture.page
    picture.add("new kernel")
    problems = page.get_by_test_id("problems")
    expect(problems).to_have_text("Running")
    write(picture, GOOD)
    expect(problems).to_have_text("Running")
    picture.wait_pixel(0.2, 0.5, (100, 30, 20))
    slider = page.get_by_test_id("control-amount").get_by_role("slider")
    assert slider.get_attribute("max") == "2"
    box = page.get_by_test_id("control-amount").get_by_role("textbox")
    box.fill("1")
    box.press("Enter")
    picture.wait_pixel(0.2, 0.5, (200, 60, 40))


def test_mistake_is_underlined_and_the_last_good_kernel_runs(picture: Driver) -> None:
    page = picture.page
    picture.add("new kernel")
    write(picture, GOOD)
    picture.wait_pixel(0.2, 0.5, (100, 30, 20))
    page.keyboard.press("Control+End")
    page.keyboard.type(" * amout")  # no part of it is a kernel
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("problems")).to_contain_text("amout")
    mark = page.get_by_test_id("editor").locator(".cm-lintRange-error")
    expect(mark).to_have_text("amout")
    picture.wait_pixel(0.2, 0.5, (100, 30, 20))
    mark.hover()
    expect(page.get_by_test_id("editor").locator(".cm-diagnostic")).to_contain_text("amount")


@pytest.mark.long
def test_completion_and_documentation(picture: Driver) -> None:
    page = picture.page
    picture.add("new kernel")
    write(picture, GOOD)
    editor = page.get_by_test_id("editor")
    page.keyboard.press("Control+End")
    page.keyboard.type(" + smooths")
    first = editor.locator(".cm-tooltip-autocomplete li").first
    expect(first).to_contain_text("smoothstep")
    expect(editor.locator(".cm-completionInfo")).to_be_visible()
    page.wait_for_timeout(100)  # a completion that has just appeared is not taken by Enter
    page.keyboard.press("Enter")
    expect(editor.locator(".cm-content")).to_contain_text("smoothstep")
    editor.get_by_text("rgba", exact=True).hover()
    expect(editor.locator(".word code")).to_contain_text("rgba")


@pytest.mark.long
def test_generated_code_is_shown(picture: Driver) -> None:
    page = picture.page
    picture.add("new kernel")
    write(picture, GOOD)
    page.get_by_role("tab", name="WGSL").click()
    expect(page.get_by_test_id("code-wgsl").locator(".cm-content")).to_contain_text("fn ")
    page.get_by_role("tab", name="LLVM").click()
    expect(page.get_by_test_id("code-llvm").locator(".cm-content")).to_contain_text("define")
    page.get_by_role("button", name="Close the editor").click()
    expect(page.get_by_test_id("editor")).to_have_count(0)


#: Stop the page's clock: however slow the machine is, there is no pause between two keys.
STOP = (
    "() => { const at = performance.now(); performance.now = () => at + (globalThis.later ?? 0) }"
)


@pytest.mark.long
def test_typing_is_undone_by_the_editor_and_the_chain_by_the_page(picture: Driver) -> None:
    page = picture.page
    picture.add("new kernel")
    text = page.get_by_test_id("editor").locator(".cm-content")
    page.evaluate(STOP)
    write(picture, GOOD)
    picture.wait_pixel(0.2, 0.5, (100, 30, 20))
    page.evaluate("() => { globalThis.later = 5000 }")  # a pause: another step
    page.keyboard.press("Control+End")
    page.keyboard.type(" # twice")
    picture.until(lambda: str(picture.last("kernel").get("text")).endswith("# twice"))
    page.get_by_test_id("undo").click()
    expect(text).not_to_contain_text("twice")
    expect(text).to_contain_text("gain")
    page.get_by_test_id("undo").click()
    expect(text).not_to_contain_text("gain")
    page.get_by_test_id("redo").click()
    expect(text).to_contain_text("gain")
    picture.wait_pixel(0.2, 0.5, (100, 30, 20))
