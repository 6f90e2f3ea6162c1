"""The plan explorer as a page without a notebook: a small web server on this machine.

Contract: `Server` serves one page.  The page opens programs, each of which is an `Explorer` of its own, hears
of the traits that change as server-sent events, and posts what the reader changes, as a notebook's front end
does.  An explorer ends with the connection of its page.  Only pages from here are answered.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, SimpleQueue
from typing import Any

from einsummable.errors import EinsummableError
from einsummable.widgets.base import STATIC
from einsummable.widgets.explorer import Explorer

#: The traits that the page knows, and those that it may set.
TRAITS = (
    "view", "links", "selection", "error", "setting", "shown", "undoable", "busy", "graph", "cards", "strip",
    "detail",
)  # fmt: skip
SETTABLE = ("setting", "shown", "selection")
#: Seconds after which a silent connection is tried.
TICK = 5.0
#: So many programs are open at once, the newest.
MOST = 16

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Einsummable</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/einsummable.css">
</head>
<body class="ein-page"><script type="module">
import { open } from "/page.js";
open(document.body, PROGRAMS);
</script></body>
</html>
"""


class Session:
    """One open program: its explorer, and what the page has not heard yet."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self._news: SimpleQueue[dict[str, Any]] = SimpleQueue()
        explorer.observe(lambda change: self._news.put({"state": {change.name: change.new}}), list(TRAITS))
        explorer.send = lambda content, *_: self._news.put({"message": content})

    def state(self) -> dict[str, Any]:
        """Return all traits."""
        return {name: getattr(self.explorer, name) for name in TRAITS}

    def change(self, wanted: Mapping[str, Any]) -> None:
        """Set what the reader set."""
        for name in SETTABLE:
            if name in wanted:
                self.explorer.set_trait(name, wanted[name])

    def hear(self, content: dict[str, Any]) -> None:
        """Do what the page asks for."""
        self.explorer._answer(self.explorer, content, [])

    def news(self) -> list[dict[str, Any]]:
        """Return what happened since it was asked last, after at most `TICK` seconds."""
        found: list[dict[str, Any]] = []
        try:
            found.append(self._news.get(timeout=TICK))
            while True:
                found.append(self._news.get_nowait())
        except Empty:
            return found


class Server(ThreadingHTTPServer):
    """Serves the explorer of `programs` (text by name) at `url`; `explore` makes one of a text.

    Use it as a context manager, with ``serve_forever`` inside.
    """

    daemon_threads = True

    def __init__(
        self, programs: Mapping[str, str], explore: Callable[[str], Explorer], *, port: int = 0
    ) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.explore = explore
        self.sessions: dict[str, Session] = {}
        self.url = f"http://127.0.0.1:{self.server_port}/"
        listed = json.dumps(dict(programs)).replace("</", "<\\/")
        self.files = {
            "/": ("text/html; charset=utf-8", _PAGE.replace("PROGRAMS", listed)),
            "/page.js": ("text/javascript; charset=utf-8", (STATIC / "page.js").read_text("utf-8")),
            "/einsummable.css": ("text/css; charset=utf-8", (STATIC / "einsummable.css").read_text("utf-8")),
        }

    def open(self, text: str) -> dict[str, Any]:
        """Open a program; return its key and state, or the error that it ends in."""
        try:
            session = Session(self.explore(text))
        except EinsummableError as error:
            return {"error": str(error)}
        while len(self.sessions) >= MOST:
            self.end(next(iter(self.sessions)))
        key = secrets.token_urlsafe(12)
        self.sessions[key] = session
        return {"key": key, "state": session.state()}

    def end(self, key: str) -> None:
        """End a session."""
        session = self.sessions.pop(key, None)
        if session is not None:
            session.explorer.ask("cancel")
            session.explorer.close()


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if not self._from_here():
            return
        _, what, *rest = self.path.split("/")
        if self.path in self.server.files:
            kind, text = self.server.files[self.path]
            self._answer(text.encode(), kind)
        elif what == "news" and rest and rest[0] in self.server.sessions:
            self._stream(rest[0])
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        if not self._from_here():
            return
        _, what, *rest = self.path.split("/")
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        session = self.server.sessions.get(rest[0]) if rest else None
        if what == "open":
            self._answer(json.dumps(self.server.open(data["text"])).encode())
        elif session is not None and what in ("set", "ask"):
            session.change(data) if what == "set" else session.hear(data)
            self._answer(b"{}")
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _from_here(self) -> bool:
        """Return whether a page of this server asks; refuse where another one does."""
        here = self.server.url.rstrip("/")
        names = {here, here.replace("127.0.0.1", "localhost")}
        right = f"http://{self.headers.get('Host')}" in names and self.headers.get("Origin", here) in names
        if not right:
            self.send_error(HTTPStatus.FORBIDDEN)
        return right

    def _answer(self, body: bytes, kind: str = "application/json") -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, key: str) -> None:
        session = self.server.sessions[key]
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        try:
            while True:
                news = session.news()
                self.wfile.write(f"data: {json.dumps(news)}\n\n".encode() if news else b": still here\n\n")
                self.wfile.flush()
        except OSError:  # the page is closed
            self.server.end(key)

    def log_message(self, *_: object) -> None:
        """Say nothing of requests."""
