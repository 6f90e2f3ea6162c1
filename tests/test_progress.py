"""Long computations are watched and stopped."""

import threading

import pytest
from networks import attention

from einsummable import progress
from einsummable.choose import choose


def test_planning_says_what_it_places():
    said = []
    with progress.watched(said.append):
        choose(attention(), 4)
    assert "placing eindecomp, p = 4" in said
    assert said.count("") > 20


def test_a_watcher_stops_planning_where_it_is():
    left = [40]

    def watch(_):
        left[0] -= 1
        if left[0] == 0:
            raise progress.Stopped

    with pytest.raises(progress.Stopped), progress.watched(watch):
        choose(attention(), 4)
    assert left == [0]
    assert choose(attention(), 4).plan.p == 4  # nobody watches any more


def test_other_threads_are_not_watched():
    said = []
    with progress.watched(said.append):
        thread = threading.Thread(target=progress.step, args=("elsewhere",))
        thread.start()
        thread.join()
    assert said == []
