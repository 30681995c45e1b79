"""A browser with WebGPU on SwiftShader, and a page in it that runs exported chains."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import site
from tests.support.web import FLAGS, WebPage, start


@pytest.fixture(scope="module")
def playwright() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    if shutil.which("chromium") is None:
        pytest.skip("Chromium is not installed")
    with api.sync_playwright() as made:
        yield made


@pytest.fixture(scope="module")
def browser(playwright: Any) -> Iterator[Any]:
    made = start(playwright, *FLAGS)
    yield made
    made.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "blank.html").write_text("<!doctype html><title>blank</title>")
    with site.served(folder) as address:
        yield folder, address


@pytest.fixture(scope="module")
def web(browser: Any, served: tuple[Path, str]) -> Iterator[WebPage]:
    folder, address = served
    page = browser.new_page()
    page.set_default_timeout(180_000)  # machines may be busy
    page.goto(address + "blank.html")
    yield WebPage(page, folder, address)
    page.close()
