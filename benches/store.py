#!/usr/bin/env python3
"""What runs cost their store: PostgreSQL and SQLite, a step, a run, a run that waits for a human, and a million of those.

Needs Python 3.9, Linux (/proc), the programs of PostgreSQL (initdb, postgres, psql, pgbench, and the extension
pg_stat_statements) and a build of loopctl (`--loopctl PROGRAM`). It starts a server of its own on a socket below TMPDIR, with
fsync on. Runs are played by a script, so a model takes no time. `--waiting 1000000` copies one real waiting run by SQL. The
figures are printed, and written to `--json FILE`, which capacity.py reads. It takes about five minutes and 4 GB.
"""
import argparse
import concurrent.futures
import contextlib
import glob
import http.client
import json
import os
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")
STEPS = 10
EVENT_BYTES = 500
APPEND = """
CREATE TABLE trial_runs (id bigint PRIMARY KEY, fence bigint NOT NULL, driver int);
INSERT INTO trial_runs SELECT n, 1, 1 FROM generate_series(1, 4096) n;
CREATE TABLE trial_events (run bigint, seq bigint, fence bigint NOT NULL, event bytea NOT NULL, PRIMARY KEY (run, seq));
CREATE SEQUENCE trial_seq;
"""
# As the append of loopctl: the row of each run is locked against a takeover, and one statement has the events of many runs.
BATCH = """
WITH n AS MATERIALIZED (SELECT nextval('trial_seq') AS n),
ok AS MATERIALIZED (SELECT a.run FROM generate_series(1, {size}) AS a(run) CROSS JOIN LATERAL
  (SELECT 1 FROM trial_runs r WHERE r.id = a.run + {size} * (:client_id % 8) AND r.fence = 1 AND r.driver = 1 FOR SHARE) r)
INSERT INTO trial_events SELECT ok.run + {size} * (:client_id % 8), n.n, 1, decode(repeat('ab', {bytes}), 'hex') FROM ok, n;
"""


def cpu_of(pid):
    """Seconds of CPU of a process and of its children, living and waited for."""
    def own(path):
        with open(path, encoding="ascii") as file:
            return [int(word) for word in file.read().rsplit(")", 1)[1].split()[11:15]]
    try:
        user, system, ended_user, ended_system = own(f"/proc/{pid}/stat")
        total = user + system + ended_user + ended_system
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = file.read().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return total / TICK + sum(cpu_of(int(child)) for child in children)


def memory_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        status = dict(line.split(":", 1) for line in file)
    return int(status["VmRSS"].split()[0]) / 1024


