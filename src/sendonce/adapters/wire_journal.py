"""The worker's file: a lock that proves its life, and a journal of what was on the wire.

One file does both. The process holds ``flock`` on it as long as it lives: SIGSTOP keeps the lock,
SIGKILL frees it, a forked child keeps it (which is the safe side). The pages written survive the
death of the process, so letters need no fsync; after the death of the machine the boot id differs and
nothing in the file is believed.

The file is mapped into memory: two records a letter, each a system call, would be a tenth of a letter's
cost. Its space is allocated beforehand; should the disk fail under it all the same, the process dies on
the spot, with the letter unsent. A disk that refuses writes shows at the next claim, whose number is
written by a call that can fail.

The journal is a ring of fixed-size text slots. A letter on the wire keeps its slot until its reply is
written, however many others pass it by; a reply's slot is overwritten long after it is settled in the
ledger. Recovery looks only for attempts that are still ``sending`` there, so what an old slot says is
never asked for.

    slot 0   H sendonce-journal 1 <worker> <boot id> <highest claim number> <slots> <claims> <adoption>
    slot n   W <job> <attempt>                      before the first byte of the body
             R <job> <attempt> A <message id>       after the reply (A, F, D or I: see _OUTCOMES)
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from zlib import crc32

from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Outcome, Refused
from sendonce.domain.engine.workers import ClaimCount, WorkerRecord
from sendonce.errors import RefusedByRule, Unavailable
from sendonce.ports.mortality import Wired

log = logging.getLogger(__name__)

SLOT = 256
# Of how many workers that are over the number of claims is kept.
KEPT_COUNTS = 64
_TEXT = SLOT - 10  # the rest: eight digits of checksum, a blank and a newline


class WorkerFile:
    """The locked file of a living worker: ports.mortality.Life."""

    def __init__(self, path: Path, descriptor: int, worker_id: str, slots: int, adoption: int) -> None:
        self.path = path
        self.inode = os.fstat(descriptor).st_ino
        self._descriptor = descriptor
        self._worker_id = worker_id
        self._slots = slots
        self._next = 1
        self._on_wire: dict[tuple[str, int], int] = {}
        self._held: set[int] = set()
        self._pages = mmap.mmap(descriptor, slots * SLOT)
        self._writable = True
        self.highest_claim = 0
        self.count = ClaimCount(worker_id, 0, adoption)
        self._write_header()

    @property
    def lock_file(self) -> str:
        return self.path.name

    def wire(self, job_id: str, attempt: int) -> bool:
        """False when the journal cannot be written, or is full: then the letter must not be sent."""
        if not self._writable or len(self._held) > self._slots // 2:
            return False
        slot = self._write(f"W {job_id} {attempt}")
        self._on_wire[job_id, attempt] = slot
        self._held.add(slot)
        return True

    def reply(self, job_id: str, attempt: int, outcome: Outcome) -> None:
        self._write(f"R {job_id} {attempt} {_spell(outcome)}")
        self._held.discard(self._on_wire.pop((job_id, attempt), 0))

    def claimed(self, claim_seq: int, claims: int) -> None:
        """Keep the claim's number and the worker's count outside the database: a restored one has less."""
        if self._writable and (claim_seq, claims) == (self.highest_claim, self.count.claims):
            return
        self.highest_claim = max(self.highest_claim, claim_seq)
        self.count = replace(self.count, claims=claims)
        try:
            self._write_header()
            self._writable = True
        except OSError as exc:
            log.error("the wire journal cannot be written", extra={"fields": {"error": str(exc)}})
            self._writable = False

    def _write_header(self) -> None:
        header = f"H sendonce-journal 1 {self._worker_id} {boot_id()} {self.highest_claim} {self._slots}"
        counted = f"{self.count.claims} {self.count.adoption}"
        os.pwrite(self._descriptor, _slot(f"{header} {counted}"), 0)

    def _write(self, text: str) -> int:
        """The number of the slot. Its first byte comes last: one whose writer was killed shows it."""
        while self._next in self._held:
            self._next = self._after(self._next)
        number = self._next
        slot, at = _slot(text), number * SLOT
        self._pages[at] = 0
        self._pages[at + 1 : at + SLOT] = slot[1:]
        self._pages[at] = slot[0]
        self._next = self._after(number)
        return number

    def _after(self, number: int) -> int:
        return number + 1 if number + 1 < self._slots else 1

    def close(self, *, settled: bool) -> None:
        """Give up the lock. The file goes only when everything in it is settled in the ledger."""
        if settled:
            self.path.unlink(missing_ok=True)
        self._pages.close()
        os.close(self._descriptor)


class StateDirectory:
    """ports.mortality.Mortality of a machine.

    ``<state>/<ledger id>/``: the lock domain, the workers' files, the highest claim number seen.
    """

    def __init__(self, root: Path, ledger_id: str) -> None:
        self._root = root / ledger_id
        self._workers = self._root / "workers"
        try:
            for folder in (root, self._root, self._workers):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                _refuse_others_hands(folder)
            self.lock_domain = self._read_domain()
        except OSError as exc:
            raise self._unusable(exc) from exc

    def require_writable(self) -> None:
        """Raises Unavailable where no worker could make its file."""
        try:
            with TemporaryFile(dir=self._workers):
                pass
        except OSError as exc:
            raise self._unusable(exc) from exc

    def _unusable(self, why: OSError) -> Unavailable:
        return Unavailable(
            f"The state directory {self._root} cannot be used: {why.strerror}. Set STATE_DIR to a folder "
            "on a local disk that this user may write."
        )

    def _read_domain(self) -> str:
        """The name of this directory, made once. Only who sees it can judge the locks beside it."""
        file = self._root / "domain"
        if not file.exists():
            draft = self._root / f".domain-{uuid.uuid4()}"
            with draft.open("w", encoding="ascii") as text:
                text.write(str(uuid.uuid4()))
                text.flush()
                os.fsync(text.fileno())
            try:
                os.link(draft, file)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        return file.read_text(encoding="ascii").strip()

    # -- living --------------------------------------------------------------------------------

    def enlist(self, name: str, worker_id: str, slots: int, adoption: int = 0) -> WorkerFile:
        """Make and lock this worker's file. A living worker of the same name refuses it.

        The file gets its name when it is locked and complete: another worker of that name, which sweeps up
        before it enlists, would otherwise take it for one that was left behind.
        """
        path = self._workers / name
        draft = self._root / f".worker-{uuid.uuid4()}"
        try:
            descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise Unavailable(f"The worker's file {path} cannot be made: {exc.strerror}.") from exc
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _refuse_false_locks(draft)
            os.posix_fallocate(descriptor, 0, slots * SLOT)
            file = WorkerFile(path, descriptor, worker_id, slots, adoption)
            os.link(draft, path)
            self._sync(descriptor)
            return file
        except FileExistsError:
            os.close(descriptor)
            raise RefusedByRule(
                f"There is a worker named '{name}' already: {path} is its lock. Choose another --name."
            ) from None
        except RefusedByRule:
            os.close(descriptor)
            raise
        except OSError as exc:
            os.close(descriptor)
            raise Unavailable(f"The worker's file {path} cannot be written: {exc.strerror}.") from exc
        finally:
            draft.unlink(missing_ok=True)

    def _sync(self, descriptor: int) -> None:
        """Keep the file through a power cut: without it nobody could prove this worker's death."""
        os.fsync(descriptor)
        folder = os.open(self._workers, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def sweep(self, name: str, known: set[str]) -> None:
        """Remove a file of this name that no open worker of the ledger stands behind."""
        path = self._workers / name
        if name in known:
            return
        with _locked(path) as descriptor:
            if descriptor is not None:
                path.unlink(missing_ok=True)

    # -- dead ----------------------------------------------------------------------------------

    @contextmanager
    def open_if_dead(self, worker: WorkerRecord) -> Iterator[WireLog | None]:
        """The journal of a worker that is proven dead, held locked meanwhile; None where there is no proof.

        The proof: this very directory, and the very same file (by inode) could be locked. A file that is
        gone proves nothing, because its owner may still hold it. Another boot id proves nothing either:
        two containers that share a volume may see different ones while both live. It only means that the
        journal may have lost its last pages.
        """
        if worker.lock_domain != self.lock_domain:
            yield None
            return
        path = self._workers / worker.lock_file
        with _locked(path) as descriptor:
            if descriptor is None or os.fstat(descriptor).st_ino != worker.inode:
                yield None
                return
            if worker.boot_id == boot_id():
                yield _read_journal(descriptor, worker.id)
            else:
                yield WireLog({}, False, "its lock is free, and the machine has restarted", claims=0)
            self._remove(path)

    def sees_alive(self, worker: WorkerRecord) -> bool:
        """Its file is here, and somebody holds the lock."""
        path = self._workers / worker.lock_file
        with _locked(path) as descriptor:
            here = worker.lock_domain == self.lock_domain and path.exists()
            return here and descriptor is None and path.stat().st_ino == worker.inode

    def _remove(self, path: Path) -> None:
        """A dead worker's file goes; what it says about claims stays."""
        self.keep_claim(_claim_in(path), _count_in(path))
        path.unlink(missing_ok=True)

    # -- the highest claim ---------------------------------------------------------------------

    def boot_id(self) -> str:
        return boot_id()

    def highest_claim(self) -> int:
        """The highest claim number that anything in this directory has seen."""
        numbers = [self._kept_claim()]
        for path in self._workers.iterdir():
            numbers.append(_claim_in(path))
        return max(numbers)

    def claim_counts(self) -> list[ClaimCount]:
        """How many claims each worker made whose file is here, or went lately."""
        of_files = [_count_in(path) for path in self._workers.iterdir()]
        return [*self._kept_counts(), *(count for count in of_files if count is not None)]

    def keep_claim(self, claim_seq: int, count: ClaimCount | None = None) -> None:
        """Remember the number, and the count of a worker, when its file goes."""
        try:
            with self._claims_file() as descriptor:
                if claim_seq > self._kept_claim():
                    os.pwrite(descriptor, f"{claim_seq:020d}\n".encode(), 0)
                    os.fsync(descriptor)
                if count is not None and count.claims:
                    self._keep_count(count)
        except OSError as exc:
            raise self._unusable(exc) from exc

    def _keep_count(self, count: ClaimCount) -> None:
        """The last few are enough: a database that lost older claims has lost these too."""
        others = [each for each in self._kept_counts() if each.worker_id != count.worker_id]
        lines = [f"{c.worker_id} {c.claims} {c.adoption}\n" for c in [*others, count][-KEPT_COUNTS:]]
        draft = self._root / ".claim-counts"
        with draft.open("w", encoding="ascii") as text:
            text.writelines(lines)
            text.flush()
            os.fsync(text.fileno())
        draft.replace(self._root / "claim-counts")

    def _kept_counts(self) -> list[ClaimCount]:
        try:
            text = (self._root / "claim-counts").read_text(encoding="ascii")
        except FileNotFoundError:
            return []
        rows = [line.split() for line in text.splitlines()]
        return [ClaimCount(row[0], int(row[1]), int(row[2])) for row in rows if len(row) == 3]

    @contextmanager
    def _claims_file(self) -> Iterator[int]:
        descriptor = os.open(self._root / "highest-claim", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)

    def _kept_claim(self) -> int:
        try:
            return int((self._root / "highest-claim").read_text(encoding="ascii") or 0)
        except (FileNotFoundError, ValueError):
            return 0


@dataclass(frozen=True, slots=True)
class WireLog:
    """What a dead worker's journal says. Not ``trusted``: a slot was torn, or the machine restarted."""

    records: dict[tuple[str, int], Outcome | None]
    trusted: bool
    proof: str
    claims: int

    def verdict(self, job_id: str, attempt: int) -> Outcome | Wired:
        known = (job_id, attempt) in self.records
        outcome = self.records.get((job_id, attempt))
        if outcome is not None:
            return outcome
        if known or not self.trusted:
            return Wired.MAYBE
        return Wired.NEVER


@cache
def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


@contextmanager
def _locked(path: Path) -> Iterator[int | None]:
    """An existing file, locked; None if it is not there or somebody holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        yield None
        return
    try:
        same = path.exists() and path.stat().st_ino == os.fstat(descriptor).st_ino
        yield descriptor if same else None
    finally:
        os.close(descriptor)


def _refuse_others_hands(folder: Path) -> None:
    """Whoever may write here can replace a lock, and make a living worker look dead."""
    found = folder.stat()
    if found.st_mode & stat.S_IWOTH or found.st_uid not in (os.geteuid(), 0):
        raise RefusedByRule(
            f"Other users may write the state directory {folder}: they could make a living worker look dead. "
            f"Give it to this user alone (chmod 700 {folder}), or set STATE_DIR to another folder."
        )


def _refuse_false_locks(path: Path) -> None:
    """Some network file systems turn flock into a lock per process: there it proves nothing.

    On a real one a second open of the file, even by the same process, is refused the lock.
    """
    second = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    finally:
        os.close(second)
    raise RefusedByRule(
        f"The file system of {path.parent} does not keep locks between processes (NFS?): a dead worker could "
        "not be told from a living one. Set STATE_DIR to a local disk."
    )


def _slot(text: str) -> bytes:
    body = text.encode("utf-8", "replace")[:_TEXT].ljust(_TEXT)
    return b"%b %08x\n" % (body, crc32(body))


def _read_journal(descriptor: int, worker_id: str) -> WireLog:
    content = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    records: dict[tuple[str, int], Outcome | None] = {}
    unfinished = 0
    header = _read_slot(content[:SLOT]) or []
    # One that was cut off, or lost its beginning, may have lost anything.
    trusted = len(header) in (7, 9) and len(content) == int(header[6]) * SLOT
    for start in range(0, len(content), SLOT):
        raw = content[start : start + SLOT]
        unfinished += _is_unfinished(raw)
        words = _read_slot(raw)
        if words is None:
            trusted = False
        elif words and words[0] == "W":
            records.setdefault((words[1], int(words[2])), None)
        elif words and words[0] == "R":
            records[(words[1], int(words[2]))] = _unspell(words[3], words[4] if len(words) > 4 else "")
        elif words and (words[0] != "H" or words[3] != worker_id):
            trusted = False
    # A worker writes one slot at a time, so it leaves at most one unfinished.
    claims = int(header[7]) if trusted and len(header) > 7 else 0
    return WireLog(records, trusted and unfinished <= 1, "its lock is free", claims)


def _is_unfinished(raw: bytes) -> bool:
    """Its writer was killed before the last byte. An unfinished W never left; an unfinished R has its W."""
    return raw[:1] == b"\0" and any(raw)


def _read_slot(raw: bytes) -> list[str] | None:
    """The words of a slot; none for one never written or never finished, None for a torn one."""
    if raw[:1] == b"\0":
        return []
    body, checksum = raw[:_TEXT], raw[_TEXT + 1 : -1]
    if len(raw) != SLOT or checksum != b"%08x" % crc32(body):
        return None
    text = body.decode("utf-8", "replace").rstrip()
    return text.split(" ", 8) if text.startswith("H") else text.split(" ", 4)


def _claim_in(path: Path) -> int:
    words = _header_of(path)
    return int(words[5]) if len(words) > 5 else 0


def _count_in(path: Path) -> ClaimCount | None:
    """None where nothing was claimed, or an earlier version wrote the file."""
    words = _header_of(path)
    return ClaimCount(words[3], int(words[7]), int(words[8])) if len(words) > 8 and words[7] != "0" else None


def _header_of(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            words = _read_slot(file.read(SLOT)) or []
    except OSError:
        return []
    return words if words and words[0] == "H" else []


def _spell(outcome: Outcome) -> str:
    match outcome:
        case Accepted(message_id):
            return f"A {message_id}"
        case Refused(code, reason):
            return f"F {code}|{reason}"
        case Deferred(code, reason, _, throttle):
            return f"D {'t' if throttle else 'n'}|{code}|{reason}"
        case InDoubt(reason):
            return f"I {reason}"


def _unspell(kind: str, rest: str) -> Outcome | None:
    first, _, others = rest.partition("|")
    if kind == "A":
        return Accepted(rest)
    if kind == "F":
        return Refused(first, others)
    if kind == "D":
        code, _, reason = others.partition("|")
        return Deferred(code, reason, throttle=first == "t")
    return InDoubt(rest) if kind == "I" else None
