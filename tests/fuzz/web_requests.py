"""Mutated HTTP requests against the parser and the server of the browser presenter.

    python -m tests.fuzz.web_requests --count 100000 --seed 1

Every request must be parsed, or be refused with a status; a server must answer what it refuses,
keep no connection, and end no thread with an exception.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import socket
import sys
import threading
from collections import Counter
from http import HTTPStatus
from urllib.parse import urlsplit

from dala.gpu.presenters.http import PageServer, ServerLimits, text_response
from dala.gpu.presenters.requests import RequestRefused, parse_request

#: Intact requests that are mutated.
SEEDS = (
    b"GET /secret/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /secret/frame?after=12&x=%41 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nConnection: close\r\n\r\n",
    b"HEAD http://localhost:8/secret/alive HTTP/1.0\r\nConnection: keep-alive\r\nX-A: b\r\n\r\n",
    b"POST /secret/ HTTP/1.1\nHost: [::1]\nContent-Length: 3\n\nabc",
    b"GET /secret/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET /secret/ HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\n\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)
#: Pieces that are inserted.
PIECES = (
    *(b"\r", b"\n", b"\r\n", b"\r\n\r\n", b" ", b"\t", b":", b"\0", b"\xff", b"%", b"%00", b"%zz"),
    *(b"//", b"http://", b"http://[", b"[", b"]", b"?", b"#", b"&", b"=", b";", b"-1", b".."),
    *(b"HTTP/1.1", b"HTTP/9.9", b"Host:", b"Content-Length: 99999999999999999999"),
    *(b"\xe2\x82\xac", b"a" * 300, b"&a=b" * 20),
)


def mutated(dice: random.Random) -> bytes:
    """Return a seed with a few changes."""
    data = bytearray(dice.choice(SEEDS))
    for _ in range(dice.choice((0, 1, 1, 2, 4, 12))):
        at = dice.randrange(len(data) + 1)
        kind = dice.randrange(5)
        if kind == 0:
            data[at:at] = dice.choice(PIECES)
        elif kind == 1:
            del data[at : at + dice.randrange(1, 9)]
        elif kind == 2 and at < len(data):
            data[at] = dice.choice((data[at] ^ 1 << dice.randrange(8), dice.randrange(256)))
        elif kind == 3:
            data[at:at] = data[: dice.randrange(len(data) + 1)]
        else:
            data[at : at + 1] = dice.randbytes(dice.randrange(4))
    return bytes(data)


def one_input(data: bytes) -> str:
    """Parse one request; return its outcome. Raises where the parser fails in another way."""
    refused = None
    try:
        parse_request(data)
    except RequestRefused as error:
        refused = error
    if refused is None:
        return "parsed"
    assert 400 <= HTTPStatus(refused.status) < 600
    assert refused.reason.isascii()
    return f"refused {refused.status}"


def parse_many(count: int, seed: int) -> Counter[str]:
    """Parse mutated requests; return the outcomes."""
    dice = random.Random(seed)
    return Counter(one_input(mutated(dice).split(b"\r\n\r\n")[0]) for _ in range(count))


def serve_many(count: int, seed: int) -> Counter[str]:
    """Send mutated requests to a server; return the first lines of its responses."""
    dice, outcomes, raised = random.Random(seed), Counter[str](), []
    hook, threading.excepthook = threading.excepthook, raised.append
    limits = ServerLimits(request_seconds=5.0, idle_seconds=5.0)
    server = PageServer(
        lambda path, query: text_response(200, f"{path} {sorted(query)}"),
        "/secret/",
        raised.append,
        limits,
    )
    try:
        at = urlsplit(server.address)
        for _ in range(count):
            data = mutated(dice)
            with socket.create_connection((at.hostname, at.port), timeout=60) as raw:
                answer = b""
                with contextlib.suppress(ConnectionError):
                    raw.sendall(data)
                    raw.shutdown(socket.SHUT_WR)
                    while part := raw.recv(65536):
                        answer += part
            assert not answer or answer.startswith(b"HTTP/1.1 "), answer
            outcomes[answer[9:12].decode() or "nothing"] += 1
    finally:
        server.close()
        threading.excepthook = hook
    assert not raised, raised
    assert server.connections == 0
    return outcomes


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    parsed, served = parse_many(args.count, args.seed), serve_many(args.count // 50, args.seed)
    sys.stdout.write(f"parsed {args.count}: {dict(parsed)}\n")
    sys.stdout.write(f"served {args.count // 50}: {dict(served)}\n")


if __name__ == "__main__":
    main()
