"""Drawing on a surface, against other 2D libraries."""


def main() -> None:
    from benchmarks.drawing.run import main

    main()
