"""Let a command end while what it started goes on, in a process of its own that ends all of it when told to.

The command runs its work in a child with a session of its own, so that neither Ctrl-C nor the end of the
terminal reaches it by accident. The child *lets go* when the work is done: it hands the terminal back and
tells the exit code, the command ends with that code, and the child waits for a SIGTERM.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path


def run_until_it_lets_go(arguments: Sequence[str]) -> int:
    """Run a Python program and return its exit code: the one it lets go with, or the one it ends with.

    :param arguments: what follows ``python``; the number of a file descriptor for :func:`let_go` is added.
    """
    reader, writer = os.pipe()
    command = [sys.executable, *arguments, str(writer)]
    child = subprocess.Popen(command, pass_fds=[writer], start_new_session=True)
    os.close(writer)
    try:
        word = os.read(reader, 8)
        return int(word) if word else child.wait()
    except BaseException as error:
        child.send_signal(signal.SIGINT if isinstance(error, KeyboardInterrupt) else signal.SIGTERM)
        child.wait()
        raise


def let_go(descriptor: int, exit_code: int, log: Path) -> None:
    """Let the command end that waits for us.

    :param descriptor: what :func:`run_until_it_lets_go` added to our arguments.
    :param exit_code: what the command ends with.
    :param log: takes what we print from now on.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with log.open("ab") as output:
        os.dup2(output.fileno(), sys.stdout.fileno())
        os.dup2(output.fileno(), sys.stderr.fileno())
    os.write(descriptor, str(exit_code).encode())
    os.close(descriptor)


def wait_for_a_signal() -> None:
    """Wait for ever; a signal that raises ends it."""
    threading.Event().wait()
