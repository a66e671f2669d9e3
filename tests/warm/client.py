"""Let a warm Python run a command line: ``client.py SOCKET [-W ACTION] -c CODE | -m MODULE ...``.

It loads as little as it can, as it is started hundreds of times.
"""

import marshal
import os
import resource
import signal
import socket
import sys

LIMITS = (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE)
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> int:
    """Return the exit status of the fork, or end by the signal that ended it."""
    mask = os.umask(0)
    request = {
        "words": sys.argv[2:],
        "environment": dict(os.environb),
        "folder": os.getcwd(),
        "limits": [(kind, *resource.getrlimit(kind)) for kind in LIMITS],
        "mask": mask,
    }
    text = marshal.dumps(request)
    with socket.socket(socket.AF_UNIX) as parent:
        parent.connect(sys.argv[1])
        socket.send_fds(parent, [len(text).to_bytes(8, "big")], [0, 1, 2])
        parent.sendall(text)
        # The fork alone has these open now: a reader of what it writes learns of its end.
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        process = int.from_bytes(parent.recv(8, socket.MSG_WAITALL), "big")
        for one in PASSED_ON:
            signal.signal(one, lambda number, _: os.kill(process, number))
        ended = parent.recv(8, socket.MSG_WAITALL)
    status = os.waitstatus_to_exitcode(int.from_bytes(ended, "big")) if ended else 70
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main())
