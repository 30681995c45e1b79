"""The table of answers: for bytes, one checksum for each case, equal on every engine.

``cases.py`` lists the cases from the declarations of the filters, ``material.py`` makes their
pictures, ``answers.txt`` has the checksums of the reference engine's results, and ``report.py`` is
``dala.selftest()``, which compares the devices of a machine with them. After a change of a
definition, or with a new filter::

    python -m dala.answers.generate
"""
