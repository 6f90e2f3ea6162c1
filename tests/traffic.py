"""What the driver of a cluster sends and hears."""

from collections import Counter

import numpy as np

from einsummable.runtime import wire


class Traffic:
    """Bytes by site and kind of frame, and the bytes that engines say they read of files."""

    def __init__(self, cluster, monkeypatch):
        self.sent, self.heard, self.read = Counter(), Counter(), Counter()
        mesh = cluster._engines.mesh
        send, on_frame = mesh.send, mesh.on_frame

        def sending(peer, kind, run=0, tag=0, payload=b"", **options):
            self.sent[peer, kind] += payload.nbytes if hasattr(payload, "nbytes") else len(payload)
            send(peer, kind, run, tag, payload, **options)

        def hearing(peer, kind, run, tag, payload):
            self.heard[peer, kind] += payload.nbytes
            if kind == wire.DONE and payload.nbytes == 8:
                self.read[peer] += int(payload.view(np.uint64)[0])
            on_frame(peer, kind, run, tag, payload)

        monkeypatch.setattr(mesh, "send", sending)
        monkeypatch.setattr(mesh, "on_frame", hearing)

    def clear(self):
        """Forget what there was."""
        for counter in (self.sent, self.heard, self.read):
            counter.clear()

    @property
    def data(self):
        """Bytes of arrays that the driver sent."""
        return sum(n for (_, kind), n in self.sent.items() if kind in (wire.STORE, wire.INPUT))

    @property
    def results(self):
        """Bytes of arrays that came to the driver."""
        return sum(n for (_, kind), n in self.heard.items() if kind == wire.RESULT)


def addresses(cluster):
    """Return where in the memory of each engine the blocks are that it keeps."""
    look = """
from einsummable.runtime import service
blocks = next(iter(service._services.values())).blocks
found = sorted(block.__array_interface__["data"][0] for block in blocks.values())
"""
    engines = cluster.client[:]
    engines.execute(look, block=True)
    return engines.pull("found", block=True)
