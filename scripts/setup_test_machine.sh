#!/bin/sh
# Installs what tests need besides Python: Mesa's software Vulkan and OpenGL, to test the WebGPU
# engine without a GPU, a headless display and browser for the presenters, and a root for ARM.
# Never fails: if it cannot install something, it prints which tests will be skipped, and why.
set -u

if [ "$(uname -s)" != Linux ]; then
    echo "test machine: $(uname -s) has its own graphics drivers; nothing to install."
    exit 0
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive

# Refreshing the package lists is slow: only if installing fails without it.
install_packages() {
    apt-get install --yes --no-install-recommends "$@" >"$log" 2>&1 ||
        { apt-get update >"$log" 2>&1 &&
            apt-get install --yes --no-install-recommends "$@" >"$log" 2>&1; }
}

# provide WHAT WITHOUT PACKAGE...: a name for the packages, and what happens without them.
provide() {
    what=$1 without=$2
    shift 2
    if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-query >/dev/null 2>&1; then
        echo "test machine: no apt-get, so $what must be installed by hand. $without"
        return
    fi
    missing=
    for package in "$@"; do
        status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)
        [ "$status" = installed ] || missing="$missing $package"
    done
    if [ -n "$missing" ]; then
        if [ "$(id -u)" != 0 ]; then
            echo "test machine: not root. Run: sudo apt-get install$missing"
            echo "test machine: $without"
            return
        fi
        echo "test machine: installing$missing"
        # Unquoted on purpose: one word per package. If one has another name here, the others are
        # installed without it.
        if ! install_packages $missing; then
            refused=
            for package in $missing; do
                install_packages "$package" || refused="$refused $package"
            done
            if [ -n "$refused" ]; then
                tail -n 5 "$log"
                echo "test machine: apt-get could not install$refused (its last lines are above). $without"
                return
            fi
        fi
    fi
    echo "test machine: $what are installed."
}

provide "Mesa's software Vulkan and OpenGL" \
    "Without an adapter the tests of the webgpu engine are skipped (\`dala doctor\` shows what is missing)." \
    libvulkan1 mesa-vulkan-drivers libegl1 libgl1-mesa-dri libgles2

provide "a headless display and browser (Xvfb, xdotool, Chromium)" \
    "Without them the tests of windows and pages are skipped." \
    xvfb xdotool chromium

provide "receivers of live streams (ffmpeg, nginx with RTMP)" \
    "Without them the tests of live streams to these are skipped." \
    ffmpeg nginx-light libnginx-mod-rtmp

provide "fonts (Japanese, color emoji, one with a weight axis)" \
    "Without them the text tests that need these fonts are skipped." \
    fonts-ipafont-gothic fonts-noto-color-emoji fonts-inter-variable

provide "Unicode's conformance tests of bidirectional text" \
    "Without them those tests are skipped." \
    unicode-data

# In build/arm. It needs no rights, and with those of sudo the folder would be root's.
if [ -n "${SUDO_USER:-}" ]; then
    echo "test machine: for the tests on ARM run, without sudo: python -m tests.arm --setup"
    exit 0
fi
cd "$(dirname "$0")/.." || exit 0
for python in .venv/bin/python python3; do
    command -v "$python" >/dev/null 2>&1 || continue
    if "$python" -m tests.arm --setup; then
        echo "test machine: ARM's Python and QEMU are in build/arm."
    else
        echo "test machine: without them (the reason is above) the tests on ARM are skipped."
    fi
    break
done
