"""The time line: play, pause, step, seek and a region that repeats."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.studio.page.driver import Driver


def gray(seconds: float) -> tuple[int, int, int]:
    """The color of the short video at a time."""
    level = 20 + 7 * round(seconds * 10)
    return (level, level, level)


def test_steps_and_seeks_show_their_frames(moving: Driver) -> None:
    page = moving.page
    clock = page.get_by_test_id("clock")
    expect(clock).to_have_text("0:00.00#0")
    moving.wait_pixel(0.5, 0.5, gray(0), near=6)
    page.keyboard.press(".")
    expect(clock).to_have_text("0:00.10#1")
    page.get_by_role("button", name="One frame forward").click()
    expect(clock).to_have_text("0:00.20#2")
    moving.wait_pixel(0.5, 0.5, gray(0.2), near=6)
    page.keyboard.press(",")
    expect(clock).to_have_text("0:00.10#1")
    track = page.get_by_test_id("track")
    box = track.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + 17)
    moving.wait_pixel(0.5, 0.5, gray(1.5), near=6)
    track.press("Home")
    moving.wait_pixel(0.5, 0.5, gray(0), near=6)
    expect(clock).to_have_text("0:00.00#0")


def test_plays_pauses_and_ends(moving: Driver) -> None:
    page = moving.page
    before = moving.frames()
    moving.studio.do("loop", **{"from": 0, "to": 3})  # it does not end before it was looked at
    page.keyboard.press("Space")
    expect(page.get_by_test_id("play")).to_have_accessible_name("Pause")
    moving.wait_frames(before + 3)
    expect(page.get_by_test_id("figures")).to_contain_text("fps")
    page.keyboard.press("Space")
    expect(page.get_by_test_id("play")).to_have_accessible_name("Play")
    moving.studio.do("loop")
    page.get_by_test_id("track").press("End")
    page.get_by_test_id("track").press("ArrowLeft")
    moving.got.clear()
    page.keyboard.press("Space")

    def played() -> list[object]:
        states = [message["state"] for message in moving.got if "state" in message]
        return [state["playing"] for state in states if "playing" in state]

    moving.until(lambda: played() == [True, False])  # it stops at the end
    expect(page.get_by_test_id("play")).to_have_accessible_name("Play")


def test_loop_region_by_dragging_and_keys(moving: Driver) -> None:
    page = moving.page
    box = page.get_by_test_id("track").bounding_box()
    assert box is not None
    y = box["y"] + 17
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + box["width"] * 0.2, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_function("() => document.querySelectorAll('.loop-edge').length === 2")
    first = page.get_by_role("button", name="Loop from")
    expect(first).to_have_accessible_name("Loop from 0:00.60")
    expect(page.get_by_role("button", name="Loop to")).to_have_accessible_name("Loop to 0:01.80")
    first.press("ArrowRight")
    expect(first).to_have_accessible_name("Loop from 0:00.70")
    page.get_by_role("button", name="To the beginning").click()
    moving.wait_pixel(0.5, 0.5, gray(0.7), near=6)
    page.get_by_role("button", name="Loop", exact=True).click()
    expect(page.get_by_test_id("loop")).to_have_count(0)
    page.get_by_test_id("canvas").focus()
    page.keyboard.press("i")
    expect(first).to_have_accessible_name("Loop from 0:00.70")


def test_picture_has_no_time_line(picture: Driver) -> None:
    expect(picture.page.get_by_test_id("track")).to_have_count(0)
    picture.page.keyboard.press("Space")
    assert not [message for message in picture.sent if message["do"] == "play"]
