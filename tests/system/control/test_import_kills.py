"""An import that is killed, meets another one, or a full disk: its files are there together or not at all."""

import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

import servers

SECRET = "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="
DUMP = f"""\
insert into domains values (1,'one.test',NULL,NULL,'NATIVE',NULL,NULL),(2,'two.test',NULL,NULL,'NATIVE',NULL,NULL);
insert into records values (1,1,'one.test','SOA','ns1.one.test a.one.test 7 1 2 3 4',60,NULL,0,NULL,1);
insert into records values (2,1,'one.test','TXT','"{'x' * 6000}"',60,NULL,0,NULL,1);
insert into records values (3,2,'two.test','SOA','. . 8 1 2 3 4',60,NULL,0,NULL,1);
insert into tsigkeys values (1,'transfer','hmac-sha256','{SECRET}');
"""
NSD = 'zone:\n name: a.example\n zonefile: /z/a\n'
MADE = ["pando.yaml", "transfer.key", "zones/one.test.zone", "zones/two.test.zone"]
THEIRS = {"mine.yaml": "precious", "zones/mine.zone": "precious"}
HIDDEN = ".pando-import"
RESULT = "pando-result"
MAX_STEPS = 200


class Place:
    """A folder that imports go into. Here it is on one file system."""

    def __init__(self, folder):
        self.folder, self.seen = folder, folder
        self.clean()

    def clean(self):
        shutil.rmtree(self.seen / "to", ignore_errors=True)
        (self.seen / "to").mkdir()
        (self.seen / "dump.sql").write_text(DUMP)
        (self.seen / "nsd.conf").write_text(NSD)

    def put_theirs(self):
        for name, text in THEIRS.items():
            (self.seen / "to" / name).parent.mkdir(exist_ok=True)
            (self.seen / "to" / name).write_text(text)

    def command(self, source, to):
        return [str(servers.build_folder() / "pandoctl"), "import", str(self.folder / source), "--to",
                str(self.folder / "to" / to)]

    def run(self, source="dump.sql", to="pando.yaml", step=None):
        environment = os.environ | ({"PANDO_CRASH_AT": f"import-step:{step}"} if step else {})
        return subprocess.run(self.command(source, to), capture_output=True, text=True, timeout=120, env=environment)

    def files(self):
        """Name and text of each file below the folder, but those in hidden ones; and all folders."""
        base = self.seen / "to"
        found = {}
        for path in base.rglob("*"):
            name = str(path.relative_to(base))
            if HIDDEN not in name.split("/"):
                found[name] = None if path.is_dir() else path.read_text()
        return found

    def hidden(self):
        return [path for path in (self.seen / "to").rglob(HIDDEN)]


class NewFolder(Place):
    """The import makes the folder of the zone files."""

    def put_theirs(self):
        (self.seen / "to" / "mine.yaml").write_text("precious")


class TwoFileSystems(Place):
    """The zone files' folder is a file system of its own, in a mount namespace that `holder` lives in."""

    def __init__(self, folder, options=""):
        (folder / "to" / "zones").mkdir(parents=True)
        mount = f"mount -t tmpfs {options} tmpfs {folder}/to/zones && echo mounted && exec cat"
        self.holder = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c", mount],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if self.holder.stdout.readline() != b"mounted\n":
            self.end()
            pytest.skip("no mounts in a namespace of their own")
        self.folder, self.seen = folder, pathlib.Path(f"/proc/{self.holder.pid}/root{folder}")
        self.clean()
        assert (self.seen / "to").stat().st_dev != (self.seen / "to" / "zones").stat().st_dev

    def clean(self):
        for path in [*(self.seen / "to").iterdir(), *(self.seen / "to" / "zones").iterdir()]:
            if path.is_dir() and path.name != "zones":
                shutil.rmtree(path)
            elif not path.is_dir():
                path.unlink()
        (self.seen / "dump.sql").write_text(DUMP)
        (self.seen / "nsd.conf").write_text(NSD)

    def command(self, source, to):
        return ["nsenter", "-t", str(self.holder.pid), "-m", *super().command(source, to)]

    def end(self):
        self.holder.stdin.close()
        self.holder.wait()
        self.holder.stdout.close()


