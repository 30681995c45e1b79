"""Programs rewritten for WGSL: loops unrolled for their parameters, extremes of bytes, tables."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dala
from dala import budget
from dala.errors import DalaError
from dala.gpu.compute import Pipeline, buffer_zeros, from_array, kernel
from dala.gpu.compute.call.geometry import program_for
from dala.gpu.compute.engines.webgpu.rewrite.ranges import are_ordinary, find_ranges
from dala.gpu.compute.engines.webgpu.rewrite.simplify import simplify
from dala.gpu.compute.engines.webgpu.rewrite.uniform import LoopVariants, Uniforms, without_slots
from dala.gpu.compute.engines.webgpu.wgsl.shader import choose_pattern, write_shader
from dala.gpu.compute.kernel import get
from dala.gpu.compute.lang.ir import SetSlot, statements, values
from tests.support.engines import NO_ADAPTER, run

DEVICES = {d.api.lower(): d.id for d in dala.devices() if d.backend == "webgpu"}

if not DEVICES:
    pytest.skip(NO_ADAPTER, allow_module_level=True)

SHAPES = [(1, 1), (5, 3), (33, 70)]


@pytest.fixture(params=list(DEVICES))
def device(request):
    with dala.device(DEVICES[request.param]):
        yield


def picture(shape, dtype="u8", seed=4):
    data = np.random.default_rng(seed).integers(0, 256, shape, np.uint8)
    return data if dtype == "u8" else (data / 255).astype("<f4")


def program_of(made, shape, dtype="u8", count=1):
    with dala.device("reference"):
        images = [from_array(picture(shape, dtype)) for _ in range(count)]
        return program_for(made.decl, images, shape, dtype)


def both(made, images, shape, dtype="u8", params=None):
    got = run(made, images, shape, dtype, params)
    with dala.device("reference"):
        return got.astype(float), run(made, images, shape, dtype, params).astype(float)


# loops --------------------------------------------------------------------------------------------
LOOPS = {
    "extremes": "erode",
    "sums": "denoise",
    "branches": """def k(a: Image, *, radius: int = 1):
        total = a[0, 0].rgb * 0.0
        last = 0.0
        for dy in range(-radius, radius + 1):
            for dx in range(-radius, radius + 1):
                if dx * dx + dy * dy <= radius * radius:
                    total += a[dx, dy].rgb
                    last = float(dx)
        return rgba(total / 9.0 + last / 255.0, a[0, 0].a)""",
    "data": """def k(a: Image, *, radius: int = 1):
        found = 0.0
        for d in range(-radius, radius + 1):
            if a[d, 0].r > found:
                found = a[d, 0].r
        return rgba(found, found, found, a[0, 0].a)""",
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("dtype", ["u8", "f32"])
def test_unrolled(device, name, dtype):
    """Every radius has its own shader; the values are those of the loop."""
    made = kernel(LOOPS[name]) if " " in LOOPS[name] else get(LOOPS[name])
    program, _ = program_of(made, (*SHAPES[0], 4), dtype)
    variants = LoopVariants(program)
    at = next(i for i, p in enumerate(program.params) if p.name == "radius")
    for size in SHAPES:
        for radius in (0, 1, 2):
            shape = (*size, 4)
            got, wanted = both(made, [picture(shape, dtype)], shape, dtype, {"radius": radius})
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1 if dtype == "u8" else 1e-5)
            params = [radius if i == at else 1.0 for i in range(len(program.params))]
            found = variants.program(tuple(params))
            assert found is not program
            assert found is variants.program(tuple(params))


def test_long_loops_stay():
    program, _ = program_of(get("denoise"), (4, 4, 4))
    assert LoopVariants(program).program((16, 2.0, 0.1)) is program
    # A processor compiles slowly.
    assert LoopVariants(program, software=True).program((2, 2.0, 0.1)) is program
    assert LoopVariants(program).program((2, 2.0, 0.1)) is not program


def test_budgets_count_unrolled_loops(device):
    made = kernel(LOOPS["data"])
    shape = (4, 4, 4)
    run(made, [picture(shape)], shape, "u8", {"radius": 2})
    with budget.limits(iterations=3), pytest.raises(DalaError, match="iterations"):
        run(made, [picture(shape)], shape, "u8", {"radius": 2})


def test_slots_become_values():
    made = kernel("""def k(a: Image):
        total = a[0, 0].rgb
        total += a[1, 0].rgb
        total = total * 0.5
        return rgba(total, a[0, 0].a)""")
    program, _ = program_of(made, (4, 4, 4))
    straight = without_slots(program)
    assert any(isinstance(s, SetSlot) for s in statements(program.body))
    assert not any(isinstance(s, SetSlot) for s in statements(straight.body))


# extremes of bytes --------------------------------------------------------------------------------
def test_bytes_are_compared_as_bytes():
    """Without a conversion to numbers and back."""
    for name in ("erode", "dilate"):
        program, geometry = program_of(get(name), (8, 8, 4))
        found = LoopVariants(program).program((1,))
        shader = write_shader(found, geometry)
        assert shader.pattern == "strips"
        assert "from_byte" not in shader.source
        assert "min_f32" not in shader.source


@pytest.mark.parametrize("size", SHAPES)
def test_extremes_and_median_are_exact(device, size):
    shape = (*size, 4)
    image = picture(shape)
    padded = np.pad(image[..., :3], ((1, 1), (1, 1), (0, 0)), "edge")
    windows = [padded[y : y + size[0], x : x + size[1]] for y in range(3) for x in range(3)]
    for name, function in (("erode", np.min), ("dilate", np.max), ("median", np.median)):
        got = run(get(name), [image], shape, "u8", {"radius": 1})
        np.testing.assert_array_equal(got[..., :3], function(windows, axis=0))
        np.testing.assert_array_equal(got[..., 3], image[..., 3])


# tables -------------------------------------------------------------------------------------------
BY_CHANNEL = """def k(px: Pixel, *, power: float = 0.7):
    return rgba(pow(px.r, power), 1.0 - pow(px.g, 1.5), exp(px.b) - 1.0, sqrt(px.a))"""
MIXED = """def k(px: Pixel):
    return rgba(pow(px.g, 0.5), pow(px.r, 0.5), pow(px.b, 0.5), px.a)"""


@pytest.mark.parametrize("channels", [(4,), ()], ids=["rgba", "gray"])
@pytest.mark.parametrize("size", [(1, 1), (3, 5), (64, 64), (70, 301)])
def test_tables(device, channels, size):
    """All 256 values of each channel, sizes that are not whole quads."""
    shape = (*size, *channels)
    image = picture(shape)
    if size == (64, 64):
        flat = np.arange(64 * 64).reshape(64, 64) % 256
        image = flat.astype(np.uint8)
        if channels:
            image = np.stack([image, 255 - image, image.T, image[::-1]], axis=-1)
    for made in (*((kernel(BY_CHANNEL),) if channels else ()), get("gamma")):
        program, geometry = program_of(made, shape)
        assert choose_pattern(program, geometry) == "table"
        got, wanted = both(made, [image], shape)
        assert np.abs(got - wanted).max() <= 1
        assert (got != wanted).mean() < 0.01


def test_no_tables(device):
    """Channels that depend on others, three channels in a word, cheap functions, floats."""
    shape = (9, 10, 4)
    for made, size, dtype in (
        (kernel(MIXED), shape, "u8"),
        (get("gamma"), (9, 10, 3), "u8"),
        (get("brightness"), shape, "u8"),
        (get("gamma"), shape, "f32"),
    ):
        program, geometry = program_of(made, size, dtype)
        assert choose_pattern(program, geometry) != "table"
        got, wanted = both(made, [picture(size, dtype)], size, dtype)
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1 if dtype == "u8" else 1e-5)


def test_table_in_place(device):
    image = picture((37, 11, 4))
    buffer = from_array(image)
    wanted = run(get("gamma"), [image], image.shape, "u8", {"value": 1.7})
    get("gamma")(buffer, out=buffer, value=1.7)
    np.testing.assert_array_equal(buffer.numpy(), wanted)


# parameters of any size ---------------------------------------------------------------------------
@pytest.mark.parametrize("amount", [0.3, -7.0, 1e7, -1e30, 3e38])
def test_parameters_of_any_size(device, amount):
    """Large ones make infinities and NaN, which are stored as 255 or 0; alone and after a blur.

    Where a pixel is the mean of its neighbors, products of the size of a large amount cancel, and
    what is left depends on whether an adapter rounds between product and sum.
    """
    shape = (9, 13, 4)
    image = picture(shape)
    image[:3] = 128  # inf - inf

    def check(got, wanted, source):
        if abs(amount) < 100:
            assert np.abs(got - wanted).max() <= 1
            return
        rows, columns = (slice(1, -1), slice(None)), (slice(None), slice(1, -1))
        wide = np.pad(source.astype(int), ((1, 1), (1, 1), (0, 0)), "edge")
        around = wide[:-2][columns] + wide[2:][columns] + wide[rows][:, :-2] + wide[rows][:, 2:]
        certain = (np.abs(amount) > 1e38) | (4 * source.astype(int) != around)
        assert certain.mean() > 0.5
        np.testing.assert_array_equal(got[certain], wanted[certain])

    check(*both(get("sharpen"), [image], shape, params={"amount": amount}), image)

    def chain():
        made = Pipeline()
        source, middle, out = from_array(image), *(buffer_zeros(shape, "u8") for _ in range(2))
        for name, reads, writes, params in (
            ("blur", source, middle, {"radius": 1}),
            ("sharpen", middle, out, {"amount": amount}),
        ):
            made.add({"op": "run_kernel", "kernel": name, "inputs": [reads], "output": writes,
                      "params": params})  # fmt: skip
        made.run()
        return out.numpy().astype(int), middle.numpy()

    got, blurred = chain()
    with dala.device("reference"):
        wanted = run(get("sharpen"), [blurred], shape, "u8", {"amount": amount})
    check(got, wanted.astype(int), blurred)


def test_programs_of_bytes_are_exact():
    """No product is fused with a sum; quotients and roots are not the driver's."""
    made = kernel("""def k(px: Pixel, *, a: float, b: float):
        return rgba(px.r * px.g + b, a / px.g, sqrt(px.b) * a, exp(px.r))""")
    program, geometry = program_of(made, (8, 8, 4))
    body = write_shader(program, geometry, ordinary=True).source.partition("fn kernel(")[2]
    for name in ("exact_div_f32(", "exact_sqrt_f32("):
        assert body.count(name) == 1
    assert "exp" not in body.replace("exact", "")
    assert body.count("byte_exact") >= 3
    assert "product_f32(" in body


