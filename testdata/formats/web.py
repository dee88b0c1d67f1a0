"""The web that was crawled for the fixtures beside this file: `python3 web.py`, on 127.0.0.1:8137 until it is stopped."""

from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

N_ASKED = Counter()
WEATHER = ["sunny", "cloudy", "windy", "rainy", "foggy"]


def front(n):
    """A story that is written anew at every third request, beside weather that is another each time."""
    edition = n // 3
    story = "".join(f"<p>Edition {edition} says in line {line}: {'a word ' * (12 + edition)}</p>" for line in range(6))
    links = "<a href=/about>about</a> <a href=/moved>moved</a> <a href=/notes.pdf>notes</a>"
    return (
        f"<link rel=stylesheet href=/style.css><main><h1>Story {edition}</h1>{story}</main>"
        f"<nav>{links}</nav><footer><p>Outside it is {WEATHER[n % 5]}</p></footer>"
    )


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        n = N_ASKED[self.path]
        N_ASKED[self.path] += 1
        status, kind, body, fields = {
            "/": (200, "text/html", front(n), {}),
            "/about": (200, "text/html", "<h1>About</h1><p>This page never changes.</p><a href=/>home</a>", {}),
            "/moved": (301, "text/html", "", {"Location": "/about"}),
            "/style.css": (200, "text/css", "main { width: 600px } footer { color: gray }", {}),
            "/notes.pdf": (200, "application/pdf", f"%PDF-1.4 notes {n // 4}", {}),
        }.get(self.path, (404, "text/plain", "not here", {}))
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", 8137), Handler).serve_forever()
