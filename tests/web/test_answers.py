"""Exported filters in a browser give the bytes of the table of answers, by the site's own page."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.web import WebPage
from website import selftest


@pytest.fixture(scope="module")
def report(web: WebPage, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("exported"))
        selftest.write(web.folder / "assets")
    run = """async (address) => {
        const { selftest, written } = await import(address + "assets/selftest.js");
        const report = await selftest();
        return { ...report, text: written(report) };
    }"""
    return web.page.evaluate(run, web.address)


def test_bytes(report: Any) -> None:
    assert report["rows"] == len(selftest.SOME) * len(selftest.SHOWN)
    assert not report["differing"], "\n".join(report["differing"])


def test_the_report_can_be_pasted(report: Any) -> None:
    first, browser, adapter, rows, *_ = report["text"].splitlines()
    assert first == f"Dala {report['version']} in a browser"
    assert "Chrome" in browser
    assert adapter.startswith("GPU: ")
    assert rows == f"{report['rows']} rows, {len(report['differing'])} differ"


def test_files_of_the_site() -> None:
    names = [selftest.file_of(case) for case in selftest.SOME]
    assert len(set(names)) == len(names)
    assert (Path(selftest.__file__).parent / "assets" / "selftest.js").is_file()
