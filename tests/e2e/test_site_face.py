"""The face of the site: its home page, its search, its look on a phone, and without WebGPU."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from PIL import Image

from tests.support.site import opened


def shot(page):
    """Return what the live picture shows, as an array."""
    data = page.locator(".hero canvas").screenshot()
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), np.float32)


def test_the_home_page_runs_its_kernel(site, browser):
    """The canvas moves, and rests on a click."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    with opened(site) as address:
        page.goto(f"{address}index.html")
        page.locator(".hero canvas").wait_for()
        box = page.locator(".hero canvas").bounding_box()
        assert box["y"] + box["height"] < 800  # above the fold
        button = page.locator(".hero figcaption button")
        first = shot(page)
        assert any((shot(page) != first).any() for _ in range(50))
        button.click()
        assert button.text_content() == "Play"
        shot(page)  # the frame that was on its way
        np.testing.assert_array_equal(shot(page), shot(page))
        assert page.locator(".gallery-wall img").count() == 12
        assert page.locator(".cards > ul > li").count() == 5
        page.locator(".gallery-wall a").nth(3).click()
        page.wait_for_url("**/gallery.html#mandelbrot")
        assert page.locator("#mandelbrot").bounding_box()["y"] < 800
    page.close()
    assert errors == []


@pytest.mark.long
def test_the_home_page_rests_for_readers_who_ask_for_less_motion(site, browser):
    """It then shows the moment of the still, which is part of the page."""
    page = browser.new_page(reduced_motion="reduce")
    with opened(site) as address:
        page.goto(f"{address}index.html")
        button = page.locator(".hero figcaption button")
        button.wait_for()
        assert button.text_content() == "Play"
        live = shot(page)
    page.close()
    still = Image.open(site / "images" / "silk.webp").resize(live.shape[1::-1])
    corner = 12  # which is round on the page
    off = np.abs(live - np.asarray(still, np.float32))[corner:-corner, corner:-corner]
    assert off.mean() < 2.5  # the file's losses


@pytest.mark.long
def test_code_does_not_scroll_sideways(site, browser):
    wide = """[...document.querySelectorAll("pre > code")]
        .filter(code => code.scrollWidth > code.clientWidth + 1).map(code => code.textContent)"""
    for width in (360, 1280):
        page = browser.new_page(viewport={"width": width, "height": 800})
        with opened(site) as address:
            for name in ("index", "gallery", "batch", "how-to/gif", "reference/dala.gpu/Surface"):
                page.goto(f"{address}{name}.html", wait_until="domcontentloaded")
                assert page.evaluate(wide) == [], (name, width)
        page.close()


#: Whether a page is among the first results; they change while words are typed.
AMONG_THE_FIRST = """expected => [...document.querySelectorAll("a.md-search-result__link")]
    .slice(0, 12).some(link => link.pathname.endsWith(expected))"""


def test_search_finds_what_people_look_for(site, browser):
    page = browser.new_page()
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    with opened(site) as address:
        page.goto(f"{address}index.html")
        page.wait_for_load_state("networkidle")
        allowed = (address, f"{address.removesuffix('dev/')}versions.json")
        assert [url for url in requests if not url.startswith(allowed)] == []
        assert not any("search_index" in url for url in requests)  # only when it is needed
        query = page.locator("[data-md-component=search-query]")
        for words, expected in {
            "rotate": "catalogue/filters/rotate.html",
            "crossfade": "catalogue/transitions/index.html",
            "mouse": "surfaces/input.html",
            "ffprobe": "how-to/facts.html",
            "resize": "catalogue/filters/resize.html",
            "GPU not found": "how-to/no-gpu.html",
            "hflip": "catalogue/filters/flip.html",
            "green screen": "how-to/green-screen.html",
            "numpy": "reference/dala.gpu.compute/Buffer.html",
            "out of memory": "how-to/memory.html",
        }.items():
            query.click()
            query.fill("")
            query.press_sequentially(words)
            page.wait_for_function(AMONG_THE_FIRST, arg=expected, timeout=120_000)
    page.close()


@pytest.mark.long
def test_pages_fit_a_phone_and_the_dark(site, browser):
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme="dark")
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    with opened(site) as address:
        for name in ("index.html", "media/filters.html", "reference/dala.gpu/Surface.html"):
            page.goto(address + name)
            page.wait_for_load_state("networkidle")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
            color = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert max(map(int, re.findall(r"\d+", color)[:3])) < 80, (name, color)
    context.close()
    assert errors == []


def test_without_webgpu_there_is_a_still(site, browser):
    page = browser.new_page()
    page.add_init_script("Object.defineProperty(navigator, 'gpu', { value: undefined })")
    with opened(site) as address:
        page.goto(f"{address}index.html")
        said = page.locator(".hero figcaption", has_text="With WebGPU it moves")
        said.wait_for()
        assert "chrome://flags/#enable-unsafe-webgpu" in said.text_content()
        assert page.locator(".hero figure img").evaluate("shown => shown.naturalWidth") == 1280
        page.goto(f"{address}catalogue/filters/sepia.html")
        page.wait_for_load_state("networkidle")
        shown = page.evaluate(
            """async () => {
                const element = document.querySelector("dala-chain");
                await element.ready;
                const found = [...(element.shadowRoot ?? element).querySelectorAll("img, slot")];
                return found.some(part => part.getBoundingClientRect().width > 100 || part.src);
            }"""
        )
        said = page.locator("dala-chain .problem").text_content()
    page.close()
    assert shown
    assert "chrome://flags/#enable-unsafe-webgpu" in said
