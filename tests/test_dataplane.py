"""The data plane as a property: whatever is sent arrives as it was, whoever starts again in between."""

from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from test_transport import Site

from einsummable.runtime import link, pool
from einsummable.runtime.address import Address

#: Around every size at which a frame takes another way, and one that the pool has no room for.
EDGES = [0, link._SMALL, link._LARGE, link._BATCH, link._FAR, 3 << 20]
POOL = 2 << 20

sizes = st.builds(lambda edge, more: max(edge + more, 0), st.sampled_from(EDGES), st.integers(-2, 9))
#: What is sent: by whom, how many bytes, and whether as every other column of an array.
messages = st.lists(st.tuples(st.integers(0, 1), sizes, st.booleans()), min_size=1, max_size=8)
#: … then somebody starts again, or both: who dials then, and on which way.
rounds = st.tuples(messages, st.sets(st.integers(0, 1), min_size=1), st.integers(0, 1), st.booleans())


def block(number, size, spread):
    """Return that many bytes, of which the position and `number` tell each."""
    x = (np.arange(size, dtype=np.uint32) * 2654435761 >> 13).astype(np.uint8) + np.uint8(number)
    return np.repeat(x, 2)[::2] if spread else x


def meet(ends, dials, by_tcp):
    one, other = ends[dials], ends[1 - dials]
    address = other.mesh.address
    one.mesh.dial(1 - dials, Address("", "", address.hosts, address.port) if by_tcp else address)
    assert not other.mesh.wait_for([dials], 20)


@settings(deadline=None, max_examples=30)
@given(st.lists(rounds, min_size=1, max_size=4))
def test_what_is_sent_arrives_whoever_starts_again(plays):
    with patch.object(pool, "_MOST", POOL):
        ends, kept = [Site(0), Site(1)], []
        try:
            for messages, again, dials, by_tcp in plays:
                meet(ends, dials, by_tcp)
                for tag, (sender, size, spread) in enumerate(messages):
                    ends[sender].mesh.send(1 - sender, 3, 5, tag, block(tag, size, spread))
                for receiver in (0, 1):
                    mine = [(t, n) for t, (sender, n, _) in enumerate(messages) if sender != receiver]
                    ends[receiver].wait(lambda site, mine=mine: len(site.frames) == len(mine))
                    came = ends[receiver].frames
                    assert [(p, k, r, t, x.nbytes) for p, k, r, t, x in came] == [
                        (1 - receiver, 3, 5, t, n) for t, n in mine
                    ]
                    kept += [(1 - receiver, t, n, x) for (t, n), (*_, x) in zip(mine, came, strict=True)]
                    came.clear()
                for number in again:
                    ends[number].mesh.close()
                    ends[number] = Site(number)
                for number in {0, 1} - again:
                    ends[number].wait(lambda site: bool(site.lost))
                    ends[number].lost.clear()
                # What was lent stays if the lender starts again; it may take back what its peer forgot.
                kept = [k for k in kept if k[0] in again or k[-1].flags.writeable]
                assert all((x == block(t, n, False)).all() for _, t, n, x in kept)
        finally:
            for end in ends:
                end.mesh.close()
