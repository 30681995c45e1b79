"""The number of passes of many pipelines, on the null engine, which runs nothing."""

from __future__ import annotations

import pytest

import dala
from dala import errors
from dala.gpu.compute import Kernel, buffer_zeros
from dala.gpu.compute.pipeline.pipeline import Pipeline

SHAPE = (8, 12, 4)


@pytest.fixture(autouse=True)
def _on_null():
    with dala.device("null"):
        yield


@pytest.fixture
def runs():
    """Return a function that counts the runs of a pipeline on the null engine."""
    engine = buffer_zeros(1).engine

    def count(pipeline):
        before = len(engine.calls("run")) + len(engine.calls("copy"))
        pipeline.run()
        return len(engine.calls("run")) + len(engine.calls("copy")) - before

    return count


def picture(**options):
    return buffer_zeros(SHAPE, "u8", **options)


def between():
    return picture(transient=True)


def stage(kernel, inputs, output, **params):
    return {"op": "run_kernel", "kernel": kernel, "inputs": inputs, "output": output,
            "params": params}  # fmt: skip


def chain(*kernels, transient=True, first=None):
    """Return a pipeline of kernels in sequence, with a buffer between each two."""
    p, source = Pipeline(), first or picture()
    for number, kernel in enumerate(kernels):
        last = number == len(kernels) - 1
        target = picture(transient=transient and not last)
        p.add(stage(kernel, [source], target))
        source = target
    return p


# the shapes -----------------------------------------------------------------------------------
def two_pointwise():
    return chain("brightness", "contrast"), 1


def five_pointwise():
    return chain("brightness", "contrast", "invert", "grayscale", "brightness"), 1


def pointwise_into_a_stencil():
    return chain("brightness", "sharpen"), 1


def a_stencil_into_pointwise():
    return chain("sharpen", "brightness", "invert"), 1


def pointwise_around_a_stencil():
    return chain("brightness", "sharpen", "grayscale"), 1


def two_stencils():
    return chain("sharpen", "sharpen"), 2


def pointwise_between_two_stencils():
    return chain("sharpen", "brightness", "sharpen"), 2


def buffers_of_the_caller():
    return chain("brightness", "contrast", "invert", transient=False), 3


def a_barrier():
    p, a, b, c = Pipeline(), picture(), between(), picture()
    p.add(stage("brightness", [a], b)).add({"op": "barrier"}).add(stage("invert", [b], c))
    return p, 2


def a_copy():
    p, a, b, c = Pipeline(), picture(), between(), picture()
    p.add(stage("brightness", [a], b)).add({"op": "copy_buffer", "src": b, "dst": c})
    return p, 2


def a_diamond():
    Kernel.register(
        "pipeline_blend", "def pipeline_blend(a: Pixel, b: Pixel): return (a + b) * 0.5"
    )
    p, source, root, left, out = Pipeline(), picture(), between(), between(), picture()
    p.add(stage("brightness", [source], root))
    p.add(stage("invert", [root], left))
    p.add(stage("pipeline_blend", [root, left], out))
    return p, 1


def one_buffer_read_by_two_passes():
    p, source, root = Pipeline(), picture(), between()
    p.add(stage("brightness", [source], root))
    p.add(stage("invert", [root], picture()))
    p.add(stage("grayscale", [root], picture()))
    return p, 3


def a_source_overwritten_in_between():
    p, source, root, out = Pipeline(), picture(), between(), picture()
    p.add(stage("brightness", [source], root))
    p.add(stage("invert", [picture()], source))
    p.add(stage("contrast", [root], out))
    return p, 3


def in_place():
    p, frame = Pipeline(), picture()
    p.add(stage("brightness", [frame], frame)).add(stage("contrast", [frame], frame))
    return p, 2


def there_and_back_over_a_barrier():
    p, source, root = Pipeline(), picture(), between()
    p.add(stage("sharpen", [source], root)).add({"op": "barrier"})
    p.add(stage("contrast", [root], source))
    return p, 2


