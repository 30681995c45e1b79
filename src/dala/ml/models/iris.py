"""MediaPipe's iris model: the outline of an eye and its iris, a step of "facemesh"."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dala.ml.convert.tfjs import convert_tfjs
from dala.ml.prepare import Placement
from dala.ml.results import Outputs, Tensors
from dala.ml.spec import ModelSpec
from dala.ml.weights.origin import human_models


def decode(
    outputs: Outputs, placement: Placement, labels: tuple[str, ...], options: Mapping[str, float]
) -> Tensors:
    """Return x, y and z of 71 points of an eye and 5 of its iris, in pixels of the input."""
    return Tensors(outputs)


MODEL = ModelSpec(
    name="iris",
    task="raw",
    title="MediaPipe iris, 76 points of an eye, 64 x 64; a step of facemesh",
    license="Apache-2.0 (MediaPipe; its package says MIT)",
    prepare={"normalize": "unit", "fit": "stretch"},
    size=(64, 64),
    layout="nhwc",
    decode=decode,
    origin=human_models(
        {
            "iris.json": "49038ac9dcc09aa05474d91d98e9db5b47af4830929bcf102ed5a56bfbabb465",
            "iris.bin": "d7f296d184274213d4642681ae186112cbbec77fd2ab066257d3c56a1940bc71",
        },
        partial(convert_tfjs, name="iris"),
    ),
    finds="the iris in a picture of an eye; a step of `facemesh`",
    result="`Tensors`: x, y, z of 71 points of the eye, 5 of the iris",
)
