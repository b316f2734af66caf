"""Runs a command at a terminal of its own and answers what it asks.

    passphrase.py ANSWER… -- COMMAND…

Each time the command has printed "Passphrase of", the next answer is typed; `^C` types Ctrl-C. Prints all that the
terminal showed, then whether it echoes at the end, and exits as the command did.
"""

import os
import pty
import select
import sys
import termios

split = sys.argv.index("--")
answers, command = sys.argv[1:split], sys.argv[split + 1 :]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
shown, answered = b"", 0
while True:
    ready, _, _ = select.select([terminal], [], [], 120)
    if not ready:
        shown += b"\n[nothing for two minutes]\n"
        os.kill(pid, 9)
        break
    try:
        part = os.read(terminal, 4096)
    except OSError:
        break
    if not part:
        break
    shown += part
    while answered < shown.count(b"Passphrase of ") and shown.rstrip(b" ").endswith(b":"):
        if answered == len(answers):
            shown += b"\n[asked once more]\n"
            os.kill(pid, 9)
            break
        answer = answers[answered]
        answered += 1
        quiet = not termios.tcgetattr(terminal)[3] & termios.ECHO
        shown += b"[quiet]" if quiet else b"[echo]"
        os.write(terminal, b"\x03" if answer == "^C" else answer.encode() + b"\r")
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(status) % 256)
