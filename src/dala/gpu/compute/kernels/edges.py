"""Hysteresis: keep weak pixels that are connected to strong ones."""

from __future__ import annotations

import numpy as np

from dala.gpu.compute.engines.base import Task, Tensor
from dala.gpu.compute.operation import Inputs, Operation, OperationValues
from dala.typing import NDArray


class Hysteresis(Operation):
    """Keep weak pixels that are connected to strong ones, through weak ones.

    The picture is gray: 255 is strong, other values above 0 are weak. The eight neighbors of a
    pixel are connected to it. The result is 255 or 0.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> img = np.array([[255, 100, 100, 0, 100]], np.uint8)
    >>> get("hysteresis")(img).tolist()
    [[255, 255, 255, 0, 0]]
    """

    title = "hysteresis"
    takes = ("img",)
    dtypes = ("u8",)

    def result(self, inputs: Inputs, values: OperationValues) -> Tensor:
        if len(inputs[0].shape) != 2:
            raise self.wrong_shape("img", "a gray picture", inputs[0].shape)
        return inputs[0]

    def define(self, task: Task, img: NDArray) -> NDArray:
        kept, weak = img == 255, img > 0
        while True:
            grown = kept.copy()
            grown[1:] |= kept[:-1]
            grown[:-1] |= kept[1:]
            across = grown.copy()
            across[:, 1:] |= grown[:, :-1]
            across[:, :-1] |= grown[:, 1:]
            across &= weak
            if (across == kept).all():
                break
            kept = across
        return np.asarray(kept * 255)
