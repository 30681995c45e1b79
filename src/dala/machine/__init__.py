"""What ``dala.doctor()`` knows about this machine: probe, report, advice."""
