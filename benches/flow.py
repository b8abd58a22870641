#!/usr/bin/env python3
"""The figures of workflows: time, memory and store of loops over many items, and how fast they resume.

Needs Python 3.9, Linux and nothing else. It builds in release mode first; `--loopctl PROGRAM` leaves that out. A script
answers all calls at once, so that what is measured is the engine, the driver and the journal. It takes about two
minutes, most of them for the syncs of `max_concurrency` 1.
"""
import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ITEMS = 10_000
REACT = 1_000
ACTION = {"action_name": "a", "kind": "http", "description": "Does.", "http_method": "POST",
          "url": "https://tools.example.com/a", "parameters": {"type": "object"}}
SCRIPT = {"replies": [{"thought": "t", "action": "__complete__", "action_input": {"answer": "fine"}}],
          "tools": {"a": [{"ok": 1}]}}
CALL = {"type": "a", "properties": {"id": "@one.id"}}
ASK = {"type": "PbotApproval", "filter": {"condition": {"equal": ["@one.id", 9000]}}, "properties": {"comment": "Go on?"}}
JUDGE = {"id": "judge", "type": "loop", "properties": {"mode": "react", "tools": [], "objective": "Judge {{one.id}}."}}


def item(number, size):
    """An item of so many bytes as JSON."""
    plain = {"id": number, "note": ""}
    return {**plain, "note": "x" * max(size - len(json.dumps(plain)), 0)} if size else {"id": number}


def peak(pid):
    """The most resident memory of a process so far, in MB; None when it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return next((int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM")), None)
    except (FileNotFoundError, ProcessLookupError):
        return None


class Flow:
    """A folder with one workflow, its input and its store."""

    def __init__(self, program, folder):
        self.program, self.folder, self.number = program, folder, 0

    def write(self, name, value):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file)

    def prepare(self, steps, concurrency, items, size=0):
        self.number += 1
        loop = {"mode": "foreach", "items_path": "@input.items", "item_variable_name": "one", "max_items": 1_000_000,
                "max_concurrency": concurrency, "summary_key": "counts", "actions_to_execute": steps}
        each = {"id": "each", "type": "loop", "properties": loop}
        self.write("workflow.json", {"name": "w", "definition": {"output": "@counts", "actions": [each]}})
        self.write("actions/a.json", [ACTION])
        self.write("script.json", SCRIPT)
        self.write("input.json", {"items": [item(number, size) for number in range(items)]})

    @property
    def store(self):
        return os.path.join(self.folder, f"runs{self.number}.db")

    def command(self, *arguments):
        return [self.program, *arguments, "--script", "script.json", "--store", f"sqlite:{self.store}", "--output"]

    def run(self, expected=0):
        """Runs it: seconds and the most resident memory in MB."""
        command = self.command("run", "workflow.json", "--input-file", "input.json", "--run-id", "r") + ["json"]
        begun, memory = time.monotonic(), 0
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen(command, cwd=self.folder, stdout=out, stderr=out)
            while process.poll() is None:
                # Not that of `wait`, which counts this script's own memory from before the program began.
                memory = peak(process.pid) or memory
                time.sleep(0.002)
            seconds = time.monotonic() - begun
            if process.returncode != expected:
                out.seek(0)
                sys.exit(f"exit {process.returncode}: {out.read()[-2000:]}")
        return seconds, memory

    def resume(self):
        """Approves what waits: seconds from the start of the process to the next call."""
        begun = time.monotonic()
        command = self.command("resume", "r", "--approve") + ["ndjson"]
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True) as process:
            first = next(time.monotonic() - begun for line in process.stdout if '"step_started"' in line)
            process.stdout.read()
        return first

    def bytes(self):
        """The size of the store, without its log."""
        with sqlite3.connect(self.store) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return os.path.getsize(self.store)


def sync(folder, count):
    """Seconds of one sync: a record for each of so many transactions, with the journal's settings of SQLite."""
    connection = sqlite3.connect(os.path.join(folder, "floor.db"), isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS events (text TEXT)")
    begun = time.monotonic()
    for _ in range(count):
        connection.execute("INSERT INTO events VALUES (?)", ("x" * 200,))
    return (time.monotonic() - begun) / count


def figures(program, folder, turns):
    flow = Flow(program, folder)

    def played(steps, concurrency, items, size=0):
        runs = []
        for _ in range(turns):
            flow.prepare(steps, concurrency, items, size)
            runs.append(flow.run())
        return [statistics.median(values) for values in zip(*runs)]

    start, empty = played([CALL], 100, 0)
    together, _ = played([CALL], 100, ITEMS)
    yield "10,000 calls, max_concurrency 100: s", "5 s", f"{together:.2f}", ""

    shares = []
    for _ in range(10):
        # Small parts in turns: a disk that others use too is not equally fast all the time.
        before = sync(folder, ITEMS // 20)
        flow.prepare([CALL], 1, ITEMS // 10)
        alone = flow.run()[0] - start
        floor = statistics.mean([before, sync(folder, ITEMS // 20)]) * ITEMS / 10
        shares.append((alone / floor, alone * 10, floor * 10))
    share, alone, floor = sorted(shares)[len(shares) // 2]
    yield "the same one after the other, over a sync for each", "1.10", f"{share:.2f}", f"{alone:.1f} s over {floor:.1f} s, the median of ten parts"

    for name, count, size, bar in (("10,000 calls", ITEMS, 0, "20 MB"), ("10,000 calls, items of 440 bytes", ITEMS, 440, "20 MB"),
                                   ("100,000 calls", 10 * ITEMS, 0, "120 MB"),
                                   ("100,000 calls, items of 440 bytes", 10 * ITEMS, 440, "120 MB")):
        memory = played([CALL], 100, count, size)[1]
        yield f"{name}: MB over a run without items", bar, f"{memory - empty:.1f}", f"{memory:.1f} over {empty:.1f} MB"

    flow.prepare([JUDGE], 10, 0)
    flow.run()
    before = flow.bytes()
    flow.prepare([JUDGE], 10, REACT)
    seconds, memory = flow.run()
    store = (flow.bytes() - before) / REACT / 1024
    yield "a react step: KB of the store", "6 KB", f"{store:.1f}", f"{seconds / REACT * 1000:.1f} ms each, {memory - empty:.1f} MB over"

    resumed = []
    for _ in range(turns):
        flow.prepare([ASK, CALL], 1, ITEMS)
        flow.run(expected=3)
        resumed.append(flow.resume())
    yield "resume at 9,000 of 10,000, to the next call: s", "0.5 s", f"{statistics.median(resumed):.2f}", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3, help="each figure is the median over so many")
    parser.add_argument("--loopctl", help="the program, built already")
    arguments = parser.parse_args()
    program = arguments.loopctl
    if not program:
        subprocess.run(["cargo", "build", "--release", "--bin", "loopctl", "--locked"], cwd=ROOT, check=True)
        program = os.path.join(ROOT, "target", "release", "loopctl")
    print(f"{os.cpu_count()} cores, {arguments.turns} turns, load {os.getloadavg()[0]:.1f}\n")
    print(f"{'what':52} {'bar':>8} {'reached':>9}   how")
    with tempfile.TemporaryDirectory() as folder:
        for what, bar, reached, how in figures(os.path.abspath(program), folder, arguments.turns):
            print(f"{what:52} {bar:>8} {reached:>9}   {how}", flush=True)


if __name__ == "__main__":
    main()
