#!/usr/bin/env python3
"""A long load on one PostgreSQL: whether steps become slower as the store fills, and how many rows are dead.

Needs what store.py needs. Two workers play runs of ten steps by a script, so many at once that the store is what limits
them. The runs are cut into ten parts; for each part the table says the median and the 99th of 100 of the milliseconds that a
run took, the runs a second, the dead rows of each table of the journal as autovacuum left them (PostgreSQL's defaults), and the
memory of the workers. A million steps take about 2.5 minutes on two quiet cores, and 1.5 GB of disk.
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import sys
import tempfile
import time

import store

DEAD = """SELECT relname, n_live_tup, n_dead_tup FROM pg_stat_user_tables
    WHERE schemaname = 'loopctl' AND n_live_tup + n_dead_tup >= 1000 ORDER BY relname"""


def part(workers, runs, clients):
    """The milliseconds of each of so many runs, in order of size, and the seconds of all."""
    def one(number):
        start = time.perf_counter()
        run = workers[number % len(workers)].run("ten")
        if run["status"] != "completed":
            sys.exit(f"a run failed: {run}")
        return (time.perf_counter() - start) * 1000
    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        times = sorted(pool.map(one, range(runs)))
    return times, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loopctl", default="target/release/loopctl", help="the program (target/release/loopctl)")
    parser.add_argument("--runs", type=int, default=100_000, help="runs of ten steps (100000)")
    parser.add_argument("--clients", type=int, default=32, help="runs at once (32)")
    parser.add_argument("--json", help="a file for the figures")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.loopctl)
    figures = []
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        folder, data = os.path.join(top, "loops"), os.path.join(top, "pg")
        os.mkdir(folder)
        os.mkdir(data)
        store.project(folder)
        postgres = store.Postgres(data)
        with contextlib.closing(postgres):
            workers = [store.Worker(program, folder, postgres.url) for _ in range(2)]
            part(workers, 200, arguments.clients)
            print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n\n{'steps':>9}  {'median':>8}  {'99 %':>8}  {'runs/s':>7}  {'worker':>7}  dead rows", flush=True)
            for tenth in range(10):
                times, seconds = part(workers, arguments.runs // 10, arguments.clients)
                dead = {name: int(dead) / (int(live) + int(dead)) for name, live, dead in postgres.sql(DEAD)}
                found = {"steps": (tenth + 1) * arguments.runs // 10 * store.STEPS, "median_ms": times[len(times) // 2], "p99_ms": times[len(times) * 99 // 100],
                         "runs_s": len(times) / seconds, "worker_mb": max(store.memory_of(worker.process.pid) for worker in workers), "dead": dead}
                figures.append(found)
                shown = ", ".join(f"{name} {share:.1%}" for name, share in dead.items())
                print(f"{found['steps']:>9,}  {found['median_ms']:>5.0f} ms  {found['p99_ms']:>5.0f} ms  {found['runs_s']:>7.0f}  {found['worker_mb']:>4.0f} MB  {shown}", flush=True)
            for worker in workers:
                worker.close()
    last, first = figures[-1], figures[1]
    print(f"\nthe last tenth over the second: median {last['median_ms'] / first['median_ms']:.2f}, 99 % {last['p99_ms'] / first['p99_ms']:.2f}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
