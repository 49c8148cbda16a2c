"""What keeps a program from harming the machine: no network, writes only in its folder, no secrets, no processes.

Programs come from language models and from strangers. Everything here is best effort and *told*: ``confine``
returns which protection is in force, and the orchestrator shows and stores it.

What is not prevented: reading files that the user may read, and changing modes, owners and times of the user's own
files (Landlock does not cover these).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from typing import NoReturn

_LIBC = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 1 << 14, 1 << 18

# Landlock's system calls have the same numbers on every architecture (Linux 5.13, include/uapi/linux/landlock.h).
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_RULE_PATH_BENEATH = 1
#: Bits of LANDLOCK_ACCESS_FS_* that change a file system: write_file, remove_dir, remove_file, make_* (char, dir,
#: reg, sock, fifo, block, sym). Reading and executing stay free: torch and the C++ compiler read everywhere.
_WRITE_ACCESS = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12))
_REFER_ACCESS = 1 << 13  # version 2: linking and renaming between folders, refused unless handled and granted
_TRUNCATE_ACCESS = 1 << 14  # version 3
_TCP_ACCESS = 0b11  # version 4: bind and connect
_SCOPES = 0b11  # version 6: no signals and no abstract sockets to processes outside


class _RulesetAttr(ctypes.Structure):
    _fields_ = [
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    ]


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


def confine(writable: list[str]) -> dict[str, str]:
    """Confine this process and all its future children. Call before any thread exists.

    Where the kernel allows it, this process is another one afterwards: the first of its own process namespace. The
    caller's process stays behind, owns nothing, and ends when it does. When the first process of a namespace dies,
    the kernel kills all others in it; no process in it can signal, see or trace one outside, nor kill the first.

    Returns:
        ``{"network": "none" | "open: why", "processes": "own namespace" | "open: why",
        "files": "scratch only" | "open: why"}``.
    """
    protection = _enter_namespaces()
    protection["files"] = _restrict_files(writable, network=protection["network"].startswith("open"))
    if protection["network"].startswith("open") and _landlock_version() >= 4 and protection["files"] == _FILES:
        protection["network"] = "no TCP (Landlock)"
    return protection


def narrow(writable: list[str]) -> None:
    """In a child that runs one program: writing only under ``writable``, signals only to its own children.

    Silent where the kernel has no Landlock: ``confine`` has told so.
    """
    _restrict_files(writable, scoped=True)


# -- namespaces -------------------------------------------------------------------------------------------------------


def _enter_namespaces() -> dict[str, str]:
    if not hasattr(_LIBC, "unshare"):
        return {"network": "open: no unshare on this system", "processes": "open: no unshare on this system"}
    everything = _CLONE_NEWNET | _CLONE_NEWPID | _CLONE_NEWNS
    users = (0, _CLONE_NEWUSER) if os.geteuid() == 0 else (_CLONE_NEWUSER,)
    why = ""
    for user in users:
        # Tried in a process of its own: once its first process is dead, a namespace takes no other.
        why = _attempt(everything | user)
        if not why:
            _unshare(everything | user)
            _become_first()
            return {"network": "none", "processes": "own namespace"}
    for user in users:
        if not _attempt(_CLONE_NEWNET | user):
            _unshare(_CLONE_NEWNET | user)
            return {"network": "none", "processes": f"open: {why}"}
    return {"network": f"open: {why}", "processes": f"open: {why}"}


def _attempt(flags: int) -> str:
    """Whether ``_unshare(flags)``, and a /proc of its own where asked, would work; else why not."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            why = _unshare(flags)
            if not why and flags & _CLONE_NEWPID:
                why = _try_proc()
            os.write(write_end, why.encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as stream:
        answer = stream.read().decode()
    os.waitpid(pid, 0)
    return answer


def _try_proc() -> str:
    pid = os.fork()
    if pid == 0:
        os._exit(1 if _mount_proc() else 0)
    _, status = os.waitpid(pid, 0)
    return "" if status == 0 else "/proc cannot be mounted in a namespace"


def _unshare(flags: int) -> str:
    """Leave the namespaces; ids stay the same, so that files made here belong to the user. Returns why not, or ""."""
    uid, gid = os.getuid(), os.getgid()
    if _LIBC.unshare(flags) != 0:
        return f"unshare failed ({os.strerror(ctypes.get_errno())})"
    if flags & _CLONE_NEWUSER:
        try:
            _write("/proc/self/setgroups", "deny")
            _write("/proc/self/uid_map", f"{uid} {uid} 1")
            _write("/proc/self/gid_map", f"{gid} {gid} 1")
        except OSError as error:
            return f"ids cannot be mapped ({error.strerror})"
    return ""


def _become_first() -> None:
    """Go on in a child that is the first process of the new namespace; this process only waits for it."""
    pid = os.fork()
    if pid:
        _wait_out(pid)
    die_with_parent()
    _mount_proc()


def _wait_out(pid: int) -> NoReturn:
    # The orchestrator must see the end of the connection as soon as the child is gone.
    os.closerange(3, 1 << 16)
    _, status = os.waitpid(pid, 0)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def _mount_proc() -> int:
    """A /proc that shows this namespace only; private, so that the mount stays here."""
    _LIBC.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
    return int(_LIBC.mount(b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None))


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


# -- files ------------------------------------------------------------------------------------------------------------

_FILES = "scratch only"


def _landlock_version() -> int:
    return int(_LIBC.syscall(_LANDLOCK_CREATE_RULESET, None, 0, 1))


def _restrict_files(writable: list[str], network: bool = False, scoped: bool = False) -> str:
    version = _landlock_version()
    if version < 1:
        return f"open: no Landlock in this kernel ({os.strerror(ctypes.get_errno())})"
    access = _WRITE_ACCESS
    access |= _REFER_ACCESS if version >= 2 else 0
    access |= _TRUNCATE_ACCESS if version >= 3 else 0
    tcp = _TCP_ACCESS if network and version >= 4 else 0
    ruleset = _RulesetAttr(access, tcp, _SCOPES if scoped and version >= 6 else 0)
    fd = _LIBC.syscall(_LANDLOCK_CREATE_RULESET, ctypes.byref(ruleset), ctypes.sizeof(ruleset), 0)
    if fd < 0:
        return f"open: Landlock refused ({os.strerror(ctypes.get_errno())})"
    try:
        for folder in (*writable, "/dev"):  # /dev/null, /dev/shm, accelerators
            parent = os.open(folder, os.O_PATH | os.O_CLOEXEC)
            rule = _PathBeneathAttr(allowed_access=access, parent_fd=parent)
            status = _LIBC.syscall(_LANDLOCK_ADD_RULE, fd, _LANDLOCK_RULE_PATH_BENEATH, ctypes.byref(rule), 0)
            os.close(parent)
            if status != 0:
                return f"open: Landlock rule refused ({os.strerror(ctypes.get_errno())})"
        _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if _LIBC.syscall(_LANDLOCK_RESTRICT_SELF, fd, 0) != 0:
            return f"open: Landlock refused ({os.strerror(ctypes.get_errno())})"
    finally:
        os.close(fd)
    return _FILES


# -- life and death ---------------------------------------------------------------------------------------------------


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def die_first() -> None:
    """When memory runs out, let the kernel take this process and no other."""
    with contextlib.suppress(OSError):
        _write("/proc/self/oom_score_adj", "1000")


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, so that none can outlive a run."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
