"""The HTTP service: parse the request, run one flow, format the answer."""

from sendonce.entrypoints.http.app import create_app
from sendonce.entrypoints.http.server import server_config

__all__ = ["create_app", "server_config"]
