#!/usr/bin/env python3
"""How many workers, connections, commits and bytes so many runs need: a simulation of workers, a database and models.

Needs Python 3.9 and nothing else. The costs come from store.py (`--figures FILE`, its `--json`); without it, from a run of
store.py on 2 cores that other processes used too. A discrete-event simulation plays workers whose runs ask a model, use the
CPU of their worker, and append each step to the store. As in loopctl, the appends of a worker are one statement at a time,
and what comes meanwhile is in the next one; the database has cores, and one sync of its log at a time that covers all commits
which wait for it. Then the bounds are computed that a simulation does not show: connections, rows, bytes.
"""
import argparse
import heapq
import json
import math
import random
from collections import deque

# Measured by store.py; --figures replaces them.
FIGURES = {
    "commits": {"commits_s": {"1": 139}, "statement_cpu_us": 132, "event_cpu_us": 8.9},
    "idle": {"db_cpu_us_s": 500},
    "run": {"none": {"statements": 2.8, "wal_bytes": 4214, "db_cpu_us": 1430, "worker_cpu_us": 2040, "bytes": 2179, "events": 2.0},
            "ten": {"statements": 2.9, "wal_bytes": 9820, "db_cpu_us": 1410, "worker_cpu_us": 3070, "bytes": 6734, "events": 12}},
    "waiting": {"runs": 1000000, "bytes_a_run": 3905,
                "tables": {"events": {"rows": 6014943}, "runs": {"rows": 1002157}, "run_texts": {"rows": 2004322}}},
}
MOST_EVENTS = 512
# Of the times of replies, which are lognormal: the 90th percentile is three times the median.
SIGMA = 0.85
MEAN_OVER_MEDIAN = math.exp(SIGMA * SIGMA / 2)
DAY = 86_400


class Costs:
    """Seconds and bytes of a step, a run and a worker."""

    def __init__(self, figures, db_cores, worker_cores, sync_ms):
        none, ten = figures["run"]["none"], figures["run"]["ten"]
        self.worker_step = (ten["worker_cpu_us"] - none["worker_cpu_us"]) / 10 * 1e-6
        self.worker_run = none["worker_cpu_us"] * 1e-6
        self.statement, self.event = figures["commits"]["statement_cpu_us"] * 1e-6, figures["commits"]["event_cpu_us"] * 1e-6
        # What a run costs besides the appends of its steps: it is made, claimed, ended, looked at.
        self.db_run = none["db_cpu_us"] * 1e-6
        self.idle = max(0.0, figures["idle"]["db_cpu_us_s"]) * 1e-6
        self.connections = 4
        self.bytes_run, self.bytes_step = none["bytes"], (ten["bytes"] - none["bytes"]) / 10
        self.wal_run, self.wal_step = none["wal_bytes"], (ten["wal_bytes"] - none["wal_bytes"]) / 10
        self.sync = sync_ms / 1000 if sync_ms else 1 / figures["commits"]["commits_s"]["1"] - self.statement
        self.db_cores, self.worker_cores = db_cores, worker_cores
        waiting = figures["waiting"]
        self.waiting_bytes = waiting["bytes_a_run"]
        self.waiting_rows = sum(table["rows"] for table in waiting["tables"].values()) / waiting["runs"]


class Pool:
    """Cores that take jobs in order of arrival."""

    def __init__(self, world, cores):
        self.world, self.free, self.waiting, self.busy = world, cores, deque(), 0.0

    def do(self, seconds, then):
        if self.free:
            self.free -= 1
            self.start(seconds, then)
        else:
            self.waiting.append((seconds, then))

    def start(self, seconds, then):
        self.busy += seconds
        self.world.after(seconds, lambda: self.end(then))

    def end(self, then):
        if self.waiting:
            self.start(*self.waiting.popleft())
        else:
            self.free += 1
        then()


class Log:
    """The database's log: one sync at a time, which covers the commits that waited when it began."""

    def __init__(self, world, seconds):
        self.world, self.seconds, self.waiting, self.syncing, self.syncs = world, seconds, [], False, 0

    def commit(self, then):
        self.waiting.append(then)
        if not self.syncing:
            self.begin()

    def begin(self):
        covered, self.waiting, self.syncing = self.waiting, [], True
        self.syncs += 1
        self.world.after(self.seconds, lambda: self.end(covered))

    def end(self, covered):
        self.syncing = False
        for then in covered:
            then()
        if self.waiting and not self.syncing:
            self.begin()


