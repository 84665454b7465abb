"""nginx as a storage account: its configuration, its certificate and the blob list it answers with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from email.utils import formatdate
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

ACCOUNT: Final = "benchaccount"
CONTAINER: Final = "data"

# Blob clients ask with x-ms-range, which the static handler does not know; rewriting the header keeps
# sendfile and If-Match in nginx itself, where a proxy in front of it would cost a copy.
_CONFIG: Final = """
load_module {modules}/ngx_http_headers_more_filter_module.so;
{user}
daemon off;
worker_processes {workers};
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    default_type application/octet-stream;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 10000000;
    output_buffers 4 256k;
    server {{
        listen {address}:{port}{tls};
        root {root};
        more_set_headers "x-ms-version: 2021-12-02" "x-ms-request-id: bench" "x-ms-blob-type: BlockBlob";
        location = /{account}/{container} {{
            default_type application/xml;
            alias {folder}/list.xml;
        }}
        location / {{
            if ($http_x_ms_range) {{ more_set_input_headers "Range: $http_x_ms_range"; }}
        }}
    }}
}}
"""

_TLS: Final = """ ssl;
        ssl_protocols TLSv1.3;
        ssl_certificate {folder}/cert.pem;
        ssl_certificate_key {folder}/key.pem"""

_BLOB: Final = (
    "<Blob><Name>{name}</Name><Properties><Last-Modified>{modified}</Last-Modified><Etag>{etag}</Etag>"
    "<Content-Length>{size}</Content-Length><Content-Type>application/octet-stream</Content-Type>"
    "<BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier><LeaseStatus>unlocked</LeaseStatus>"
    "<LeaseState>available</LeaseState></Properties></Blob>"
)


class AccountUnavailableError(RuntimeError):
    """nginx is not installed, lacks a module or did not start."""


def container_folder(root: Path) -> Path:
    """Where under `root` the container's blobs lie."""
    return root / ACCOUNT / CONTAINER


def container_url(address: str, port: int, *, tls: bool) -> str:
    """The URL of the container at an address."""
    return f"http{'s' if tls else ''}://{address}:{port}/{ACCOUNT}/{CONTAINER}"


def configure(folder: Path, root: Path, *, address: str, port: int, tls: bool) -> list[str]:
    """Write nginx's configuration and the blob list below `folder`; the command that starts it."""
    binary = _nginx()
    folder.mkdir(parents=True, exist_ok=True)
    if tls:
        _self_sign(folder, address)
    text = _CONFIG.format(
        modules=_modules_folder(binary),
        user="user root;" if os.geteuid() == 0 else "",
        workers=os.cpu_count() or 1,
        folder=folder,
        root=root,
        address=address,
        port=port,
        tls=_TLS.format(folder=folder) if tls else "",
        account=ACCOUNT,
        container=CONTAINER,
    )
    (folder / "nginx.conf").write_text(text)
    (folder / "list.xml").write_text(_blob_list(container_folder(root)))
    return [binary, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]


def _nginx() -> str:
    binary = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if binary is None:
        raise AccountUnavailableError(
            "nginx is not installed: apt-get install nginx-light libnginx-mod-http-headers-more-filter"
        )
    return binary


def _modules_folder(binary: str) -> str:
    said = subprocess.run([binary, "-V"], capture_output=True, text=True, check=True).stderr
    found = re.search(r"--modules-path=(\S+)", said)
    folder = found.group(1) if found else "/usr/lib/nginx/modules"
    if not Path(folder, "ngx_http_headers_more_filter_module.so").exists():
        raise AccountUnavailableError(
            "nginx lacks its headers-more module: apt-get install libnginx-mod-http-headers-more-filter"
        )
    return folder


def _self_sign(folder: Path, address: str) -> None:
    names = f"subjectAltName=IP:{address},DNS:localhost"
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    out = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    command = ["openssl", "req", "-x509", *curve, "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-addext", names, *out], check=True, capture_output=True)


def _blob_list(container: Path) -> str:
    blobs = "".join(_blob(path, container) for path in sorted(container.rglob("*")) if path.is_file())
    return (
        f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="{CONTAINER}">'
        f"<Blobs>{blobs}</Blobs><NextMarker/></EnumerationResults>"
    )


def _blob(path: Path, container: Path) -> str:
    stat = path.stat()
    # The same ETag that nginx's static handler sends, so that If-Match holds.
    etag = f'"{int(stat.st_mtime):x}-{stat.st_size:x}"'
    modified = formatdate(int(stat.st_mtime), usegmt=True)
    name = escape(str(path.relative_to(container)))
    return _BLOB.format(name=name, modified=modified, etag=escape(etag), size=stat.st_size)
