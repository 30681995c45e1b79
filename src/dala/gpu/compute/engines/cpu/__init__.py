"""The CPU engine: kernels compiled with LLVM and run on the engine's own threads."""