def an_operation_between_pointwise_stages():
    return chain("brightness", "blur", "contrast"), 3


def an_operation_that_is_lowered():
    p, source, out = Pipeline(), buffer_zeros((4, 6)), buffer_zeros((6, 4))
    turned, doubled = (buffer_zeros((6, 4), transient=True) for _ in range(2))
    p.add(stage("transpose", [source], turned))
    p.add(stage("elementwise_add", [turned, turned], doubled))
    p.add(stage("relu", [doubled], out))
    return p, 1


def a_generator_into_pointwise():
    p, root, out = Pipeline(), between(), picture()
    p.add(stage("generate_gradient", [], root)).add(stage("vignette", [root], out))
    return p, 1


def elements():
    p = Pipeline()
    a, b, t, u, out = (buffer_zeros((5, 7), transient=n in (2, 3)) for n in range(5))
    p.add(stage("elementwise_mul", [a, b], t))
    p.add(stage("elementwise_add", [t, a], u))
    p.add(stage("relu", [u], out))
    return p, 1


def an_element_that_is_broadcast():
    p = Pipeline()
    row, t = buffer_zeros((1, 7)), buffer_zeros((1, 7), transient=True)
    big, out = buffer_zeros((5, 7)), buffer_zeros((5, 7))
    p.add(stage("relu", [row], t)).add(stage("elementwise_add", [big, t], out))
    return p, 2


def custom_text_kernels():
    Kernel.register("pipeline_warm", "def pipeline_warm(px: Pixel, *, by=0.1): return px + by")
    return chain("pipeline_warm", "grayscale", "pipeline_warm"), 1


SHAPES = [
    two_pointwise,
    five_pointwise,
    pointwise_into_a_stencil,
    a_stencil_into_pointwise,
    pointwise_around_a_stencil,
    two_stencils,
    pointwise_between_two_stencils,
    buffers_of_the_caller,
    a_barrier,
    a_copy,
    a_diamond,
    one_buffer_read_by_two_passes,
    a_source_overwritten_in_between,
    in_place,
    there_and_back_over_a_barrier,
    an_operation_between_pointwise_stages,
    an_operation_that_is_lowered,
    a_generator_into_pointwise,
    elements,
    an_element_that_is_broadcast,
    custom_text_kernels,
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.__name__)
def test_passes(shape, runs):
    pipeline, passes = shape()
    assert pipeline.passes == passes
    assert runs(pipeline) == passes
    assert runs(pipeline) == passes  # the plan is reused
    count = "1 pass" if passes == 1 else f"{passes} passes"
    assert f" in {count}\n" in pipeline.explain()


# the object -----------------------------------------------------------------------------------
def test_stages_lists_the_specs():
    a, b, c = picture(), picture(), picture()
    specs = [
        stage("brightness", [a], b, value=0.5),
        {"op": "barrier"},
        {"op": "copy_buffer", "src": b, "dst": c},
    ]
    p = Pipeline()
    for spec in specs:
        assert p.add(spec) is p
    assert p.stage_count == 3
    none = {"kernel": None, "inputs": [], "output": None, "params": {}}
    barrier, copy = {"op": "barrier"}, {"op": "copy_buffer", "inputs": [b], "output": c}
    assert p.stages == [specs[0], none | barrier, none | copy]
    again = Pipeline()
    for spec in p.stages:
        again.add(spec)
    assert again.stages == p.stages


def test_explain_names_stages_passes_bytes_and_times():
    p = chain("sharpen", "brightness")
    text = p.explain()
    assert "pipeline on null: 2 stages in 1 pass" in text
    assert "stage 0: sharpen (8, 12, 4), fused" in text
    assert "pass 0: sharpen + brightness, 768 bytes" in text
    assert " ms" not in text
    p.run()
    assert " ms" in p.explain()


