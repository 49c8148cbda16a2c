"""What keeps a program from harming the machine: no network, writes only in the scratch folder, no secrets.

Programs come from language models and from strangers. Everything here is best effort and *told*: ``confine``
returns which protection is in force, and the orchestrator shows and stores it.
"""

from __future__ import annotations

import ctypes
import os
import signal

_LIBC = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000

# Landlock's system calls have the same numbers on every architecture (Linux 5.13, include/uapi/linux/landlock.h).
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_RULE_PATH_BENEATH = 1
#: Bits of LANDLOCK_ACCESS_FS_* that change a file system: write_file, remove_dir, remove_file, make_* (char, dir,
#: reg, sock, fifo, block, sym). Reading and executing stay free: torch and the C++ compiler read everywhere.
_WRITE_ACCESS = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12))
#: From version 2 on: linking and renaming between folders, which is refused unless handled and granted.
_REFER_ACCESS = 1 << 13


class _RulesetAttr(ctypes.Structure):
    _fields_ = [("handled_access_fs", ctypes.c_uint64)]


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


def confine(writable: list[str]) -> dict[str, str]:
    """Confine this process and all its future children to writing under ``writable``. Call before any thread exists.

    Returns:
        ``{"network": "none" | "open: why", "files": "scratch only" | "open: why"}``.
    """
    return {"network": _leave_network(), "files": _write_only_under(writable)}


def _leave_network() -> str:
    if not hasattr(_LIBC, "unshare"):
        return "open: no unshare on this system"
    flags = _CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWUSER | _CLONE_NEWNET
    uid, gid = os.getuid(), os.getgid()
    if _LIBC.unshare(flags) != 0:
        return f"open: unshare failed ({os.strerror(ctypes.get_errno())})"
    if flags & _CLONE_NEWUSER:  # keep the same ids, so that files made here belong to the user
        try:
            _write("/proc/self/setgroups", "deny")
            _write("/proc/self/uid_map", f"{uid} {uid} 1")
            _write("/proc/self/gid_map", f"{gid} {gid} 1")
        except OSError as error:
            return f"none (ids unmapped: {error.strerror})"
    return "none"


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _write_only_under(writable: list[str]) -> str:
    version = _LIBC.syscall(_LANDLOCK_CREATE_RULESET, None, 0, 1)
    access = _WRITE_ACCESS | (_REFER_ACCESS if version >= 2 else 0)
    ruleset = _RulesetAttr(handled_access_fs=access)
    fd = _LIBC.syscall(_LANDLOCK_CREATE_RULESET, ctypes.byref(ruleset), ctypes.sizeof(ruleset), 0)
    if fd < 0:
        return f"open: no Landlock in this kernel ({os.strerror(ctypes.get_errno())})"
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
    return "scratch only"


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, so that none can outlive a run."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
