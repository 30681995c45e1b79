"""What MkDocs calls while it builds the site."""

from __future__ import annotations

import pathlib
import sys
from typing import TYPE_CHECKING

ROOT = pathlib.Path(__file__).parents[1]
for folder in (ROOT, ROOT / "src"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from mkdocs.structure.files import File, Files  # noqa: E402

from website import links, llms, pages  # noqa: E402

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ASSETS = ROOT / "website" / "assets"

#: The generated pages of the running build, by their path.
_generated: dict[str, pages.Generated] = {}
#: The Markdown of every page of the running build, as it is published beside the page.
_markdown: dict[str, str] = {}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Generate pages, and put them where the navigation names their folder."""
    _generated.clear()
    _markdown.clear()
    _generated.update(pages.generate())
    config.nav = pages.navigation(config.nav, _generated)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add generated pages and the assets of the site."""
    for path, page in _generated.items():
        files.append(File.generated(config, path, content=page.text))
    for path in sorted(ASSETS.rglob("*")):
        if path.is_file():
            name = f"assets/{path.relative_to(ASSETS).as_posix()}"
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Keep the Markdown for readers of plain text; lead links out of ``docs`` to the repository."""
    path = page.file.src_uri
    markdown = links.rewrite(markdown, path, config.repo_url, pages.MIRRORED)
    if path in _generated:
        page.edit_url = None
        edited = _generated[path].source
        if edited:
            page.edit_url = f"{config.repo_url}/edit/HEAD/{edited}"
    _markdown[path] = markdown
    return markdown


def on_post_build(config: MkDocsConfig) -> None:
    """Write the Markdown of every page beside it, and ``llms.txt``."""
    llms.write(pathlib.Path(config.site_dir), _markdown, config)