class Worker:
    """Slots for runs, cores, and a writer that has one statement under way."""

    def __init__(self, world):
        self.world, self.cpu = world, Pool(world, world.costs.worker_cores)
        self.gathered, self.writing = deque(), False

    def append(self, then):
        self.gathered.append((self.world.now, then))
        if not self.writing:
            self.write()

    def write(self):
        world = self.world
        batch = [self.gathered.popleft() for _ in range(min(len(self.gathered), MOST_EVENTS))]
        self.writing = True
        world.statements += 1
        seconds = world.costs.statement + world.costs.event * len(batch)
        world.after(world.round_trip, lambda: world.database.do(seconds, lambda: world.log.commit(lambda: self.written(batch))))

    def written(self, batch):
        world = self.world
        for since, then in batch:
            world.waits.append(world.now - since)
            then()
        self.writing = False
        if self.gathered:
            self.write()

    def step(self, left):
        """The next step of a run: its model answers, its worker works, its event is stored."""
        world = self.world
        latency = world.chance.lognormvariate(world.mu, SIGMA)
        world.after(latency, lambda: self.cpu.do(world.costs.worker_step, lambda: self.append(lambda: self.stepped(left - 1))))

    def stepped(self, left):
        world = self.world
        world.steps += 1
        if left:
            self.step(left)
            return
        # The next run takes the slot: it is claimed, and what is around a run is written.
        world.runs += 1
        world.statements += 3
        world.database.do(world.costs.db_run, lambda: world.log.commit(lambda: self.cpu.do(world.costs.worker_run, lambda: self.step(world.run_steps))))


