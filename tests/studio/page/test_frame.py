"""The page as a whole: policy, prefix, connection, colors, small screens, keys and names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import WebSocketRoute, expect
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.studio.page.driver import Driver, Studio

RED = (200, 60, 40)


def test_policy_is_strict_and_nothing_breaks_it(picture: Driver) -> None:
    page = picture.page
    with page.expect_response(lambda response: response.url.endswith(":" + port + "/")) as info:
        port = str(picture.studio.port)
        page.reload()
    policy = info.value.headers["content-security-policy"]
    assert "unsafe-inline" not in policy
    assert "unsafe-eval" not in policy.replace("wasm-unsafe-eval", "")
    page.evaluate(
        """() => {
            globalThis.refused = [];
            document.addEventListener('securitypolicyviolation', e => refused.push(e.blockedURI));
        }"""
    )
    picture.add("new kernel")  # the editor has the most styles
    expect(page.get_by_test_id("editor").locator(".cm-content")).to_be_visible()
    page.keyboard.press("Control+a")
    page.keyboard.type("def f(px: Pixel):\nreturn rgba(px.rgb * nothing, px.a)")
    expect(page.get_by_test_id("editor").locator(".cm-lintRange-error").first).to_be_visible()
    weight = (
        page.get_by_test_id("editor")
        .locator(".cm-content")
        .evaluate("element => getComputedStyle(element).whiteSpace")
    )
    assert weight == "pre"  # its sheet is in use
    assert page.evaluate("refused") == []


def test_everything_comes_from_the_studio(picture: Driver) -> None:
    seen: list[str] = []
    picture.page.on("request", lambda request: seen.append(request.url))
    picture.load()
    picture.add("new kernel")
    expect(picture.page.get_by_test_id("problems")).to_have_text("Running")
    assert seen
    assert all(url.startswith(picture.studio.address) for url in seen), seen


@pytest.mark.long
def test_not_connected_before_the_state_is_there(picture: Driver, chromium: object) -> None:
    held: list[tuple[WebSocketRoute, str | bytes]] = []

    def hold_the_state(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()
        socket.on_message(server.send)
        server.on_message(lambda text: held.append((socket, text)))

    with Driver(picture.studio, chromium) as driver:
        page = driver.page
        page.route_web_socket(re.compile(".*"), hold_the_state)
        page.reload()
        driver.until(lambda: any('"state"' in str(text) for _, text in held))
        expect(page.get_by_test_id("link")).to_contain_text("Connecting")
        for socket, text in held:
            socket.send(text)
        expect(page.get_by_test_id("link")).to_have_count(0)
        page.keyboard.press("Control+k")
        expect(page.get_by_test_id("palette-search")).to_be_visible()


@pytest.mark.long
def test_works_under_a_prefix(folder: Path, chromium: object) -> None:
    def mounted(app: object) -> Starlette:
        return Starlette(routes=[Mount("/tools/studio", app)])  # type: ignore[arg-type]

    with Studio(folder, mounted) as studio, Driver(studio, chromium, "tools/studio/") as page:
        page.open("two.png")
        page.wait_pixel(0.2, 0.5, RED)
        page.page.get_by_test_id("open").click()
        expect(page.page.get_by_role("button", name="ramp.mp4")).to_be_visible()
        page.check()


def test_connection_returns_with_the_server(picture: Driver) -> None:
    page = picture.page
    picture.add("invert")
    picture.wait_pixel(0.2, 0.5, (55, 195, 215))
    picture.expected = ("ERR_", "WebSocket")
    picture.studio.stop()
    expect(page.get_by_test_id("link")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("connection to the studio was lost")
    picture.studio.restart()
    expect(page.get_by_test_id("link")).to_have_count(0)
    frames = picture.frames()
    picture.add("invert")
    picture.wait_frames(frames)
    picture.wait_pixel(0.2, 0.5, RED)


@pytest.mark.long
def test_another_server_at_the_address_is_told(folder: Path, chromium: object) -> None:
    with Studio(folder) as first:
        page = Driver(first, chromium)
    with page, Studio(folder, port=first.port):
        expect(page.page.get_by_test_id("link")).to_contain_text("Open the address that it printed")


def test_camera_is_live(page: Driver) -> None:
    page.page.get_by_test_id("open").click()
    page.page.get_by_role("button", name="Test camera").click()
    expect(page.page.get_by_test_id("live")).to_have_text("Live")
    page.wait_frames(page.frames() + 3)


def test_files_are_found_in_the_folders(page: Driver) -> None:
    (page.studio.folder / "inner").mkdir(exist_ok=True)
    (page.studio.folder / "inner" / "two.png").write_bytes(
        (page.studio.folder / "two.png").read_bytes()
    )
    page.page.keyboard.press("Control+o")
    inner = page.page.get_by_role("button", name="inner")
    inner.click()
    expect(inner).to_have_count(0)  # its files are listed
    page.page.get_by_role("button", name="two.png").click()
    page.wait_pixel(0.2, 0.5, RED)
    assert page.last("open")["path"] == str(page.studio.folder / "inner" / "two.png")


@pytest.mark.long
def test_two_pages_show_one_document(picture: Driver, chromium: object) -> None:
    with Driver(picture.studio, chromium) as other:
        other.wait_pixel(0.2, 0.5, RED)
        picture.add("invert")
        expect(other.page.get_by_test_id("card-invert")).to_be_visible()
        other.wait_pixel(0.2, 0.5, (55, 195, 215))
        other.page.get_by_test_id("undo").click()
        expect(picture.page.get_by_test_id("card-invert")).to_have_count(0)
        other.check()


@pytest.mark.long
def test_colors_follow_the_system_and_the_button(picture: Driver) -> None:
    page = picture.page
    background = "getComputedStyle(document.body).backgroundColor"
    colors = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(
            "name => document.documentElement.dataset.theme === name", arg=scheme
        )
        colors[scheme] = page.evaluate(background)
    assert colors["light"] != colors["dark"]
    button = page.get_by_test_id("theme")
    button.click()
    expect(button).to_have_accessible_name("Colors: dark")
    button.click()
    expect(button).to_have_accessible_name("Colors: light")
    assert page.evaluate(background) == colors["light"]
    picture.load()
    assert page.evaluate(background) == colors["light"]
    button.click()
    expect(button).to_have_accessible_name("Colors: as the system")
    page.emulate_media(color_scheme="no-preference")


@pytest.mark.long
def test_phone_width(picture: Driver) -> None:
    page = picture.page
    picture.add("blur")
    try:
        page.set_viewport_size({"width": 375, "height": 740})
        expect(page.get_by_test_id("card-blur")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        picture.add("new kernel")  # whose lines are longer than the screen is wide
        expect(page.get_by_test_id("editor").locator(".cm-content")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        close = page.get_by_role("button", name="Close the editor")
        head, box = page.locator(".drawer-head b").bounding_box(), close.bounding_box()
        assert head is not None
        assert box is not None
        assert abs(head["y"] + head["height"] / 2 - box["y"] - box["height"] / 2) < 8  # one line
        close.click()
        page.get_by_test_id("undo").click()
        picture.wait_pixel(0.2, 0.5, RED)
        page.get_by_test_id("add").click()
        box = page.get_by_role("dialog").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 375
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Take it home").click()
        box = page.get_by_role("menu").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 375
        page.keyboard.press("Escape")
    finally:
        page.set_viewport_size({"width": 1280, "height": 800})


def test_everything_has_a_name_and_is_reached_by_tab(picture: Driver) -> None:
    page = picture.page
    picture.add("curves")
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, textarea, [role=slider]')]
            .filter(e => !(e.ariaLabel || e.getAttribute('aria-label') || e.textContent.trim()
                || e.labels?.length)).map(e => e.outerHTML)"""
    )
    assert unnamed == []
    page.get_by_test_id("undo").focus()
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                """() => {
                    const e = document.activeElement;
                    if (e === document.body) return ['', true];
                    const style = getComputedStyle(e);
                    const ring = style.outlineStyle !== 'none' || style.boxShadow !== 'none'
                        || style.strokeWidth === '4px';
                    return [e.ariaLabel ?? e.textContent, ring];
                }"""
            )
        )
    names = [name for name, _ in reached]
    for wanted in ("Take it home", "Presets", "Curves on", "master, point 1"):
        assert any(name and wanted in name for name in names), (wanted, names)
    assert [name for name, ring in reached if not ring] == []


