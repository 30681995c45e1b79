"""Reports of ``dala.doctor()`` on machines of every kind, from constructed probes."""

import json

import pytest

import dala
from dala.gpu.compute.engines.devices import Choice, Device
from dala.machine import probe as probing
from dala.machine.probe import Probe, find_icds
from dala.machine.report import Report, diagnose

CPU = Device("cpu", "Xeon", "cpu", "cpu", False, ("f32", "u8"), "llvmlite 0.50.0", "LLVM")
LLVMPIPE = Device(
    "webgpu:0", "llvmpipe", "webgpu", "software", False, ("f32",), "Mesa 25", "Vulkan"
)
H200 = Device(
    "webgpu:0", "NVIDIA H200", "webgpu", "discrete", True, ("f32",), "NVIDIA 570", "Vulkan"
)
M4 = Device("webgpu:0", "Apple M4", "webgpu", "integrated", True, ("f32",), "", "Metal")

INSTALLED = {
    "numpy": "2.4.6", "llvmlite": "0.50.0", "wgpu": "0.32.0", "rendercanvas": "2.7.2",
    "av": "18.1.0", "pillow": "13.0.0", "freetype-py": "2.5.1", "font-source-sans-pro": "0.0.1",
    "resvg-py": "0.5.0",
    "uharfbuzz": "0.50", "pymupdf-fonts": "1.0.5", "opencolorio": "2.4", "onnxruntime": "1.31.1",
    "onnxruntime-ep-webgpu": "0.4.0", "glfw": "2.11.0",
}  # fmt: skip
NO_GPU = Choice("cpu", "no GPU was found")
MESA_ICD = {"/usr/share/vulkan/icd.d/lvp_icd.x86_64.json": "libvulkan_lvp.so"}
NVIDIA_NODES = ("/dev/nvidia0", "/dev/nvidiactl")


def machine(**changes) -> Probe:
    """Return a Debian machine with all packages and no GPU, with some facts changed."""
    defaults = {
        "dala": "0.1.0",
        "distro": ("debian",),
        "versions": INSTALLED,
        "devices": (LLVMPIPE, CPU),
        "choice": NO_GPU,
        "icds": MESA_ICD,
        "cache": "/home/ada/.cache/dala",
    }
    return Probe(**{**defaults, **changes})


def only_problem(probe: Probe) -> tuple[str, str]:
    report = diagnose(probe)
    assert not report.ok
    assert len(report.problems) == 1, report.problems
    return report.problems[0]


# machines ------------------------------------------------------------------------------------


def test_mesa_without_a_gpu_is_no_problem():
    report = diagnose(machine())
    assert report.ok
    assert report.problems == report.optional == []
    assert report.choice == NO_GPU


def test_bare_container():
    what, fix = only_problem(machine(devices=(CPU,), icds={}, root=True))
    assert what == (
        "There is no GPU and no WebGPU adapter: device 'cpu' works, device 'webgpu' does not."
    )
    assert fix == (
        "apt-get install libvulkan1 mesa-vulkan-drivers libegl1 libgl1-mesa-dri libgles2"
    )


@pytest.mark.parametrize(
    ("distro", "begins"),
    [
        (("ubuntu", "debian"), "sudo apt-get install libvulkan1 mesa-vulkan-drivers "),
        (("fedora",), "sudo dnf install vulkan-loader mesa-vulkan-drivers "),
        (("rocky", "rhel", "centos", "fedora"), "sudo dnf install "),
        (("arch",), "sudo pacman -S vulkan-icd-loader vulkan-swrast "),
        (("opensuse-tumbleweed", "opensuse", "suse"), "sudo zypper install libvulkan1 "),
        (("alpine",), "sudo apk add vulkan-loader mesa-vulkan-swrast "),
        (("plan9",), "Install Mesa's Vulkan drivers with the system's"),
        ((), "Install Mesa's Vulkan drivers"),
    ],
)
def test_mesa_by_distribution(distro, begins):
    _, fix = only_problem(machine(devices=(CPU,), distro=distro))
    assert fix.startswith(begins)


def test_no_vulkan_loader():
    what, fix = only_problem(machine(vulkan_loader=False, root=True))
    assert what == (
        "The Vulkan loader (libvulkan.so.1), which GPU access requires, is not installed."
    )
    assert fix == "apt-get install libvulkan1"