@pytest.fixture(params=[NewFolder, Place, TwoFileSystems])
def place(request, tmp_path):
    made = request.param(tmp_path)
    yield made
    if isinstance(made, TwoFileSystems):
        made.end()


def expected(place):
    """What a whole import leaves, beside the user's own files."""
    place.clean()
    place.put_theirs()
    before = place.files()
    done = place.run()
    assert done.returncode == 0, done.stderr
    after = place.files()
    assert sorted(set(after) - set(before) - {"zones"}) == MADE and not place.hidden()
    return before, after


def check_state(place, before, after):
    """No file is incomplete, no file of the user's is touched; the result is there only with all others."""
    files = place.files()
    assert all(after[name] == text for name, text in files.items()), files.keys()
    assert before.keys() <= files.keys()
    if "pando.yaml" in files:
        assert files == after
    return files


def test_an_import_that_is_killed_can_be_repeated(place):
    """At each step that changes the disk."""
    before, after = expected(place)
    partial = complete = 0
    for step in range(1, MAX_STEPS):
        place.clean()
        place.put_theirs()
        done = place.run(step=step)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        files = check_state(place, before, after)
        again = place.run()
        if "pando.yaml" in files:
            complete += 1
            assert again.returncode == 1 and again.stderr.count("\n") == 1
            assert "to/pando.yaml: it is there already: move it, or import" in again.stderr
        else:
            left = len(set(files) - set(before) - {"zones"})
            partial += left > 0
            assert again.returncode == 0, again.stderr
            told = f"removed {left} file{'s' if left > 1 else ''} of an import that was killed"
            assert (told in again.stderr) == (left > 0), again.stderr
        assert place.files() == after and not place.hidden()
    assert done.returncode == 0 and step > 20 and partial >= 3 and complete >= 3


def steps_with_names(place, before):
    """The last step at which some names are given, and the result's is not."""
    found = None
    for step in range(1, MAX_STEPS):
        place.clean()
        place.put_theirs()
        if place.run(step=step).returncode == 0:
            return found
        files = place.files()
        if "pando.yaml" not in files and len(files) >= len(before) + 3:
            found = step
    raise AssertionError("no end")


def test_an_import_that_is_killed_while_it_takes_another_back(place):
    before, after = expected(place)
    first = steps_with_names(place, before)
    for step in range(1, MAX_STEPS):
        place.clean()
        place.put_theirs()
        place.run(step=first)
        second = place.run(step=step)
        if second.returncode == 0:
            break
        files = check_state(place, before, after)
        third = place.run()
        assert third.returncode == (1 if "pando.yaml" in files else 0), third.stderr
        assert place.files() == after and not place.hidden()
    assert second.returncode == 0 and step > 20


def test_another_import_takes_back_what_a_killed_one_left(place):
    """Whatever its own files are; what was complete stays, even under another name."""
    before, after = expected(place)
    kept = 0
    for step in range(1, MAX_STEPS):
        place.clean()
        place.put_theirs()
        if place.run(step=step).returncode == 0:
            break
        files = place.files()
        if "pando.yaml" in files:
            kept += 1
            (place.seen / "to" / "pando.yaml").rename(place.seen / "to" / "moved.yaml")
        done = place.run("nsd.conf", "other.yaml")
        assert done.returncode == 0, done.stderr
        now = place.files()
        assert now.pop("other.yaml") and not place.hidden()
        if "pando.yaml" in files:
            assert now.pop("moved.yaml") == after["pando.yaml"]
            assert now == {name: text for name, text in after.items() if name != "pando.yaml"}
        else:
            assert {name for name in now if now[name]} == {name for name in before if before[name]}
    assert kept >= 3


def test_a_file_that_was_changed_since_is_not_taken_back(place):
    before, _ = expected(place)
    place.clean()
    place.put_theirs()
    first = steps_with_names(place, before)
    place.clean()
    place.put_theirs()
    place.run(step=first)
    edited = place.seen / "to" / "zones" / "two.test.zone"
    with edited.open("a") as file:
        file.write("; mine\n")
    done = place.run()
    assert done.returncode == 1 and "two.test.zone: it is there already" in done.stderr, done.stderr
    assert edited.read_text().endswith("; mine\n") and not place.hidden()
    edited.unlink()
    assert place.run().returncode == 0


