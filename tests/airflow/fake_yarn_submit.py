"""A ``spark-submit`` in cluster mode: it hands its tags to the manager that ``FAKE_MANAGER`` names, and ends.

What it saw is written to the file that ``FAKE_SEEN`` names.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from urllib.request import Request, urlopen


def main() -> None:
    files = sys.argv[sys.argv.index("--files") + 1].split(",")
    (tags,) = (word.split("=", 1)[1] for word in sys.argv if word.startswith("spark.yarn.tags="))
    seen = {
        "argv": sys.argv,
        "files": {Path(file).name: oct(Path(file).stat().st_mode & 0o777) for file in files[:3]},
        "launch": json.loads(Path(files[0]).read_text()),
        "connections": json.loads(Path(files[1]).read_text()),
    }
    Path(os.environ["FAKE_SEEN"]).write_text(json.dumps(seen))
    request = Request(f"{os.environ['FAKE_MANAGER']}/submit", data=tags.encode(), method="POST")  # noqa: S310
    with urlopen(request):  # noqa: S310  the manager of the test
        pass


if __name__ == "__main__":
    main()
