"""A page with every primitive, compared with the stored picture raster_page.png."""

from __future__ import annotations

import numpy as np
from PIL import Image

from tests.support import raster_page


def test_page_matches_the_stored_picture() -> None:
    stored = np.asarray(Image.open(raster_page.STORED).convert("RGBA")).astype(int)
    drawn = raster_page.draw().astype(int)
    assert drawn.shape == stored.shape
    # Images with alpha are scaled in f32, and may differ by one where a machine fuses products.
    scaled = np.zeros(drawn.shape[:2], bool)
    scaled[215:275, 150:270] = True
    scaled[290:350, 420:] = True
    assert np.array_equal(drawn[~scaled], stored[~scaled])
    assert np.abs(drawn - stored)[scaled].max() <= 1
