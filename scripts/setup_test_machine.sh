#!/bin/sh
# Gives a test machine what tests need beside Python: Mesa's software Vulkan and OpenGL, so that the
# WebGPU engine is tested without a GPU, and a screen and a browser nobody sees, for presenters.
# Never fails: where it cannot install anything it says what the tests will skip, and why.
set -u

if [ "$(uname -s)" != Linux ]; then
    echo "test machine: $(uname -s) brings its own graphics drivers; nothing to install."
    exit 0
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive

# Package lists are refreshed only if those at hand don't do: it is the slow part.
install_packages() {
    apt-get install --yes --no-install-recommends "$@" >"$log" 2>&1 ||
        { apt-get update >"$log" 2>&1 &&
            apt-get install --yes --no-install-recommends "$@" >"$log" 2>&1; }
}

# provide WHAT WITHOUT PACKAGE...: what the packages are, what the tests do without them.
provide() {
    what=$1 without=$2
    shift 2
    if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-query >/dev/null 2>&1; then
        echo "test machine: apt-get is not here, so this script does not install $what. $without"
        return
    fi
    missing=
    for package in "$@"; do
        status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)
        [ "$status" = installed ] || missing="$missing $package"
    done
    if [ -n "$missing" ]; then
        if [ "$(id -u)" != 0 ]; then
            echo "test machine: not root, so this is left to you: sudo apt-get install$missing"
            echo "test machine: $without"
            return
        fi
        echo "test machine: installing$missing"
        # Names of packages have no spaces: they are meant to be split here.
        if ! install_packages $missing; then
            tail -n 5 "$log"
            echo "test machine: apt-get could not install$missing (its last lines are above). $without"
            return
        fi
    fi
    echo "test machine: $what are installed."
}

provide "Mesa's software Vulkan and OpenGL" \
    "Without an adapter the tests of the webgpu engine are skipped (\`dala doctor\` says what is missing); the cpu, reference and null engines are tested all the same." \
    libvulkan1 mesa-vulkan-drivers libegl1 libgl1-mesa-dri libgles2

provide "a screen and a browser without a display (Xvfb, Chromium)" \
    "Without them the tests that look at windows and pages are skipped." \
    xvfb chromium

provide "fonts (Japanese, emoji in colour, one with a weight axis)" \
    "Without them the tests of text that need such fonts are skipped." \
    fonts-ipafont-gothic fonts-noto-color-emoji fonts-inter-variable
