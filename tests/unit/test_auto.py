"""Which engine is chosen, and the message about it. Engines and adapters are fakes."""

import asyncio
import logging
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from types import ModuleType

import pytest

import dala
from dala.errors import DalaError, DeviceUnavailable, UnknownDevice, describe
from dala.gpu.compute.engines import auto, hardware, instances
from dala.gpu.compute.engines import devices as listing

ENGINES = "dala.gpu.compute.engines"
LISTED = listing.adapters  # the real one; tests put their own in its place


class FakeEngine:
    def __init__(self, id, backend, adapter=None):
        self.id, self.backend, self.adapter = id, backend, adapter
        self.lost = self.closed = False

    def close(self):
        self.closed = True

    def stats(self):
        return {"live_buffers": 0, "live_bytes": 0}


@dataclass
class FakeAdapter:
    id: str
    name: str = "Radeon"
    kind: str = "discrete"
    backend: str = "Vulkan"
    driver: str = "Mesa 25"
    dtypes: frozenset = frozenset({"u8", "f32"})
    software: bool = field(init=False)

    def __post_init__(self):
        self.software = self.kind == "software"


LLVMPIPE = FakeAdapter("webgpu:0", "llvmpipe", "software")


@pytest.fixture
def machine(monkeypatch):
    """A machine with fake engines and no choice made yet; set ``machine.adapters`` to add GPUs."""
    monkeypatch.delenv("DALA_DEVICE", raising=False)
    for name, value in {"_logged": set(), "_process": None, "_auto_choice": None}.items():
        monkeypatch.setattr(auto, name, value)
    for name, value in {"_by_id": {}, "by_name": {}, "_inherited": []}.items():
        monkeypatch.setattr(instances, name, value)
    monkeypatch.setattr(listing, "gpu_unusable_after_fork", False)
    token = auto._blocks.set(())

    machine = ModuleType("machine")
    machine.adapters, machine.refuses, machine.made = [], set(), []

    def make(id, backend, adapter=None):
        if id in machine.refuses:
            raise RuntimeError("out of memory")
        machine.made.append(id)
        return FakeEngine(id, backend, adapter)

    def plain(name):
        return lambda: make(name, name)

    for name, (path, class_name) in instances.ENGINES.items():
        module = ModuleType(path)
        setattr(module, class_name, plain(name))
        monkeypatch.setitem(sys.modules, f"{ENGINES}.{path}", module)
    webgpu = ModuleType("webgpu")
    webgpu.WebGPUEngine = lambda adapter: make(adapter.id, "webgpu", adapter)
    monkeypatch.setitem(sys.modules, f"{ENGINES}.webgpu.engine", webgpu)
    monkeypatch.setattr(listing, "adapters", lambda: list(machine.adapters))
    monkeypatch.setattr(hardware, "gpu_nodes", lambda: ["/dev/dri/renderD128"])
    yield machine
    auto._blocks.reset(token)


# names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cpu", "reference", "null"])
def test_plain_engines_are_made_once(machine, name):
    assert auto.get(name).id == name
    assert auto.get(name) is auto.get(name)
    assert machine.made == [name]


def test_webgpu_is_the_first_adapter_software_included(machine):
    machine.adapters = [LLVMPIPE, FakeAdapter("webgpu:1", "llvmpipe", "software", "OpenGL")]
    assert auto.get("webgpu") is auto.get("webgpu:0")
    assert auto.get("webgpu:1").adapter.backend == "OpenGL"
    assert machine.made == ["webgpu:0", "webgpu:1"]


def test_get_accepts_an_item_of_devices(machine):
    machine.adapters = [LLVMPIPE]
    assert [auto.get(listed).id for listed in auto.devices()] == [
        "webgpu:0", "cpu", "reference", "null",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["", "CPU", "opencl", "webgpu:", "webgpu:-1", "webgpu:x", "webgpu:" + "9" * 5000, 3, None],
)
def test_unknown_name(machine, name):
    with pytest.raises(UnknownDevice) as caught:
        auto.get(name)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, DalaError)
    assert str(caught.value) == (
        "device: name must be auto, gpu, cpu, webgpu, webgpu:N (N counts adapters from 0), cuda, "
        f"cuda:N, reference or null, got {describe(name)}. "
        "`dala doctor` lists the devices of this machine."
    )


