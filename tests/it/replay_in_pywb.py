"""Shows every page of a CDXJ index in pywb, in this process, and prints a line of JSON for each view.

Arguments: the index, and the folder of its WARC files.
"""

import io
import json
import os
import sys
import tempfile
from wsgiref.util import setup_testing_defaults

INDEX, FOLDER = (os.path.abspath(path) for path in sys.argv[1:3])
# pywb looks for its settings where it stands, and logs to standard output.
WORK = tempfile.TemporaryDirectory()
os.chdir(WORK.name)
OUT, sys.stdout = sys.stdout, sys.stderr

from pywb.apps.frontendapp import FrontEndApp  # noqa: E402

APP = FrontEndApp(
    config_file=None,
    custom_config={"collections": {"pages": {"index_paths": INDEX, "archive_paths": FOLDER + os.sep}}},
)


def view(time, url):
    """Status and text as pywb gives them, links not rewritten."""
    environ = {"PATH_INFO": f"/pages/{time}id_/{url}", "SCRIPT_NAME": "", "REQUEST_METHOD": "GET"}
    setup_testing_defaults(environ)
    environ["wsgi.errors"] = io.StringIO()
    statuses = []
    body = b"".join(APP(environ, lambda status, fields, error=None: statuses.append(status)))
    return int(statuses[-1].split()[0]), body.decode("utf-8", "replace")


with open(INDEX, encoding="utf-8") as lines:
    for line in lines:
        _, time, fields = line.split(" ", 2)
        url = json.loads(fields)["url"]
        if url.startswith("http"):
            status, text = view(time, url)
            print(json.dumps({"time": time, "url": url, "status": status, "text": text}), file=OUT)
