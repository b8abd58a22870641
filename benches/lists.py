#!/usr/bin/env python3
"""Lists, searches and reports over a store of 100,000 runs, in SQLite and in PostgreSQL.

Needs what store.py needs. One worker makes the runs by a script: most of ten steps, some that fail, and some that wait for a human,
each with a text of its own. Then each list, search, filter and report is asked for, as the page and an operator do; the table says
the median of the milliseconds, and the script fails if one is over the bar. It takes some ten minutes and 2 GB of disk; with
`--real 500` the others are copies of 500 real ones by SQL, over 29 days, which takes two minutes.
"""
import argparse
import concurrent.futures
import contextlib
import datetime
import http.client
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import store

BAR_MS = 300
DAYS = 29
NAMES = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Finn", "Gerd", "Hana", "Ines", "Jon")


def project(folder):
    """A folder with loops of ten steps, of two, one that fails and one that asks a human."""
    notes = [store.think("__log_progress__", {"message": f"{number} " + "x" * 100}) for number in range(store.STEPS)]
    done = store.think("__complete__", {"answer": "done"})
    scripts = {"ten": [*notes, done], "short": [*notes[:2], done], "fails": notes[:3],
               "asks": [*notes[:3], store.think("__pause_for_human__", {"question": "Refund it?"}), done]}
    texts = {"type": "object", "properties": {"order": {"type": "string"}, "customer": {"type": "string"}}, "required": ["order", "customer"]}
    models = {}
    for name, replies in scripts.items():
        models[name] = {"provider": "script", "script": f"{name}.script.json", "price": {"input": 1, "output": 2}, "context_tokens": 100_000}
        document = {"type": "loop", "name": name, "description": "A run to measure.", "input": texts,
                    "properties": {"mode": "react", "model": name, "objective": "Refund the order {{input.order}} of {{input.customer}}.",
                                   "tools": [], "max_iterations": 3 if name == "fails" else 20}}
        for file, value in ((f"{name}.script.json", {"replies": replies}), (f"{name}.json", document)):
            with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
                json.dump(value, out)
    with open(os.path.join(folder, "loopctl.json"), "w", encoding="utf-8") as out:
        json.dump({"models": models}, out)


def fill(worker, runs, clients):
    """Makes the runs, each over one of so many connections that stay open."""
    own = threading.local()

    def start(number):
        place = number % 20
        name = "fails" if place in (3, 13) else "asks" if number % 50 == 7 else "short" if place in (1, 5, 9) else "ten"
        body = json.dumps({"loop": name, "input": {"order": f"A-{number:06d}", "customer": f"{NAMES[number % 10]} {number % 997}"}})
        if not hasattr(own, "connection"):
            own.connection = http.client.HTTPConnection(worker.at, timeout=300)
        own.connection.request("POST", "/agents/execute", body, {"Content-Type": "application/json"})
        answer = own.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            sys.exit(f"a run was refused: {answer.status} {text[:300]}")

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        for _ in pool.map(start, range(runs)):
            pass


# The copies are the newer ones: lists go by the numbers of the rows, and so do the times.
COPY_POSTGRES = """
CREATE TEMP TABLE real AS SELECT * FROM loopctl.runs ORDER BY id;
INSERT INTO loopctl.runs ({columns}) SELECT {values} FROM real t, generate_series(1, {copies}) n ORDER BY n, t.id;
CREATE TEMP TABLE pairs AS SELECT r.id AS new, t.id AS old FROM real t, generate_series(1, {copies}) n, loopctl.runs r
  WHERE r.run_id = t.run_id || '-' || n;
ANALYZE pairs;
INSERT INTO loopctl.events (run, seq, fence, sum, event)
  SELECT p.new, e.seq, e.fence, e.sum, e.event FROM pairs p JOIN loopctl.events e ON e.run = p.old ORDER BY p.new, e.seq;
INSERT INTO loopctl.run_texts (run, sha256) SELECT p.new, x.sha256 FROM pairs p JOIN loopctl.run_texts x ON x.run = p.old;
INSERT INTO loopctl.audit (at_ms, action, actor, detail, run_id, loop_name, org, times)
  SELECT a.at_ms, a.action, a.actor, a.detail, a.run_id || '-' || n, a.loop_name, a.org, a.times
  FROM loopctl.audit a, generate_series(1, {copies}) n WHERE a.run_id IS NOT NULL ORDER BY n, a.id;
VACUUM ANALYZE;
"""


def moved(name, copies):
    """The value of a column in a copy."""
    if name == "run_id":
        return "t.run_id || '-' || n"
    if name in ("started_at_ms", "updated_at_ms"):
        return f"t.{name} - {DAYS * 86_400_000} + n * CAST({DAYS * 86_400_000 // copies} AS bigint)"
    return f"t.{name}"


def copy_in_postgres(postgres, copies):
    rows = postgres.sql("SELECT column_name FROM information_schema.columns WHERE table_schema = 'loopctl' AND table_name = 'runs' AND column_name <> 'id'")
    columns = [row[0] for row in rows]
    values = ", ".join(moved(name, copies) for name in columns)
    postgres.sql(COPY_POSTGRES.format(columns=", ".join(columns), values=values, copies=copies))