def test_nvidia_server_without_icd_file():
    what, fix = only_problem(machine(gpu_nodes=NVIDIA_NODES, nvidia_egl=True))
    assert what == (
        "There is an NVIDIA driver, but no Vulkan driver file (ICD) for it. This is common on "
        "servers and in containers."
    )
    assert fix.splitlines()[1:5] == [
        "    mkdir -p ~/.config/dala",
        '    echo \'{"file_format_version": "1.0.0", "ICD": {"library_path": "libEGL_nvidia.so.0", '
        '"api_version": "1.3.0"}}\' > ~/.config/dala/nvidia_icd.json',
        "    export VK_DRIVER_FILES=$HOME/.config/dala/nvidia_icd.json",
        "    export VK_ICD_FILENAMES=$HOME/.config/dala/nvidia_icd.json",
    ]


def test_the_printed_icd_file_is_json():
    _, fix = only_problem(machine(gpu_nodes=NVIDIA_NODES, nvidia_egl=True))
    text = fix.split("echo '")[1].split("'")[0]
    assert json.loads(text)["ICD"]["library_path"] == "libEGL_nvidia.so.0"


def test_the_nvidia_library_alone_indicates_a_driver():
    what, _ = only_problem(machine(nvidia_egl=True))
    assert "no Vulkan driver file" in what


def test_nvidia_server_with_icd_file():
    icds = {**MESA_ICD, "/etc/vulkan/icd.d/nvidia_icd.json": "libGLX_nvidia.so.0"}
    probe = machine(gpu_nodes=NVIDIA_NODES, nvidia_egl=True, icds=icds, devices=(H200, CPU))
    assert diagnose(probe).ok


def test_nvidia_with_icd_file_but_no_gpu_found():
    icds = {"/tmp/own.json": "libEGL_nvidia.so.0"}
    what, fix = only_problem(machine(gpu_nodes=NVIDIA_NODES, nvidia_egl=True, icds=icds))
    assert what == (
        "There is an NVIDIA driver with a Vulkan driver file, but Vulkan finds no NVIDIA GPU."
    )
    assert "nvidia-smi" in fix


def test_nvidia_container_without_graphics():
    what, fix = only_problem(machine(gpu_nodes=NVIDIA_NODES))
    assert "only the compute part of its driver" in what
    assert "NVIDIA_DRIVER_CAPABILITIES=all" in fix
    assert 'pip install "dala-gpu[cuda]"' in fix


def test_nvidia_container_whose_driver_is_too_old():
    probe = machine(gpu_nodes=NVIDIA_NODES, cuda_error="cuInit reported NO_DEVICE.")
    first, _ = diagnose(probe).problems
    assert "cuInit reported NO_DEVICE." in first[0]
    assert "530 or newer" in first[1]


def test_nvidia_container_with_cuda():
    gpu = Device("cuda:0", "NVIDIA H200", "webgpu", "discrete", True, ("f32",), "CUDA 13.0", "CUDA")
    probe = machine(gpu_nodes=NVIDIA_NODES, devices=(gpu, CPU), vulkan_loader=False)
    assert diagnose(probe).ok


def test_gpu_without_a_driver():
    what, fix = only_problem(machine(gpu_nodes=("/dev/dri/renderD128",)))
    assert what == "There is a GPU (/dev/dri/renderD128), but no Vulkan driver for it."
    assert "mesa-vulkan-drivers" in fix


def test_gpu_without_permission():
    node = ("/dev/dri/renderD128",)
    what, fix = only_problem(machine(gpu_nodes=node, locked_nodes=node))
    assert what == "There is a GPU, but this user has no permission for /dev/dri/renderD128."
    assert "usermod -aG render,video" in fix


def test_macos():
    probe = machine(
        platform="darwin", system="Darwin 25.0", machine="arm64", libc="", distro=(), icds={},
        devices=(M4, CPU), choice=Choice("webgpu:0", "Apple M4, integrated GPU through Metal"),
    )  # fmt: skip
    report = diagnose(probe)
    assert report.ok
    assert "auto selects webgpu:0: Apple M4, integrated GPU through Metal" in str(report)


@pytest.mark.parametrize(("platform", "word"), [("win32", "Direct3D 12"), ("darwin", "Metal")])
def test_other_systems_without_a_driver(platform, word):
    _, fix = only_problem(machine(platform=platform, libc="", distro=(), devices=(CPU,)))
    assert word in fix


def test_musl():
    probe = machine(
        libc="musl", devices=(CPU,), adapter_error="WebGPU cannot be loaded: no wgpu-native"
    )
    what, fix = only_problem(probe)
    assert "musl" in what
    assert "python:3-slim" in fix


def test_broken_wgpu():
    probe = machine(devices=(CPU,), adapter_error="WebGPU cannot be loaded: bad magic")
    what, fix = only_problem(probe)
    assert what == "The WebGPU adapters cannot be listed: WebGPU cannot be loaded: bad magic."
    assert "pip install --force-reinstall wgpu" in fix