def test_a_missing_adapter_is_refused(machine):
    machine.adapters = [LLVMPIPE]
    with pytest.raises(DeviceUnavailable) as caught:
        dala.use("webgpu:7")
    assert str(caught.value) == (
        "dala.use: 'webgpu:7' is not available: this machine has only webgpu:0 (llvmpipe, Vulkan)."
    )


def test_webgpu_without_any_adapter(machine):
    with pytest.raises(DeviceUnavailable) as caught:
        auto.get("webgpu")
    assert str(caught.value) == (
        "device: 'webgpu' is not available: WebGPU has no adapter here. Run `dala doctor` for how "
        "to install one (Mesa's software Vulkan works on every Linux machine), or use 'cpu'."
    )


# auto and gpu --------------------------------------------------------------------------------


def test_auto_takes_the_best_gpu(machine, caplog):
    machine.adapters = [
        LLVMPIPE,
        FakeAdapter("webgpu:1", "Iris", "integrated"),
        FakeAdapter("webgpu:2", "Radeon", "discrete"),
    ]
    with caplog.at_level(logging.INFO, logger="dala"):
        assert auto.choice() == ("webgpu:2", "Radeon, discrete GPU through Vulkan")
        assert machine.made == []
        assert auto.get("auto").id == auto.get("gpu").id == "webgpu:2"
        auto.get("auto")
    assert [(r.levelname, r.message) for r in caplog.records] == [
        ("INFO", "dala: running on webgpu:2, Radeon, discrete GPU through Vulkan"),
    ]


def test_auto_prefers_the_cpu_to_a_software_adapter_and_warns_once(machine, caplog):
    machine.adapters = [LLVMPIPE]
    assert auto.get("auto").id == "cpu"
    assert auto.current() is auto.get("auto")
    assert [(r.levelname, r.message) for r in caplog.records] == [
        (
            "WARNING",
            "dala: running on the CPU engine, no GPU was found (only software adapters, slower "
            "than the CPU engine: llvmpipe). Run `dala doctor` for advice; "
            "DALA_DEVICE=cpu chooses the CPU without this message.",
        )
    ]


@pytest.mark.parametrize("name", ["cpu", "reference"])
def test_an_explicit_choice_logs_nothing(machine, caplog, name):
    auto.get(name)
    assert caplog.records == []


def test_without_a_gpu_node_adapters_are_not_listed(machine, monkeypatch):
    monkeypatch.setattr(hardware, "gpu_nodes", list)
    monkeypatch.setattr(listing, "adapters", lambda: pytest.fail("listed"))
    assert auto.get("auto").id == "cpu"
    assert auto.choice() == ("cpu", "no GPU was found (there is no GPU device node under /dev)")


def test_systems_without_device_nodes_list_adapters(machine, monkeypatch):
    monkeypatch.setattr(hardware, "gpu_nodes", lambda: None)
    machine.adapters = [FakeAdapter("webgpu:0", "Apple M4", "integrated", "Metal")]
    assert auto.get("auto").id == "webgpu:0"


def test_auto_survives_a_driver_that_cannot_be_loaded(machine, monkeypatch):
    def broken():
        raise DeviceUnavailable("WebGPU cannot be loaded: bad magic")

    monkeypatch.setattr(listing, "adapters", broken)
    assert auto.get("auto").id == "cpu"
    reason = "no GPU can be reached (WebGPU cannot be loaded: bad magic)"
    assert auto.choice() == ("cpu", reason)


