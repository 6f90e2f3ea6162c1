"""The explorer's web server: programs are opened, followed and asked; other pages are refused."""

import json
import threading
import time
import urllib.error
import urllib.request

import pytest

import einsummable as ein
from einsummable.models import gallery
from einsummable.widgets import page

TEXT = "input A[i=64, j=32] f32\ninput B[j=32, k=16] f32\nC[i,k] = A[i,j] * B[j,k]\n"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(page, "TICK", 0.05)
    with page.Server({"product": TEXT}, lambda text: ein.compile(text, sites=4).explore()) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)
        for key in list(server.sessions):
            server.end(key)


def post(server, path, data, **headers):
    request = urllib.request.Request(server.url + path, json.dumps(data).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def follow(server, key, until):
    """Return the state that the stream tells of, as soon as `until` holds for it, and the messages."""
    state, messages = {}, []
    end = time.monotonic() + 30
    with urllib.request.urlopen(f"{server.url}news/{key}", timeout=30) as stream:
        for line in stream:
            assert time.monotonic() < end
            if line.startswith(b"data: "):
                for news in json.loads(line[6:]):
                    state |= news.get("state", {})
                    messages += [news["message"]] if "message" in news else []
            if until(state, messages):
                return state, messages
    raise AssertionError("the stream ended")


def test_the_page_and_what_it_loads(server):
    with urllib.request.urlopen(server.url, timeout=10) as answer:
        text = answer.read().decode()
    assert json.dumps(TEXT) in text
    for name in ("page.js", "einsummable.css"):
        with urllib.request.urlopen(server.url + name, timeout=10) as answer:
            assert (page.STATIC / name).read_bytes() == answer.read()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(server.url + "../pyproject.toml", timeout=10)


def test_a_program_is_opened_and_follows_what_is_set(server):
    opened = post(server, "open", {"text": TEXT})
    assert opened["state"]["setting"]["sites"] == 4
    setting = opened["state"]["setting"] | {"sites": 3}
    post(server, f"set/{opened['key']}", {"setting": setting, "view": "ignored"})
    post(server, f"ask/{opened['key']}", {"ask": "python"})

    def there(state, messages):
        view = state.get("view", {})
        return messages and view.get("done") and view["setting"]["sites"] == 3

    state, messages = follow(server, opened["key"], there)
    again = ein.compile(TEXT, sites=3)
    assert state["view"]["strategies"][0]["moved"] == again.tasks.bytes_moved
    assert messages == [{"answer": "python", "text": "net = net.replan(sites=3)\n"}]


def test_what_is_wrong_is_said(server):
    assert (
        "unknown" in post(server, "open", {"text": "C[i] = D[i]"})["error"].lower()
        or "D" in (post(server, "open", {"text": "C[i] = D[i]"})["error"])
    )
    opened = post(server, "open", {"text": TEXT})
    post(server, f"ask/{opened['key']}", {"do": "edit", "node": 2, "label": "i", "parts": 65})
    assert "cannot be cut into 65 parts" in server.sessions[opened["key"]].explorer.error
    with pytest.raises(urllib.error.HTTPError, match="404"):
        post(server, "set/nobody", {})


def test_other_pages_and_other_names_are_refused(server):
    for headers in ({"Origin": "http://example.org"}, {"Host": "example.org"}):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            post(server, "open", {"text": TEXT}, **headers)


def test_a_session_ends_with_its_connection_and_old_ones_make_room(server, monkeypatch):
    opened = post(server, "open", {"text": TEXT})
    follow(server, opened["key"], lambda *_: True)
    for _ in range(200):
        if not server.sessions:
            break
        time.sleep(0.05)
    assert not server.sessions
    monkeypatch.setattr(page, "MOST", 2)
    keys = [post(server, "open", {"text": TEXT})["key"] for _ in range(3)]
    assert list(server.sessions) == keys[1:]


@pytest.mark.parametrize("name", gallery.PROGRAMS)
def test_programs_of_the_gallery_are_complete(name):
    net = ein.compile(gallery.PROGRAMS[name], sites=2)
    assert net.plan.p == 2
