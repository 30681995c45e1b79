"""Export kernels, pipelines and chains of filters as web pages that run on the visitor's GPU.

>>> import dala.web
>>> made = dala.web.plan([("blur", {"radius": 4, "sigma": 2.0}), ("sharpen", {"amount": 0.3})])
>>> made.dispatches, [c.name for c in made.live]
(1, ['radius', 'sigma', 'amount'])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dala.lazy import attach

if TYPE_CHECKING:
    from dala.web.explore import WebPlan as WebPlan
    from dala.web.exporting import Export as Export
    from dala.web.exporting import export as export
    from dala.web.exporting import plan as plan
    from dala.web.exporting import read_chain as read_chain
    from dala.web.scenes import is_scene_file as is_scene_file
    from dala.web.serving import Server as Server
    from dala.web.serving import serve as serve

__all__ = [
    "Export",
    "Server",
    "WebPlan",
    "export",
    "is_scene_file",
    "plan",
    "read_chain",
    "serve",
]

_HOMES = {
    "Export": "dala.web.exporting",
    "Server": "dala.web.serving",
    "WebPlan": "dala.web.explore",
    "export": "dala.web.exporting",
    "is_scene_file": "dala.web.scenes",
    "plan": "dala.web.exporting",
    "read_chain": "dala.web.exporting",
    "serve": "dala.web.serving",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__, _HOMES)
