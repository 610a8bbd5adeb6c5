# SPDX-License-Identifier: MIT
"""A started command: its own session, its output as lines, signals to its whole group.

Each command leads its own session and process group. So a Ctrl-C typed in the terminal reaches it
once, from the launch, and grandchildren that stay in the group are stopped with it.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import pty
import signal
import subprocess
import termios
import threading
from collections.abc import Callable, Mapping, Sequence

READ_SIZE = 65536
GROUP_POLL_S = 0.02
AFTER_KILL_S = 2.0

LineCallback = Callable[[str], None]


class _LineReader:
    """Reads one file descriptor without blocking and hands on complete lines."""

    def __init__(self, fd: int, on_line: LineCallback, loop: asyncio.AbstractEventLoop) -> None:
        self.__fd = fd
        self.__on_line = on_line
        self.__loop = loop
        self.__decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.__partial = ""
        self.__open = True
        os.set_blocking(fd, False)
        loop.add_reader(fd, self.read_available)

    def read_available(self) -> None:
        """Read until nothing is left for now, or to the end."""
        while self.__open:
            try:
                data = os.read(self.__fd, READ_SIZE)
            except BlockingIOError:
                return
            except OSError:  # a pseudo terminal reports EIO when the last writer is gone
                data = b""
            if not data:
                self.close()
                return
            *lines, self.__partial = (self.__partial + self.__decoder.decode(data)).split("\n")
            for line in lines:
                self.__on_line(line.removesuffix("\r"))

    def flush(self) -> None:
        """Hand on a last line that has no newline."""
        if self.__partial:
            line, self.__partial = self.__partial, ""
            self.__on_line(line)

    def close(self) -> None:
        """Stop reading."""
        if self.__open:
            self.__open = False
            self.__loop.remove_reader(self.__fd)
            self.flush()
            os.close(self.__fd)


class ChildProcess:
    """One running command; made by `start`."""

    def __init__(
        self,
        popen: subprocess.Popen[bytes],
        readers: Sequence[_LineReader],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.__popen = popen
        self.__readers = readers
        self.__exited: asyncio.Future[int] = loop.create_future()
        self.__loop = loop
        threading.Thread(
            target=self.__wait_in_thread, name=f"wait-{popen.pid}", daemon=True
        ).start()

    @classmethod
    def start(
        cls,
        cmd: Sequence[str],
        *,
        cwd: str | None,
        env: Mapping[str, str] | None,
        shell: bool,
        emulate_tty: bool,
        on_stdout: LineCallback,
        on_stderr: LineCallback,
    ) -> ChildProcess:
        """Start the command; raise OSError when that is impossible."""
        loop = asyncio.get_running_loop()
        make_channel = _open_terminal if emulate_tty else os.pipe
        out_read, out_write = make_channel()
        err_read, err_write = make_channel()
        try:
            popen = subprocess.Popen(
                " ".join(cmd) if shell else list(cmd),
                cwd=cwd,
                env=None if env is None else dict(env),
                shell=shell,
                stdin=subprocess.PIPE,
                stdout=out_write,
                stderr=err_write,
                start_new_session=True,
            )
        except BaseException:
            os.close(out_read)
            os.close(err_read)
            raise
        finally:
            os.close(out_write)
            os.close(err_write)
        readers = [_LineReader(out_read, on_stdout, loop), _LineReader(err_read, on_stderr, loop)]
        return cls(popen, readers, loop)

    @property
    def pid(self) -> int:
        """Process id, which is the id of the process group too."""
        return self.__popen.pid

    async def wait(self) -> int:
        """Return the exit code once the command has ended; its output so far is handed on."""
        returncode = await asyncio.shield(self.__exited)
        for reader in self.__readers:
            reader.read_available()
            reader.flush()
        return returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole process group, if any of it is left."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def group_is_alive(self) -> bool:
        """Return whether the command or any process of its group still runs."""
        if not self.__exited.done():
            return True
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-self.pid, os.WNOHANG)[0]:
                pass
        try:
            os.killpg(self.pid, 0)
        except OSError:
            return False
        return _has_running_member(self.pid)

    async def wait_until_group_is_gone(self, timeout_s: float) -> bool:
        """Return True as soon as nothing of the group runs, False after the timeout."""
        deadline = self.__loop.time() + timeout_s
        await asyncio.wait({self.__exited}, timeout=timeout_s)
        # The end of a grandchild is not announced to us: look often, for a short time.
        while self.group_is_alive():
            if self.__loop.time() >= deadline:
                return False
            await asyncio.sleep(GROUP_POLL_S)
        return True

    def close_streams(self) -> None:
        """Stop reading output that leftover processes may still write."""
        for reader in self.__readers:
            reader.close()
        if self.__popen.stdin is not None:
            with contextlib.suppress(OSError):
                self.__popen.stdin.close()

    def kill_now(self) -> None:
        """Kill the whole group without waiting for a clean end."""
        self.send_signal(signal.SIGKILL)
        self.close_streams()

    def __wait_in_thread(self) -> None:
        returncode = self.__popen.wait()
        # The loop is closed when the launch ended by an error; nobody waits then.
        with contextlib.suppress(RuntimeError):
            self.__loop.call_soon_threadsafe(self.__set_exited, returncode)

    def __set_exited(self, returncode: int) -> None:
        if not self.__exited.done():
            self.__exited.set_result(returncode)


def _open_terminal() -> tuple[int, int]:
    """Return (our end, the command's end) of a pseudo terminal that leaves newlines alone."""
    ours, theirs = pty.openpty()
    attributes = termios.tcgetattr(theirs)
    attributes[1] &= ~termios.ONLCR
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    return ours, theirs


def _has_running_member(group: int) -> bool:
    """Return whether a process of the group is more than a zombie nobody has reaped yet."""
    try:
        entries = os.listdir("/proc")
    except OSError:
        return True  # no /proc on this system: believe killpg
    for entry in entries:
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stat:
                state, _parent, member_of, *_ = stat.read().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if int(member_of) == group and state not in ("Z", "X"):
            return True
    return False
