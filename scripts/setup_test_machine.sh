#!/bin/sh
# Gives a test machine Mesa's software Vulkan and OpenGL, so that the WebGPU engine is tested without
# a GPU. Never fails: where it cannot install anything it says what the tests will skip, and why.
set -u

packages="libvulkan1 mesa-vulkan-drivers libegl1 libgl1-mesa-dri libgles2"

skipped() {
    echo "test machine: $1"
    echo "test machine: without an adapter the tests of the webgpu engine are skipped; the cpu," \
        "reference and null engines are tested all the same."
    exit 0
}

if [ "$(uname -s)" != Linux ]; then
    echo "test machine: $(uname -s) brings its own graphics drivers; nothing to install."
    exit 0
fi

if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-query >/dev/null 2>&1; then
    skipped "apt-get is not here, so Mesa is not installed by this script. \`dala doctor\` says what is missing."
fi

missing=
for package in $packages; do
    status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)
    [ "$status" = installed ] || missing="$missing $package"
done

if [ -z "$missing" ]; then
    echo "test machine: Mesa's software Vulkan and OpenGL are installed."
    exit 0
fi

if [ "$(id -u)" != 0 ]; then
    skipped "not root, so this is left to you: sudo apt-get install$missing"
fi

echo "test machine: installing$missing"
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
# Package lists are refreshed only if those at hand don't do: it is the slow part.
if apt-get install --yes --no-install-recommends $missing >"$log" 2>&1 ||
    { apt-get update >"$log" 2>&1 &&
        apt-get install --yes --no-install-recommends $missing >"$log" 2>&1; }; then
    rm -f "$log"
    echo "test machine: Mesa's software Vulkan and OpenGL are installed."
else
    tail -n 5 "$log"
    rm -f "$log"
    skipped "apt-get could not install$missing (its last lines are above)."
fi