def test_auto_skips_a_gpu_that_cannot_be_opened(machine, caplog):
    machine.adapters = [
        FakeAdapter("webgpu:0", "Radeon"),
        FakeAdapter("webgpu:1", "Iris", "integrated"),
    ]
    machine.refuses = {"webgpu:0"}
    assert auto.get("auto").id == "webgpu:1"
    machine.refuses = {"webgpu:0", "webgpu:1"}
    instances.by_name.clear()
    instances._by_id.clear()
    assert auto.get("auto").id == "cpu"
    assert "Radeon cannot be opened (out of memory); Iris cannot be" in caplog.records[-1].message


def test_gpu_raises_without_one(machine):
    machine.adapters = [LLVMPIPE]
    with pytest.raises(DeviceUnavailable) as caught:
        dala.use("gpu")
    assert str(caught.value) == (
        "dala.use: 'gpu' is not available: no GPU was found (only software adapters, slower than "
        "the CPU engine: llvmpipe). Run `dala doctor` to see what is missing, or use 'auto' or "
        "'cpu'."
    )


def test_an_engine_that_cannot_be_imported(machine, monkeypatch):
    monkeypatch.setitem(sys.modules, f"{ENGINES}.cpu.engine", None)
    with pytest.raises(DeviceUnavailable, match=r"^device: the cpu engine cannot be loaded: "):
        auto.get("cpu")


# use, device, DALA_DEVICE --------------------------------------------------------------------


def test_block_overrides_use_overrides_environment(machine, monkeypatch):
    assert auto.current().id == "cpu"
    monkeypatch.setenv("DALA_DEVICE", "null")
    assert auto.current().id == "null"
    assert dala.use("reference") is None
    assert auto.current().id == "reference"
    with dala.device("cpu"):
        assert auto.current().id == "cpu"
    assert auto.current().id == "reference"


def test_an_empty_environment_variable_is_ignored(machine, monkeypatch):
    monkeypatch.setenv("DALA_DEVICE", "")
    assert auto.current().id == "cpu"


def test_a_wrong_environment_variable_is_named(machine, monkeypatch):
    monkeypatch.setenv("DALA_DEVICE", "opencl")
    with pytest.raises(UnknownDevice, match=r"^DALA_DEVICE: name must be .*, got 'opencl'"):
        auto.current()


@pytest.mark.parametrize("wrong", ["opencl", "webgpu:3", "gpu"])
def test_a_refused_use_changes_nothing(machine, wrong):
    dala.use("null")
    with pytest.raises(DeviceUnavailable):
        dala.use(wrong)
    assert auto.current().id == "null"


def test_a_refused_block_changes_nothing(machine):
    dala.use("null")
    with pytest.raises(UnknownDevice, match=r"^dala.device: "), dala.device("opencl"):
        pass
    assert auto.current().id == "null"


def test_blocks_nest_and_one_object_may_be_entered_again(machine):
    again = dala.device("reference")
    with again as first:
        with dala.device("null") as second, again as third:
            assert (first, second, third) == ("reference", "null", "reference")
            assert auto.current().id == "reference"
        assert auto.current().id == "reference"
    assert auto.current().id == "cpu"


def test_a_block_ends_with_an_error_too(machine):
    with pytest.raises(ZeroDivisionError), dala.device("null"):
        raise ZeroDivisionError
    assert auto.current().id == "cpu"


def test_threads_and_tasks_do_not_see_each_others_blocks(machine):
    seen = {}

    async def task(name):
        with dala.device(name):
            await asyncio.sleep(0)
            seen[name] = auto.current().id

    async def both():
        await asyncio.gather(task("null"), task("reference"))

    with dala.device("null"):
        thread = threading.Thread(target=lambda: seen.setdefault("thread", auto.current().id))
        thread.start()
        thread.join()
    asyncio.run(both())
    assert seen == {"thread": "cpu", "null": "null", "reference": "reference"}