class World:
    def __init__(self, costs, workers, arguments):
        self.costs, self.now, self.chance = costs, 0.0, random.Random(arguments.seed)
        self.events, self.number = [], 0
        self.mu = math.log(arguments.latency)
        self.round_trip, self.run_steps = arguments.round_trip_ms / 1000, arguments.steps
        self.database, self.log = Pool(self, costs.db_cores), Log(self, costs.sync)
        self.workers = [Worker(self) for _ in range(workers)]
        self.steps = self.runs = self.statements = 0
        self.waits = []

    def after(self, seconds, then):
        self.number += 1
        heapq.heappush(self.events, (self.now + seconds, self.number, then))

    def play(self, slots, seconds, warm):
        """Plays until this time; what was counted after the warming up."""
        for worker in self.workers:
            for _ in range(slots):
                # Runs are somewhere in their middle.
                worker.step(self.chance.randint(1, self.run_steps))
            self.tick(worker)
        mark = None
        while self.events and self.now < seconds:
            if mark is None and self.now >= warm:
                mark = (self.steps, self.runs, self.statements, self.log.syncs, self.database.busy, sum(worker.cpu.busy for worker in self.workers))
                self.waits.clear()
            self.now, _, then = heapq.heappop(self.events)
            then()
        now = (self.steps, self.runs, self.statements, self.log.syncs, self.database.busy, sum(worker.cpu.busy for worker in self.workers))
        span = seconds - warm
        steps, runs, statements, syncs, busy, cpu = [(one - other) / span for one, other in zip(now, mark)]
        waits = sorted(self.waits)
        return {"steps_s": steps, "runs_s": runs, "statements_s": statements, "syncs_s": syncs,
                "db": busy / self.costs.db_cores, "worker": cpu / self.costs.worker_cores / len(self.workers),
                "wait_ms": waits[len(waits) // 2] * 1000, "wait_p99_ms": waits[len(waits) * 99 // 100] * 1000}

    def tick(self, worker):
        """What a worker asks each second, whatever it drives."""
        self.database.do(self.costs.idle, lambda: self.after(1.0, lambda: self.tick(worker)))


def simulate(costs, workers, slots, arguments):
    # Fewer seconds for more workers: the number of steps is what makes the figures steady.
    seconds = max(arguments.latency * 3, min(60.0, arguments.events / (workers * slots / arguments.latency)))
    return World(costs, workers, arguments).play(slots, seconds * 1.5, seconds * 0.5)


def walls(costs, arguments):
    """How many workers each bound allows, and the share of a core that a worker uses."""
    steps = arguments.slots / (arguments.latency * MEAN_OVER_MEDIAN + costs.sync)
    runs = steps / arguments.steps
    # At worst each step is a statement of its own.
    database = steps * (costs.statement + costs.event) + runs * costs.db_run + costs.idle
    log = steps * costs.wal_step + runs * costs.wal_run
    found = {
        f"connections: max_connections is {arguments.max_connections}, of which {arguments.reserve} stay free": (arguments.max_connections - arguments.reserve) / costs.connections,
        f"CPU of the database: {arguments.db_cores} cores at 80 %": costs.db_cores * 0.8 / database,
        f"log of the database: {arguments.log_mb_s} MB a second": arguments.log_mb_s * 1e6 / log,
    }
    return found, steps * costs.worker_step + runs * costs.worker_run


def size(number):
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if number >= 10 or unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def human(costs, arguments):
    print(f"\nRuns that wait for a human (each {costs.waiting_rows:.0f} rows, {size(costs.waiting_bytes)} with indexes)")
    print(f"{'waiting':>12} {'rows':>12} {'on disk':>9} {'runs a s, if each waits ' + str(arguments.wait_hours) + ' h':>34} {'workers':>8}")
    for waiting in (10_000, 100_000, 1_000_000, 10_000_000):
        rate = waiting / (arguments.wait_hours * 3600)
        driven = rate * arguments.steps * (arguments.latency * MEAN_OVER_MEDIAN + costs.sync)
        workers = max(2, -(-driven // (arguments.slots * 0.7)) + 1)
        print(f"{waiting:12,} {waiting * costs.waiting_rows:12,.0f} {size(waiting * costs.waiting_bytes):>9} {rate:34.2f} {workers:8.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", help="the JSON that store.py wrote")
    parser.add_argument("--workers", type=int, nargs="+", default=[3, 10, 100, 1000], help="numbers of workers (3 10 100 1000)")
    parser.add_argument("--slots", type=int, default=64, help="runs that a worker executes at once (64)")
    parser.add_argument("--steps", type=int, default=10, help="steps of a run (10)")
    parser.add_argument("--latency", type=float, default=3.0, help="the median time of a model's reply in seconds (3)")
    parser.add_argument("--db-cores", type=int, default=8, help="cores of the database (8)")
    parser.add_argument("--worker-cores", type=int, default=1, help="cores of a worker (1)")
    parser.add_argument("--sync-ms", type=float, default=0, help="the time of a sync of the database's log (as measured)")
    parser.add_argument("--round-trip-ms", type=float, default=0.5, help="from a worker to the database and back (0.5)")
    parser.add_argument("--max-connections", type=int, default=100, help="of the database (100, its default)")
    parser.add_argument("--reserve", type=int, default=10, help="connections that workers leave free (10)")
    parser.add_argument("--log-mb-s", type=float, default=50, help="MB of log that the database writes and sends to a standby in a second (50)")
    parser.add_argument("--wait-hours", type=float, default=24, help="how long a run waits for a human (24)")
    parser.add_argument("--events", type=int, default=60_000, help="steps of a simulation, about (60000)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    figures = FIGURES
    if arguments.figures:
        with open(arguments.figures, encoding="utf-8") as file:
            figures = json.load(file)
    costs = Costs(figures, arguments.db_cores, arguments.worker_cores, arguments.sync_ms)
    print(f"A step: {costs.worker_step * 1e6:.0f} us of a worker, {costs.event * 1e6:.0f} us of the database, and {costs.statement * 1e6:.0f} us for each statement; "
          f"a sync {costs.sync * 1000:.1f} ms; a run {costs.db_run * 1e6:.0f} us of the database")
    print(f"{arguments.slots} slots, {arguments.steps} steps a run, {arguments.latency} s a reply; database of {arguments.db_cores} cores\n")
    print(f"{'workers':>7} {'at once':>8} {'runs/s':>8} {'steps/s':>8} {'commits/s':>9} {'syncs/s':>7} {'database':>8} {'worker':>7} {'step stored in':>18} {'connections':>11} {'a day':>8} {'log a day':>9}")
    for workers in arguments.workers:
        found = simulate(costs, workers, arguments.slots, arguments)
        day = (found["runs_s"] * costs.bytes_run + found["steps_s"] * costs.bytes_step) * DAY
        log = (found["runs_s"] * costs.wal_run + found["steps_s"] * costs.wal_step) * DAY
        print(f"{workers:7} {workers * arguments.slots:8,} {found['runs_s']:8.1f} {found['steps_s']:8.0f} {found['statements_s']:9.0f} {found['syncs_s']:7.0f} "
              f"{found['db']:8.0%} {found['worker']:7.1%} {found['wait_ms']:7.1f} / {found['wait_p99_ms']:5.1f} ms {workers * costs.connections:11,} {size(day):>8} {size(log):>9}", flush=True)
    found, cpu = walls(costs, arguments)
    print(f"\nThe walls, by the number of workers (a worker whose {arguments.slots} slots are full uses {cpu:.1%} of a core):")
    for name, workers in sorted(found.items(), key=lambda bound: bound[1]):
        print(f"{workers:9,.0f}  {name}")
    human(costs, arguments)


if __name__ == "__main__":
    main()
