"""Every call to the operating system fails once: calls_test.py MLLMSIM FAIL_CALLS.so

For run, sweep, merge, report and trace, each n-th write, fsync, rename, open, read and mmap of theirs fails, with ENOSPC and with
EIO; then the disk is full after some bytes, for many sizes. Each time: exit 3 and a message that names a file, or success if the failure
does no harm; no file is half written under its final name, earlier results are as they were or replaced by whole ones; the next try
gives the same bytes as if nothing had happened.

A few of each by default; all with MLLMSIM_ALL_FAULTS=1.
"""

import errno
import pathlib
import sys
import unittest

from faulty import ALL, CASES, Place, results, size_of, whole

SHIM = str(pathlib.Path(sys.argv.pop(2)).resolve())
PLACE = Place(sys.argv.pop(1))
CALLS = ["write", "fsync", "rename", "open", "read", "mmap"]
ERRORS = [errno.ENOSPC, errno.EIO]
FEW = 3  # of a kind of calls of a command, unless all
COUNTS = {}


def some(numbers, few):
    numbers = list(numbers)
    if ALL or len(numbers) <= few:
        return numbers
    return sorted({numbers[i * (len(numbers) - 1) // (few - 1)] for i in range(few)})


class Calls(unittest.TestCase):
    def counted(self, case, call):
        """How often the command makes this call on files of its place."""
        where = PLACE.fresh(case)
        count = PLACE.dir / "count"
        count.unlink(missing_ok=True)
        self.faulty(where, case, FAULT_CALL=call, FAULT_COUNT=count)
        return int(count.read_text())

    def faulty(self, where, case, **settings):
        return PLACE.call(where, case.arguments, LD_PRELOAD=SHIM, FAULT_UNDER=PLACE.dir, **settings)

    def holds(self, case, expected, where, before, done, what):
        out = where / "out"
        self.assertIn(done.returncode, (0, 3), f"{what}: {done.stderr}")
        found = results(out)
        self.assertEqual(list(whole(found, before, expected)), [], what)
        if done.returncode == 0:
            self.assertEqual(found, expected, what)
        else:
            self.assertRegex(done.stderr, r"(?m)^error: .*(out|given)|^error: out of memory|standard output", what)
        again = PLACE.call(where, case.arguments)
        self.assertEqual(again.returncode, 0, f"second try after {what}: {again.stderr}")
        self.assertEqual(results(out), expected, f"second try after {what}")

    def test_each_call_fails_once(self):
        for case in CASES:
            expected = PLACE.expected(case)
            for call in CALLS:
                total = self.counted(case, call)
                injected = harmless = 0
                for n in some(range(1, total + 1), FEW):
                    for error in ERRORS:
                        where = PLACE.fresh(case)
                        before = results(where / "out")
                        done = self.faulty(where, case, FAULT_CALL=call, FAULT_AT=n, FAULT_ERROR=error)
                        with self.subTest(case=case.name, call=call, n=n, error=errno.errorcode[error]):
                            self.holds(case, expected, where, before, done, f"{case.name}: {call} {n} of {total} fails with {errno.errorcode[error]}")
                        injected += 1
                        harmless += done.returncode == 0
                print(f"{case.name}: {injected} faults in {total} calls of {call}, {harmless} harmless", flush=True)
                COUNTS["calls"] = COUNTS.get("calls", 0) + injected

    def test_the_disk_is_full_after_some_bytes(self):
        for case in CASES:
            expected = PLACE.expected(case)
            size = size_of(expected) + 20_000  # the journal, and some
            sizes = some(range(0, size, max(1, size // 60)), FEW)
            for room in sizes:
                where = PLACE.fresh(case)
                before = results(where / "out")
                done = self.faulty(where, case, FAULT_ROOM=room)
                with self.subTest(case=case.name, room=room):
                    self.holds(case, expected, where, before, done, f"{case.name}: room for {room} bytes")
            print(f"{case.name}: {len(sizes)} sizes of a full disk up to {size} bytes", flush=True)
            COUNTS["disks"] = COUNTS.get("disks", 0) + len(sizes)

    def test_a_full_disk_changes_nothing_of_earlier_results(self):
        for case in CASES:
            where = PLACE.fresh(case)
            before = results(where / "out")
            done = self.faulty(where, case, FAULT_ROOM=size_of(before) // 2)
            with self.subTest(case=case.name):
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertEqual(results(where / "out"), before)


if __name__ == "__main__":
    program = unittest.main(exit=False)
    print(f"{COUNTS.get('calls', 0)} calls failed, {COUNTS.get('disks', 0)} sizes of a full disk")
    sys.exit(not program.result.wasSuccessful())
