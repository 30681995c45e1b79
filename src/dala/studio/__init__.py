"""A studio in the browser: pictures, videos, scenes and kernels, live.

- ``dala studio photo.jpg`` starts one from the command line
- ``dala.studio.app(...)``: an ASGI application, to run or to mount in another one
- ``dala.studio.widget(chain, source)``: a chain with controls in a notebook

They need ``pip install "dala-gpu[studio]"``.
"""

from __future__ import annotations

from dala.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dala.studio.application import StudioApp as StudioApp
    from dala.studio.application import app as app
    from dala.studio.limits import StudioLimits as StudioLimits
    from dala.studio.notebook import StudioWidget as StudioWidget
    from dala.studio.notebook import widget as widget

#: The module of each name.
_HOMES = {
    "StudioApp": "dala.studio.application",
    "StudioLimits": "dala.studio.limits",
    "StudioWidget": "dala.studio.notebook",
    "app": "dala.studio.application",
    "widget": "dala.studio.notebook",
}

__all__ = ["StudioApp", "StudioLimits", "StudioWidget", "app", "widget"]

if not TYPE_CHECKING:  # so that type checkers reject a misspelled name, as Python does
    __getattr__, __dir__ = attach(__name__, _HOMES)
