"""The source tree as the tests of this folder see it: files, includes, rooms."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]

# docs/explanation/architecture.md, "Folders and rooms": a folder includes only folders below it.
MAY_INCLUDE = {
    "base": set(),
    "dns": {"base"},
    "shm": {"base"},
    "zone": {"base", "dns", "shm"},
    "config": {"base", "dns", "zone"},
    "ipc": {"base", "dns"},
    "sandbox": {"base", "ipc"},
    "worker": {"base", "dns", "shm", "zone", "ipc", "sandbox"},
    "tls": {"base", "ipc", "sandbox"},
    "manager": {"base", "dns", "shm", "zone", "ipc", "config", "worker/answer"},
    "ctl": {"base", "dns", "shm", "zone", "ipc", "config", "manager/inspect"},
    "http": {"base", "dns", "shm", "zone", "ipc", "config"},
}

# The rooms of a folder from top to bottom: a room includes only rooms below it. "" is the folder's own files.
ROOM_ORDER = {
    "manager": ["", "server", "control", "control/report", "catalog", "start", "update", "request", "secondary", "secondary/transfer", "checkpoint", "zonefile", "merge", "signing", "signing/keys", "change", "notify", "dnssec", "verifier", "upkeep", "commit", "inspect", "journal", "journal/record",
                "tls", "workers", "workers/rules", "launch", "xdp", "net", "io", "systemd", "support"],
    "worker": ["", "xdp", "net", "tap", "respond", "request", "answer"],
    "tls": ["", "relay", "session"],
    "zone": ["audit", "dnssec", "dump", "builder", "draft", "history", "record", "read", "settings", "trie"],
    "dns": ["tsig", "zonefile", "message", "dnssec", "rdata", ""],
    "ipc": ["", "codec"],
    "shm": ["inspect", "", "counts", "map"],
    "base": ["files", "net", ""],
    "config": ["import", "import/pdns", "import/named", "import/model", "", "yaml", "settings"],
    "ctl": ["", "signing", "commands", "import", "backup", "compare", "upgrade", "view"],
    "http": ["", "page", "api", "metrics", "observe", "serve"],
}

SOURCES = [path for folder in MAY_INCLUDE for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".h", ".cpp")]
DOCUMENTS = [path for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]) if not path.is_symlink()]


def relative(path):
    return str(path.relative_to(ROOT))


def includes(path):
    return re.findall(r'^\s*#\s*include\s+([<"])([^">]+)[">]', path.read_text(), re.M)


def room_of(target):
    """(folder, room) of a path below the root; the room of a folder's own file is ""."""
    parts = pathlib.PurePath(target).parts
    return parts[0], "/".join(parts[1:-1])


def tracked():
    """All files under version control; of a tree without git, all files but those of build folders."""
    try:
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        return [ROOT / line for line in listed.splitlines() if (ROOT / line).is_file()]
    except (OSError, subprocess.CalledProcessError):
        return [path for path in ROOT.rglob("*") if path.is_file() and "build" not in path.relative_to(ROOT).parts]