def kill_with_names(place):
    """Leaves names of an import that is not complete; returns what was there before."""
    before, _ = expected(place)
    step = steps_with_names(place, before)
    place.clean()
    place.put_theirs()
    assert place.run(step=step).returncode == -signal.SIGKILL
    return before


def test_an_old_file_that_was_put_in_place_is_not_taken_back(place):
    """Such as a copy from a backup. It keeps the inode of the import's file, and has an old time."""
    kill_with_names(place)
    restored = place.seen / "to" / "zones" / "one.test.zone"
    old = place.seen / "old.zone"
    old.write_text("precious")
    os.utime(old, (1546300800, 1546300800))
    inode = restored.stat().st_ino
    subprocess.run(["cp", "-p", old, restored], check=True)
    assert restored.stat().st_ino == inode and restored.stat().st_mtime == 1546300800
    done = place.run("nsd.conf", "other.yaml")
    named = f"{place.folder}/to/zones/one.test.zone stays: it is not as the import that was killed made it\n"
    assert done.returncode == 0 and done.stderr.count(named) == 1, done.stderr
    assert "removed 2 files" in done.stderr and done.stderr.count("stays") == 1
    assert restored.read_text() == "precious" and not place.hidden()


def test_a_file_that_cannot_be_taken_back_is_named_until_it_can(tmp_path):
    """Here a mount on it holds it. What tells whose file it is stays as well."""
    place = TwoFileSystems(tmp_path)
    try:
        before = kill_with_names(place)
        held = f"{place.folder}/to/zones/one.test.zone"
        inside = ["nsenter", "-t", str(place.holder.pid), "-m"]
        subprocess.run([*inside, "mount", "--bind", held, held], check=True)
        for _ in range(2):
            done = place.run("nsd.conf", "other.yaml")
            assert done.returncode == 1 and f"cannot remove {held}: Device or resource busy" in done.stderr
            assert "other.yaml" not in place.files() and "zones/one.test.zone" in place.files()
        subprocess.run([*inside, "umount", held], check=True)
        assert place.run("nsd.conf", "other.yaml").returncode == 0
        files = place.files()
        assert files.pop("other.yaml") and files == before and not place.hidden()
    finally:
        place.end()


@pytest.mark.parametrize("names", [["only-copy"], ["files/only-copy"], ["result"], ["pando-file-1", "result/a"]])
def test_a_folder_that_no_import_made_is_not_emptied(names, tmp_path):
    """Whoever owns the folder around it may have given it the name."""
    place = Place(tmp_path)
    hidden = tmp_path / "to" / HIDDEN
    for name in names:
        (hidden / name).parent.mkdir(parents=True, exist_ok=True)
        (hidden / name).write_text("precious")
    hidden.chmod(0o755)
    done = place.run()
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert f"{hidden}/{names[-1].split('/')[0]} is of no import: move it elsewhere" in done.stderr
    assert all((hidden / name).read_text() == "precious" for name in names) and place.files() == {}
    shutil.rmtree(hidden)
    assert place.run().returncode == 0


