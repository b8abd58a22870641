#!/usr/bin/env python3
"""What runs cost in Restate mode, beside `loopctl serve` on PostgreSQL: runs a second, CPU a step, takeover after a kill.

Needs what workers.py needs, a build with `--features restate` (`--loopctl PROGRAM`, `--restate-mode PROGRAM`), and the program of
Restate's server (`--server PROGRAM`). Both play the same loops with the same mock model, one after the other; `--turns` repeats that.
"""
import argparse
import concurrent.futures
import contextlib
import http.client
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import store
import workers

STEPS = 10
AT_ONCE = 64


def free():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{found.getsockname()[1]}"


def post(address, path, body):
    connection = http.client.HTTPConnection(address, timeout=300)
    with contextlib.closing(connection):
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        reply = connection.getresponse()
        return reply.status, reply.read()


class RestateMode:
    """A server of Restate, and one process of `loopctl-restate`."""

    def __init__(self, arguments, folder, data):
        self.arguments, self.folder = arguments, folder
        self.ingress, self.admin, self.node, self.endpoint = free(), free(), free(), free()
        self.keys = (f"run-{number}" for number in itertools.count())
        settings = {"RESTATE_INGRESS__BIND_ADDRESS": self.ingress, "RESTATE_ADMIN__BIND_ADDRESS": self.admin, "RESTATE_BIND_ADDRESS": self.node,
                    "RESTATE_ADVERTISED_ADDRESS": f"http://{self.node}", "RESTATE_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "1", "HOME": data}
        self.server = subprocess.Popen([arguments.server, "--base-dir", data, "--node-name", "n"], env=settings, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        self.start()
        for _ in range(600):
            with contextlib.suppress(OSError):
                if post(self.admin, "/deployments", {"uri": f"http://{self.endpoint}"})[0] < 300:
                    return
            time.sleep(0.1)
        sys.exit("Restate's server did not start")

    def start(self):
        self.service = subprocess.Popen([self.arguments.restate_mode, "serve", self.folder, "--listen", self.endpoint], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.service.stdout.readline()

    def run(self, name):
        status, text = post(self.ingress, f"/loopctl/{next(self.keys)}/run", {"loop": name})
        if status != 200 or json.loads(text)["status"] != "completed":
            sys.exit(f"a run failed: {text}")

    def begin(self, name):
        key = next(self.keys)
        status, text = post(self.ingress, f"/loopctl/{key}/run/send", {"loop": name})
        if status >= 300:
            sys.exit(f"a run did not start: {text}")
        return key

    def take_over(self, _):
        """Kills the process, and starts another one at its address."""
        self.service.kill()
        self.service.wait()
        killed = time.perf_counter()
        self.start()
        return killed, self.service.pid

    def end(self, run):
        post(self.ingress, f"/loopctl/{run}/cancel", {})

    def driver(self):
        return self.service.pid

    def pids(self):
        return self.server.pid, self.service.pid

    def close(self):
        for process in (self.service, self.server):
            process.kill()
            process.wait()


class PostgresMode:
    """A PostgreSQL server, and two processes of `loopctl serve`: one has all runs."""

    def __init__(self, bench, address):
        self.bench, self.address = bench, address
        self.workers = [self.another()]

    def another(self):
        return workers.Worker(self.bench.program, self.bench.folder, self.address, AT_ONCE)

    def run(self, name):
        answer = self.workers[0].run(name)
        if answer["status"] != "completed":
            sys.exit(f"a run failed: {answer}")

    def begin(self, name):
        return self.workers[0].begin(name)

    def take_over(self, runs):
        """Kills the process that has the runs, beside another one that is there."""
        if len(self.workers) == 1:
            self.workers.append(self.another())
        self.workers.pop(0).kill()
        return time.perf_counter(), self.workers[0].process.pid

    def end(self, run):
        self.workers[0].ask("DELETE", f"/agents/{run}")

    def driver(self):
        return self.workers[0].process.pid

    def pids(self):
        return self.bench.postgres.process.pid, self.driver()

    def close(self):
        for worker in self.workers:
            worker.kill()


def asking(pid, port):
    """How many connections to the model a process has: each is a request under way."""
    inodes = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                inodes.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    count = 0
    with open("/proc/net/tcp", encoding="ascii") as file:
        for line in list(file)[1:]:
            words = line.split()
            count += words[3] == "01" and int(words[2].split(":")[1], 16) == port and f"socket:[{words[9]}]" in inodes
    return count


def until_asking(pid, port, runs):
    end = time.perf_counter() + 60
    while asking(pid, port) < runs:
        if time.perf_counter() > end:
            sys.exit(f"not within 60 s: {runs} requests of process {pid}")
        time.sleep(0.01)
    return time.perf_counter()


def throughput(mode, count):
    """Runs a second, and milliseconds of CPU a step of the server and of the process that drives."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(mode.run, ["steps"] * AT_ONCE))
        before, start = [store.cpu_of(pid) for pid in mode.pids()], time.perf_counter()
        list(pool.map(mode.run, ["steps"] * count))
    elapsed = time.perf_counter() - start
    spent = [(store.cpu_of(pid) - earlier) / (count * STEPS) * 1e3 for pid, earlier in zip(mode.pids(), before)]
    return [count / elapsed, *spent]


def takeover(mode, port, runs):
    """Seconds from the kill until the next process asks the model for all runs."""
    # Connections of runs that have ended are kept for the next ones.
    idle = asking(mode.driver(), port)
    begun = [mode.begin("thinks") for _ in range(runs)]
    until_asking(mode.driver(), port, max(idle, runs))
    time.sleep(0.5)
    killed, pid = mode.take_over(begun)
    seconds = until_asking(pid, port, runs) - killed
    for run in begun:
        mode.end(run)
    return seconds


def measure(bench, port):
    figures = {"restate": ([], []), "postgres": ([], [])}
    for turn in range(bench.arguments.turns):
        for name, (rates, times) in figures.items():
            with tempfile.TemporaryDirectory() as data:
                address = f"{bench.postgres.url}?schema=turn{turn}&lease_ms={workers.LEASE_S * 1000}"
                mode = RestateMode(bench.arguments, bench.folder, data) if name == "restate" else PostgresMode(bench, address)
                with contextlib.closing(mode):
                    # The order of the figures is that of their noise: the throughput needs a server without runs.
                    rates.append(throughput(mode, bench.arguments.runs))
                    times += [takeover(mode, port, bench.arguments.taken) for _ in range(bench.arguments.takeovers)]
    for name, (rates, times) in figures.items():
        rate, server, process = (statistics.median(column) for column in zip(*rates))
        workers.line(f"{name}: runs/s, {STEPS} steps of 20 ms, {AT_ONCE} at once", "", f"{rate:.1f}")
        workers.line(f"{name}: CPU a step of the server, of the process that drives", "", f"{server:.2f} ms, {process:.2f} ms")
        workers.line(f"{name}: takeover of {bench.arguments.taken} runs after kill -9, {len(times)} kills: median, most", "",
                     f"{statistics.median(times):.2f} s, {max(times):.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loopctl", default="target/release/loopctl", help="the program (target/release/loopctl)")
    parser.add_argument("--restate-mode", default="target/release/loopctl-restate", help="the program (target/release/loopctl-restate)")
    parser.add_argument("--server", default="restate-server", help="the program of Restate's server (restate-server)")
    parser.add_argument("--mock", help="the program of mock.rs")
    parser.add_argument("--runs", type=int, default=1_000, help="runs of a turn (1000)")
    parser.add_argument("--turns", type=int, default=3, help="turns of each (3)")
    parser.add_argument("--takeovers", type=int, default=5, help="kills in a turn (5)")
    parser.add_argument("--taken", type=int, default=8, help="runs that a kill meets (8)")
    arguments = parser.parse_args()
    mock = subprocess.Popen([arguments.mock or workers.built_mock(), "--port", "0"], stdout=subprocess.PIPE, text=True)
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        folder, data = os.path.join(top, "loops"), os.path.join(top, "pg")
        os.mkdir(folder)
        os.mkdir(data)
        postgres = store.Postgres(data)
        with contextlib.closing(postgres):
            try:
                port = mock.stdout.readline().strip()
                print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
                measure(workers.Bench(arguments, postgres, folder, port), int(port))
                print(f"load {os.getloadavg()[0]:.1f}", flush=True)
            finally:
                mock.kill()


if __name__ == "__main__":
    main()
