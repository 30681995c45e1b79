"""Mutated HTTP requests: parsed or refused with a status, and answered by the server."""

from tests.fuzz.web_requests import SEEDS, one_input, parse_many, serve_many


def test_mutated_requests_are_parsed_or_refused():
    outcomes = parse_many(3000, seed=7)
    assert outcomes["parsed"] > 300
    assert outcomes["refused 400"] > 300


def test_mutated_requests_are_answered():
    outcomes = serve_many(150, seed=7)
    assert outcomes["200"] > 10
    assert outcomes["400"] > 10
    assert {one_input(seed.split(b"\r\n\r\n")[0]) for seed in SEEDS} >= {"parsed", "refused 413"}
