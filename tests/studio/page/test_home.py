"""Taking it home: code that runs as pasted, presets, the plan, renders and web pages."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, WebSocketRoute, expect

from dala.cli import main
from dala.media import Frame, video
from tests.studio.page.driver import Driver
from tests.support.site import served
from tests.support.web import FLAGS


def take(driver: Driver, item: str) -> None:
    """Choose an entry of the menu."""
    driver.page.get_by_role("button", name="Take it home").click()
    driver.page.get_by_role("menuitem", name=item).click()


@pytest.fixture
def inverted(picture: Driver) -> Driver:
    """A page with the picture of two colors, inverted."""
    picture.context.grant_permissions(["clipboard-read", "clipboard-write"])
    picture.add("invert")
    return picture


def test_copied_python_runs_as_pasted(inverted: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    take(inverted, "Copy as Python")
    expect(inverted.page.get_by_role("status").filter(has_text="Copied as Python.")).to_be_visible()
    text = inverted.page.evaluate("navigator.clipboard.readText()")
    assert 'Frame.open("two.png")' in text
    monkeypatch.chdir(inverted.studio.folder)
    exec(compile(text, "pasted", "exec"), {"__name__": "__main__"})
    pixels = np.asarray(Frame.open("result.png"))
    assert pixels[24, 10, :3].tolist() == [55, 195, 215]
    inverted.page.get_by_role("button", name="View").click()
    expect(inverted.page.get_by_test_id("code")).to_have_value(text)


def test_a_kernel_that_does_not_compile_offers_the_last_good_one(inverted: Driver) -> None:
    page, good = inverted.page, "def gain(px: Pixel): return rgba(px.rgb * 0.5, px.a)"
    inverted.studio.do("add", kind="kernel", text=good)
    inverted.studio.do("kernel", card="c2", text=good.replace("px.a", "alpha"))
    take(inverted, "Copy as Python")
    alert = page.get_by_role("alert").filter(has_text="'gain' does not compile (line 1: ")
    expect(alert).to_contain_text("alpha")
    alert.get_by_role("button", name="Copy the last good one").click()
    expect(page.get_by_role("status").filter(has_text="Copied as Python.")).to_be_visible()
    text = page.evaluate("navigator.clipboard.readText()")
    assert text.startswith("# 'gain' is the last text that compiled.\n")
    assert good in text


def test_copied_command_line_runs_as_pasted(inverted: Driver) -> None:
    take(inverted, "Copy as command line")
    expect(inverted.page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    words = shlex.split(inverted.page.evaluate("navigator.clipboard.readText()"))
    assert words[:2] == ["dala", "filter"]
    made = inverted.studio.folder / "command.png"
    assert main([made.as_posix() if word == "result.png" else word for word in words[1:]]) == 0
    assert np.asarray(Frame.open(made))[24, 10, :3].tolist() == [55, 195, 215]


def test_page_without_a_clipboard_shows_the_code(inverted: Driver) -> None:
    page = inverted.page
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(Error('no')) }")
    take(inverted, "Copy as command line")
    expect(page.get_by_test_id("code")).to_have_value(re.compile("--invert"))


def test_picture_is_rendered_and_downloaded(inverted: Driver, tmp_path: Path) -> None:
    page = inverted.page
    take(inverted, "Render to a file")
    page.get_by_role("radio", name="png").click()
    page.get_by_role("button", name="Render", exact=True).click()
    job = page.get_by_test_id("job")
    expect(job).to_have_attribute("data-state", "done")
    with page.expect_download() as info:
        job.get_by_role("link", name="Download").click()
    info.value.save_as(tmp_path / "made.png")
    assert np.asarray(Frame.open(tmp_path / "made.png"))[24, 10, :3].tolist() == [55, 195, 215]
    job.get_by_role("button", name="Remove from the list").click()
    expect(job).to_have_count(0)


def test_video_is_rendered_into_the_folder(moving: Driver) -> None:
    page = moving.page
    moving.add("invert")
    take(moving, "Render to a file")
    target = moving.studio.folder / "rendered.mp4"
    page.get_by_role("textbox", name="File").fill(str(target))
    page.get_by_role("button", name="Render", exact=True).click()
    expect(page.get_by_test_id("job")).to_have_attribute("data-state", "done")
    with video.open(target) as reader:
        levels = [int(frame.numpy()[24, 32, 0]) for frame in reader]
    assert len(levels) == 30
    assert abs(levels[0] - 235) < 6
    assert abs(levels[-1] - (255 - 20 - 7 * 29)) < 6


def test_only_the_loop_is_rendered(moving: Driver) -> None:
    page = moving.page
    moving.studio.do("loop", **{"from": 0.5, "to": 1.2})
    take(moving, "Render to a file")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("From 0:00.50 to 0:01.20")
    expect(dialog.get_by_role("switch", name="Only the loop")).to_be_checked()
    target = moving.studio.folder / "part.mp4"
    page.get_by_role("textbox", name="File").fill(str(target))
    page.get_by_role("button", name="Render", exact=True).click()
    expect(page.get_by_test_id("job")).to_have_attribute("data-state", "done")
    with video.open(target) as reader:
        levels = [int(frame.numpy()[24, 32, 0]) for frame in reader]
    assert [round((level - 20) / 7) for level in levels] == [5, 6, 7, 8, 9, 10, 11]


@pytest.mark.long
def test_built_in_presets_are_found_and_undone(picture: Driver) -> None:
    page = picture.page
    picture.add("invert")
    page.get_by_role("button", name="Presets").click()
    chips = page.get_by_role("dialog").locator(".chip")
    assert chips.count() >= 5
    chips.filter(has_text="Golden hour").click()
    expect(page.locator(".card-title").first).to_have_text("Temperature")
    page.keyboard.press("Control+k")
    page.get_by_test_id("palette-search").fill("noir")
    expect(page.get_by_role("option", selected=True)).to_contain_text("Replaces the chain")
    page.keyboard.press("Enter")
    expect(page.locator(".card-title").first).to_have_text("Grayscale")
    page.get_by_test_id("undo").click()
    page.get_by_test_id("undo").click()
    expect(page.locator(".card-title")).to_have_text(["Invert"])


@pytest.mark.long
def test_a_late_reply_closes_only_its_own_dialog(picture: Driver, chromium: object) -> None:
    held: list[str] = []
    servers: list[WebSocketRoute] = []

    def hold_presets(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()
        servers.append(server)
        socket.on_message(lambda text: (held.append if '"preset"' in text else server.send)(text))

    with Driver(picture.studio, chromium) as driver:
        page = driver.page
        page.route_web_socket(re.compile(".*"), hold_presets)
        driver.load()
        page.get_by_role("button", name="Presets").click()
        page.get_by_role("dialog").locator(".chip").filter(has_text="Golden hour").click()
        driver.until(lambda: bool(held))
        page.keyboard.press("Control+k")
        page.get_by_test_id("palette-search").fill("noir")
        servers[-1].send(held[0])
        expect(page.locator(".card-title").first).to_have_text("Temperature")
        expect(page.get_by_test_id("palette-search")).to_have_value("noir")


@pytest.mark.long
def test_render_shows_progress_and_is_cancelled(page: Driver) -> None:
    page.studio.do("open", camera="test")
    page.wait_frames()
    take(page, "Render to a file")
    page.page.get_by_role("slider", name="Seconds").press("End")  # it must not end by itself
    page.page.get_by_role("button", name="Render", exact=True).click()
    job = page.page.get_by_test_id("job")
    expect(job).to_have_attribute("data-state", "running")
    page.page.wait_for_function("() => document.querySelector('.job progress')?.value > 0")
    job.get_by_role("button", name="Cancel").click()
    expect(job).to_have_count(0)
    expect(page.page.get_by_role("status").filter(has_text="cancelled")).to_be_visible()


@pytest.mark.long
def test_chain_is_exported_as_a_web_page(
    inverted: Driver, chromium: Browser, tmp_path: Path
) -> None:
    """From the studio to a page that runs: the picture of two colors, inverted by WebGPU."""
    page = inverted.page
    take(inverted, "Export as a web page")
    job = page.get_by_test_id("job")
    expect(job).to_have_attribute("data-state", "done")
    with page.expect_download() as info:
        job.get_by_role("link", name="Download").click()
    info.value.save_as(tmp_path / "page.zip")
    with zipfile.ZipFile(tmp_path / "page.zip") as archive:
        archive.extractall(tmp_path)
    launched = chromium.browser_type.launch(executable_path=shutil.which("chromium"), args=FLAGS)
    with served(tmp_path) as address:
        visitor = launched.new_page()
        visitor.goto(f"{address}index.html")
        view = visitor.evaluate_handle("document.querySelector('dala-chain').ready")
        corner = view.evaluate(
            """async view => {
                const name = view.chain.url(view.chain.document.picture);
                const picture = await createImageBitmap(await (await fetch(name)).blob());
                return [...(await (await view.chain.run(picture)).pixels()).slice(0, 4)];
            }"""
        )
    launched.close()
    assert np.abs(np.array(corner) - (55, 195, 215, 255)).max() <= 4, corner  # the file's losses


@pytest.mark.long
def test_an_edited_scene_is_saved_and_rendered(page: Driver) -> None:
    shutil.copy(page.studio.folder / "scene.json", page.studio.folder / "edited.json")
    page.open("edited.json")
    page.page.get_by_role("treeitem", name="box").click()
    page.studio.do("node_set", node="n1", property="color", value="#00ff00")
    take(page, "Save scene.json")
    expect(page.page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    assert "#00ff00" in (page.studio.folder / "edited.json").read_text()
    take(page, "Render to a file")
    target = page.studio.folder / "scene.mp4"
    page.page.get_by_role("textbox", name="File").fill(str(target))
    page.page.get_by_role("button", name="Render", exact=True).click()
    expect(page.page.get_by_test_id("job")).to_have_attribute("data-state", "done")
    with video.open(target) as reader:
        frames = [frame.numpy() for frame in reader]
    assert len(frames) == 20
    red, green, blue = frames[10][80, 80, :3].tolist()
    assert green > 240
    assert max(red, blue) < 12


@pytest.mark.long
def test_effects_of_a_node_are_exported(page: Driver) -> None:
    data = json.loads((page.studio.folder / "scene.json").read_text())
    data["nodes"] += [
        {"type": "effect", "filter": "blur", "input": "box"},
        {"type": "effect", "id": "dark", "filter": "vignette", "start": 1},
    ]
    (page.studio.folder / "effects.json").write_text(json.dumps(data))
    page.open("effects.json")
    take(page, "Export as a web page")
    expect(page.page.get_by_role("alert")).to_contain_text("effects in several places")
    page.page.get_by_role("treeitem", name="dark").click()
    take(page, "Export “dark” as a web page")
    job = page.page.get_by_test_id("job")
    expect(job).to_have_attribute("data-state", "done")
    job.get_by_text("note").click()
    expect(job).to_contain_text("has a start or an end in the scene")


@pytest.mark.long
def test_preset_is_saved_and_loaded(picture: Driver, tmp_path: Path) -> None:
    page = picture.page
    picture.add("invert")
    page.get_by_role("button", name="Presets").click()
    with page.expect_download() as info:
        page.get_by_role("button", name="Save this chain").click()
    saved = tmp_path / "chain.json"
    info.value.save_as(saved)
    value = json.loads(saved.read_text())
    assert [step["filter"] for step in value["chain"]] == ["invert"]
    value["chain"].append({"filter": "brightness", "params": {"value": 0.2}})
    saved.write_text(json.dumps(value))
    page.get_by_test_id("preset-file").set_input_files(saved)
    expect(page.locator(".card-title")).to_have_text(["Invert", "Brightness"])
    expect(page.get_by_role("textbox", name="Value, value")).to_have_value("0.2")
    page.get_by_role("button", name="Presets").click()
    saved.write_text("{")
    page.get_by_test_id("preset-file").set_input_files(saved)
    expect(page.get_by_role("alert")).to_have_text("chain.json is not JSON.")


@pytest.mark.long
def test_plan_is_shown_as_a_picture(picture: Driver) -> None:
    page = picture.page
    picture.add("invert")
    picture.add("brightness")
    page.get_by_role("button", name="Show the fused plan").click()
    plan = page.get_by_role("img", name="The fused plan")
    expect(plan).to_have_accessible_name("The fused plan. pass 1: invert, brightness.")
    expect(plan.locator(".flow-stage")).to_have_text(["invert", "brightness"])
    expect(page.get_by_role("dialog")).to_contain_text("2 cards run in one pass")
    box = plan.bounding_box()
    assert box is not None
    assert box["width"] > 100
    assert box["height"] > 30
