"""``dala.doctor()``: facts about the machine (probe), problems and fixes (advice), the report."""
