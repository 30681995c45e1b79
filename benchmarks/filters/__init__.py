"""Filters on the CPU, against OpenCV, Halide and Pillow."""


def main() -> None:
    from benchmarks.filters.run import main

    main()
