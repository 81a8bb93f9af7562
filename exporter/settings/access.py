"""How addresses are reached: credentials, headers, TLS."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, model_validator

from exporter.settings.parts import ContradictionError, ReadableFile, Section, Text

_OWN_HEADERS = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "upgrade"}
)


def _user_name(value: str) -> str:
    if not value or ":" in value or not value.isprintable():
        raise ValueError("a user name without colon")
    return value


def header_name(value: str) -> str:
    """The name of a header that may be added. Raises ValueError."""
    if re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", value) is None:
        raise ValueError("the name of a header, such as X-Scope-OrgID")
    if value.lower() in _OWN_HEADERS:
        raise ValueError("a header that is not the connection's own")
    return value


def _header_value(value: str) -> str:
    if not value.strip() or any(not 32 <= ord(character) < 127 for character in value):
        raise ValueError("one line of printable ASCII")
    return value


class KubernetesAccess(Section):
    """How the API server of a cluster is reached: with the service account of the exporter's own
    pod, or by a kubeconfig."""

    kubeconfig_file: ReadableFile | None = None
    """kubeconfig; without one, the service account of the pod that the exporter runs in."""
    context: Text | None = None
    """Context of the kubeconfig, where its current one is not wanted."""

    @model_validator(mode="after")
    def _context(self) -> Self:
        if self.context is not None and self.kubeconfig_file is None:
            raise ContradictionError("context and no kubeconfig_file", "kubeconfig_file too")
        return self


class BasicAuth(Section):
    """HTTP basic authentication."""

    username: Annotated[str, AfterValidator(_user_name)]
    """User name."""
    password_file: ReadableFile
    """File that holds the password; read again when it changes."""


class Auth(Section):
    """Credentials that are sent to the targets of a group, and to no other address."""

    bearer_token_file: ReadableFile | None = None
    """File that holds the bearer token; read again when it changes."""
    basic: BasicAuth | None = None
    """User name and password instead of a token."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.bearer_token_file is not None and self.basic is not None:
            raise ContradictionError("bearer_token_file and basic", "one of them")
        return self


class Tls(Section):
    """TLS towards the targets of a group."""

    ca_file: ReadableFile | None = None
    """Certificates to trust instead of the system's."""
    cert_file: ReadableFile | None = None
    """Client certificate."""
    key_file: ReadableFile | None = None
    """Its key."""
    server_name: Text | None = None
    """Name that the target's certificate must have, if it is not the address's host."""
    insecure_skip_verify: bool = False
    """Whether any certificate is accepted."""

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise ContradictionError("only one of cert_file and key_file", "both or none")
        return self


class Header(Section):
    """A header that is sent to the targets of a group, and to no other address."""

    value: Annotated[str, AfterValidator(_header_value)] | None = None
    """Value of the header, where it is no secret."""
    value_file: ReadableFile | None = None
    """File that holds the value; read again when it changes."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.value is None) == (self.value_file is None):
            found = "neither value nor value_file" if self.value is None else "value and value_file"
            raise ContradictionError(found, "one of them")
        return self
