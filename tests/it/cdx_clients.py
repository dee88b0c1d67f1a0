"""Lists the captures of a site with clients of the Internet Archive and of pywb, which page through the results.

Arguments: the address of a server and the number of rows per request. Prints what each client found, as JSON.
"""

import json
import sys

import cdx_toolkit
import requests
import requests.adapters
import wayback
import wayback._client
from waybackpy import WaybackMachineCDXServerAPI

SITE = "http://a.example/"
# Clients ask for hosts of the Internet Archive only.
THEIRS = "https://web.archive.org"


class ToServer(requests.adapters.HTTPAdapter):
    """Sends what is for the Internet Archive to the server."""

    def __init__(self, server):
        super().__init__()
        self.server = server

    def send(self, request, **options):
        theirs = request.url
        request = request.copy()
        request.url = theirs.replace(THEIRS, self.server, 1)
        response = super().send(request, **options)
        response.url = theirs
        return response


def with_wayback(server, limit):
    session = wayback.WaybackSession(search_calls_per_second=0, memento_calls_per_second=0)
    session.mount(THEIRS, ToServer(server))
    client = wayback.WaybackClient(session)
    rows = [(row.raw_url.split("/web/")[1][:14], row.original) for row in client.search(SITE, match_type="prefix", limit=limit)]
    # Between two captures: the client says which one it got.
    memento = client.get_memento(SITE + "0", timestamp="20240102023000", exact=False)
    return rows, memento.timestamp.strftime("%Y%m%d%H%M%S"), memento.text


def with_waybackpy(server, limit):
    client = WaybackMachineCDXServerAPI(SITE, "test", match_type="prefix", limit=limit)
    client.endpoint = f"{server}/cdx/search/cdx"
    return [(row.timestamp, row.original) for row in client.snapshots()]


def with_cdx_toolkit(server, path):
    client = cdx_toolkit.CDXFetcher(source=server + path)
    return [(row["timestamp"], row["url"]) for row in client.iter(SITE + "*", limit=1_000_000)]


def main():
    server, limit = sys.argv[1], int(sys.argv[2])
    from_wayback, time, text = with_wayback(server, limit)
    found = {
        "wayback": from_wayback,
        "waybackpy": with_waybackpy(server, limit),
        "cdx_toolkit, Internet Archive": with_cdx_toolkit(server, "/cdx/search/cdx"),
        "cdx_toolkit, pywb": with_cdx_toolkit(server, "/cdx"),
    }
    counts = {name: [len(rows), len(set(map(tuple, rows)))] for name, rows in found.items()}
    print(json.dumps({"counts": counts, "time": time, "text": text}))


if __name__ == "__main__":
    main()
