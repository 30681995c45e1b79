"""The driver for NVIDIA GPUs: WGSL is translated to PTX, and runs without Vulkan."""
