"""Two ends of a fresh connection prove to each other that they hold the cluster's key.

Contract: ``greet`` (the end that accepts) and ``introduce`` (the end that dials) exchange random
challenges and their HMAC-SHA-256 under the shared key, both ways, and bind the proof to the numbers of
the two sites, so that neither a stranger nor a site that took over an old address is let in.  Both
raise `HandshakeError` on a wrong proof and on silence: the whole exchange has one deadline.  Nothing a
stranger sends is interpreted before its proof is checked.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import struct
import time

_MAGIC = b"einsumm1"
_NONCE = 32
_PROOF = 32
_SITES = struct.Struct("<qq")


class HandshakeError(Exception):
    """The other end is silent, speaks another protocol or does not know the key."""


def greet(sock: socket.socket, site: int, key: bytes, timeout: float) -> int:
    """Challenge whoever dialled `site` and return the number of the site that it proved to be."""
    deadline = time.monotonic() + timeout
    mine = secrets.token_bytes(_NONCE)
    _write(sock, _MAGIC + mine, deadline)
    reply = _read(sock, _NONCE + _SITES.size + _PROOF, deadline)
    theirs, sites, proof = reply[:_NONCE], reply[_NONCE:-_PROOF], reply[-_PROOF:]
    if not hmac.compare_digest(proof, _prove(key, b"dial", mine, theirs, sites)):
        raise HandshakeError("the other end does not know the key")
    peer, meant = _SITES.unpack(sites)
    if meant != site:
        raise HandshakeError(f"the other end asked for site {meant}, this is site {site}")
    _write(sock, _prove(key, b"accept", mine, theirs, sites), deadline)
    sock.settimeout(None)
    return peer


def introduce(sock: socket.socket, site: int, peer: int, key: bytes, timeout: float) -> None:
    """Prove to the listener at the other end to be `site`, and make it prove to be `peer`."""
    deadline = time.monotonic() + timeout
    hello = _read(sock, len(_MAGIC) + _NONCE, deadline)
    magic, theirs = hello[: len(_MAGIC)], hello[len(_MAGIC) :]
    if magic != _MAGIC:
        raise HandshakeError("the other end speaks another protocol")
    mine, sites = secrets.token_bytes(_NONCE), _SITES.pack(site, peer)
    _write(sock, mine + sites + _prove(key, b"dial", theirs, mine, sites), deadline)
    proof = _read(sock, _PROOF, deadline)
    if not hmac.compare_digest(proof, _prove(key, b"accept", theirs, mine, sites)):
        raise HandshakeError("the other end does not know the key")
    sock.settimeout(None)


def _prove(key: bytes, role: bytes, accepted: bytes, dialled: bytes, sites: bytes) -> bytes:
    # The role keeps a proof from being sent back to its author.
    return hmac.digest(key, role + accepted + dialled + sites, "sha256")


def _read(sock: socket.socket, nbytes: int, deadline: float) -> bytes:
    data = b""
    while len(data) < nbytes:
        sock.settimeout(_left(deadline))
        try:
            piece = sock.recv(nbytes - len(data))
        except OSError as error:
            raise HandshakeError(f"the other end did not answer: {error}") from error
        if not piece:
            raise HandshakeError("the other end refused")
        data += piece
    return data


def _write(sock: socket.socket, data: bytes, deadline: float) -> None:
    sock.settimeout(_left(deadline))
    try:
        sock.sendall(data)
    except OSError as error:
        raise HandshakeError(f"the other end does not listen: {error}") from error


def _left(deadline: float) -> float:
    # A timeout of 0 would mean "do not block", and a socket takes no negative one.
    return max(deadline - time.monotonic(), 1e-3)
