"""The WebGPU engine: Vulkan, Metal, Direct3D 12 and OpenGL through wgpu."""
