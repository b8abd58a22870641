#!/usr/bin/env python3
"""The soak: a million steps in one process with 1,000 runs at once, 100,000 runs in one store.

Needs Python 3.9, Linux (/proc) and nothing else. It builds in release mode first, as figures.py does;
`--no-build --programs` leaves that out. The load driver plays the runs against the mock server while
this script looks at its process once a second: resident memory, open file descriptors, CPU. Then the
release program plays runs with that store and with one of 100 runs, turn about. It takes about ten
minutes and 3 GB below TMPDIR.
"""
import argparse
import glob
import json
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

from figures import Bench, build

TICK = os.sysconf("SC_CLK_TCK")


def look(pid):
    """Resident MB, open files, and seconds of CPU of a process; None when it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            status = dict(line.split(":", 1) for line in file)
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            stat = file.read().rsplit(")", 1)[1].split()
        files = len(os.listdir(f"/proc/{pid}/fd"))
        return int(status["VmRSS"].split()[0]) / 1024, files, (int(stat[11]) + int(stat[12])) / TICK
    except (FileNotFoundError, ProcessLookupError, KeyError):
        return None


def child(pid):
    """The one process that this one started."""
    for _ in range(500):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = file.read().split()
        if children:
            return int(children[0])
        time.sleep(0.01)
    sys.exit("the server was not started")


def soak(bench, folder, arguments):
    """Plays the runs; samples of (steps, MB, files, CPU s, wall s), and the line of the driver."""
    bench.stats()
    more = bench.served if arguments.serve else []
    more = more + ([] if arguments.memory else ["--durable"])
    command = [bench.programs["load"], "--base-url", bench.base, "--steps", arguments.steps, "--runs", arguments.runs,
               "--concurrency", arguments.concurrency, "--latency", arguments.latency, *more]
    driver = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": folder})
    pid = child(driver.pid) if arguments.serve else driver.pid
    samples, steps, start, kept = [], 0, time.monotonic(), set()
    while driver.poll() is None:
        time.sleep(1)
        steps += bench.stats()["requests"]
        seen = look(pid)
        if seen:
            samples.append((steps, *seen, time.monotonic() - start))
        for path in glob.glob(f"{folder}/.*/*.db") + glob.glob(f"{folder}/.*/*.db-wal"):
            # The driver's folder goes with it: a second name keeps the store.
            name = os.path.join(folder, "kept" + path[path.index(".db"):])
            if name not in kept:
                os.link(path, name)
                kept.add(name)
        if arguments.watch and samples:
            print("%9d steps %8.1f MB %5d files %8.1f CPU s %7.1f s" % samples[-1], file=sys.stderr, flush=True)
    figures = json.loads(driver.stdout.read())
    if figures["ok_runs"] != figures["runs"]:
        sys.exit(f"{figures['ok_runs']} of {figures['runs']} runs were right: {figures['errors']}")
    return samples, figures


def share(samples, all_steps, begin, end):
    """The samples of this part of the way, in percent."""
    return [sample for sample in samples if begin * all_steps <= sample[0] * 100 < end * all_steps]


def per_step(part):
    """Microseconds of CPU and of the clock that a step took."""
    steps = part[-1][0] - part[0][0]
    return [(part[-1][at] - part[0][at]) / steps * 1e6 for at in (3, 4)]


def play(program, folder, store, steps):
    """The milliseconds that one run of so many steps took, and its milliseconds of CPU."""
    start, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, "run", "loop.json", "--script", f"{steps}.json", "--store", f"sqlite:{store}", "--output", "json"],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    return (time.perf_counter() - start) * 1000, cpu * 1000


def stores(program, folder, full, turns):
    """A step with a store of 100 runs and with the full one, turn about: a run of 201 steps less one of one step."""
    document = {"type": "loop", "properties": {"mode": "react", "objective": "Log.", "tools": [], "max_iterations": 500}}
    done = {"thought": "done", "action": "__complete__", "action_input": {"answer": "ok"}}
    log = [{"thought": f"step {n}", "action": "__log_progress__", "action_input": {"message": f"step {n} says {n * 7919 % 100003}"}} for n in range(200)]
    for name, content in (("loop", document), ("1", {"replies": [done]}), ("201", {"replies": [*log, done]})):
        with open(os.path.join(folder, f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump(content, file)
    few = os.path.join(folder, "few.db")
    for _ in range(100):
        play(program, folder, few, 1)
    steps, starts = {few: [], full: []}, {few: [], full: []}
    for turn in range(turns):
        for store in ((few, full) if turn % 2 == 0 else (full, few)):
            short, long = play(program, folder, store, 1), play(program, folder, store, 201)
            steps[store].append([(b - a) / 200 * 1000 for a, b in zip(short, long)])
            starts[store].append(short)
    for at, what in enumerate(("by the clock", "of CPU")):
        middle = [statistics.median(of[at] for of in steps[store]) for store in (few, full)]
        ratio = statistics.median(b[at] / a[at] for a, b in zip(steps[few], steps[full]))
        whole = [statistics.median(of[at] for of in starts[store]) for store in (few, full)]
        print("a step {}: {:.0f} us with 100 runs in the store, {:.0f} us with all: ratio {:.2f} (bar 1.50); "
              "a run of one step from start to exit {:.1f} and {:.1f} ms; {} turns".format(what, *middle, ratio, *whole, turns))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000, help="how many runs (100,000)")
    parser.add_argument("--steps", type=int, default=10, help="tool calls of each; the completion is one step more (10)")
    parser.add_argument("--concurrency", type=int, default=1000, help="how many at once (1,000)")
    parser.add_argument("--latency", type=int, default=150, help="ms that the model takes: so long that all runs are under way at once (150)")
    parser.add_argument("--turns", type=int, default=40, help="how often each store is played; 0 leaves that out (40)")
    parser.add_argument("--memory", action="store_true", help="the journal in memory, which keeps all runs: what one costs")
    parser.add_argument("--serve", action="store_true", help="through HTTP: the process looked at is the server")
    parser.add_argument("--watch", action="store_true", help="each look, on stderr")
    parser.add_argument("--no-build", action="store_true", help="the programs are given by --programs")
    parser.add_argument("--programs", help="JSON object: loopctl, load, mock")
    arguments = parser.parse_args()
    bench = Bench(json.loads(arguments.programs) if arguments.no_build else build())
    try:
        with tempfile.TemporaryDirectory() as folder:
            samples, figures = soak(bench, folder, arguments)
            report(samples, figures, arguments)
            if arguments.turns and not arguments.memory:
                full = os.path.join(folder, "kept.db")
                with sqlite3.connect(full) as connection:
                    runs, = connection.execute("SELECT count(*) FROM runs").fetchone()
                print(f"the store: {runs} runs, {os.path.getsize(full) / 1e6:.0f} MB", flush=True)
                stores(bench.programs["loopctl"], folder, full, arguments.turns)
    finally:
        bench.close()


def report(samples, figures, arguments):
    steps = arguments.runs * (arguments.steps + 1)
    early, late = share(samples, steps, 5, 10), share(samples, steps, 90, 99)
    middle = [statistics.median(sample[1] for sample in part) for part in (early[:5], late[-5:])]
    print(f"{steps} steps, {arguments.runs} runs, {arguments.concurrency} at once, {arguments.latency} ms a reply: {figures['wall_s']:.0f} s")
    print(f"resident: {middle[0]:.1f} MB after 5 %, {middle[1]:.1f} MB at the end: ratio {middle[1] / middle[0]:.3f} (bar 1.10); "
          f"highest {max(sample[1] for sample in samples):.1f} MB; {(middle[1] - middle[0]) * 1024 / (0.94 * arguments.runs):.2f} KB a run")
    files = [[sample[2] for sample in part] for part in (early, late)]
    print("open files: {} to {} early, {} to {} at the end".format(*(bound for part in files for bound in (min(part), max(part)))))
    cpu, wall = zip(per_step(early), per_step(late))
    print(f"CPU a step: {cpu[0]:.0f} us from 5 to 10 %, {cpu[1]:.0f} us from 90 to 99 %; by the clock {wall[0]:.0f} and {wall[1]:.0f} us")


if __name__ == "__main__":
    main()
