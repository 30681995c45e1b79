"""The memory of scenes: a few kilobytes of JSON cannot take gigabytes."""

import gc
import json

import numpy as np
import pytest

import dala
from dala.errors import MemoryLimitExceeded
from dala.media import Scene
from dala.media.scene import load_scene, scene_to_dict

SIDE = 256
LAYER = SIDE * SIDE * 4


def used(scene):
    return scene.accounts[0].used


@pytest.fixture(params=["cpu", "reference"])
def device(request):
    return request.param


def test_groups_with_large_canvases_are_refused(device):
    """6 KB of groups once took 8 GB: each had a picture of its own."""
    with Scene(32, 32, device=device, memory=4 * LAYER) as scene:
        groups = []
        for n in range(8):
            group = scene.add_group(canvas=(SIDE, SIDE), opacity=0.5, size=(8, 8))
            group.add_overlay(color="red", position=(0, 0), size=(SIDE, SIDE))
            groups.append(group)
            if n == 2:
                before = scene.render().numpy()[0, 0].tolist()
        with pytest.raises(MemoryLimitExceeded) as caught:
            scene.render()
        text = str(caught.value)
        assert "needs 256 KiB of memory, and the scene uses" in text
        assert text.endswith("give it more: Scene(..., memory='8 GiB').")
        assert caught.value.limit == 4 * LAYER
        assert used(scene) <= 4 * LAYER
        for group in groups[3:]:
            scene.remove_node(group)
        gc.collect()
        assert scene.render(1.0).numpy()[0, 0].tolist() == before  # usable again
        for group in groups[:3]:
            scene.remove_node(group)
        scene.render(2.0)
        gc.collect()
        assert used(scene) <= 3 * 32 * 32 * 4
    gc.collect()
    assert used(scene) == 0


def test_scene_file_of_groups(tmp_path):
    group = {"type": "group", "canvas": [2048, 2048], "opacity": 0.5, "size": [8, 8]}
    group["nodes"] = [{"type": "overlay", "color": "red", "size": [2048, 2048]}]
    path = tmp_path / "scene.json"
    with Scene(16, 16, device="cpu") as empty:
        data = scene_to_dict(empty)
    data["nodes"] = [dict(group, id=f"g{n}") for n in range(64)]
    path.write_text(json.dumps(data))
    assert path.stat().st_size < 16_000
    with (
        dala.limits(memory=64 << 20),
        load_scene(path, device="cpu") as scene,
        pytest.raises(MemoryLimitExceeded, match=r"the block of dala\.limits"),
    ):
        scene.render()
    with (
        load_scene(path, device="cpu", memory="64 MiB") as scene,
        pytest.raises(MemoryLimitExceeded, match=r"the scene uses 64 MiB of its 64 MiB"),
    ):
        scene.render()


def test_effects_and_shadows_count():
    with Scene(SIDE, SIDE, device="cpu", memory=3 * LAYER) as scene:
        card = scene.add_overlay(color="red", size=(200, 200), shadow=(20, 4, 4, "black"))
        for _ in range(4):
            scene.add_effect("blur", radius=20, input=card)
        with pytest.raises(MemoryLimitExceeded, match="the scene"):
            scene.render()
        scene.remove_node(card)
        assert scene.render(1.0).numpy()[5, 5].tolist() == [0, 0, 0, 255]


def test_images_count_and_are_given_back(device):
    array = np.full((SIDE, SIDE, 4), 200, np.uint8)
    with Scene(16, 16, device=device, memory=3 * LAYER) as scene:
        images = [scene.add_image(array, size=(8, 8)) for _ in range(3)]
        with pytest.raises(MemoryLimitExceeded, match="the scene"):
            scene.add_image(array, size=(8, 8))
        assert len(scene.nodes) == 3
        scene.remove_node(images.pop())
        gc.collect()
        scene.add_image(array, size=(4, 4))


def test_frames_that_are_kept_do_not_count():
    with Scene(SIDE, SIDE, device="cpu", memory=4 * LAYER) as scene:
        box = scene.add_overlay(color="red", size=(16, 16))
        frames = []
        for n in range(12):
            box.x = n * 8
            frames.append(scene.render())
        for n, frame in enumerate(frames):
            assert frame.numpy()[0, n * 8].tolist() == [255, 0, 0, 255]
        with dala.limits(memory=2 * LAYER), pytest.raises(MemoryLimitExceeded):
            for n in range(4):
                box.x = n
                frames.append(scene.render())


def test_limits_of_a_scene():
    with pytest.raises(dala.ParameterError, match="Scene: memory must be a positive number"):
        Scene(8, 8, memory=0)
    with (
        Scene(SIDE, SIDE, device="cpu", memory=1000) as scene,
        pytest.raises(MemoryLimitExceeded, match="needs 256 KiB of memory, and the scene"),
    ):
        scene.render()


def test_textures_count():
    array = np.zeros((100, 100, 4), np.uint8)
    with dala.limits(memory=100_000):
        pool = dala.media.TexturePool(1 << 30)
        first = [pool.load(n, array.copy()) for n in range(2)]
        with pytest.raises(MemoryLimitExceeded, match=r"TexturePool\.load: needs 39\.1 KiB"):
            pool.load(2, array.copy())
        assert 2 not in pool
        assert first[0].nbytes == 40_000
        pool.clear()
        first.clear()
        gc.collect()
        pool.load(2, array.copy())
