"""A ``spark-submit`` that plays a driver: a real process with real files, without Spark.

``FAKE_DRIVER`` names a JSON file with what to do; what the process saw is written beside it.

    exit      the exit code
    statuses  status documents to write one after the other; ``launch`` and ``sink`` are filled in
    print     lines to print
    wait      seconds to go on; ends early, with exit code ``exit_when_stopped`` or 0, when Airflow asks to
              stop, unless it is ``stubborn``
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def main() -> int:
    script_file = Path(os.environ["FAKE_DRIVER"])
    script = json.loads(script_file.read_text())
    launch = Path(sys.argv[sys.argv.index("--launch") + 1])
    child = (
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        if script.get("child")
        else None
    )
    seen = {
        "argv": sys.argv,
        "environment": dict(os.environ),
        "pid": os.getpid(),
        "child": child.pid if child else None,
        "launch": json.loads((launch / "launch.json").read_text()),
        "connections": json.loads((launch / "connections.json").read_text()),
        "directory_mode": oct(launch.stat().st_mode & 0o777),
        "connections_mode": oct((launch / "connections.json").stat().st_mode & 0o777),
        "files": sorted(file.name for file in launch.iterdir()),
    }
    if not script.get("keep_connections"):
        (launch / "connections.json").unlink()
    with script_file.with_name("launches").open("a") as launches:
        launches.write(".")
    replacement = script_file.with_name("seen.new")
    replacement.write_text(json.dumps(seen))
    replacement.replace(script_file.with_name("seen.json"))
    for line in script.get("print", []):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    for status in script.get("statuses", []):
        document = {"launch": seen["launch"]["number"], "sink": seen["launch"]["spec"]["name"], **status}
        document.setdefault("owner", seen["launch"]["owner"])
        replacement = launch / "status.tmp"
        replacement.write_text(json.dumps(document))
        replacement.replace(launch / "status.json")
        time.sleep(script.get("pause", 0))
    if script.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    deadline = time.monotonic() + script.get("wait", 0)
    while time.monotonic() < deadline:
        if (launch / "stop").exists() and not script.get("stubborn"):
            return int(script.get("exit_when_stopped", 0))
        time.sleep(0.05)
    return int(script.get("exit", 0))


if __name__ == "__main__":
    sys.exit(main())
