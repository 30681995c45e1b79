"""MediaPipe's iris model: the outline of an eye and its iris, a step of "facemesh"."""

from __future__ import annotations

from dala.ml.spec import as_tensors, human_model

MODEL = human_model(
    "iris",
    "iris",
    "49038ac9dcc09aa05474d91d98e9db5b47af4830929bcf102ed5a56bfbabb465",
    "d7f296d184274213d4642681ae186112cbbec77fd2ab066257d3c56a1940bc71",
    task="raw",
    title="MediaPipe iris, 76 points of an eye, 64 x 64; a step of facemesh",
    size=(64, 64),
    decode=as_tensors,
    finds="the iris in a picture of an eye; a step of `facemesh`",
    result="`Tensors`: x, y, z of 71 points of the eye, 5 of the iris",
)