@pytest.mark.parametrize("name", ["numpy", "llvmlite", "wgpu", "rendercanvas"])
def test_missing_core_package(name):
    probe = machine(versions={**INSTALLED, name: None})
    assert only_problem(probe) == (f"{name} is not installed.", f"pip install {name}")


def test_cache_that_cannot_be_written():
    what, fix = only_problem(machine(cache_error="Read-only file system"))
    assert what.startswith(
        "Compiled kernels cannot be cached in /home/ada/.cache/dala (Read-only file system)"
    )
    assert "DALA_CACHE_DIR" in fix


def test_cache_that_others_can_write_to(monkeypatch, tmp_path):
    what, fix = only_problem(machine(cache_distrust="other users can write to /home"))
    assert what.startswith(
        "Compiled kernels are not cached in /home/ada/.cache/dala (other users can write to /home)"
    )
    assert "chmod go-w" in fix
    assert "DALA_CACHE_TRUST=1" in fix
    if not hasattr(probing.os, "geteuid"):
        return
    monkeypatch.delenv("DALA_CACHE", raising=False)
    monkeypatch.delenv("DALA_CACHE_TRUST", raising=False)
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path))
    assert probing.look().cache_distrust == ""
    tmp_path.chmod(0o777)
    report = dala.doctor()
    assert f"other users can write to {tmp_path}" in str(report)
    assert "Compiled kernels are cached in memory only" in str(report)


@pytest.mark.parametrize("name", ["auto", "cpu", "webgpu", "webgpu:0"])
def test_setting_with_a_device(name):
    assert diagnose(machine(setting=name)).ok


@pytest.mark.parametrize("name", ["gpu", "webgpu:1", "cuda"])
def test_setting_without_a_device(name):
    what, fix = only_problem(machine(setting=name))
    assert what == f"DALA_DEVICE is {name!r}, and this machine has no such device."
    assert fix == "Set it to one of auto, cpu, webgpu, webgpu:0, or unset it: unset DALA_DEVICE"


@pytest.mark.parametrize("name", ["default", "downlevel"])
def test_limits_of_webgpu(name):
    report = diagnose(machine(limits=name))
    assert report.ok
    assert report.system["webgpu_limits"] == name
    buffers = {"default": "8 storage buffers, 16384", "downlevel": "4 storage buffers, 16352"}[name]
    assert (
        f"WebGPU asks for the limits {name!r} (DALA_WEBGPU_LIMITS): {buffers} bytes of workgroup "
        "memory, buffers of 128 MiB" in str(report)
    )


def test_the_adapters_own_limits():
    assert "WebGPU uses the adapters' own limits" in str(diagnose(machine()))


def test_limits_that_do_not_exist():
    what, fix = only_problem(machine(limits="downlvel"))
    assert what == (
        "DALA_WEBGPU_LIMITS is 'downlvel', and there are no such limits: WebGPU cannot be used."
    )
    assert fix == "Set it to one of default, downlevel, or unset it: unset DALA_WEBGPU_LIMITS"


def test_missing_extras_are_not_problems():
    report = diagnose(machine(versions={**INSTALLED, "av": None, "pillow": None, "glfw": None}))
    assert report.ok
    assert report.optional == [
        (
            "av, pillow not installed, needed for pictures, videos and text (dala.media).",
            'pip install "dala-gpu[media]"',
        ),
        ("glfw not installed, needed for windows.", 'pip install "dala-gpu[view]"'),
    ]
    assert {name: facts.missing for name, facts in report.extras.items()} == {
        "media": ["av", "pillow"], "text": [], "color": [], "ml": [], "view": ["glfw"], "live": [],
        "studio": [], "batch": [], "cluster": [], "cuda": [],
    }  # fmt: skip


def test_the_other_package_named_dala():
    what, fix = only_problem(machine(other="1.2.3"))
    assert what.startswith("Another package, dala 1.2.3, is installed beside ours, dala-gpu.")
    assert fix.splitlines()[1:] == [
        "    pip uninstall dala",
        "    pip install --force-reinstall --no-deps dala-gpu",
    ]


def test_the_other_package_is_found(monkeypatch, tmp_path):
    info = tmp_path / "dala-9.8.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dala\nVersion: 9.8\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert probing.look().other == "9.8"
    (info / "METADATA").unlink()
    info.rename(tmp_path / "dala_gpu-9.8.dist-info")
    assert probing.look().other != "9.8"