def test_closed_pipeline_raises():
    p = chain("brightness")
    with p:
        p.run()
    p.close()
    for use in (p.run, lambda: p.add({"op": "barrier"}), lambda: p.set_params(0, value=1)):
        with pytest.raises(errors.FreedError, match="the pipeline was closed"):
            use()


# refusals -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("blur", "Pipeline.add: spec must be a dict such as {'op': 'run_kernel', ...}, got str."),
        (
            {"op": "run"},
            "Pipeline.add: op must be one of 'run_kernel', 'copy_buffer', 'barrier', got 'run'.",
        ),
        (
            {"op": "run_kernel", "kernel": "relu"},
            "Pipeline.add: run_kernel requires 'inputs' and 'output'.",
        ),
        ({"op": "copy_buffer", "src": None}, "Pipeline.add: copy_buffer requires 'dst'."),
        (
            {"op": "run_kernel", "kernel": "relu", "output": None, "input": []},
            "Pipeline.add: run_kernel has no key 'input'. Did you mean 'inputs'?",
        ),
        (
            {"op": "copy_buffer", "src": 1, "dst": 2},
            "Pipeline.add: src of copy_buffer must be a Buffer, got 1. "
            "Make one with buffer(...) or from_array(...).",
        ),
    ],
)
def test_invalid_spec(spec, message):
    p = Pipeline()
    with pytest.raises((errors.ParameterError, errors.ArityError)) as caught:
        p.add(spec)
    assert str(caught.value) == message
    assert p.stage_count == 0


def test_add_checks_the_stage():
    p = Pipeline()
    with pytest.raises(errors.UnknownKernel, match=r"Pipeline\.add: no kernel 'blurr'"):
        p.add(stage("blurr", [picture()], picture()))
    with pytest.raises(errors.ShapeMismatch):
        p.add(stage("grayscale", [picture()], buffer_zeros((3, 3, 4), "u8")))
    with pytest.raises(errors.UnknownParameter):
        p.add(stage("grayscale", [picture()], picture(), amount=1))
    freed = picture()
    freed.free()
    with pytest.raises(errors.FreedError):
        p.add(stage("grayscale", [freed], picture()))
    with pytest.raises(
        errors.DtypeMismatch,
        match="dst of copy_buffer must be of the dtype of src, 'u8', got 'f32'",
    ):
        p.add({"op": "copy_buffer", "src": picture(), "dst": buffer_zeros(3)})
    assert p.stage_count == 0


def test_freed_buffer_raises_before_anything_runs():
    a, b, c = picture(), picture(), picture()
    p = Pipeline().add(stage("invert", [a], b)).add(stage("invert", [b], c))
    c.free()
    before = len(a.engine.calls("run"))
    with pytest.raises(errors.FreedError, match=r"Pipeline\.run: the output of stage 'invert'"):
        p.run()
    assert len(a.engine.calls("run")) == before


def test_cycle_is_refused():
    a, b, c = picture(), picture(), picture()
    p = Pipeline().add(stage("invert", [a], b)).add(stage("sharpen", [b], c))
    with pytest.raises(errors.ParameterError, match="stage 'contrast' closes a cycle"):
        p.add(stage("contrast", [c], a))
    with pytest.raises(errors.ParameterError, match="closes a cycle"):
        p.add({"op": "copy_buffer", "src": b, "dst": a})
    assert p.stage_count == 2
    p.add({"op": "barrier"}).add(stage("contrast", [c], a))
    assert p.stage_count == 4


def test_buffer_used_twice():
    a, b, c, d, t = (picture() for _ in range(5))
    p = Pipeline().add(stage("invert", [a], t)).add(stage("invert", [t], b))
    p.add(stage("invert", [c], t)).add(stage("invert", [t], d))
    assert p.stage_count == 4


def test_transient_buffer_must_be_written_first():
    t = between()
    with pytest.raises(errors.ParameterError, match="which no earlier stage writes"):
        Pipeline().add(stage("invert", [t], picture()))


