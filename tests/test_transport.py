import pickle
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import psutil
import pytest

from einsummable.errors import EngineError
from einsummable.runtime import transport
from einsummable.runtime.address import Address
from einsummable.runtime.handshake import HandshakeError, greet, introduce
from einsummable.runtime.transport import Mesh

KEY = b"k" * 32

#: A site in another process: it sends every frame back and ends when its first peer is gone.
ECHO = """
import pickle, sys, threading
from einsummable.runtime.transport import Mesh
done = threading.Event()
mesh = Mesh(1, b"k" * 32, lambda *frame: mesh.send(*frame), lambda peer, reason: done.set())
sys.stdout.buffer.write(pickle.dumps(mesh.address))
sys.stdout.close()
done.wait()
mesh.close()
"""


class Site:
    """A mesh that writes down what happens to it."""

    def __init__(self, number, key=KEY):
        self.frames, self.lost = [], []
        self.news = threading.Condition()
        self.mesh = Mesh(number, key, self.on_frame, self.on_lost)

    def on_frame(self, *frame):
        with self.news:
            self.frames.append(frame)
            self.news.notify_all()

    def on_lost(self, peer, reason):
        with self.news:
            self.lost.append((peer, reason))
            self.news.notify_all()

    def wait(self, condition):
        with self.news:
            assert self.news.wait_for(lambda: condition(self), 20)


@pytest.fixture
def sites():
    """Make sites; afterwards close them and see that nothing is left of them."""
    process = psutil.Process()
    threads, files = threading.active_count(), process.num_fds()
    made = []

    def make(number, key=KEY):
        made.append(Site(number, key))
        return made[-1]

    yield make
    for site in made:
        site.mesh.close()
        site.frames.clear()  # they may be in memory of the peer
    end = time.monotonic() + 5  # a reader tells of a loss just before it ends
    while threading.active_count() > threads and time.monotonic() < end:
        time.sleep(0.001)
    assert threading.active_count() == threads
    assert process.num_fds() == files


@pytest.fixture
def echo():
    started = []

    def start():
        process = subprocess.Popen([sys.executable, "-c", ECHO], stdout=subprocess.PIPE)
        started.append(process)
        with process.stdout as pipe:
            return process, pickle.load(pipe)

    yield start
    for process in started:
        process.kill()
        process.wait()


def routes(address):
    tcp = Address("", "", address.hosts, address.port)
    return [tcp, address] if address.path else [tcp]


@pytest.mark.parametrize("size", [0, 1, 100, 1 << 15, (1 << 15) + 1, 1 << 17, 10_000_000])
def test_a_payload_of_any_size_arrives_unchanged_by_every_route(sites, size):
    a, b = sites(0), sites(1)
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    for n, address in enumerate(routes(b.mesh.address), 1):
        a.mesh.dial(1, address)
        a.mesh.send(1, 7, 2**63, 2**64 - 1, data)
        b.wait(lambda s, n=n: len(s.frames) == n)
        *header, payload = b.frames[-1]
        assert header == [0, 7, 2**63, 2**64 - 1]
        assert payload.dtype == np.uint8
        near = size >= 1 << 17 and address.path
        assert payload.flags.writeable != bool(near)
        np.testing.assert_array_equal(payload, data)


def test_a_mesh_that_listens_everywhere_says_where(sites):
    a = sites(0)
    open_to_all = Mesh(1, KEY, lambda *frame: None, lambda peer, reason: None, bind="0.0.0.0")
    hosts = open_to_all.address.hosts
    assert hosts
    assert "0.0.0.0" not in hosts
    wall = "192.0.2.1"  # an address for documentation: nobody has it
    a.mesh.dial(1, Address("", "", (wall, hosts[0]), open_to_all.address.port), timeout=1)
    assert open_to_all.wait_for([0], 10) == ()
    open_to_all.close()


def test_arrays_travel_as_their_bytes(sites):
    a, b = sites(0), sites(1)
    a.mesh.dial(1, b.mesh.address)
    arrays = [
        np.arange(12.0).reshape(3, 4),
        np.arange(12.0).reshape(3, 4).T,
        np.float32(3).reshape(()),
        np.arange(6).astype(ml_dtypes.bfloat16),
        np.zeros((3, 0)),
        np.array([1j, 2]),
    ]
    for i, array in enumerate(arrays):
        a.mesh.send(1, 0, 0, i, array)
    b.wait(lambda s: len(s.frames) == len(arrays))
    for array, frame in zip(arrays, b.frames, strict=True):
        np.testing.assert_array_equal(frame[-1].view(array.dtype).reshape(array.shape), array)


def test_frames_of_one_peer_keep_their_order(sites):
    a, b, c = sites(0), sites(1), sites(2)
    a.mesh.dial(1, b.mesh.address)
    c.mesh.dial(1, b.mesh.address)
    sizes = [0, 5, 40_000, 3, 200_000, 1] * 300
    for tag, size in enumerate(sizes):
        for site in (a, c):
            site.mesh.send(1, 0, 0, tag, bytes([tag % 251]) * size)
    b.wait(lambda s: len(s.frames) == 2 * len(sizes))
    for peer in (0, 2):
        mine = [f for f in b.frames if f[0] == peer]
        assert [f[3] for f in mine] == list(range(len(sizes)))
        assert [len(f[4]) for f in mine] == sizes
        assert all((f[4] == f[3] % 251).all() for f in mine)


