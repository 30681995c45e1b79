"""Kernels, frames and scenes on a GPU."""


def main() -> None:
    from benchmarks.gpu.run import main

    main()