def test_keys_are_listed(page: Driver) -> None:
    page.page.keyboard.press("?")
    expect(page.page.get_by_role("dialog", name="Keys")).to_contain_text("Play or pause")
    page.page.keyboard.press("Escape")
    expect(page.page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.long
def test_models_are_cards(page: Driver) -> None:
    page.studio.do("open", sample="astronaut")
    page.wait_frames()
    page.page.keyboard.press("Control+k")
    page.page.get_by_test_id("palette-search").fill("faces")
    option = page.page.get_by_role("option", selected=True)
    expect(option).to_contain_text("Find faces")
    page.page.keyboard.press("Enter")
    expect(page.page.get_by_test_id("card-faces").get_by_role("switch")).to_be_visible()
    # The label over the box around the face is green; there the photograph is brown hair.
    page.wait_pixel(0.36, 0.12, (70, 215, 70), near=45)
    found = page.page.get_by_test_id("result")
    expect(found.locator("p")).to_have_text("1 face")
    expect(found.get_by_role("listitem")).to_have_count(1)
    expect(found.get_by_role("listitem")).to_contain_text(re.compile(r"face\s*9\d %"))
    show = page.page.get_by_role("combobox", name="Show")
    show.select_option("blur")
    page.wait_pixel(0.36, 0.12, (110, 90, 60), near=60)