def copy_in_sqlite(path, copies):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as store:
        columns = {table: [row[1] for row in store.execute(f"PRAGMA table_info({table})")] for table in ("runs", "events", "run_texts", "audit")}
        store.execute("BEGIN")
        store.execute("CREATE TEMP TABLE real AS SELECT id, run_id FROM runs")
        first, count = store.execute("SELECT max(id), count(*) FROM real").fetchone()
        store.execute(f"CREATE TEMP TABLE pairs AS WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {copies})"
                      f" SELECT n, id AS old, {first} + (n - 1) * {count} + row_number() OVER (PARTITION BY n ORDER BY id) AS new FROM n, real")
        own = {"runs": "id", "events": "run", "run_texts": "run"}
        for table, key in own.items():
            values = ["pairs.new" if name == key else moved(name, copies).replace("|| n", "|| pairs.n").replace("n *", "pairs.n *") for name in columns[table]]
            store.execute(f"INSERT INTO {table} ({', '.join(columns[table])}) SELECT {', '.join(values)} FROM pairs JOIN {table} t ON t.{key} = pairs.old ORDER BY pairs.new")
        names = [name for name in columns["audit"] if name != "id"]
        values = ["t.run_id || '-' || pairs.n" if name == "run_id" else f"t.{name}" for name in names]
        store.execute(f"INSERT INTO audit ({', '.join(names)}) SELECT {', '.join(values)} FROM pairs JOIN real ON real.id = pairs.old JOIN audit t ON t.run_id = real.run_id ORDER BY pairs.new")
        store.execute("COMMIT")
        store.execute("ANALYZE")


def questions():
    """What an operator asks for, by its name."""
    def ago(**time):
        at = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(**time)
        return at.strftime("%Y-%m-%dT%H:%M:%SZ")
    hour, year = ago(hours=1), ago(days=365)
    yield from {
        "newest 50": "/agents", "newest 500": "/agents?limit=500", "sub-runs too": "/agents?called=true",
        "failed": "/agents?status=failed", "paused": "/agents?status=paused&limit=100", "running": "/agents?status=running",
        "failed or paused": "/agents?status=failed,paused&limit=100", "cancelled (none)": "/agents?status=cancelled",
        "of a loop": "/agents?loop=fails", "of no loop": "/agents?loop=nobody",
        "text of all": "/agents?search=refund", "text of one": "/agents?search=A-000042", "text of none": "/agents?search=nothing",
        "text of none, failed": "/agents?search=nothing&status=failed",
        "since an hour": f"/agents?since={hour}", "until a year ago (none)": f"/agents?until={year}",
        "failed, ended since an hour": f"/agents?status=failed&ended_since={hour}&limit=100",
        "ended until a year ago (none)": f"/agents?ended_until={year}",
        "usage": "/usage", "usage by loop": "/usage?by=loop", "usage, 1,000 journals": "/usage?journals=1000",
        "usage, no journals": "/usage?journals=0", "usage of a loop": "/usage?loop=fails", "usage, another zone": "/usage?zone=Europe/Berlin",
        "audit": "/audit", "audit of nobody": "/audit?token=nobody", "metrics": "/metrics", "workers": "/workers", "page": "/",
    }.items()


def stats(program, address):
    """The milliseconds of `loopctl stats`, from the start of the process to its end."""
    found = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([program, "stats", "--store", address, "--output", "json"], check=True, stdout=subprocess.DEVNULL)
        found.append((time.perf_counter() - start) * 1000)
    return statistics.median(found)


def measured(program, folder, address, arguments, copied):
    """The milliseconds of each question. `copied` makes the number of copies that it is given of each run."""
    real = min(arguments.real or arguments.runs, arguments.runs)
    with contextlib.closing(store.Worker(program, folder, address)) as worker:
        fill(worker, real, arguments.clients)
        if real == arguments.runs:
            times = {name: worker.timed("GET", path, 9) for name, path in questions()}
            return {**times, "loopctl stats": stats(program, address)}
    copied(arguments.runs // real - 1)
    with contextlib.closing(store.Worker(program, folder, address)) as worker:
        times = {name: worker.timed("GET", path, 9) for name, path in questions()}
    return {**times, "loopctl stats": stats(program, address)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loopctl", default="target/release/loopctl", help="the program (target/release/loopctl)")
    parser.add_argument("--runs", type=int, default=100_000, help="runs in each store (100000)")
    parser.add_argument("--real", type=int, help="how many are real; the others are copies of them. All, if it is left out")
    parser.add_argument("--clients", type=int, default=32, help="runs at once while they are made (32)")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.loopctl)
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        folder, data = os.path.join(top, "loops"), os.path.join(top, "pg")
        os.mkdir(folder)
        os.mkdir(data)
        project(folder)
        path = os.path.join(top, "runs.db")
        sqlite = measured(program, folder, f"sqlite:{path}", arguments, lambda copies: copy_in_sqlite(path, copies))
        postgres = store.Postgres(data)
        with contextlib.closing(postgres):
            of_postgres = measured(program, folder, postgres.url, arguments, lambda copies: copy_in_postgres(postgres, copies))
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {arguments.runs:,} runs\n\n{'what':32} {'SQLite':>9} {'PostgreSQL':>11}")
    over = [name for name in sqlite if max(sqlite[name], of_postgres[name]) > BAR_MS]
    for name, time in sqlite.items():
        print(f"{name:32} {time:>6.0f} ms {of_postgres[name]:>8.0f} ms{'   over the bar' if name in over else ''}")
    if over:
        sys.exit(f"over {BAR_MS} ms: {', '.join(over)}")


if __name__ == "__main__":
    main()
