"""What a hardened process cannot do, asked of the operating system; TLS and headers by talking."""

import asyncio
import os
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sfumato.core.errors import InvalidParameter
from sfumato.service.hardening import checked_origins, environment_secret, tls_context
from sfumato.service.security_headers import guarded_app
from tests.service.certificates import Authority

HARDENED = """
import ctypes, os, pathlib, resource
from sfumato.service.hardening import harden_process
before = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
harden_process()
after = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
limits = pathlib.Path("/proc/self/limits").read_text()
core = next(line.split()[4:6] for line in limits.splitlines() if line.startswith("Max core"))
pathlib.Path("made").touch()
try:
    resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    raised = os.getuid() != 0
except ValueError:
    raised = False
print(before, after, core, oct(pathlib.Path("made").stat().st_mode & 0o777), raised)
"""


def test_a_hardened_process_leaves_no_core_and_no_file_for_others(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", HARDENED], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert run.stdout.split("\n")[0] == "1 0 ['0', '0'] 0o600 False"


def test_a_secret_of_the_environment_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_EXAMPLE", "s3cret")
    assert environment_secret("SFUMATO_EXAMPLE") == "s3cret"
    shown = subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
    assert "s3cret" not in shown and environment_secret("SFUMATO_EXAMPLE") is None


# TLS ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def shaken(server: ssl.SSLContext, client: ssl.SSLContext) -> str | None:
    """The version that two sides agree on, without a network."""
    one, two = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        server.wrap_bio(one, two, server_side=True),
        client.wrap_bio(two, one, server_hostname="localhost"),
    ]
    waiting = list(ends)
    for _ in range(10):
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                continue
    if ends[0] in waiting or ends[1] in waiting:
        return None
    return ends[0].version()


def client_of(authority: Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    # The oldest that this side would take, so that the refusal is the server's.
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


def test_a_client_of_today_is_served_and_one_of_yesterday_is_not(authority: Authority) -> None:
    server = tls_context(*authority.issued("localhost"))
    assert shaken(server, client_of(authority)) == "TLSv1.3"
    older = client_of(authority)
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    assert shaken(server, older) == "TLSv1.2"
    assert server.minimum_version == ssl.TLSVersion.TLSv1_2
    kept = client_of(authority)
    kept.maximum_version = ssl.TLSVersion.TLSv1_2
    kept.set_ciphers("AES256-GCM-SHA384")  # no forward secrecy
    with pytest.raises(ssl.SSLError, match=r"(?i)no.shared.cipher"):
        shaken(server, kept)


def test_who_must_show_a_certificate_and_has_none_is_not_served(authority: Authority) -> None:
    server = tls_context(*authority.issued("localhost"), client_ca=authority.certificate)
    bare = client_of(authority)
    bare.maximum_version = ssl.TLSVersion.TLSv1_2  # refused within the handshake there
    with pytest.raises(ssl.SSLError, match=r"(?i)did.not.return.a.certificate"):
        shaken(server, bare)
    known = client_of(authority)
    known.load_cert_chain(*authority.issued("asker"))
    assert shaken(server, known) == "TLSv1.3"


def test_the_password_of_a_key_comes_from_a_file(authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.issued("localhost", password=b"pass word")
    file = tmp_path / "password"
    file.write_text("pass word\nanother line\n")
    file.chmod(0o600)
    assert shaken(tls_context(certificate, key, file), client_of(authority)) == "TLSv1.3"
    for wrong in (None, authority.certificate):
        with pytest.raises(InvalidParameter) as refused:
            tls_context(certificate, key, wrong)
        assert "pass word" not in str(refused.value)
    file.chmod(0o604)
    with pytest.raises(InvalidParameter, match="chmod 600"):
        tls_context(certificate, key, file)


def test_a_private_key_that_everybody_can_read_is_refused(authority: Authority) -> None:
    certificate, key = authority.issued("open")
    os.chmod(key, 0o644)
    with pytest.raises(InvalidParameter, match="not be readable by everybody"):
        tls_context(certificate, key)


# Browsers -----------------------------------------------------------------------------------------


async def _page(request: Request) -> Response:
    return PlainTextResponse("page", headers={"X-Frame-Options": "ALLOWALL"})


def asked(
    path: str, *origins: str, method: str = "GET", base: str = "http://x", **headers: str
) -> httpx.Headers:
    """The headers of a reply."""
    app = guarded_app(Starlette(routes=[Route("/", _page)]), origins)

    async def ask() -> httpx.Headers:
        way = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=way, base_url=base) as client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return (await client.request(method, path, headers=named)).headers

    return asyncio.run(ask())


def test_every_reply_tells_a_browser_to_be_careful() -> None:
    for path in ("/", "/nowhere"):
        headers = asked(path)
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "*" not in policy
        assert headers.get_list("x-frame-options") == ["DENY"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "strict-transport-security" not in headers
    assert "strict-transport-security" in asked("/", base="https://x")


def test_pages_of_other_sites_may_not_ask_unless_they_are_named() -> None:
    site, wanted = "https://board.example", "POST"
    for named in ((), (site,)):
        for method in ("GET", "OPTIONS"):
            headers = asked("/", *named, method=method, origin="https://other.example")
            assert "access-control-allow-origin" not in headers
    headers = asked("/", site, method="OPTIONS", origin=site, access_control_request_method=wanted)
    assert headers["access-control-allow-origin"] == site
    assert "access-control-allow-credentials" not in headers


@pytest.mark.parametrize("origin", ["*", "", "null", "board.example", "https://*.x", "http://a/b"])
def test_an_origin_that_means_more_than_one_site_is_refused(origin: str) -> None:
    with pytest.raises(InvalidParameter, match=r"^origin must"):
        checked_origins([origin])