@pytest.mark.parametrize(("a", "b"), [(0.7, 0.9), (1e-30, 0.31), (2.0, float(np.float32(0.3)))])
def test_the_host_computes_what_is_the_same_everywhere(device, a, b):
    """In f32, operation by operation; also where it is infinite."""
    made = kernel("""def k(px: Pixel, *, a: float, b: float):
        scale = sqrt(a) / (b - 0.3)
        return rgba(px.r * px.g * scale, px.b * px.b * scale, min(px.r * px.g, scale), px.a)""")
    program, geometry = program_of(made, (8, 8, 4))
    uniforms = Uniforms(program, geometry)
    assert not {"sqrt", "div"} & {v.op for v in values(uniforms.program.body)}
    assert uniforms.types[:2] == ["", ""]  # they are read no more
    one = np.float32
    with np.errstate(divide="ignore"):
        scale = np.sqrt(one(a)) / (one(b) - one(0.3))
    # Numbers are in steps of bytes, or of their products.
    assert uniforms.values((a, b)) == (a, b, scale * one(65025), scale * one(1 / 255))
    image = np.random.default_rng(4).integers(0, 256, (8, 8, 4), np.uint8)
    with dala.device("reference"):
        wanted = run(made, [image], image.shape, "u8", {"a": a, "b": b})
    np.testing.assert_array_equal(run(made, [image], image.shape, "u8", {"a": a, "b": b}), wanted)


