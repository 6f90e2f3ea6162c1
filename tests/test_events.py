"""Events and records: one time scale, moves told once both ends know, nothing told twice."""

import pickle

import pytest
from test_engine import matmul

from einsummable.runtime.events import (
    RUNNING,
    EventReader,
    MoveEnded,
    Progress,
    RunEnded,
    RunRecord,
    RunStarted,
    SiteLog,
    TaskEnded,
    recorded,
)


def logs():
    """Return logs of two sites whose clocks differ by 900 s; the run began at 1000 s of the epoch."""
    here, there = SiteLog(0, offset=990.0), SiteLog(1, offset=90.0)
    there.ran += [(3, 910.5, 911.0), (5, 911.0, 913.0)]
    there.sent += [(6, 913.0)]
    here.ran += [(0, 10.0, 10.25), (7, 13.75, 14.0)]
    here.received += [(6, 13.5)]
    return here, there


def test_times_of_all_sites_are_on_one_scale():
    record = RunRecord(matmul(), logs(), began=1000.0, wall=4.5)
    assert record.events == (
        RunStarted(0.0, 2, 8),
        TaskEnded(0, 0, 0.0, 0.25),
        TaskEnded(3, 1, 0.5, 1.0),
        TaskEnded(5, 1, 1.0, 3.0),
        MoveEnded(6, 1, 0, 3.0, 3.5, 128),
        TaskEnded(7, 0, 3.75, 4.0),
        RunEnded(4.5),
    )
    assert record.busy(1) == pytest.approx(2.5)
    assert [e.task for e in record.tasks] == [0, 3, 5, 7]
    assert [e.task for e in record.moves] == [6]


def test_a_reader_tells_everything_once():
    here, there = SiteLog(0, offset=0.0), SiteLog(1, offset=0.0)
    reader = EventReader(matmul(), [here, there], began=0.0)
    assert list(reader.poll()) == []
    here.received.append((6, 2.0))
    there.ran.append((5, 0.0, 1.0))
    assert list(reader.poll()) == [TaskEnded(5, 1, 0.0, 1.0)]  # the other end of the move is not known yet
    there.sent.append((6, 1.0))
    assert list(reader.poll()) == [MoveEnded(6, 1, 0, 1.0, 2.0, 128)]
    assert list(reader.poll()) == []


def test_what_an_observer_heard_is_the_record():
    record = RunRecord(matmul(), logs(), began=1000.0, wall=4.5)
    heard = recorded(matmul(), record.events)
    assert heard.events == record.events
    assert heard.wall == record.wall
    before = recorded(matmul(), [*record.events[:3], Progress(1.25, (3, -1))])
    assert (before.wall, before.error, len(before.tasks)) == (1.25, RUNNING, 2)
    assert before.events == record.events[:3]


def test_a_record_reads_as_text_and_travels():
    record = RunRecord(matmul(), logs(), began=1000.0, wall=4.0, error="EngineError: no more")
    assert str(record).splitlines() == [
        "run of 4000.0 ms on 2 sites, 4 of 7 tasks, 128 bytes moved",
        "site 0: 2 tasks, busy 12%",
        "site 1: 2 tasks, busy 62%",
        "error: EngineError: no more",
    ]
    assert pickle.loads(pickle.dumps(record)) == record