# the page ------------------------------------------------------------------------------------


def test_the_page():
    probe = machine(devices=(CPU,), root=True, versions={"numpy": "2.4.6", "av": None})
    assert str(diagnose(probe)) == (
        "Dala 0.1.0, Python 3.11, Linux (x86_64, glibc 2.36)\n"
        "\n"
        "Packages\n"
        "  numpy                2.4.6\n"
        "  av                   not installed\n"
        "\n"
        "Devices (* = selected by auto)\n"
        "  * cpu  Xeon\n"
        "         cpu, LLVM, llvmlite 0.50.0; f32 u8\n"
        "\n"
        "auto selects cpu: no GPU was found\n"
        "Compiled kernels are cached in /home/ada/.cache/dala\n"
        "\n"
        "Problems\n"
        "  1. There is no GPU and no WebGPU adapter: "
        "device 'cpu' works, device 'webgpu' does not.\n"
        "     apt-get install libvulkan1 mesa-vulkan-drivers libegl1 libgl1-mesa-dri libgles2\n"
        "\n"
        "Extras (optional)\n"
        "  media   pictures, videos and text (dala.media): missing av\n"
        '          pip install "dala-gpu[media]"\n'
        "  text    a font with Arabic, Hebrew, Thai, Devanagari and Georgian: installed\n"
        "  color   LUT files that OpenColorIO reads: installed\n"
        "  ml      models (dala.ml): installed\n"
        "  view    windows: installed\n"
        "  live    playing sound, WHIP, a virtual camera for calls: installed\n"
        "  studio  the studio, a page to play with (dala.studio): installed\n"
        "  batch   folders of pictures and videos (dala.batch): installed\n"
        "  cuda    NVIDIA GPUs without Vulkan: installed\n"
        "  cluster dala.batch over many machines: installed\n"
        "\n"
        "1 problem found."
    )


def test_the_report_as_json():
    report = diagnose(machine(devices=(CPU,)))
    assert json.loads(json.dumps(report.as_dict())) == report.as_dict()
    assert report.as_dict()["choice"] == {"device": "cpu", "reason": "no GPU was found"}
    assert report.as_dict()["devices"][0]["dtypes"] == ["f32", "u8"]
    assert set(report.as_dict()["problems"][0]) == {"what", "fix"}


# probing -------------------------------------------------------------------------------------


def test_this_machine():
    report = dala.doctor()
    assert isinstance(report, Report)
    assert report.versions["numpy"]
    assert {"cpu", "reference", "null"} <= {d.id for d in report.devices}
    assert report.choice.device in {d.id for d in report.devices}
    assert str(report) == repr(report)


def test_driver_files(tmp_path):
    folder = tmp_path / "icd.d"
    folder.mkdir()
    (folder / "a.json").write_text('{"ICD": {"library_path": "liba.so"}}')
    (folder / "b.json").write_text("{broken")
    (folder / "c.txt").write_text("")
    icds = find_icds({}, (str(tmp_path / "none"), str(folder)))
    assert icds == {str(folder / "a.json"): "liba.so", str(folder / "b.json"): ""}


@pytest.mark.parametrize("variable", ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"])
def test_environment_overrides_driver_folders(tmp_path, variable):
    (tmp_path / "a.json").write_text('{"ICD": {"library_path": "liba.so"}}')
    own = tmp_path / "own.json"
    own.write_text('{"ICD": {"library_path": "libown.so"}}')
    assert find_icds({variable: str(own)}, (str(tmp_path),)) == {str(own): "libown.so"}


def test_any_build_of_onnx_runtime_is_found(monkeypatch):
    def version(name):
        if name != "onnxruntime-gpu":
            raise probing.metadata.PackageNotFoundError(name)
        return "1.31"

    monkeypatch.setattr(probing.metadata, "version", version)
    assert probing._version("onnxruntime") == "1.31"
    assert probing._version("av") is None


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("DALA_CACHE", raising=False)
    monkeypatch.setenv("DALA_CACHE_DIR", str(tmp_path / "new"))
    folder, error = probing._cache()
    assert folder.startswith(str(tmp_path / "new"))
    assert error == ""
    assert not (tmp_path / "new").exists()  # nothing is created

    (tmp_path / "new").write_text("")
    assert probing._cache()[1] == f"{tmp_path / 'new'} is not a folder"

    monkeypatch.setattr("os.access", lambda path, mode: False)
    (tmp_path / "new").unlink()
    assert probing._cache()[1] == f"{tmp_path} is not writable"

    monkeypatch.setenv("DALA_CACHE", "off")
    assert probing._cache() == ("", "")
