"""Results of models as tables: ``batch.detect``, ``classify``, ``faces``, ``hands``, ``poses``."""
