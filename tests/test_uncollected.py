"""The collector of cycles rests, and is as it was afterwards."""

import gc

import pytest

from einsummable.taskgraph.uncollected import uncollected


@uncollected()
def stopped():
    """Fail while the collector rests."""
    raise KeyError("at rest" if not gc.isenabled() else "at work")


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_as_it_was_even_after_an_error(on):
    was_on = gc.isenabled()
    (gc.enable if on else gc.disable)()
    try:
        with pytest.raises(KeyError, match="at rest"):
            stopped()
        assert gc.isenabled() is on
    finally:
        (gc.enable if was_on else gc.disable)()
