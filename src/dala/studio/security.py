"""Access to a studio: a secret, then a cookie; Host and Origin; and the origins of scripts."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

_COOKIE: Final = "dala_studio"
#: Names of this machine that are not addresses.
_LOCAL: Final = ("localhost",)
#: The longest header that is looked at.
_LONGEST: Final = 4096

#: Response headers, as ASGI has them.
RawHeaders: TypeAlias = list[tuple[bytes, bytes]]


class StudioGuard:
    """Checks requests before anything else sees them.

    Args:
        secret: the secret of the first visit; "" where the outer application checks visitors.
        hosts: names and addresses that ``Host`` may have, without a port. IP addresses of this
            machine and "localhost" are always allowed: a foreign page cannot have them as its host.
        secure: whether the connection is TLS, so that the cookie is.

    >>> guard = StudioGuard("s3cret")
    >>> guard.knows("s3cret"), guard.knows("guess")
    (True, False)
    """

    def __init__(
        self, secret: str | None = None, hosts: Iterable[str] = (), secure: bool = False
    ) -> None:
        self.secret = secrets.token_urlsafe(24) if secret is None else secret
        self.hosts = frozenset(
            name.lower() for name in (*_LOCAL, *hosts, *([] if hosts else _own_names()))
        )
        self.secure = secure
        # The cookie is not the secret, so that an address that leaks later tells nothing of it.
        key = secrets.token_bytes(32)
        self._cookie = hmac.new(key, self.secret.encode(), hashlib.sha256).hexdigest()

    @property
    def open(self) -> bool:
        """Whether no secret is asked for."""
        return not self.secret

    def knows(self, secret: str) -> bool:
        """Return whether a secret is the right one, in constant time."""
        return not self.open and hmac.compare_digest(secret.encode(), self.secret.encode())

    def has_secret(self, scope: Scope) -> bool:
        """Return whether the address of a request has the secret."""
        query = scope.get("query_string", b"")[:_LONGEST]
        found = parse_qs(query.decode("latin-1")).get("secret", [])
        return bool(found) and self.knows(found[0])

    def has_cookie(self, scope: Scope) -> bool:
        """Return whether a request has the cookie."""
        if self.open:
            return True
        for text in Headers(scope=scope).getlist("cookie"):
            jar: SimpleCookie = SimpleCookie()
            try:
                jar.load(text[:_LONGEST])
            except CookieError:
                continue
            found = jar.get(cookie_name(scope))
            if found is not None and hmac.compare_digest(
                found.value.encode(errors="replace"), self._cookie.encode()
            ):
                return True
        return False

    def cookie(self, scope: Scope) -> str:
        """Return the header that sets the cookie."""
        root = scope.get("root_path", "") or ""
        path = root.rstrip("/") + "/"
        secure = "; Secure" if self.secure or scope.get("scheme") in ("https", "wss") else ""
        return (
            f"{cookie_name(scope)}={self._cookie}; HttpOnly; SameSite=Strict; Path={path}{secure}"
        )

    def host_allowed(self, scope: Scope) -> bool:
        """Return whether ``Host`` is a name of this server: others are names that lead here."""
        host = Headers(scope=scope).get("host", "")
        if not host or len(host) > 300:
            return False
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        name = name.lower()
        if name in self.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def origin_allowed(self, scope: Scope) -> bool:
        """Return whether ``Origin`` is this server's own."""
        headers = Headers(scope=scope)
        origin, host = headers.get("origin", ""), headers.get("host", "")
        scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
        schemes = (scheme,) if not self.secure else (scheme, "https")
        return bool(host) and origin.lower() in [f"{s}://{host}".lower() for s in schemes]

    def headers(self, scope: Scope) -> RawHeaders:
        """Return the headers of every answer."""
        host = Headers(scope=scope).get("host", "")
        safe = host if host and all(c.isalnum() or c in ".-:[]" for c in host) else ""
        sockets = f" ws://{safe} wss://{safe}" if safe else ""
        policy = "; ".join((
            "default-src 'none'",
            "script-src 'self' 'wasm-unsafe-eval'",
            "style-src 'self'",
            "img-src 'self' blob: data:",
            "media-src 'self' blob:",
            "font-src 'self'",
            "worker-src 'self'",
            "manifest-src 'self'",
            f"connect-src 'self'{sockets}",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'self'",
        ))  # fmt: skip
        return [
            (b"content-security-policy", policy.encode("latin-1")),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cross-origin-resource-policy", b"same-origin"),
        ]


def cookie_name(scope: Scope) -> str:
    """Return the name of the cookie, with the port of the address that the browser asked for.

    Browsers send the cookies of all ports of a host: by one name, studios would replace each
    other's.
    """
    host = Headers(scope=scope).get("host", "")
    port = host.rpartition(":")[2]
    if not port.isdecimal() or len(port) > 5:
        port = "443" if scope.get("scheme") in ("https", "wss") else "80"
    return f"{_COOKIE}_{port}"


def _own_names() -> tuple[str, ...]:
    """Return the names of this machine."""
    try:
        name = socket.gethostname().lower()
    except OSError:
        return ()
    return (name, f"{name}.local") if name else ()
