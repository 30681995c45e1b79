"""Export kernels, pipelines and chains of filters as web pages that run on the visitor's GPU.

>>> import dala.web
>>> made = dala.web.plan([("blur", {"radius": 4, "sigma": 2.0}), ("sharpen", {"amount": 0.3})])
>>> made.dispatches, [c.name for c in made.live]
(1, ['radius', 'sigma', 'amount'])
"""

from __future__ import annotations

from dala.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
