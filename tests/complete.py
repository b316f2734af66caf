"""Types into a shell at a terminal of its own.

    complete.py DEADLINE KEYS WANTED… -- SHELL…

Waits for the prompt `READY> `, types KEYS (`\\t` is the tabulator, `\\r` the return key) and ends as soon as all that is WANTED
stands on the terminal, with 0; after DEADLINE seconds with 1. Prints what the terminal showed since KEYS were typed.
"""

import os
import pty
import select
import signal
import sys
import time

split = sys.argv.index("--")
(deadline, keys, *wanted), command = sys.argv[1:split], sys.argv[split + 1 :]
until = time.monotonic() + float(deadline)
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)


def read_until(is_enough):
    shown = b""
    while not is_enough(shown):
        left = until - time.monotonic()
        if left <= 0 or not select.select([terminal], [], [], left)[0]:
            return shown, False
        try:
            part = os.read(terminal, 4096)
        except OSError:
            part = b""
        if not part:
            return shown, False
        shown += part
    return shown, True


shown, found = read_until(lambda shown: b"READY> " in shown)
if found:
    os.write(terminal, keys.replace("\\t", "\t").replace("\\r", "\r").encode())
    shown, found = read_until(lambda shown: all(text.encode() in shown for text in wanted))
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
sys.stdout.buffer.write(shown)
sys.exit(0 if found else 1)
