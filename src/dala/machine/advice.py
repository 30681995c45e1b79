"""What the doctor prescribes: commands by distribution, and the NVIDIA driver file."""

from __future__ import annotations

from typing import Final

#: Tells a Vulkan loader that NVIDIA's EGL library is a Vulkan driver.
ICD_JSON: Final = (
    '{"file_format_version": "1.0.0", '
    '"ICD": {"library_path": "libEGL_nvidia.so.0", "api_version": "1.3.0"}}'
)

NVIDIA_ICD: Final = """\
Write the file and name it in VK_DRIVER_FILES (VK_ICD_FILENAMES for loaders older than 1.3.207):
    mkdir -p ~/.config/dala
    echo '{json}' > ~/.config/dala/nvidia_icd.json
    export VK_DRIVER_FILES=$HOME/.config/dala/nvidia_icd.json
    export VK_ICD_FILENAMES=$HOME/.config/dala/nvidia_icd.json
As root, writing it to /etc/vulkan/icd.d/nvidia_icd.json does the same for everyone."""

#: Package manager by distribution, with the packages of "mesa" (drivers, the software one among
#: them, for Vulkan and OpenGL) and "loader" (the Vulkan loader).
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


def install(what: str, distro: tuple[str, ...], root: bool) -> str:
    """The line that installs Mesa's drivers ("mesa") or the Vulkan loader ("loader").

    >>> install("loader", ("ubuntu", "debian"), root=True)
    'apt-get install libvulkan1'
    >>> install("loader", ("fedora",), root=False)
    'sudo dnf install vulkan-loader'
    """
    for command, (names, mesa, loader) in _MANAGERS.items():
        if any(name.startswith(names) for name in distro):
            packages = mesa if what == "mesa" else loader
            return f"{'' if root else 'sudo '}{command} {packages}"
    part = "Mesa's Vulkan drivers (lavapipe among them)" if what == "mesa" else "the Vulkan loader"
    return f"Install {part} with the system's package manager (Debian: apt-get install " + (
        "mesa-vulkan-drivers)." if what == "mesa" else "libvulkan1)."
    )


def no_driver(platform: str) -> str:
    """What to do about missing graphics drivers on a system other than Linux."""
    if platform == "win32":
        return "Install the graphics card maker's driver (it must offer Direct3D 12 or Vulkan)."
    if platform == "darwin":
        return "Metal needs macOS 10.13 or newer, and cannot be reached from some virtual machines."
    return "Install a Vulkan driver for this system."
