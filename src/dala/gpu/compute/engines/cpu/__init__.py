"""The CPU engine: kernels compiled by LLVM, run on threads of its own."""
