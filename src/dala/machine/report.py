"""``dala.doctor()``: the devices of this machine, missing parts, and how to install them.

:func:`~dala.machine.probe.look` gathers facts and :func:`diagnose` makes the report from them
alone, so every kind of machine can be tested on any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, NamedTuple, TypeAlias

from dala.errors import counted
from dala.extras import CORE, DISTRIBUTION, EXTRAS, pip_install
from dala.gpu.compute.engines.devices import Choice, Device
from dala.gpu.compute.engines.webgpu.limits import (
    CLASSES,
    STORAGE_BUFFERS,
    VARIABLE,
    WORKGROUP_MEMORY,
)
from dala.machine.probe import Probe, look

#: A driver file that registers NVIDIA's EGL library with the Vulkan loader.
_ICD_JSON: Final = (
    '{"file_format_version": "1.0.0", '
    '"ICD": {"library_path": "libEGL_nvidia.so.0", "api_version": "1.3.0"}}'
)

_NVIDIA_ICD: Final = """\
Create the file and set VK_DRIVER_FILES (VK_ICD_FILENAMES for loaders older than 1.3.207):
    mkdir -p ~/.config/dala
    echo '{json}' > ~/.config/dala/nvidia_icd.json
    export VK_DRIVER_FILES=$HOME/.config/dala/nvidia_icd.json
    export VK_ICD_FILENAMES=$HOME/.config/dala/nvidia_icd.json
