#!/usr/bin/env python3
"""Lists, searches and reports over a store of 100,000 runs, in SQLite and in PostgreSQL.

Needs what store.py needs. One worker makes the runs by a script: most of ten steps, some that fail, and some that wait for a human,
each with a text of its own. Then each list, search, filter and report is asked for, as the page and an operator do; the table says
the median of the milliseconds, and the script fails if one is over the bar. It takes some ten minutes and 2 GB of disk.
"""
import argparse
import concurrent.futures
import contextlib
import datetime
import http.client
import json
import os
import sys
import tempfile
import threading

import store

BAR_MS = 300
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


def measured(program, folder, address, arguments):
    """The milliseconds of each question."""
    worker = store.Worker(program, folder, address)
    with contextlib.closing(worker):
        fill(worker, arguments.runs, arguments.clients)
        return {name: worker.timed("GET", path, 9) for name, path in questions()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loopctl", default="target/release/loopctl", help="the program (target/release/loopctl)")
    parser.add_argument("--runs", type=int, default=100_000, help="runs in each store (100000)")
    parser.add_argument("--clients", type=int, default=32, help="runs at once while they are made (32)")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.loopctl)
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        folder, data = os.path.join(top, "loops"), os.path.join(top, "pg")
        os.mkdir(folder)
        os.mkdir(data)
        project(folder)
        sqlite = measured(program, folder, f"sqlite:{os.path.join(top, 'runs.db')}", arguments)
        postgres = store.Postgres(data)
        with contextlib.closing(postgres):
            of_postgres = measured(program, folder, postgres.url, arguments)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {arguments.runs:,} runs\n\n{'what':32} {'SQLite':>9} {'PostgreSQL':>11}")
    over = [name for name in sqlite if max(sqlite[name], of_postgres[name]) > BAR_MS]
    for name, time in sqlite.items():
        print(f"{name:32} {time:>6.0f} ms {of_postgres[name]:>8.0f} ms{'   over the bar' if name in over else ''}")
    if over:
        sys.exit(f"over {BAR_MS} ms: {', '.join(over)}")


if __name__ == "__main__":
    main()