def held_import(place, at):
    """An import that waits at this point while the file `held` is there."""
    held = place.seen / "held"
    held.touch()
    environment = os.environ | {"PANDO_PAUSE_AT": at, "PANDO_PAUSE_WHILE": str(place.folder / "held")}
    return held, subprocess.Popen(place.command("dump.sql", "pando.yaml"), env=environment, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("as_link", [True, False])
def test_a_folder_that_is_put_in_place_of_the_hidden_one_is_not_touched(as_link, tmp_path):
    """The owner of the folder around it can do so while root imports."""
    place = NewFolder(tmp_path)
    _, after = expected(place)
    place.clean()
    place.put_theirs()
    victim = tmp_path / "victim"
    for name in ("pando-file-0", "pando-names", RESULT, "files/a", "other"):
        (victim / name).parent.mkdir(parents=True, exist_ok=True)
        (victim / name).write_text("precious")
    held, process = held_import(place, "import-drafts-written")
    hidden = tmp_path / "to" / HIDDEN
    try:
        wait_for((hidden / RESULT).exists)
        hidden.rename(tmp_path / "to" / "gone")
        if as_link:
            hidden.symlink_to(victim)
        else:
            victim = victim.rename(hidden)
    finally:
        held.unlink()
        _, told = process.communicate(timeout=120)
    assert sorted(path.name for path in victim.iterdir()) == ["files", "other", "pando-file-0", "pando-names", RESULT]
    assert all(path.read_text() == "precious" for path in victim.rglob("*") if path.is_file())
    files = place.files()
    assert process.returncode == 0 and files.pop("gone", "") is None and files.keys() == after.keys(), told


@servers.needs_root("it gives files away")
def test_a_new_hidden_folder_that_another_user_replaces_is_refused(tmp_path):
    """Between its making and its opening."""
    place = Place(tmp_path)
    held, process = held_import(place, "import-folder-made")
    hidden = tmp_path / "to" / HIDDEN
    try:
        wait_for(hidden.exists)
        hidden.rename(tmp_path / "to" / "gone")
        hidden.mkdir(mode=0o700)
        (hidden / "theirs").write_text("precious")
        os.chown(hidden, 1, 1)
    finally:
        held.unlink()
        _, told = process.communicate(timeout=120)
    assert process.returncode == 1 and f"{hidden} is an import's folder, but another user's" in told
    assert (hidden / "theirs").read_text() == "precious" and place.files() == {"gone": None}


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_two_imports_at_once(place):
    """The second one is refused with a line, whatever its files are called, and changes nothing."""
    _, after = expected(place)
    place.clean()
    place.put_theirs()
    held = place.seen / "held"
    held.touch()
    environment = os.environ | {"PANDO_PAUSE_AT": "import-drafts-written", "PANDO_PAUSE_WHILE": str(place.folder / "held")}
    first = subprocess.Popen(place.command("dump.sql", "pando.yaml"), env=environment, stdout=subprocess.DEVNULL)
    try:
        wait_for((place.seen / "to" / HIDDEN / RESULT).exists)
        before = place.files()
        for source, to in (("dump.sql", "pando.yaml"), ("nsd.conf", "other.yaml")):
            second = place.run(source, to)
            assert second.returncode == 1 and place.files() == before
            assert second.stderr == (f"pandoctl: another import into {place.folder}/to is under way: "
                                     "import again when it is done\n")
    finally:
        held.unlink()
        assert first.wait() == 0
    assert place.files() == after and not place.hidden()


def test_imports_of_two_folders_may_share_the_folder_of_zones(tmp_path):
    """The zone files' folder is locked as well, and a killed import is taken back from either side."""
    place = Place(tmp_path)
    shared = tmp_path / "shared"
    shared.mkdir()
    (tmp_path / "to" / "zones").symlink_to(shared)
    (tmp_path / "to" / "b").mkdir()
    (tmp_path / "to" / "b" / "zones").symlink_to(shared)
    held = tmp_path / "held"
    held.touch()
    environment = os.environ | {"PANDO_PAUSE_AT": "import-drafts-written", "PANDO_PAUSE_WHILE": str(held)}
    first = subprocess.Popen(place.command("dump.sql", "pando.yaml"), env=environment, stdout=subprocess.DEVNULL)
    try:
        wait_for((tmp_path / "to" / HIDDEN / RESULT).exists)
        second = place.run(to="b/pando.yaml")
        assert second.returncode == 1 and "b/zones is under way" in second.stderr
    finally:
        first.kill()
        first.wait()
        held.unlink()
    assert not [path for path in shared.iterdir() if path.name != HIDDEN]
    step = steps_of_shared(place, shared)
    assert place.run(step=step).returncode == -signal.SIGKILL and (shared / "two.test.zone").exists()
    done = place.run(to="b/pando.yaml")
    assert done.returncode == 0 and "removed 2 files" in done.stderr, done.stderr
    assert sorted(path.name for path in shared.iterdir()) == ["one.test.zone", "two.test.zone"]
    # The first folder's own leftovers concern nobody else, and its next import finds the others' files.
    done = place.run()
    assert done.returncode == 1 and "two.test.zone: it is there already" in done.stderr
    assert sorted(path.name for path in (tmp_path / "to").iterdir()) == ["b", "zones"]


def steps_of_shared(place, shared):
    """The first step at which both zone files have their names; all is clean afterwards."""
    for step in range(1, MAX_STEPS):
        assert place.run(step=step).returncode == -signal.SIGKILL
        found = (shared / "two.test.zone").exists()
        done = place.run("nsd.conf", "other.yaml")
        assert done.returncode == 0, done.stderr
        (place.folder / "to" / "other.yaml").unlink()
        assert list(shared.iterdir()) == []
        if found:
            return step
    raise AssertionError("no such step")


def test_many_imports_at_once_are_one(tmp_path):
    """Of two dumps with the same names; whoever wins, all files are of one dump."""
    place = Place(tmp_path)
    (tmp_path / "other.sql").write_text(DUMP.replace(" 7 1", " 9 1").replace(" 8 1", " 9 1"))
    for _ in range(5):
        place.clean()
        started = [subprocess.Popen(place.command(source, "pando.yaml"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True) for source in ("dump.sql", "other.sql") * 3]
        ends = []
        for process in started:
            _, told = process.communicate()
            ends.append((process.returncode, told))
        assert sorted(code for code, _ in ends) == [0, 1, 1, 1, 1, 1], ends
        assert all("under way" in told or "is there already" in told for code, told in ends if code), ends
        winner = [code for code, _ in ends].index(0) % 2
        files = place.files()
        serials = {name: " 9 1 2 3 4" in files[name] for name in MADE if "zones/" in name}
        assert set(serials.values()) == {bool(winner)} and len(files) == 5 and not place.hidden()


def test_a_full_second_file_system_leaves_nothing(tmp_path):
    """One page more for each attempt, until it suffices. Names take room there, too."""
    refused = 0
    for pages in range(1, 100):
        place = TwoFileSystems(tmp_path, f"-o size={pages * 4096}")
        try:
            (place.seen / "to" / "mine.yaml").write_text("precious")
            done = place.run()
            if done.returncode == 0:
                assert sorted(set(place.files()) - {"zones", "mine.yaml"}) == MADE
                break
            assert "No space left on device" in done.stderr and f"{place.folder}/to/zones" in done.stderr
            assert place.files() == {"mine.yaml": "precious", "zones": None} and not place.hidden()
            refused += 1
        finally:
            place.end()
            shutil.rmtree(tmp_path / "to")
    assert done.returncode == 0 and refused >= 2


@pytest.mark.parametrize("inodes", range(2, 12))
def test_a_second_file_system_without_room_for_names_leaves_nothing(inodes, tmp_path):
    place = TwoFileSystems(tmp_path, f"-o nr_inodes={inodes}")
    try:
        done = place.run()
        files = place.files()
        if done.returncode == 0:
            assert sorted(set(files) - {"zones"}) == MADE
        else:
            assert "No space left on device" in done.stderr and files == {"zones": None}, done.stderr
        assert not place.hidden() and (inodes < 11 or done.returncode == 0)
    finally:
        place.end()


@servers.needs_root("it gives files away")
def test_a_folder_of_another_users_import_is_refused(tmp_path):
    """Such as in /tmp, where it might lead anywhere."""
    place = Place(tmp_path)
    hidden = tmp_path / "to" / HIDDEN
    hidden.mkdir(mode=0o700)
    os.chown(hidden, 1, 1)
    done = place.run()
    assert done.returncode == 1 and f"{hidden} is an import's folder, but another user's" in done.stderr
    hidden.rmdir()
    hidden.symlink_to(tmp_path)
    done = place.run()
    assert done.returncode == 1 and str(hidden) in done.stderr and (tmp_path / "dump.sql").exists()
    hidden.unlink()
    assert place.run().returncode == 0