class Postgres:
    """A server of this measurement."""

    def __init__(self, folder):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin") + glob.glob("/usr/local/pgsql/bin"))
        beside = os.path.dirname(shutil.which("initdb") or "")
        self.bin = found[-1] if found else beside or sys.exit("PostgreSQL is not installed")
        self.folder = folder
        self.user = []
        if os.getuid() == 0:
            # The server refuses to run as root.
            self.user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
            shutil.chown(folder, "postgres", "postgres")
        data = os.path.join(folder, "data")
        subprocess.run([*self.user, f"{self.bin}/initdb", "-D", data, "-U", "loopctl", "-A", "trust", "-E", "UTF8", "--locale=C"],
                       check=True, stdout=subprocess.DEVNULL, cwd="/")
        settings = {"listen_addresses": "", "max_connections": 300, "shared_preload_libraries": "pg_stat_statements",
                    "pg_stat_statements.track_utility": "off", "shared_buffers": "512MB", "max_wal_size": "4GB"}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([*self.user, f"{self.bin}/postgres", "-D", data, "-k", folder, *options],
                                            stdout=log, stderr=log, cwd="/")
        for _ in range(600):
            ready = subprocess.run([f"{self.bin}/pg_isready", "-q", "-h", folder, "-U", "loopctl", "-d", "postgres"], check=False)
            if ready.returncode == 0:
                break
            time.sleep(0.05)
        self.sql("CREATE EXTENSION pg_stat_statements")
        self.url = f"postgres://loopctl@{folder.replace('/', '%2F')}/postgres"

    def sql(self, statement):
        """The rows of a statement, each a list of texts."""
        found = subprocess.run([f"{self.bin}/psql", "-XqAt", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-U", "loopctl",
                                "-d", "postgres"], input=statement, text=True, capture_output=True, check=False)
        if found.returncode:
            sys.exit(f"psql: {found.stderr}\n{statement[:400]}")
        return [line.split("\t") for line in found.stdout.splitlines()]

    def number(self, statement):
        return float(self.sql(statement)[0][0])

    def counters(self):
        """Statements, bytes of WAL, and seconds of CPU so far."""
        row = self.sql("SELECT coalesce(sum(calls), 0), pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') FROM pg_stat_statements WHERE query LIKE '%loopctl%.%'")[0]
        return [float(value) for value in row] + [cpu_of(self.process.pid)]

    def statements(self):
        """Mean milliseconds of each statement since the last reset, those that took most first."""
        rows = self.sql(r"""SELECT mean_exec_time, regexp_replace(left(query, 3000), '\s+', ' ', 'g') FROM pg_stat_statements
            WHERE query LIKE '%loopctl%.%' ORDER BY calls * mean_exec_time DESC""")
        return [(float(mean), query) for mean, query in rows]

    def bench(self, script, clients, seconds):
        """Transactions a second of a script, and microseconds of the server's CPU for each."""
        path = os.path.join(self.folder, "script.sql")
        with open(path, "w", encoding="utf-8") as file:
            file.write(" ".join(script.split()) + "\n")
        os.chmod(path, 0o644)
        syncs = "SELECT wal_sync FROM pg_stat_wal"
        before, synced = cpu_of(self.process.pid), self.number(syncs)
        found = subprocess.run([f"{self.bin}/pgbench", "-n", "-h", self.folder, "-U", "loopctl", "-M", "prepared", "-c", str(clients),
                                "-j", "1", "-T", str(seconds), "-f", path, "postgres"], capture_output=True, text=True, check=False)
        if found.returncode:
            sys.exit(found.stderr)
        count = next(int(line.split()[-1].split("/")[0]) for line in found.stdout.splitlines() if "actually processed" in line)
        return count / seconds, (cpu_of(self.process.pid) - before) / count * 1e6, (self.number(syncs) - synced) / seconds

    def close(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def think(action, value):
    return {"thought": f"I call {action} with {json.dumps(value)[:40]}.", "action": action, "action_input": value}


def project(folder):
    """A folder with three loops: of ten steps, of none, and one that asks a human."""
    notes = [{"message": f"{number} " + "x" * 100} for number in range(STEPS)]
    scripts = {
        "ten": [think("__log_progress__", note) for note in notes] + [think("__complete__", {"answer": "done"})],
        "none": [think("__complete__", {"answer": "done"})],
        "asks": [think("__log_progress__", note) for note in notes[:4]] + [think("__pause_for_human__", {"question": "Go on?"}), think("__complete__", {"answer": "done"})],
    }
    models = {}
    for name, replies in scripts.items():
        models[name] = {"provider": "script", "script": f"{name}.script.json"}
        with open(os.path.join(folder, f"{name}.script.json"), "w", encoding="utf-8") as file:
            json.dump({"replies": replies}, file)
        document = {"type": "loop", "name": name, "description": "A run to measure.",
                    "properties": {"mode": "react", "model": name, "objective": "Do the work. " * 20, "tools": [], "max_iterations": 20}}
        with open(os.path.join(folder, f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump(document, file)
    with open(os.path.join(folder, "loopctl.json"), "w", encoding="utf-8") as file:
        json.dump({"models": models}, file)


class Worker:
    """`loopctl serve` of a folder."""

    def __init__(self, program, folder, store):
        self.process = subprocess.Popen([program, "serve", folder, "--listen", "127.0.0.1:0", "--store", store],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline().strip()
        self.at = line[len("http://"):] or sys.exit("the worker did not start")

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.at, timeout=300)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status >= 400:
            sys.exit(f"{method} {path}: {answer.status} {text[:300]}")
        return text

    def run(self, name):
        return json.loads(self.ask("POST", "/agents/execute", {"loop": name}))

    def play(self, name, runs, clients=64):
        """Seconds that so many runs took, each waited for."""
        start = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            for run in pool.map(self.run, [name] * runs):
                if run["status"] not in ("completed", "paused"):
                    sys.exit(f"a run failed: {run}")
        return time.perf_counter() - start

    def timed(self, method, path, times=15):
        """The median of the milliseconds of a request."""
        found = []
        for _ in range(times):
            start = time.perf_counter()
            self.ask(method, path)
            found.append((time.perf_counter() - start) * 1000)
        return statistics.median(found)

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def commits(postgres, seconds):
    """Commits a second of one event, by so many connections; and what a statement of many events costs."""
    postgres.sql(APPEND)
    single = {clients: postgres.bench(BATCH.format(size=1, bytes=EVENT_BYTES), clients, seconds) for clients in (1, 4, 8)}
    batch = postgres.bench(BATCH.format(size=64, bytes=EVENT_BYTES), 4, seconds)
    per_event = (batch[1] - single[4][1]) / 63
    return {"commits_s": {clients: round(found[0]) for clients, found in single.items()},
            "syncs_s": {clients: round(found[2]) for clients, found in single.items()},
            "events_s_64_4": round(batch[0] * 64), "statement_cpu_us": round(single[4][1]), "event_cpu_us": round(per_event, 1)}


def cost(postgres, worker, name, runs):
    """What one run costs: statements, bytes of WAL, rows, bytes, and CPU of the database and of the worker."""
    tables = "SELECT sum(pg_total_relation_size(c.oid)), (SELECT count(*) FROM loopctl.events) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'loopctl' AND c.relkind = 'r'"
    worker.play(name, 64)
    size, before, own, wall = postgres.sql(tables)[0], postgres.counters(), cpu_of(worker.process.pid), time.perf_counter()
    worker.play(name, runs)
    taken = time.perf_counter() - wall
    after, grown = postgres.counters(), postgres.sql(tables)[0]
    return {"statements": (after[0] - before[0]) / runs, "wal_bytes": (after[1] - before[1]) / runs, "db_cpu_us": (after[2] - before[2]) / runs * 1e6,
            "worker_cpu_us": (cpu_of(worker.process.pid) - own) / runs * 1e6, "bytes": (float(grown[0]) - float(size[0])) / runs,
            "events": (float(grown[1]) - float(size[1])) / runs, "runs_s": runs / taken}


def idle(postgres, program, folder, seconds):
    """What a worker without work asks of the database each second."""
    found = []
    workers = []
    for count in (1, 5):
        while len(workers) < count:
            workers.append(Worker(program, folder, postgres.url))
        time.sleep(3)
        before = postgres.counters()
        time.sleep(seconds)
        after = postgres.counters()
        found.append([(one - other) / seconds for one, other in zip(after, before)])
    connections = postgres.number("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
    memory = statistics.median(memory_of(worker.process.pid) for worker in workers)
    for worker in workers:
        worker.close()
    return {"statements_s": (found[1][0] - found[0][0]) / 4, "db_cpu_us_s": (found[1][2] - found[0][2]) / 4 * 1e6,
            "connections": connections / 5, "memory_mb": memory}


COPY = """
SELECT id AS one FROM loopctl.runs WHERE loop_name = 'asks' AND status = 'paused' ORDER BY id LIMIT 1 \\gset
CREATE TEMP TABLE template AS SELECT * FROM loopctl.runs WHERE id = :one;
ALTER TABLE template DROP COLUMN id;
INSERT INTO loopctl.runs ({columns}) SELECT {values} FROM template t, generate_series(1, {count}) n;
INSERT INTO loopctl.events (run, seq, fence, sum, event)
  SELECT r.id, e.seq, e.fence, e.sum, e.event FROM loopctl.runs r, loopctl.events e WHERE r.run_id LIKE 'copy-%' AND e.run = :one;
INSERT INTO loopctl.run_texts (run, sha256) SELECT r.id, x.sha256 FROM loopctl.runs r, loopctl.run_texts x WHERE r.run_id LIKE 'copy-%' AND x.run = :one;
VACUUM ANALYZE loopctl.runs, loopctl.events, loopctl.run_texts;
CHECKPOINT;
"""


def waiting(postgres, program, folder, count):
    """Sizes with so many runs that wait for a human, and the times of what the workers ask, before and with them."""
    worker = Worker(program, folder, postgres.url)
    one = worker.run("asks")["agent_run_id"]

    def asked():
        postgres.sql("SELECT pg_stat_statements_reset()")
        for _ in range(7):
            # As a run whose worker died: it is claimed, and found to wait.
            postgres.sql(f"UPDATE loopctl.runs SET status = 'running', driver = NULL WHERE run_id = '{one}'")
            time.sleep(1.5)
            postgres.sql(f"UPDATE loopctl.runs SET status = 'paused', failed_take_ups = 0 WHERE run_id = '{one}'")
        new = [worker.play("none", 1, 1) * 1000 for _ in range(21)]
        decided = []
        for _ in range(11):
            run = worker.run("asks")["agent_run_id"]
            start = time.perf_counter()
            worker.ask("POST", f"/agents/{run}/resume", {"answer": "yes"})
            decided.append((time.perf_counter() - start) * 1000)
        times = {"a new run": statistics.median(new), "a decision": statistics.median(decided), "/readyz": worker.timed("GET", "/readyz"),
                 "/metrics": worker.timed("GET", "/metrics", 5), "a list of 50": worker.timed("GET", "/agents?status=paused")}
        for mean, query in postgres.statements():
            for name, part in (("claim", "IS NOT DISTINCT FROM"), ("queue", "GROUP BY"), ("append", "unnest"), ("callbacks", "callback_at <= ")):
                if part in query and f"statement {name}" not in times:
                    times[f"statement {name}"] = mean
        return times

    time.sleep(2)
    before = asked()
    columns = [row[0] for row in postgres.sql("SELECT column_name FROM information_schema.columns WHERE table_schema = 'loopctl' AND table_name = 'runs' AND column_name <> 'id' ORDER BY ordinal_position")]
    values = ["'copy-' || n" if name == "run_id" else f"t.{name}" for name in columns]
    start = time.perf_counter()
    postgres.sql(COPY.format(columns=", ".join(columns), values=", ".join(values), count=count))
    copied = time.perf_counter() - start
    rows = postgres.sql("""SELECT c.relname, c.reltuples::bigint, pg_table_size(c.oid), pg_indexes_size(c.oid) FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'loopctl' AND c.relkind = 'r' AND c.reltuples >= 1000 ORDER BY 3 DESC""")
    tables = {name: {"rows": int(rows_), "table_bytes": int(table), "index_bytes": int(index)} for name, rows_, table, index in rows}
    after = asked()
    worker.close()
    fresh = Worker(program, folder, postgres.url)
    memory = memory_of(fresh.process.pid)
    fresh.close()
    total = sum(table["table_bytes"] + table["index_bytes"] for table in tables.values())
    return {"runs": count, "copied_s": copied, "tables": tables, "bytes_a_run": total / count, "before_ms": before, "after_ms": after, "worker_mb": memory}


def sqlite_waiting(program, folder, count):
    """The same with SQLite: the size of the file, and times before and with so many runs that wait."""
    path = os.path.join(folder, "waiting.db")

    def asked():
        worker = Worker(program, folder, f"sqlite:{path}")
        times = {"a new run": statistics.median(worker.play("none", 1, 1) * 1000 for _ in range(21)), "/readyz": worker.timed("GET", "/readyz"),
                 "/metrics": worker.timed("GET", "/metrics", 5), "a list of 50": worker.timed("GET", "/agents?status=paused")}
        memory = memory_of(worker.process.pid)
        worker.run("asks")
        worker.close()
        return times, memory

    before, _ = asked()
    store = sqlite3.connect(path)
    one = store.execute("SELECT id FROM runs WHERE loop_name = 'asks' AND status = 'paused'").fetchone()[0]
    numbers = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?)"
    for table, own in (("runs", "id"), ("events", "run"), ("run_texts", "run")):
        columns = [row[1] for row in store.execute(f"PRAGMA table_info({table})")]
        values = ["n.n + 1000000" if name == own else "'copy-' || n.n" if name == "run_id" else f"t.{name}" for name in columns]
        store.execute(f"{numbers} INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)} FROM n, {table} t WHERE t.{own} = ?", (count, one))
        store.commit()
    store.execute("ANALYZE")
    store.close()
    size = os.path.getsize(path)
    after, memory = asked()
    return {"runs": count, "bytes_a_run": size / count, "before_ms": before, "after_ms": after, "worker_mb": memory}


def stores(postgres, program, folder, runs, turns):
    """Runs a second through HTTP with each store, turn about."""
    found = {"sqlite": [], "postgres": []}
    for turn in range(turns):
        for name in (("sqlite", "postgres"), ("postgres", "sqlite"))[turn % 2]:
            store = f"sqlite:{folder}/turn{turn}.db" if name == "sqlite" else f"{postgres.url}?schema=turn{turn}"
            worker = Worker(program, folder, store)
            worker.play("ten", 64)
            own, other = cpu_of(worker.process.pid), cpu_of(postgres.process.pid)
            taken = worker.play("ten", runs)
            found[name].append((runs / taken, (cpu_of(worker.process.pid) - own) / runs * 1e6, (cpu_of(postgres.process.pid) - other) / runs * 1e6))
            worker.close()
    return {name: [statistics.median(turn[at] for turn in lines) for at in range(3)] for name, lines in found.items()}


def sqlite_commits(folder, seconds):
    """Commits a second of one event each, with the settings that loopctl has (WAL, FULL)."""
    store = sqlite3.connect(os.path.join(folder, "commits.db"), isolation_level=None)
    store.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE events (run INTEGER, seq INTEGER, event TEXT, UNIQUE (run, seq));")
    end, count = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        store.execute("INSERT INTO events VALUES (?, ?, ?)", (count % 64, count, "x" * EVENT_BYTES))
        count += 1
    return count / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loopctl", default="target/release/loopctl", help="the program (target/release/loopctl)")
    parser.add_argument("--runs", type=int, default=1000, help="runs of each measurement (1000)")
    parser.add_argument("--waiting", type=int, default=1_000_000, help="runs that wait (1000000)")
    parser.add_argument("--seconds", type=float, default=5, help="the length of a measurement of commits (5)")
    parser.add_argument("--turns", type=int, default=4, help="turns of SQLite and PostgreSQL (4)")
    parser.add_argument("--json", help="a file for the figures")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.loopctl)
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        folder, data = os.path.join(top, "loops"), os.path.join(top, "pg")
        os.mkdir(folder)
        os.mkdir(data)
        project(folder)
        postgres = Postgres(data)
        with contextlib.closing(postgres):
            seconds = int(arguments.seconds)
            figures = {"cores": os.cpu_count(), "load": os.getloadavg()[0], "commits": commits(postgres, seconds), "sqlite_commits_s": sqlite_commits(folder, seconds)}
            print(json.dumps(figures, indent=1), flush=True)
            figures["idle"] = idle(postgres, program, folder, 2 * seconds)
            worker = Worker(program, folder, postgres.url)
            figures["run"] = {name: cost(postgres, worker, name, arguments.runs) for name in ("none", "ten")}
            worker.close()
            print(json.dumps({"idle": figures["idle"], "run": figures["run"]}, indent=1), flush=True)
            figures["stores"] = stores(postgres, program, folder, arguments.runs, arguments.turns)
            print(json.dumps({"stores: runs/s, us of the worker and of the database a run": figures["stores"]}, indent=1), flush=True)
            figures["sqlite_waiting"] = sqlite_waiting(program, folder, arguments.waiting)
            print(json.dumps({"sqlite_waiting": figures["sqlite_waiting"]}, indent=1), flush=True)
            figures["waiting"] = waiting(postgres, program, folder, arguments.waiting)
            print(json.dumps({"waiting": figures["waiting"]}, indent=1), flush=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
