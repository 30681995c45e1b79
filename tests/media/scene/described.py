"""What the tests of scene files share."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, settings

from dala.media.scene.file.load import schema

SCHEMA = schema()


RNG = np.random.default_rng(5)


PHOTO = RNG.integers(0, 256, (12, 18, 3), np.uint8)


STAMP = RNG.integers(0, 256, (6, 8, 4), np.uint8)


SLOW = settings(
    max_examples=60, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip


def scene(*nodes, **more):
    return {"dala": 2, "width": 24, "height": 16, "nodes": list(nodes), **more}


def pixels(made, time=0.0):
    return np.array(made.render(time))
