"""Elementwise kernels. Inputs broadcast as in NumPy.

Integers wrap around; u8 is computed in a wider type and saturates when stored.
"""

from __future__ import annotations

from dala.gpu.compute.language import IntOrFloat, div, exp, like

__all__ = [
    "elementwise_add", "elementwise_div", "elementwise_mul", "elementwise_sub", "relu",
    "scalar_mul", "sigmoid", "tanh",
]  # fmt: skip


def elementwise_add(a: IntOrFloat, b: IntOrFloat) -> IntOrFloat:
    """Add two buffers: a + b.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([[1, 2], [3, 250]], np.uint8)
    >>> b = np.array([10, 20], np.uint8)
    >>> get("elementwise_add")(a, b).tolist()
    [[11, 22], [13, 255]]
    """
    return a + b


def elementwise_sub(a: IntOrFloat, b: IntOrFloat) -> IntOrFloat:
    """Subtract two buffers: a - b.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([[1, 2], [3, 4]], np.float32)
    >>> b = np.array([[1], [3]], np.float32)
    >>> get("elementwise_sub")(a, b).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    return a - b


def elementwise_mul(a: IntOrFloat, b: IntOrFloat) -> IntOrFloat:
    """Multiply two buffers: a * b.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([1, 2, 3], np.float32)
    >>> b = np.array([2, 0.5, -1], np.float32)
    >>> get("elementwise_mul")(a, b).tolist()
    [2.0, 1.0, -3.0]
    """
    return a * b


def elementwise_div(a: IntOrFloat, b: IntOrFloat) -> IntOrFloat:
    """Divide two buffers: a / b, or floor division for integers; an integer / 0 is 0.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> a = np.array([7, -7, 7], np.int32)
    >>> b = np.array([2, 2, 0], np.int32)
    >>> get("elementwise_div")(a, b).tolist()
    [3, -4, 0]
    """
    return div(a, b)


def scalar_mul(x: IntOrFloat, *, scalar: IntOrFloat) -> IntOrFloat:
    """Multiply by a number: x * scalar.

    Integers are exact with an integer scalar, else rounded and saturated.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> x = np.array([1, 100, 200], np.uint8)
    >>> get("scalar_mul")(x, scalar=1.5).tolist()
    [2, 150, 255]
    """
    return like(x, x * scalar)


def relu(x: IntOrFloat, *, slope: float = 0.0) -> IntOrFloat:
    """Rectify: x where it is above zero, else slope * x.

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> x = np.array([-2, 0, 3], np.float32)
    >>> get("relu")(x).tolist(), get("relu")(x, slope=0.5).tolist()
    ([0.0, 0.0, 3.0], [-1.0, 0.0, 3.0])
    """
    # Without a slope, -inf gives 0 and not NaN. NaN passes, because x <= 0 is False for it.
    below = like(x, x * slope) if slope != 0 else like(x, 0)
    return below if x <= 0 else x


def sigmoid(x: IntOrFloat) -> float:
    """Compute the logistic function: 1 / (1 + exp(-x)).

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> x = np.array([-2, 0, 2], np.float32)
    >>> print(get("sigmoid")(x).round(3))
    [0.119 0.5   0.881]
    """
    return 1.0 / (1.0 + exp(-float(x)))  # convert first: -x of a u32 would wrap


def tanh(x: IntOrFloat) -> float:
    """Compute the hyperbolic tangent: (exp(x) - exp(-x)) / (exp(x) + exp(-x)).

    >>> import numpy as np
    >>> from dala.gpu.compute.kernel import get
    >>> x = np.array([-1, 0, 1], np.float32)
    >>> print(get("tanh")(x).round(3))
    [-0.762  0.     0.762]
    """
    return tanh(x)  # the language's function, not this kernel
