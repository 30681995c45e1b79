"""The CPU engine: kernels compiled by LLVM, run on our own threads."""
