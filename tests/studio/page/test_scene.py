"""Scenes: the tree, properties, nodes dragged on the picture, key frames, and the file."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from playwright.sync_api import expect

from tests.studio.page.driver import Driver

RED = (255, 0, 0)
DARK = (16, 16, 16)


@pytest.fixture
def scene(page: Driver) -> Driver:
    """A page with a scene: a red box and a title that fades in."""
    shutil.copy(page.studio.folder / "scene.json", page.studio.folder / "own.json")
    page.open("own.json")
    return page


def test_tree_selects_hides_orders_and_removes(scene: Driver) -> None:
    page = scene.page
    rows = page.get_by_role("tree").get_by_role("treeitem")
    expect(rows).to_have_text(["title", "box"])  # front to back
    scene.wait_pixel(0.25, 0.45, RED)
    rows.nth(1).click()
    expect(rows.nth(1)).to_have_attribute("aria-selected", "true")
    expect(page.get_by_test_id("outline")).to_be_visible()
    page.get_by_role("button", name="Hide box").click()
    scene.wait_pixel(0.25, 0.45, DARK)
    page.get_by_role("button", name="Show box").click()
    scene.wait_pixel(0.25, 0.45, RED)
    rows.nth(1).press("ArrowUp")
    expect(rows.nth(0)).to_be_focused()
    rows.nth(0).press("Alt+ArrowDown")
    expect(rows).to_have_text(["box", "title"])
    rows.nth(0).press("Delete")
    expect(rows).to_have_text(["title"])
    scene.wait_pixel(0.25, 0.45, DARK)
    page.get_by_test_id("undo").click()
    expect(rows).to_have_text(["box", "title"])


@pytest.mark.long
def test_node_is_dragged_on_the_picture(scene: Driver) -> None:
    page = scene.page
    scene.wait_pixel(0.25, 0.45, RED)
    scene.wait_pixel(0.75, 0.75, DARK)
    page.mouse.move(*scene.place(0.25, 0.45))
    page.mouse.down()
    page.mouse.move(*scene.place(0.5, 0.6), steps=3)
    page.mouse.move(*scene.place(0.75, 0.75), steps=3)
    page.mouse.up()
    expect(page.get_by_role("treeitem", selected=True)).to_have_text("box")
    scene.wait_pixel(0.75, 0.75, RED)
    scene.wait_pixel(0.25, 0.45, DARK)
    # (40, 50) plus half the width and 0.3 of the height of 320 x 180
    box = page.get_by_role("textbox", name="Position X")
    expect(box).to_have_value("200")
    page.get_by_test_id("canvas").press("ArrowRight")
    expect(box).to_have_value("201")
    page.keyboard.press("Control+z")
    expect(box).to_have_value("200")
    page.keyboard.press("Control+z")  # the whole drag
    expect(box).to_have_value("40")
    scene.wait_pixel(0.25, 0.45, RED)


@pytest.mark.long
def test_properties_are_edited(scene: Driver) -> None:
    page = scene.page
    page.get_by_test_id("node-box").click()
    page.get_by_test_id("control-color").locator("input[type=color]").fill("#0000ff")
    scene.wait_pixel(0.25, 0.45, (0, 0, 255))
    opacity = page.get_by_test_id("control-opacity").get_by_role("textbox")
    opacity.fill("0")
    opacity.press("Enter")
    scene.wait_pixel(0.25, 0.45, DARK)
    page.get_by_role("button", name="Reset Opacity").click()
    scene.wait_pixel(0.25, 0.45, (0, 0, 255))


def test_nodes_are_added(scene: Driver) -> None:
    page = scene.page
    page.get_by_role("button", name="Add a node").click()
    page.get_by_role("menuitem", name="Overlay").click()
    rows = page.get_by_role("tree").get_by_role("treeitem")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_have_attribute("aria-selected", "true")
    scene.wait_pixel(0.5, 0.5, (255, 122, 77))


@pytest.mark.long
def test_key_frames_are_set_moved_and_removed(scene: Driver) -> None:
    page = scene.page
    page.get_by_test_id("node-title").click()
    page.get_by_role("button", name="Key frames").click()
    track = page.get_by_test_id("track-opacity")
    expect(track.locator(".keyframe")).to_have_count(2)
    second = track.locator(".keyframe").nth(1)
    lane = track.locator(".track-lane").bounding_box()
    held = second.bounding_box()
    assert lane is not None
    assert held is not None
    page.mouse.move(held["x"] + held["width"] / 2, held["y"] + held["height"] / 2)
    page.mouse.down()
    page.mouse.move(lane["x"] + lane["width"] * 0.75, lane["y"] + 14, steps=4)
    page.mouse.up()
    expect(track.locator(".keyframe").nth(1)).to_have_attribute(
        "aria-label", re.compile(r"at 1\.5\d* s")
    )
    page.get_by_role("combobox", name="Easing").select_option("ease-in")
    expect(track.locator(".keyframe").nth(1)).to_have_attribute("title", re.compile("ease-in$"))
    # A new key frame at the present time, from the diamond of the property.
    page.get_by_test_id("track").press("ArrowUp")
    expect(page.get_by_test_id("clock")).to_contain_text("0:01.00")
    page.get_by_role("button", name="Add a key frame of opacity").click()
    expect(track.locator(".keyframe")).to_have_count(3)
    page.get_by_role("button", name="Remove the key frame of opacity").click()
    expect(track.locator(".keyframe")).to_have_count(2)
    track.locator(".keyframe").nth(1).press("Delete")
    expect(track.locator(".keyframe")).to_have_count(1)


@pytest.mark.long
def test_scene_file_is_saved_and_stays_readable(scene: Driver) -> None:
    page = scene.page
    page.get_by_test_id("node-box").click()
    page.get_by_test_id("canvas").press("ArrowRight")
    expect(page.get_by_role("textbox", name="Position X")).to_have_value("41")
    expect(page.locator(".dirty")).to_be_visible()
    page.keyboard.press("Control+s")
    expect(page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    expect(page.locator(".dirty")).to_have_count(0)
    before = (scene.studio.folder / "scene.json").read_text()
    after = (scene.studio.folder / "own.json").read_text()
    assert json.loads(after)["nodes"][0]["position"] == [41, 50]
    assert after == before.replace("[40, 50]", "[41, 50]")
