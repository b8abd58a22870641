#!/usr/bin/env python3
"""What many workers on one PostgreSQL do: runs a second, appends, takeovers, how fast news cross, statements of readers, connections.

Needs what store.py needs, and the programs of `mock.rs` and `appends.rs` (`--mock PROGRAM`, `--appends PROGRAM`; they are built if they are not
given). Each figure is printed
with its bar. The whole takes about five minutes; `--only takeover,news` takes a part.
"""
import argparse
import concurrent.futures
import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import store

LEASE_S = 3
SLOTS = 8


class Worker(store.Worker):
    """A worker with so many slots."""

    def __init__(self, program, folder, address, slots=SLOTS):
        self.process = subprocess.Popen([program, "serve", folder, "--listen", "127.0.0.1:0", "--store", address,
                                         "--max-concurrent-runs", str(slots)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline().strip()
        self.at = line[len("http://"):] or sys.exit("the worker did not start")

    def begin(self, name):
        return json.loads(self.ask("POST", "/agents/execute?async=true", {"loop": name}))["agent_run_id"]

    def kill(self):
        self.process.kill()
        self.process.wait()


class Bench:
    """The database, the mock server and the folder of all figures."""

    def __init__(self, arguments, postgres, folder, mock):
        self.arguments, self.postgres, self.folder = arguments, postgres, folder
        self.program = os.path.abspath(arguments.loopctl)
        self.schemas = 0
        names = {"steps": "mock-k10-l20-aprogress", "talks": "mock-k20-l300-aprogress", "thinks": "mock-k1-l120000-aprogress"}
        models = {name: {"provider": "openai", "base_url": f"http://127.0.0.1:{mock}/v1", "model": model} for name, model in names.items()}
        with open(os.path.join(folder, "loopctl.json"), "w", encoding="utf-8") as file:
            json.dump({"models": models}, file)
        for name in names:
            document = {"type": "loop", "name": name, "description": "A run to measure.",
                        "properties": {"mode": "react", "model": name, "objective": "Do the work.", "tools": [], "max_iterations": 30}}
            with open(os.path.join(folder, f"{name}.json"), "w", encoding="utf-8") as file:
                json.dump(document, file)

    def address(self):
        """A schema of its own."""
        self.schemas += 1
        return f"{self.postgres.url}?schema=w{self.schemas}"

    @contextlib.contextmanager
    def workers(self, count, slots=SLOTS):
        """Workers on a schema of their own, and its name."""
        self.schemas += 1
        schema = f"w{self.schemas}"
        address = f"{self.postgres.url}?schema={schema}&lease_ms={LEASE_S * 1000}"
        started = [Worker(self.program, self.folder, address, slots) for _ in range(count)]
        try:
            yield started, schema, lambda: Worker(self.program, self.folder, address, slots)
        finally:
            for worker in started:
                worker.kill()

    def until(self, statement, seconds):
        """The moment at which a statement says yes."""
        end = time.perf_counter() + seconds
        while self.postgres.sql(statement) != [["t"]]:
            if time.perf_counter() > end:
                sys.exit(f"not within {seconds} s: {statement}")
            time.sleep(0.01)
        return time.perf_counter()


def line(what, bar, found):
    print(f"{what:<72} {bar:<22} {found}", flush=True)


def throughput(bench):
    one = None
    for count in (1, 2, 4, 8):
        with bench.workers(count) as (workers, _, _):
            runs = bench.arguments.runs * count

            def run(number):
                answer = workers[number % count].run("steps")
                if answer["status"] != "completed":
                    sys.exit(f"a run failed: {answer}")
            with concurrent.futures.ThreadPoolExecutor(SLOTS * count) as pool:
                list(pool.map(run, range(SLOTS * count)))
                start = time.perf_counter()
                list(pool.map(run, range(runs)))
            rate = runs / (time.perf_counter() - start)
            one = one or rate
            line(f"runs/s, 10 steps of 20 ms, {count} x {SLOTS}", f"{one * count:.0f} (36 x {count} is ideal)", f"{rate:.1f}")


def stores(bench):
    """Runs a second of one worker, and the CPU time a step of worker and database, on PostgreSQL and on SQLite by turns."""
    for slots in (SLOTS, 8 * SLOTS):
        found = {"sqlite": [], "postgres": []}
        for turn in range(bench.arguments.turns):
            for kind in (("sqlite", "postgres"), ("postgres", "sqlite"))[turn % 2]:
                address = f"sqlite:{bench.folder}/stores{slots}-{turn}.db" if kind == "sqlite" else bench.address()
                worker = Worker(bench.program, bench.folder, address, slots)
                pids = (worker.process.pid, bench.postgres.process.pid)
                worker.play("steps", slots, slots)
                before = [store.cpu_of(pid) for pid in pids]
                taken = worker.play("steps", bench.arguments.runs, slots)
                us = [(store.cpu_of(pid) - begin) / bench.arguments.runs / store.STEPS * 1e6 for pid, begin in zip(pids, before)]
                found[kind].append((bench.arguments.runs / taken, *us))
                worker.close()
        (our_rate, ours, database), (rate, theirs, _) = ([statistics.median(values) for values in zip(*found[kind])] for kind in ("postgres", "sqlite"))
        what = f"one worker, 10 steps of 20 ms, {slots} at a time"
        line(f"runs/s, {what}: PostgreSQL, SQLite", "90% of SQLite's", f"{our_rate:.1f}, {rate:.1f}: {our_rate / rate:.0%}")
        line(f"us of CPU a step, {what}", "1.2 x SQLite's", f"{ours:.0f} + {database:.0f}, {theirs:.0f}: {(ours + database) / theirs:.2f}")


def appends(bench):
    """Events a second of one process with many runs, and their CPU time, beside SQLite; and events a second of several processes."""
    program = bench.arguments.appends or built("appends")

    def measured(stores, runs):
        """Events a second, and the CPU time of one in the process and in the database."""
        command = [program, "--seconds", str(bench.arguments.seconds), "--runs", str(runs), "--store"]
        before = store.cpu_of(bench.postgres.process.pid)
        started = [subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in stores]
        ended = [json.loads(process.communicate()[0]) for process in started]
        database = (store.cpu_of(bench.postgres.process.pid) - before) * 1e6 / sum(one["appends"] for one in ended)
        return sum(one["appends_s"] for one in ended), ended[0]["cpu_us"], database

    for runs, share in ((1, 1), (64, 1), (512, 0.7)):
        found = {"sqlite": [], "postgres": []}
        for turn in range(bench.arguments.turns):
            for kind in (("sqlite", "postgres"), ("postgres", "sqlite"))[turn % 2]:
                name = f"sqlite:{bench.folder}/appends{runs}-{turn}.db" if kind == "sqlite" else bench.address()
                found[kind].append(measured([name], runs))
        (ours, client, database), (theirs, whole, _) = ([statistics.median(values) for values in zip(*found[kind])] for kind in ("postgres", "sqlite"))
        bar = "-" if runs == 1 else f"{share:.0%} of SQLite's"
        line(f"appends/s of 500 bytes, one process, {runs} runs: PostgreSQL, SQLite", bar, f"{ours:.0f}, {theirs:.0f}: {ours / theirs:.0%}")
        bar = "1.2 x SQLite's" if runs == 64 else "-"
        line(f"us of CPU an append, one process, {runs} runs", bar, f"{client:.1f} + {database:.1f}, {whole:.1f}: {(client + database) / whole:.2f}")
    one = None
    for count in (1, 4, 8):
        found, _, _ = measured([bench.address()] * count, 32)
        one = one or found
        line(f"appends/s of 500 bytes, {count} processes x 32 runs", "-" if count == 1 else "more, to the cores", f"{found:.0f}: {found / one:.2f} of one")


def takeover(bench):
    """From the kill of a worker until each of its runs has another driver."""
    times = []
    with bench.workers(2) as (workers, schema, another):
        while len(times) < bench.arguments.takeovers:
            victim = workers.pop(0)
            # A worker whose slots are full does not take all at once.
            runs = [victim.begin("thinks") for _ in range(SLOTS // 2)]
            mine = ", ".join(f"'{run}'" for run in runs)
            held = f"SELECT count(driver) = {len(runs)} FROM {schema}.runs WHERE run_id IN ({mine})"
            bench.until(held, 10)
            before = dict(bench.postgres.sql(f"SELECT run_id, driver FROM {schema}.runs WHERE run_id IN ({mine})"))
            victim.kill()
            start = time.perf_counter()
            while before:
                for run, driver in bench.postgres.sql(f"SELECT run_id, driver FROM {schema}.runs WHERE driver IS NOT NULL AND run_id IN ({mine})"):
                    if before.get(run, driver) != driver:
                        times.append(time.perf_counter() - start)
                        del before[run]
                if time.perf_counter() - start > 10 * LEASE_S:
                    sys.exit("a run was not taken over")
            for run in runs:
                workers[0].ask("DELETE", f"/agents/{run}")
            bench.until(f"SELECT count(*) = 0 FROM {schema}.runs WHERE status = 'running'", 30)
            workers.append(another())
    times.sort()
    most = times[int(len(times) * 0.99) - 1]
    line(f"takeover after kill -9, {len(times)} runs, lease {LEASE_S} s: median, 99 of 100", f"{LEASE_S + 1} s", f"{statistics.median(times):.2f} s, {most:.2f} s")


def elsewhere(bench):
    """From the answer of a worker whose slots are full until another worker has the run."""
    times = []
    with bench.workers(1, 1) as (workers, schema, _):
        full = workers[0]
        full.begin("thinks")
        address = f"{bench.postgres.url}?schema={schema}&lease_ms={LEASE_S * 1000}"
        workers.append(Worker(bench.program, bench.folder, address, 1000))
        time.sleep(2)
        for number in range(bench.arguments.starts):
            # Not in step with the looks at the queue.
            time.sleep(0.037 * (number % 27))
            run = full.begin("thinks")
            start = time.perf_counter()
            times.append(bench.until(f"SELECT driver IS NOT NULL FROM {schema}.runs WHERE run_id = '{run}'", 30) - start)
    line(f"a run made on a full worker A starts on B, {len(times)} runs: median, most", "0.5 s", f"{statistics.median(times):.2f} s, {max(times):.2f} s")


def arrivals(worker, run, found):
    """The moment at which each event of a run reaches a reader."""
    connection = http.client.HTTPConnection(worker.at, timeout=60)
    connection.request("GET", f"/agents/{run}/events")
    for text in connection.getresponse():
        if text.startswith(b"id: "):
            found[text.strip()] = time.perf_counter()


def news(bench):
    """What a reader on another worker gets later than one on the run's."""
    late = []
    with bench.workers(2) as (workers, _, _):
        for _ in range(3):
            run = workers[0].begin("talks")
            near, far = {}, {}
            readers = [threading.Thread(target=arrivals, args=(worker, run, found)) for worker, found in zip(workers, (near, far))]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
            # The first events were there before the readers.
            late += [far[event] - near[event] for event in list(near)[8:]]
    line(f"an event on A reaches a reader on B, {len(late)} events: median, most", "0.5 s", f"{statistics.median(late):.2f} s, {max(late):.2f} s")


def readers(bench):
    """Statements a second with readers on another worker's run, and on the run's own."""
    for what, at in (("B", 1), ("A", 0)):
        with bench.workers(2) as (workers, schema, _):
            run = workers[0].begin("thinks")
            rates = []
            for count in (0, 100):
                for _ in range(count):
                    threading.Thread(target=arrivals, args=(workers[at], run, {}), daemon=True).start()
                time.sleep(5)
                calls = f"SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query LIKE '%{schema}%.%'"
                before, start = bench.postgres.number(calls), time.perf_counter()
                time.sleep(5)
                rates.append((bench.postgres.number(calls) - before) / (time.perf_counter() - start))
            workers[0].ask("DELETE", f"/agents/{run}")
        line(f"statements/s of 2 workers, and with 100 readers on {what} of a run on A", "one look-up: + 4", f"{rates[0]:.1f}, {rates[1]:.1f}")


def connections(bench):
    open_now = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    for runs in (1, bench.arguments.many):
        with bench.workers(1, runs) as (workers, schema, _):
            with concurrent.futures.ThreadPoolExecutor(32) as pool:
                list(pool.map(lambda _: workers[0].begin("thinks"), range(runs)))
            bench.until(f"SELECT count(driver) = {runs} FROM {schema}.runs", 120)
            line(f"connections of a worker that drives {runs} runs", "4", f"{bench.postgres.number(open_now):.0f}")


FIGURES = {"throughput": throughput, "stores": stores, "appends": appends, "takeover": takeover, "elsewhere": elsewhere, "news": news, "readers": readers, "connections": connections}


def built(name):
    command = ["cargo", "bench", "--no-run", "--bench", name, "--message-format", "json"]
    made = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return next(found["executable"] for found in map(json.loads, made) if found.get("executable") and found["target"]["name"] == name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loopctl", default="target/release/loopctl", help="the program (target/release/loopctl)")
    parser.add_argument("--mock", help="the program of mock.rs")
    parser.add_argument("--appends", help="the program of appends.rs")
    parser.add_argument("--seconds", type=float, default=5, help="the length of a measurement of appends (5)")
    parser.add_argument("--turns", type=int, default=3, help="turns of SQLite and PostgreSQL (3)")
    parser.add_argument("--runs", type=int, default=200, help="runs for each worker (200)")
    parser.add_argument("--takeovers", type=int, default=100, help="runs that are taken over (100)")
    parser.add_argument("--starts", type=int, default=50, help="runs that start on another worker (50)")
    parser.add_argument("--many", type=int, default=10_000, help="runs of one worker, whose connections are counted (10000)")
    parser.add_argument("--only", default=",".join(FIGURES), help=f"figures ({','.join(FIGURES)})")
    arguments = parser.parse_args()
    mock = subprocess.Popen([arguments.mock or built("mock"), "--port", "0"], stdout=subprocess.PIPE, text=True)
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        folder, data = os.path.join(top, "loops"), os.path.join(top, "pg")
        os.mkdir(folder)
        os.mkdir(data)
        bench_store = store.Postgres(data)
        with contextlib.closing(bench_store):
            try:
                bench = Bench(arguments, bench_store, folder, mock.stdout.readline().strip())
                print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
                for name in arguments.only.split(","):
                    FIGURES[name](bench)
            finally:
                mock.kill()


if __name__ == "__main__":
    main()
