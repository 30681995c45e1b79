"""Compositing on the CPU, against other libraries."""


def main() -> None:
    from benchmarks.compositing.run import main

    main()
