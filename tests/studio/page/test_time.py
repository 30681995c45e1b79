"""The time line: play, pause, step, seek and a region that repeats."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect

from dala.studio.picture.h264 import H264Encoder
from dala.trace.export import read
from dala.trace.report import TraceReport
from tests.studio.page.driver import Driver


def gray(seconds: float) -> tuple[int, int, int]:
    """The color of the short video at a time."""
    level = 20 + 7 * round(seconds * 10)
    return (level, level, level)


@pytest.mark.long
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


def test_frame_times_are_shown_and_a_trace_is_saved(
    moving: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = moving.page
    moving.studio.do("loop", **{"from": 0, "to": 3})
    page.keyboard.press("t")
    page.get_by_test_id("trace").click()
    expect(page.get_by_test_id("trace")).to_have_attribute("aria-pressed", "true")
    begin = moving.frames()
    page.get_by_test_id("canvas").focus()
    page.keyboard.press("Space")
    moving.wait_frames(begin + 8)
    encode, slowed = H264Encoder.encode, threading.Event()

    def slow(*given: object, **named: object) -> object:
        if not slowed.is_set():
            time.sleep(0.3)
            slowed.set()
        return encode(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(H264Encoder, "encode", slow)
    moving.until(slowed.is_set)
    moving.wait_frames(begin + 12)
    strip = page.get_by_test_id("strip")
    moving.until(lambda: int(strip.get_attribute("data-frames") or 0) >= 10)
    expect(strip).to_contain_text("encode")
    page.get_by_test_id("trace").click()
    job = page.get_by_test_id("job")
    expect(job).to_have_attribute("data-state", "done")
    expect(job).to_contain_text("frames late by more than 8 ms")
    with page.expect_download() as info:
        job.get_by_role("link", name="Download").click()
    info.value.save_as(tmp_path / "trace.json")
    events, threads, _ = read(tmp_path / "trace.json")
    assert {"decode", "draw", "encode", "network", "present", "done"} <= {r[0] for _, r in events}
    report = TraceReport(events, threads, tolerance=150)
    assert report.causes[0].stage == "encode", str(report)
    page.keyboard.press("t")
    expect(strip).to_have_count(0)


@pytest.mark.long
def test_picture_has_no_time_line(picture: Driver) -> None:
    expect(picture.page.get_by_test_id("track")).to_have_count(0)
    picture.page.keyboard.press("Space")
    assert not [message for message in picture.sent if message["do"] == "play"]