def test_one_engine_for_many_threads(machine):
    gate = threading.Barrier(8)
    found = []

    def ask():
        gate.wait()
        found.append(auto.get("cpu"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert machine.made == ["cpu"]
    assert {id(engine) for engine in found} == {id(auto.get("cpu"))}


# loss and exit --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["auto", "gpu", "webgpu", "webgpu:0"])
def test_a_lost_engine_is_replaced(machine, name):
    machine.adapters = [FakeAdapter("webgpu:0")]
    old = auto.get(name)
    old.lost = True
    assert instances.engines_in_use() == []
    new = auto.get(name)
    assert new is not old
    assert old.closed
    assert not new.closed
    assert auto.get("webgpu:0") is new
    assert instances.engines_in_use() == [new]


def test_every_engine_is_closed_at_exit(machine):
    engines = [auto.get("cpu"), auto.get("null")]
    engines[1].close = lambda: 1 / 0  # a failing one must not keep the others open
    instances.close_all()
    assert engines[0].closed
    assert instances.engines_in_use() == []


def test_a_forked_process_cannot_use_the_gpu_of_its_parent(machine):
    machine.adapters = [FakeAdapter("webgpu:0")]
    gpu, cpu = auto.get("gpu"), auto.get("cpu")
    instances._after_fork()
    assert instances._by_id == instances.by_name == {"cpu": cpu}
    assert gpu in instances._inherited  # alive, so that no finalizer of it runs in the child
    with pytest.raises(DeviceUnavailable, match=r"fork\(\).*'spawn'"):
        LISTED()


# the machine ---------------------------------------------------------------------------------


def test_devices_are_described(machine):
    machine.adapters = [FakeAdapter("webgpu:0"), FakeAdapter("webgpu:1", "llvmpipe", "software")]
    first, second, *rest = dala.devices()
    assert first == dala.Device(
        id="webgpu:0", name="Radeon", backend="webgpu", kind="discrete", gpu=True,
        dtypes=("f32", "u8"), driver="Mesa 25", api="Vulkan",
    )  # fmt: skip
    assert (second.kind, second.gpu) == ("software", False)
    assert [d.id for d in rest] == ["cpu", "reference", "null"]
    assert not any(d.gpu for d in rest)
    assert machine.made == []


def test_broken_drivers_leave_the_other_devices(machine, monkeypatch):
    def broken():
        raise DeviceUnavailable("no")

    monkeypatch.setattr(listing, "adapters", broken)
    assert [d.id for d in dala.devices()] == ["cpu", "reference", "null"]


def test_a_driver_that_cannot_be_loaded_is_an_error(monkeypatch):
    adapters = ModuleType("adapters")
    adapters.list_adapters = list
    adapters.enumeration_error = lambda: "OSError: libvulkan.so.1: bad magic"
    monkeypatch.setitem(sys.modules, f"{ENGINES}.webgpu.adapters", adapters)
    with pytest.raises(DeviceUnavailable) as caught:
        listing.adapters()
    assert str(caught.value) == "WebGPU cannot be loaded: OSError: libvulkan.so.1: bad magic"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="device nodes are a Linux matter")
@pytest.mark.parametrize(
    ("there", "found"),
    [
        (["null", "tty0"], []),
        (["dri/card0"], []),
        (["dri/renderD128", "dri/card0"], ["dri/renderD128"]),
        (["nvidia0", "nvidiactl"], ["nvidia0", "nvidiactl"]),
        (["dxg"], ["dxg"]),
        (["kgsl-3d0", "mali0"], ["kgsl-3d0", "mali0"]),
    ],
)
def test_gpu_nodes(tmp_path, there, found):
    for name in there:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert hardware.gpu_nodes(str(tmp_path)) == [os.path.join(tmp_path, name) for name in found]


def test_choosing_the_cpu_does_not_load_wgpu():
    code = (
        "import sys, dala\n"
        "from dala.gpu.compute.engines import auto, hardware\n"
        "hardware.gpu_nodes = lambda: []\n"
        "assert auto.get('auto').id == 'cpu'\n"
        "print('wgpu' in sys.modules)"
    )
    environ = {name: value for name, value in os.environ.items() if name != "DALA_DEVICE"}
    environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=False
    )
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
    assert "dala: running on the CPU engine" in done.stderr