def test_what_a_full_socket_does_not_take_arrives_in_order_nevertheless(sites):
    a, b = sites(0), sites(1)
    a.mesh.dial(1, b.mesh.address)
    size, each, gone = 9_000, 150, []
    payloads = np.random.default_rng(0).integers(0, 256, (3 * each, size), np.uint8)
    read_on = threading.Event()
    b.mesh.on_frame = lambda *frame: (read_on.wait(20), b.on_frame(*frame))

    def send(thread):
        for n in range(thread * each, (thread + 1) * each):
            a.mesh.send(1, thread, 0, n, payloads[n], gone=lambda n=n: gone.append(n))

    threads = [threading.Thread(target=send, args=(thread,)) for thread in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()  # though the other end reads nothing
    assert len(gone) < len(payloads)
    read_on.set()
    b.wait(lambda site: len(site.frames) == len(payloads))
    for thread in range(3):
        mine = [(tag, payload) for _, kind, _, tag, payload in b.frames if kind == thread]
        assert [tag for tag, _ in mine] == list(range(thread * each, (thread + 1) * each))
        assert all((payload == payloads[tag]).all() for tag, payload in mine)
    a.mesh.close()  # after which all has been told
    assert sorted(gone) == list(range(len(payloads)))


def test_three_sites_meet_whoever_dials(sites):
    all_three = [sites(i) for i in range(3)]
    for i, site in enumerate(all_three):
        for j in range(i):
            site.mesh.dial(j, all_three[j].mesh.address)
    for i, site in enumerate(all_three):
        assert site.mesh.wait_for(range(3), 10) == ()
        assert site.mesh.peers == tuple(j for j in range(3) if j != i)
    for i, site in enumerate(all_three):
        for j in site.mesh.peers:
            site.mesh.send(j, 10 * i + j)
    for j, site in enumerate(all_three):
        site.wait(lambda s: len(s.frames) == 2)
        assert sorted(f[1] for f in site.frames) == [10 * i + j for i in range(3) if i != j]


def test_waiting_for_a_site_that_does_not_come_names_it(sites):
    a = sites(0)
    assert a.mesh.wait_for([0, 4, 2], 0.05) == (2, 4)


def test_another_process_answers(sites, echo):
    a = sites(0)
    _, address = echo()
    a.mesh.dial(1, address)
    payloads = [np.full(n, n % 256, np.uint8) for n in (0, 10, 100_000, 10_000_000)]
    for tag, payload in enumerate(payloads):
        a.mesh.send(1, 3, 4, tag, payload)
    a.wait(lambda s: len(s.frames) == len(payloads))
    for tag, (payload, frame) in enumerate(zip(payloads, a.frames, strict=True)):
        assert frame[:4] == (1, 3, 4, tag)
        np.testing.assert_array_equal(frame[4], payload)


def test_a_wrong_key_is_refused_on_both_sides(sites):
    a, b, other = sites(0), sites(1), sites(2, b"x" * 32)
    for address in routes(b.mesh.address):
        with pytest.raises(EngineError, match=r"site 2 cannot reach site 1(.|\n)*refused"):
            other.mesh.dial(1, address)
    assert b.mesh.peers == ()
    a.mesh.dial(1, b.mesh.address)
    assert b.mesh.wait_for([0], 10) == ()


def test_an_address_that_another_site_took_over_is_refused(sites):
    a, b = sites(0), sites(1)
    with pytest.raises(EngineError, match="site 0 cannot reach site 5"):
        a.mesh.dial(5, b.mesh.address)


def test_a_dead_address_is_an_error_that_lists_the_routes(sites):
    a, b = sites(0), sites(1)
    address = b.mesh.address
    b.mesh.close()
    with pytest.raises(EngineError, match=rf"127\.0\.0\.1:{address.port}: .*refused"):
        a.mesh.dial(1, address)


def test_silent_and_babbling_strangers_keep_nobody_out(sites, monkeypatch):
    monkeypatch.setattr(transport, "_HANDSHAKE_SECONDS", 0.3)
    a, b = sites(0), sites(1)
    target = (b.mesh.address.hosts[0], b.mesh.address.port)
    silent = [socket.create_connection(target) for _ in range(5)]
    babbling = socket.create_connection(target)
    babbling.sendall(b"GET / HTTP/1.1\r\n" * 50)
    a.mesh.dial(1, b.mesh.address)
    for sock in (*silent, babbling):
        sock.settimeout(10)
        try:
            while sock.recv(1000):
                pass
        except ConnectionResetError:
            pass
        sock.close()
    assert b.mesh.peers == (0,)


def test_a_listener_that_is_no_mesh_is_refused_in_time():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n and more words")
        with pytest.raises(HandshakeError, match="another protocol"):
            introduce(ours, 0, 1, KEY, 5)


def test_the_handshake_has_one_deadline_even_if_bytes_drip():
    ours, theirs = socket.socketpair()
    stop, dripped = threading.Event(), []

    def drip():
        while not stop.wait(0.02):
            theirs.sendall(b"x")
            dripped.append(1)

    thread = threading.Thread(target=drip)
    with ours, theirs:
        thread.start()
        with pytest.raises(HandshakeError, match="did not answer"):
            greet(ours, 0, KEY, 0.2)
        assert len(dripped) < 112  # the whole answer
        stop.set()
        thread.join()


def test_a_killed_peer_is_reported_once_and_sending_to_it_is_an_error(sites, echo):
    a = sites(0)
    process, address = echo()
    a.mesh.dial(1, address)
    process.kill()
    a.wait(lambda s: s.lost)
    assert [peer for peer, _ in a.lost] == [1]
    assert a.mesh.peers == ()
    with pytest.raises(EngineError, match="site 0 has no connection to site 1"):
        a.mesh.send(1, 0)


def test_a_peer_killed_while_much_is_under_way_is_reported(sites, echo):
    a = sites(0)
    process, address = echo()
    a.mesh.dial(1, address)
    big = np.zeros(50_000_000, np.uint8)
    for _ in range(20):
        a.mesh.send(1, 0, 0, 0, big)
    process.kill()
    a.wait(lambda s: s.lost)
    assert [peer for peer, _ in a.lost] == [1]


def test_either_end_may_start_again(sites):
    a, b = sites(0), sites(1)
    a.mesh.dial(1, b.mesh.address)
    b.mesh.close()
    a.wait(lambda s: s.lost == [(1, "closed by the other end")])
    again = sites(1)
    a.mesh.dial(1, again.mesh.address)
    again.mesh.wait_for([0], 10)
    again.mesh.send(0, 9)
    a.wait(lambda s: s.frames)
    a.mesh.close()
    again.wait(lambda s: s.lost)
    third = sites(0)
    third.mesh.dial(1, again.mesh.address)
    third.mesh.send(1, 5)
    again.wait(lambda s: s.frames)
    assert again.frames[0][:2] == (0, 5)


def test_a_second_connection_replaces_the_first(sites):
    a, b = sites(0), sites(1)
    a.mesh.dial(1, b.mesh.address)
    b.mesh.wait_for([0], 10)
    double = sites(0)
    double.mesh.dial(1, b.mesh.address)
    b.wait(lambda s: s.lost == [(0, "replaced by a new connection")])
    a.wait(lambda s: s.lost)
    double.mesh.send(1, 4)
    b.wait(lambda s: s.frames)
    assert b.mesh.peers == (0,)


def test_dropping_a_peer_tells_both_ends(sites):
    a, b = sites(0), sites(1)
    a.mesh.dial(1, b.mesh.address)
    b.mesh.wait_for([0], 10)
    a.mesh.drop(1, "hung")
    a.wait(lambda s: s.lost == [(1, "hung")])
    b.wait(lambda s: s.lost == [(0, "closed by the other end")])


def test_closing_sends_what_is_queued(sites):
    a, b = sites(0), sites(1)
    a.mesh.dial(1, b.mesh.address)
    for tag in range(2000):
        a.mesh.send(1, 0, 0, tag, b"x" * 1000)
    a.mesh.close()
    b.wait(lambda s: s.lost)
    assert [f[3] for f in b.frames] == list(range(2000))


def test_closing_does_not_wait_for_a_peer_that_reads_nothing(sites, monkeypatch):
    monkeypatch.setattr(transport, "_LINGER_SECONDS", 0.1)
    stop = threading.Event()
    a, b = sites(0), sites(1)
    b.mesh.on_frame = lambda *frame: stop.wait(20)
    a.mesh.dial(1, b.mesh.address)
    for _ in range(4):
        a.mesh.send(1, 0, 0, 0, bytes(10_000_000))
    a.mesh.close()
    assert a.lost == []
    stop.set()


def test_an_idle_mesh_keeps_no_payload_alive(sites):
    a, b = sites(0), sites(1)
    a.mesh.dial(1, b.mesh.address)
    sent = np.zeros(1_000_000, np.uint8)
    references = sys.getrefcount(sent)
    a.mesh.send(1, 0, 0, 0, sent)
    a.mesh.send(1, 0)
    b.wait(lambda s: len(s.frames) == 2)
    end = time.monotonic() + 10
    while sys.getrefcount(sent) != references and time.monotonic() < end:
        time.sleep(0.001)
    assert sys.getrefcount(sent) == references


@pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's")
def test_the_unix_socket_is_no_file(sites):
    a = sites(0)
    table = Path("/proc/net/unix")
    assert f"@{a.mesh.address.path}" in table.read_text()
    assert not Path(a.mesh.address.path).exists()
    a.mesh.close()
    assert f"@{a.mesh.address.path}" not in table.read_text()