def test_two_devices_in_one_pipeline():
    p = chain("invert")
    with dala.device("reference"):
        other = stage("invert", [picture()], picture())
    with pytest.raises(errors.DeviceMismatch, match="must be on the pipeline's device 'null', got"):
        p.add(other)


def test_set_params_of_a_barrier():
    p = Pipeline().add({"op": "barrier"})
    with pytest.raises(errors.ParameterError, match=r"stage 0 \(barrier\) has no parameters"):
        p.set_params(0, value=1)
    with pytest.raises(errors.ParameterError, match="stage must be an index below 1, got 3"):
        p.set_params(3, value=1)


# rebind ---------------------------------------------------------------------------------------
def test_rebind_keeps_the_plan(runs):
    source, out, other = picture(), picture(), picture()
    middle = picture(transient=True)
    p = Pipeline().add(stage("sharpen", [source], middle)).add(stage("invert", [middle], out))
    assert runs(p) == 1
    plan = p._passes
    assert p.rebind(source, other) is p
    assert p.rebind(out, source) is p
    assert p._passes is plan
    assert runs(p) == 1
    assert p.stages[0]["inputs"] == [other]
    assert p.stages[1]["output"] is source
    p.set_params(0, amount=2.0)
    assert runs(p) == 1


def test_rebind_refuses_buffers_that_differ(runs):
    source, out = picture(), picture()
    middle = picture(transient=True)
    p = Pipeline().add(stage("sharpen", [source], middle)).add(stage("invert", [middle], out))
    wide = buffer_zeros((8, 13, 4), "u8")
    floats = buffer_zeros((8, 12, 4), "f32")
    with dala.device("reference"):
        away = picture()
    for old, new, error, message in [
        (picture(), picture(), errors.ParameterError, "old must be a buffer of a stage"),
        (middle, picture(), errors.ParameterError, "transient buffers cannot be replaced"),
        (source, picture(transient=True), errors.ParameterError, "transient buffers cannot"),
        (
            source,
            wide,
            errors.ShapeMismatch,
            r"new must be of shape \(8, 12, 4\), got",
        ),
        (source, floats, errors.DtypeMismatch, "new must be of dtype 'u8', got 'f32'"),
        (source, away, errors.DeviceMismatch, "new must be on 'null', got 'reference'"),
        (source, out, errors.ShapeMismatch, "new must not share memory with another buffer"),
        (out, source, errors.ShapeMismatch, "new must not share memory with another buffer"),
        (source, None, errors.ParameterError, "new must be a Buffer, got None"),
    ]:
        with pytest.raises(error, match=f"Pipeline.rebind: {message}"):
            p.rebind(old, new)
    assert p.stages[0]["inputs"] == [source]
    p.close()
    with pytest.raises(errors.FreedError, match="the pipeline was closed"):
        p.rebind(source, picture())


# other spellings ------------------------------------------------------------------------------
def test_stages_and_stage_count_may_be_called():
    a, out = picture(), picture()
    p = Pipeline.new().add(stage("invert", [a.ref], out.ref))
    assert p.stage_count == p.stage_count() == 1
    assert p.stages() == p.stages
    assert p.stages[0]["inputs"] == [a]


def test_unused_keys_of_a_spec_may_be_empty(runs):
    a, out = picture(), picture()
    copy = {"op": "copy_buffer", "kernel": None, "inputs": [a], "output": out, "params": {}}
    barrier = {"op": "barrier", "kernel": None, "inputs": [], "output": None, "params": {}}
    p = Pipeline().add(copy).add(barrier).add({**stage("invert", [a], out), "params": None})
    assert [spec["op"] for spec in p.stages] == ["copy_buffer", "barrier", "run_kernel"]
    assert p.stages[:2] == [copy, barrier]
    with pytest.raises(errors.ParameterError, match="barrier has no key 'inputs'"):
        p.add({"op": "barrier", "inputs": [a]})
    with pytest.raises(errors.ArityError, match="inputs of copy_buffer must be a list of one"):
        p.add({"op": "copy_buffer", "inputs": [a, a], "output": out})