As root, create /etc/vulkan/icd.d/nvidia_icd.json instead; it works for all users."""

#: For each package manager: distributions, packages with Mesa's drivers (including the software
#: ones), and the package with the Vulkan loader.
_MANAGERS: Final = {
    "apt-get install": (
        ("debian", "ubuntu"),
        "libvulkan1 mesa-vulkan-drivers libegl1 libgl1-mesa-dri libgles2",
        "libvulkan1",
    ),
    "dnf install": (
        ("fedora", "rhel", "centos"),
        "vulkan-loader mesa-vulkan-drivers mesa-libEGL mesa-dri-drivers",
        "vulkan-loader",
    ),
    "pacman -S": (
        ("arch",),
        "vulkan-icd-loader vulkan-swrast vulkan-radeon vulkan-intel mesa",
        "vulkan-icd-loader",
    ),
    "zypper install": (
        ("suse", "opensuse"),
        "libvulkan1 libvulkan_lvp libvulkan_radeon libvulkan_intel Mesa-libEGL1",
        "libvulkan1",
    ),
    "apk add": (
        ("alpine",),
        "vulkan-loader mesa-vulkan-swrast mesa-vulkan-ati mesa-vulkan-intel mesa-egl",
        "vulkan-loader",
    ),
}


class Problem(NamedTuple):
    """A problem, and how to fix it."""

    what: str
    fix: str


def find_problems(probe: Probe) -> Iterator[Problem]:
    """Yield everything that keeps Dala from using the machine fully."""
    yield from _packages(probe)
    yield from _graphics(probe)
    yield from _settings(probe)
    if probe.cache_error:
        yield Problem(
            f"Compiled kernels cannot be cached in {probe.cache} ({probe.cache_error}), so every "
            "process compiles them again.",
            "Make the folder writable, or use another one:\n    export DALA_CACHE_DIR=/tmp/dala",
        )
    if probe.cache_distrust:
        yield Problem(
            f"Compiled kernels are not cached in {probe.cache} ({probe.cache_distrust}): code in "
            "the cache is run, so only you may be able to write there.",
            "Take the permission from others (chmod go-w FOLDER, chmod 600 KEY), or use a folder "
            "of your own:\n    export DALA_CACHE_DIR=$HOME/.cache/dala-own\n"
            "If you trust everyone who can write there: export DALA_CACHE_TRUST=1",
        )


def _packages(probe: Probe) -> Iterator[Problem]:
    for name in CORE:
        if name in probe.versions and probe.versions[name] is None:
            yield Problem(f"{name} is not installed.", f"pip install {name}")
    if probe.other:
        yield Problem(
            f"Another package, dala {probe.other}, is installed beside ours, {DISTRIBUTION}. Both "
            "have a module and a command named dala: one overwrites files of the other.",
            "Remove it, and restore the files that were overwritten:\n    pip uninstall dala\n"
            f"    pip install --force-reinstall --no-deps {DISTRIBUTION}",
        )
    if probe.libc == "musl":
        yield Problem(
            "This Python uses musl (Alpine Linux), for which wgpu and llvmlite have no wheels.",
            "Use an image with glibc: python:3-slim instead of python:3-alpine.",
        )


def _graphics(probe: Probe) -> Iterator[Problem]:
    if probe.versions.get("wgpu", "") is None:
        return  # already reported
    adapters = [d for d in probe.devices if d.backend == "webgpu"]
    linux = probe.platform.startswith("linux")
    if probe.adapter_error and probe.libc != "musl":
        yield Problem(
            f"The WebGPU adapters cannot be listed: {probe.adapter_error}.",
            "Reinstall wgpu: pip install --force-reinstall wgpu",
        )
    cuda = any(d.api == "CUDA" for d in adapters)
    if linux and not probe.vulkan_loader and not cuda:
        yield Problem(
            "The Vulkan loader (libvulkan.so.1), which GPU access requires, is not installed.",
            install("loader", probe.distro, probe.root),
        )
    explained = False
    if linux and probe.locked_nodes and len(probe.locked_nodes) == len(probe.gpu_nodes):
        explained = True
        yield Problem(
            f"There is a GPU, but this user has no permission for {', '.join(probe.locked_nodes)}.",
            "Add the user to the groups with access, then log in again:\n"
            "    sudo usermod -aG render,video $USER",
        )
    for problem in _nvidia(probe, adapters) if linux else ():
        explained = True
        yield problem
    if any(d.gpu for d in adapters) or explained:
        return
    if probe.gpu_nodes and not any(node.startswith("/dev/nvidia") for node in probe.gpu_nodes):
        yield Problem(
            f"There is a GPU ({', '.join(probe.gpu_nodes)}), but no Vulkan driver for it.",
            install("mesa", probe.distro, probe.root),
        )
    elif not adapters and not probe.adapter_error:
        yield Problem(
            "There is no GPU and no WebGPU adapter: device 'cpu' works, device 'webgpu' does not.",
            install("mesa", probe.distro, probe.root) if linux else no_driver(probe.platform),
        )


def _nvidia(probe: Probe, adapters: list[Device]) -> Iterator[Problem]:
    nodes = any(node.startswith("/dev/nvidia") for node in probe.gpu_nodes)
    if not (nodes or probe.nvidia_egl) or any(d.api == "CUDA" for d in adapters):
        return
    if any("nvidia" in f"{d.name} {d.driver}".lower() and d.api == "Vulkan" for d in adapters):
        return
    if probe.cuda_error and nodes:
        yield Problem(
            f"CUDA cannot be used, though cuda-bindings is installed: {probe.cuda_error}",
            "NVIDIA's driver must be 530 or newer, and visible here. In a container:\n"
            "    docker run --gpus all ...",
        )
    described = any("nvidia" in f"{path} {library}".lower() for path, library in probe.icds.items())
    if not probe.nvidia_egl:
        yield Problem(
            "There is an NVIDIA GPU, but only the compute part of its driver is installed "
            "(libEGL_nvidia.so.0 cannot be loaded).",
            "It is enough to compute, with CUDA instead of Vulkan:\n"
            f"    {pip_install('cuda')}\n"
            "Or, in a container, request the graphics part too:\n"
            "    docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=all ...\n"
            "Otherwise install the full driver, not its headless or compute variant.",
        )
    elif not described:
        yield Problem(
            "There is an NVIDIA driver, but no Vulkan driver file (ICD) for it. This is common on "
            "servers and in containers.",
            _NVIDIA_ICD.format(json=_ICD_JSON),
        )
    elif probe.vulkan_loader:  # a missing loader is already reported
        yield Problem(
            "There is an NVIDIA driver with a Vulkan driver file, but Vulkan finds no NVIDIA GPU.",
            "The kernel module and the libraries may have different versions. Compare:\n"
            "    nvidia-smi\n    cat /proc/driver/nvidia/version\n"
            "Restart after a driver update.",
        )


def _settings(probe: Probe) -> Iterator[Problem]:
    name = probe.setting
    known = {d.id for d in probe.devices} | {"auto"}
    if any(d.backend == "webgpu" for d in probe.devices):
        known.add("webgpu")
    if any(d.gpu for d in probe.devices):
        known.add("gpu")
    if name and name not in known:
        yield Problem(
            f"DALA_DEVICE is {name!r}, and this machine has no such device.",
            f"Set it to one of {', '.join(sorted(known))}, or unset it: unset DALA_DEVICE",
        )
    if probe.limits and probe.limits not in CLASSES:
        yield Problem(
            f"{VARIABLE} is {probe.limits!r}, and there are no such limits: WebGPU cannot be used.",
            f"Set it to one of {', '.join(CLASSES)}, or unset it: unset {VARIABLE}",
        )


def missing_extras(versions: Mapping[str, str | None]) -> Iterator[Problem]:
    """Yield the optional packages that are not installed."""
    for extra in EXTRAS:
        missing = missing_in(extra, versions)
        if missing and extra != "cuda":  # named where there is an NVIDIA GPU
            yield Problem(
                f"{', '.join(missing)} not installed, needed for {EXTRAS[extra][0]}.",
                pip_install(extra),
            )


def missing_in(extra: str, versions: Mapping[str, str | None]) -> list[str]:
    """Return the packages of an extra that are not installed.

    >>> missing_in("view", {"glfw": None}), missing_in("view", {"glfw": "2.10"})
    (['glfw'], [])
    """
    return [name for name in EXTRAS[extra][1] if name in versions and versions[name] is None]


def install(what: str, distro: tuple[str, ...], root: bool) -> str:
    """Return the command that installs Mesa's drivers ("mesa") or the Vulkan loader ("loader").

    >>> install("loader", ("ubuntu", "debian"), root=True)
    'apt-get install libvulkan1'
    >>> install("loader", ("fedora",), root=False)
    'sudo dnf install vulkan-loader'
    """
    for command, (names, mesa, loader) in _MANAGERS.items():
        if any(name.startswith(names) for name in distro):
            packages = mesa if what == "mesa" else loader
            return f"{'' if root else 'sudo '}{command} {packages}"
    part = "Mesa's Vulkan drivers" if what == "mesa" else "the Vulkan loader"
    return f"Install {part} with the system's package manager (Debian: apt-get install " + (
        "mesa-vulkan-drivers)." if what == "mesa" else "libvulkan1)."
    )


def no_driver(platform: str) -> str:
    """Return how to get a graphics driver on a system other than Linux."""
    if platform == "win32":
        return "Install the graphics card's driver, with Direct3D 12 or Vulkan."
    if platform == "darwin":
        return "Metal needs macOS 10.13 or newer. Some virtual machines do not provide it."
    return "Install a Vulkan driver for this system."


#: A value that JSON can represent.
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


#: Facts of a probe that a report has as they are.
_SYSTEM: Final = ("dala", "python", "system", "machine", "libc", "setting")


class ExtraFacts(NamedTuple):
    """An optional part of the distribution, and its missing packages."""

    purpose: str
    packages: list[str]
    missing: list[str]
    install: str


@dataclass(frozen=True, repr=False)
class Report:
    """The result of ``dala.doctor()``; print it to read it.

    >>> import dala
    >>> report = dala.doctor()
    >>> report.ok == (not report.problems)
    True
    """

    #: True if there are no problems. Missing optional packages do not count.
    ok: bool
    devices: list[Device]
    #: The device that ``auto`` selects, and why.
    choice: Choice
    problems: list[Problem]
    #: Optional packages that are not installed, and how to install them.
    optional: list[Problem]
    #: The system: ``dala``, ``python``, ``system``, ``machine``, ...
    system: dict[str, str]
    #: Installed versions; None for missing packages.
    versions: dict[str, str | None]
    #: Every extra: what it is for, its packages, those that are missing, and how to install it.
    extras: dict[str, ExtraFacts]

    def as_dict(self) -> dict[str, Json]:
        """Return the report as dicts, lists and strings, for JSON."""
        return {
            "ok": self.ok,
            "system": self.system,
            "versions": self.versions,
            "extras": {name: facts._asdict() for name, facts in self.extras.items()},
            "devices": [{**asdict(d), "dtypes": list(d.dtypes)} for d in self.devices],
            "choice": self.choice._asdict(),
            "problems": [problem._asdict() for problem in self.problems],
            "optional": [problem._asdict() for problem in self.optional],
        }

    def facts(self) -> str:
        """Return the first part of the page: system, packages, devices."""
        s = self.system
        lines = [
            system_line(s),
            "",
            "Packages",
            *(
                f"  {name:20} {version or 'not installed'}"
                for name, version in self.versions.items()
            ),
            "",
            "Devices (* = selected by auto)",
        ]
        width = max((len(d.id) for d in self.devices), default=0)
        for d in self.devices:
            mark = "*" if d.id == self.choice.device else " "
            through = ", ".join(part for part in (d.kind, d.api, d.driver) if part)
            lines.append(f"  {mark} {d.id:{width}}  {d.name}")
            lines.append(f"    {'':{width}}  {through}; {' '.join(d.dtypes)}")
        lines += ["", f"auto selects {self.choice.device}: {self.choice.reason}"]
        if s["setting"]:
            lines.append(f"DALA_DEVICE={s['setting']} is set and overrides auto")
        if any(d.backend == "webgpu" for d in self.devices):
            lines.append(_limits(s["webgpu_limits"]))
        if s["models"]:
            lines.append(f"Models run on {s['models']}")
        lines.append(f"Compiled kernels are cached in {s['cache'] or 'memory only'}")
        return "\n".join(lines)

    def __str__(self) -> str:
        page = [self.facts(), ""]
        if self.problems:
            page.append("Problems")
            for number, (what, fix) in enumerate(self.problems, 1):
                page.append(f"  {number}. {what}")
                page += [f"     {line}".rstrip() for line in fix.splitlines()]
            page.append("")
        page.append("Extras (optional)")
        for name, facts in self.extras.items():
            missing = ", ".join(facts.missing)
            page.append(
                f"  {name:7} {facts.purpose}: {f'missing {missing}' if missing else 'installed'}"
            )
            if missing:
                page.append(f"          {facts.install}")
        count = counted(len(self.problems), "problems") if self.problems else "No problems"
        page += ["", f"{count} found."]
        return "\n".join(page)

    __repr__ = __str__


def system_line(s: Mapping[str, str]) -> str:
    """Return the first line of a report: versions and the system."""
    libc = f", {s['libc']}" if s["libc"] else ""
    return f"Dala {s['dala']}, Python {s['python']}, {s['system']} ({s['machine']}{libc})"


def _limits(name: str) -> str:
    """Return the limits that WebGPU devices are asked for.

    >>> _limits("")
    "WebGPU uses the adapters' own limits"
    """
    if not name:
        return "WebGPU uses the adapters' own limits"
    most = CLASSES[name]
    return (
        f"WebGPU asks for the limits {name!r} ({VARIABLE}): {most[STORAGE_BUFFERS]} storage "
        f"buffers, {most[WORKGROUP_MEMORY]} bytes of workgroup memory, buffers of "
        f"{most['max-storage-buffer-binding-size'] >> 20} MiB"
    )


def doctor() -> Report:
    """Examine this machine: devices, drivers, packages, missing parts and how to install them.

    >>> import dala
    >>> report = dala.doctor()
    >>> report.choice.device in [device.id for device in report.devices]
    True
    """
    return diagnose(look())


def diagnose(probe: Probe) -> Report:
    """Return the report on a machine, from the facts in ``probe`` alone."""
    problems = list(find_problems(probe))
    return Report(
        ok=not problems,
        devices=list(probe.devices),
        choice=probe.choice,
        problems=problems,
        optional=list(missing_extras(probe.versions)),
        system={
            **{name: getattr(probe, name) for name in _SYSTEM},
            "webgpu_limits": probe.limits if probe.limits in CLASSES else "",
            "models": probe.models,
            "cache": "" if probe.cache_error or probe.cache_distrust else probe.cache,
        },
        versions=dict(probe.versions),
        extras={
            name: ExtraFacts(
                purpose, list(packages), missing_in(name, probe.versions), pip_install(name)
            )
            for name, (purpose, packages) in EXTRAS.items()
        },
    )
