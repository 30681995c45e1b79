"""Every pair of calls in docs/from-elixir.md: the Python side gives what the page says."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest

import dala
from dala import gpu
from dala.gpu import command, compute
from dala.png import encode_png
from tests.ml.conftest import weights
from tests.support.engines import dala_device, engine_id, pytest_generate_tests

__all__ = ["dala_device", "engine_id", "pytest_generate_tests", "weights"]

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "from-elixir.md"

#: The functions of the documents, by module.
DOCUMENTED = {
    "Dala.Gpu.Compute": """add buffer buffer_from_binary buffer_zeros device_info dtype free
        free_many free_pipeline from_nx gpu? matmul multiply pipeline pipeline_add pipeline_run
        poll read read_binary read_list relu run_kernel run_kernel_async run_to_surface scale shape
        size submit to_nx version wait""",
    "Dala.Gpu.Compute.Pipeline": "add new run stage_count stages",
    "Dala.Gpu.Compute.Kernel": "register",
    "Dala.Gpu": """batch blit clear create_surface destroy_surface dispatch_compute draw_circle
        draw_image draw_line draw_round_rect draw_triangle fill_circle fill_rect fill_round_rect
        fill_triangle get_pixels load_image load_shader load_sprite present remove_image
        remove_sprite reset_clip set_clip set_pixels set_uniform supports_compute with_pixels""",
    "Dala.Gpu.Command": "encode_clear encode_draw_circle encode_fill_rect",
    "Dala.ML": "preprocess",
    "Dala.ML.Gpu": "available_models load_model predict top_k",
    "Dala.Media.Gpu": """blur brightness contrast grayscale process_frame start_pipeline
        stop_pipeline""",
    "Dala.Media.Scene": "add_image add_video new render set_pip_transform",
}


def sections():
    """Yield the title, the first Python block, and the rows of each section with a table."""
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, body = part.partition("\n")
        table = [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in body.splitlines()
            if line.startswith("| ") and not line.startswith("| Elixir")
        ]
        if table:
            setup = re.search(r"^```python\n(.*?)^```", body, re.M | re.S)
            assert setup is not None, title
            yield title, setup[1], table


SECTIONS = {title: (setup, table) for title, setup, table in sections()}
#: Sections that do not depend on the engine; they run once.
ONCE = {"Surfaces", "Models"}


def code(cell):
    found = re.fullmatch(r"`([^`]+)`", cell)
    assert found is not None, f"not code: {cell}"
    return found[1]


def run(title):
    setup, table = SECTIONS[title]
    names = {}
    compared = 0
    exec(setup, names)
    for _, python, gives in table:
        text = code(python)
        try:
            expression = compile(text, title, "eval")
        except SyntaxError:
            exec(compile(text, title, "exec"), names)
            assert gives == "", text
            continue
        result = eval(expression, names)
        if gives:
            assert result == eval(code(gives), names), text
            compared += 1
    assert compared, f"no pair of {title!r} says what it gives"
    return names


@pytest.mark.parametrize("title", sorted(SECTIONS.keys() - ONCE))
def test_pairs_run_on_every_engine(title, engine_id):
    assert run(title)


def test_pairs_of_surfaces_run():
    assert run("Surfaces")


def test_pairs_of_models_run(weights):
    with dala.device("cpu"):
        names = run("Models")
        assert names["model"].info["name"] == "mobilenet_v2"
        names["model"].close()


def test_the_page_has_every_function_of_the_documents():
    text = PAGE.read_text(encoding="utf-8")
    missing = [
        f"{module}.{name}"
        for module, names in DOCUMENTED.items()
        for name in names.split()
        if f"{module}.{name}(" not in text
    ]
    assert missing == []


def test_the_documents_maps_in_submit():
    with dala.device("cpu"):
        a, b = compute.buffer([1.0, 2.0]), compute.buffer_zeros((2,))
        compute.wait(
            compute.submit(
                {"op": "copy_buffer", "kernel": None, "inputs": [a.ref], "output": b.ref}
            )
        )
        compute.wait(compute.submit({"op": "barrier", "inputs": [], "output": None, "params": {}}))
        assert b.read_list() == [1.0, 2.0]
        assert a.ref is a


def test_stages_are_read_only_and_callable():
    p = compute.Pipeline.new().add({"op": "barrier"})
    assert p.ref is p
    barrier = {"op": "barrier", "kernel": None, "inputs": [], "output": None, "params": {}}
    assert (p.stage_count, p.stage_count(), compute.Pipeline.stage_count(p)) == (1, 1, 1)
    assert p.stages == p.stages() == compute.Pipeline.stages(p) == [barrier]
    with pytest.raises(AttributeError, match="changed with add"):
        p.stages = []


@pytest.mark.parametrize("call", [dala.ml.preprocess, dala.media.gpu.preprocess])
def test_bytes_without_a_size_ask_for_it(call):
    with pytest.raises(
        dala.ParameterError, match=r"^preprocess: bytes need width and height, .*got 64"
    ):
        call(bytes(64))
    with pytest.raises(dala.ParameterError, match="without height") as caught:
        call(bytes(64), width=4)
    assert caught.value.argument == "height"


def test_preprocess_decodes_the_bytes_of_a_picture_file():
    pixels = np.random.default_rng(5).integers(0, 256, (30, 40, 3), np.uint8)
    data = encode_png(pixels)
    for given in (data, bytearray(data), memoryview(data)):
        made = dala.ml.preprocess(given, size=(24, 24)).numpy()
        np.testing.assert_array_equal(made, dala.ml.preprocess(pixels, size=(24, 24)).numpy())
    with pytest.raises(dala.ParameterError, match=r"^preprocess: .*truncated"):
        dala.ml.preprocess(data[:300], size=(24, 24))


def test_a_picture_in_picture_stays_inside_a_small_scene():
    for size in ((100, 100), (1, 1), (40, 900)):
        with dala.media.scene.new(*size) as s:
            node = s.add_image(np.zeros((9, 16, 4), np.uint8), pip=True)
            (x, y), (w, h) = node.position, node.size
            assert min(x, y) >= 0
            assert x + w <= size[0]
            assert y + h <= size[1]
    with dala.media.scene.new(300, 300) as s:
        node = s.add_image(np.zeros((9, 16, 4), np.uint8), pip=True)
        assert (node.position, node.size) == ((80, 20), (200, 150))
        s.set_pip_transform(node, position="bottom_left", size=(100, 50))
        assert node.position == (20, 230)


def test_a_command_that_fails_says_what_was_drawn():
    commands = [
        command.encode_fill_rect(0, 0, 1, 1, "red"),
        command.encode_image_blit(99, 0, 0, 1, 1),
        command.encode_fill_rect(1, 0, 1, 1, "blue"),
    ]
    with gpu.create_surface(2, 1) as s:
        gpu.batch(s, commands)
        with pytest.raises(dala.errors.CommandError, match="no image 99") as caught:
            gpu.get_pixels(s)
        at = len(command.encode_batch(commands[:1]))
        assert f"at byte {at} " in caught.value.__notes__[0]
        assert "before and after it were executed" in caught.value.__notes__[0]
        assert gpu.get_pixels(s).hex(" ", 4) == "ff0000ff 0000ffff"


def test_functions_of_scenes_are_methods():
    from dala.media import scene

    assert scene.new is scene.Scene
    for name in ("add_video", "add_image", "set_pip_transform", "render"):
        assert getattr(scene, name) is getattr(scene.Scene, name), name


def test_images_by_id_and_effects_by_type():
    with dala.media.scene.Scene(4, 4, device="cpu") as scene:
        red = np.full((2, 2, 4), (255, 0, 0, 255), np.uint8)
        scene.add_image(image_id=red, size=(4, 4))
        node = scene.add_node("effect", type="invert")
        assert type(node).__name__ == "EffectNode"
        assert np.asarray(scene.render())[0, 0].tolist() == [0, 255, 255, 255]
