"""The widget in JupyterLab: a real kernel, a real page. It needs the jupyterlab package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

pytest.importorskip("jupyterlab", reason="needs JupyterLab (pip install jupyterlab)")
pytest.importorskip("anywidget", reason="needs the studio extra")

from dala.media import Frame

pytestmark = pytest.mark.long
#: Milliseconds: JupyterLab and a kernel start, on a machine where others compile.
PATIENCE = 120_000

CELLS = (
    "import dala\n"
    "chain = [('brightness', {'value': 0.0}), 'invert']\n"
    "shown = dala.studio.widget(chain, 'red.png', device='cpu')\n"
    "shown",
    "print(shown.chain, shown.result[0, 0].tolist())",
)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """The address of a notebook with two cells, in a JupyterLab of its own."""
    Frame.from_array(np.full((32, 48, 3), (200, 60, 40), np.uint8)).save(tmp_path / "red.png")
    cells = [
        {"cell_type": "code", "id": f"c{n}", "metadata": {}, "execution_count": None,
         "outputs": [], "source": text}
        for n, text in enumerate(CELLS)
    ]  # fmt: skip
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    (tmp_path / "look.ipynb").write_text(
        json.dumps({"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4,
                    "nbformat_minor": 5})
    )  # fmt: skip
    words = [
        "--no-browser", "--allow-root", "--port=0", "--IdentityProvider.token=open",
        f"--notebook-dir={tmp_path}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]  # fmt: skip
    (tmp_path / "home").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *words],
        env={**os.environ, "HOME": str(tmp_path / "home"), "DALA_DEVICE": "cpu"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    rest = threading.Thread(target=process.stderr.read)
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"(http://127\.0\.0\.1:\d+)/lab", line):
                rest.start()  # a full pipe would stop it
                yield f"{found[1]}/lab/tree/look.ipynb?token=open"
                return
        raise AssertionError("".join(said[-20:]))
    finally:
        process.terminate()
        process.wait()
        if rest.ident is not None:
            rest.join()
        process.stderr.close()


def run(page: Page, number: int) -> Any:
    """Run a cell, and return its output."""
    cell = page.locator(".jp-CodeCell").nth(number)
    cell.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    return cell.locator(".jp-OutputArea-output").last


def test_widget_in_jupyterlab(lab: str, chromium: Any, tmp_path: Path) -> None:
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.goto(lab)
    expect(page.get_by_text("| Idle")).to_be_visible(timeout=PATIENCE)
    shown = run(page, 0)
    picture = shown.locator("img")
    picture.wait_for()
    expect(shown.get_by_role("slider", name="value")).to_have_value("0")

    def color() -> list[int]:
        return page.evaluate(
            """async picture => {
                await picture.decode();
                const canvas = new OffscreenCanvas(picture.naturalWidth, picture.naturalHeight);
                const context = canvas.getContext("2d");
                context.drawImage(picture, 0, 0);
                return [...context.getImageData(8, 8, 1, 1).data.slice(0, 3)];
            }""",
            picture.element_handle(),
        )

    assert np.abs(np.subtract(color(), (55, 195, 215))).max() <= 6
    address = picture.get_attribute("src")
    shown.get_by_role("slider", name="value").fill("0.2")
    expect(picture).not_to_have_attribute("src", str(address), timeout=PATIENCE)
    assert np.abs(np.subtract(color(), (4, 144, 164))).max() <= 6
    text = run(page, 1)
    expect(text).to_contain_text("('brightness', {'value': 0.2})", timeout=PATIENCE)
    expect(text).to_contain_text("[4, 144, 164]")
    page.screenshot(path=tmp_path / "notebook.png")
    page.close()