def test_bytes_that_are_compared_are_not_converted():
    """Neither where limits are written nor where the front end has left them out."""
    made = kernel("""def k(img: Image):
        return rgba(max(min(img[0, 0].rgb, img[1, 0].rgb), img[0, 1].rgb), img[0, 0].a)""")
    program, geometry = program_of(made, (8, 8, 4))
    body = write_shader(program, geometry, ordinary=True).source.partition("fn kernel(")[2]
    assert "max(" in body
    assert "f32" not in body


def test_the_host_computes_deep_expressions(device):
    """Each line uses the one before twice: the work grows with the lines."""
    lines = "\n".join("    t = t - t * 0.5" for _ in range(400))
    made = kernel(
        f"def k(px: Pixel, *, s: float):\n    t = s\n{lines}\n"
        "    return rgba(px.r + t, px.g * px.g / sqrt(s * 0.0), px.ba)"
    )
    image = np.random.default_rng(5).integers(1, 256, (4, 4, 4), np.uint8)
    got = run(made, [image], image.shape, "u8", {"s": 0.5})
    wanted = image.copy()
    wanted[..., 1] = 255
    np.testing.assert_array_equal(got, wanted)


def test_range_rules():
    """Bounds hold for the values that the reference engine computes."""
    made = kernel("""def k(px: Pixel, *, s: float, t: float):
        a = px.r * 2.0 - px.g
        b = a * a * (-0.5 / (s * s)) - abs(t)
        c = max(min(a, 0.75), b) / (1.0 + abs(t))
        return rgba(b, c, floor(a * t), px.a)""")
    program, _ = program_of(made, (8, 8, 4))
    found = list(find_ranges(simplify(program)).items())
    by_op = {
        op: [r for v, r in found if v.op == op] for op in ("neg", "mul", "sub", "div", "floor")
    }
    assert by_op["floor"][0].size >= 2e6
    quotient = next(r for v, r in found if v.op == "div" and v.args[0].op == "const")
    assert quotient.high <= 0.0
    assert quotient.low == pytest.approx(-0.5e12)
    assert any(v.op == "sub" and r.high <= 0.0 for v, r in found)


def test_gaussians_of_any_sigma(device):
    shape = (9, 13, 4)
    for sigma in (0.001, 0.02, 0.1, 1000.0):
        params = {"radius": 1, "sigma_space": 3.0, "sigma_color": sigma}
        got, wanted = both(get("denoise"), [picture(shape)], shape, params=params)
        assert np.abs(got - wanted).max() <= 1


def test_ordinary_parameters():
    assert are_ordinary(["f32", "s32"], (1e6, 1e9))
    for number in (1.1e6, -1e7, 0.0, 1e-9, math.inf, math.nan):
        assert not are_ordinary(["f32", "s32"], (number, 1))
