#!/usr/bin/env python3
"""Plays floor and loopctl in turns against one mock server and prints the table of figures.

Needs Python 3.9 and nothing else. It builds in release mode first; `--no-build` leaves that out.
The two peers take turns inside one run of this script, so that what else the machine does falls
on both, and each figure is the median over the turns. The mock server counts the body bytes of
each peer: the share is printed beside each ratio, and a floor that sends less is no floor.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def build():
    """Builds both peers and the server; returns the paths of their programs."""
    programs = {}
    for what in (["build", "--release", "--bin", "loopctl", "--example", "load"], ["bench", "--no-run", "--bench", "floor", "--bench", "mock"]):
        out = subprocess.run(
            ["cargo", *what, "--locked", "--message-format", "json-render-diagnostics"],
            cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
        ).stdout
        for line in out.splitlines():
            message = json.loads(line)
            if message.get("executable"):
                programs[message["target"]["name"]] = message["executable"]
    return programs


class Bench:
    def __init__(self, programs):
        self.programs = programs
        self.server = subprocess.Popen([programs["mock"], "--port", "0"], stdout=subprocess.PIPE, text=True)
        self.base = f"http://127.0.0.1:{int(self.server.stdout.readline())}"
        self.shape = []
        self.dialect = "json"
        self.served = ["--action", "progress", "--serve", programs["loopctl"]]

    def stats(self):
        with urllib.request.urlopen(f"{self.base}/stats") as answer:
            return json.load(answer)

    def play(self, peer, steps, runs, concurrency=1, latency=0, durable=False, more=()):
        """One turn of one peer: its JSON line, with the requests and bytes that the server saw."""
        self.stats()
        command = [self.programs[peer], "--base-url", self.base, "--steps", steps, "--runs", runs,
                   "--concurrency", concurrency, "--latency", latency, *more]
        command += ["--durable"] if durable else []
        # The floor speaks one dialect; in the others it sends as many bytes as loopctl does there.
        command += self.shape if peer == "floor" else ["--dialect", self.dialect]
        # Peak memory as Linux counts it begins with that of the process that forked: a small shell, not Python.
        shell = ["sh", "-c", '"$@"; exit $?', "sh"]
        out = subprocess.run(shell + [str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout
        figures = json.loads(out)
        if figures["ok_runs"] != figures["runs"]:
            sys.exit(f"{peer}: {figures['ok_runs']} of {figures['runs']} runs were right: {figures['errors']}")
        figures.update(self.stats())
        return figures

    def calibrate(self):
        """Makes the floor send what loopctl sends: the bytes of its first request, and of each step."""
        def sizes(peer):
            first = self.play(peer, 0, 1)["bytes"]
            steps = 40
            grown = self.play(peer, steps, 1)["bytes"] - (steps + 1) * first
            return first, grown / (steps * (steps + 1) / 2)
        system, observation = 1500, 60
        for _ in range(3):
            self.shape = ["--system-bytes", system, "--observation-bytes", observation]
            ours, floors = sizes("load"), sizes("floor")
            system = max(0, round(system + ours[0] - floors[0]))
            observation = max(0, round(observation + ours[1] - floors[1]))
        self.shape = ["--system-bytes", system, "--observation-bytes", observation]
        return system, observation

    def turns(self, count, **work):
        """Turn about, so that what the machine does else falls on both."""
        results = {"floor": [], "load": []}
        for turn in range(count):
            for peer in (("floor", "load") if turn % 2 == 0 else ("load", "floor")):
                results[peer].append(self.play(peer, **work))
        return results

    def close(self):
        self.server.terminate()
        self.server.wait()


def median(results, peer, key):
    return statistics.median(line[key] for line in results[peer])


def cpu_ratio(bench, turns, steps, runs, durable=False, concurrency=1, latency=0):
    """CPU of a step: that of the whole process less that of a process with one run of no step.

    The machine has moods: a turn of a peer takes about a second, so that one mood falls on both, and the ratio is
    the middle one of those of the turns, in each of which both peers played one after the other.
    """
    turns *= 3
    results = bench.turns(turns, steps=steps, runs=runs, durable=durable, concurrency=concurrency, latency=latency)
    start = bench.turns(turns, steps=0, runs=1, durable=durable)
    cost = {peer: [(line["cpu_s"] - median(start, peer, "cpu_s")) / (runs * (steps + 1)) * 1e6 for line in results[peer]]
            for peer in ("floor", "load")}
    share = median(results, "floor", "bytes") / median(results, "load", "bytes")
    ratios = sorted(ours / floors for ours, floors in zip(cost["load"], cost["floor"]))
    how = "{:.1f} us a step over {:.1f} us; {} turns gave {:.2f} to {:.2f}; the floor sent {:.1%} of the bytes"
    middle = [statistics.median(cost[peer]) for peer in ("load", "floor")]
    return statistics.median(ratios), how.format(*middle, turns, ratios[0], ratios[-1], share)


def throughput(bench, turns, steps, runs, concurrency, latency, durable):
    results = bench.turns(turns, steps=steps, runs=runs, concurrency=concurrency, latency=latency, durable=durable)
    ideal = concurrency / ((steps + 1) * latency / 1000)
    rate = {peer: runs / median(results, peer, "wall_s") for peer in results}
    share = rate["load"] / ideal
    return share, f"{rate['load']:.0f} runs/s of {ideal:.0f}; the floor {rate['floor']:.0f}"


def memory(bench, turns, concurrency, steps, latency):
    idle = bench.turns(turns, steps=0, runs=1)
    busy = bench.turns(turns, steps=steps, runs=concurrency, concurrency=concurrency, latency=latency)
    per_run = {peer: (median(busy, peer, "peak_rss_mb") - median(idle, peer, "peak_rss_mb")) * 1024 / concurrency for peer in busy}
    return per_run["load"], f"the floor {per_run['floor']:.1f} KB; idle {median(idle, 'load', 'peak_rss_mb'):.1f} MB"


def dialect_ratio(bench, turns, dialect, **work):
    """CPU of a step in another dialect, over a floor that sends as many bytes."""
    bench.dialect = dialect
    bench.calibrate()
    return cpu_ratio(bench, turns, **work)


def through_http(bench, turns, **work):
    """The same loop by the engine in the driver's process and by a server process, turn about."""
    ways = {"direct": ["--action", "progress"], "served": bench.served}
    results = {way: [] for way in ways}
    for turn in range(turns):
        for way in (ways if turn % 2 == 0 else reversed(ways)):
            results[way].append(bench.play("load", durable=True, more=ways[way], **work))
    rate = {way: work["runs"] / median(results, way, "wall_s") for way in ways}
    cpu = [median(results, "served", key) for key in ("server_cpu_s", "cpu_s")] + [median(results, "direct", "cpu_s")]
    how = "{:.0f} runs/s over {:.0f}; CPU s: server {:.1f} and client {:.1f}, over {:.1f}"
    return rate["served"] / rate["direct"], how.format(rate["served"], rate["direct"], *cpu)


def statuses(bench, turns, **work):
    lines = [bench.play("load", durable=True, more=[*bench.served, "--readers", 4], **work) for _ in range(turns)]
    middle = {key: statistics.median(line[key] for line in lines) for key in ("status_p50_ms", "status_p99_ms", "statuses", "wall_s")}
    return middle["status_p99_ms"], f"median {middle['status_p50_ms']:.1f} ms; {middle['statuses'] / middle['wall_s']:.0f} questions a second"


def waiting(bench, paused, runs):
    """What runs that wait for a human cost: memory, and the time of other runs."""
    line = bench.play("load", 10, runs, concurrency=64, durable=True, more=[*bench.served, "--paused", paused])
    yield line["grown_mb"], f"{line['found_mb']:.1f} MB when they are found in the store; idle {line['idle_mb']:.1f} MB"
    yield line["ratio"], f"{line['run_with_paused_ms']:.1f} ms over {line['run_ms']:.1f} ms; {line['runs']} runs turn about; the quickest tenth {line['calm_ratio']:.2f}, CPU {line['cpu_ratio']:.2f}"


def cold_start(program, starts):
    """From fork to exit of a run of one step, scripted, with the journal in SQLite and in memory."""
    with tempfile.TemporaryDirectory() as folder:
        document = {"type": "loop", "properties": {"mode": "react", "objective": "Complete.", "tools": []}}
        script = {"replies": [{"thought": "done", "action": "__complete__", "action_input": {"answer": "ok"}}]}
        for name, content in (("loop.json", document), ("script.json", script)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                json.dump(content, file)
        found = {}
        for store in ("memory", f"sqlite:{folder}/runs.db"):
            times = []
            for _ in range(starts):
                start = time.perf_counter()
                subprocess.run([program, "run", "loop.json", "--script", "script.json", "--store", store, "--output", "json"],
                               cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                times.append((time.perf_counter() - start) * 1000)
            found[store.split(":")[0]] = statistics.median(times)
    return found["sqlite"], f"in memory {found['memory']:.1f} ms; median of {starts} starts"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5, help="how often each peer plays (5)")
    parser.add_argument("--dialects", action="store_true", help="the CPU of a step in each dialect, and nothing else")
    parser.add_argument("--serve", action="store_true", help="only what goes through HTTP")
    parser.add_argument("--no-build", action="store_true", help="the programs are given by --programs")
    parser.add_argument("--programs", help="JSON object: loopctl, load, floor, mock")
    arguments = parser.parse_args()
    programs = json.loads(arguments.programs) if arguments.no_build else build()
    bench = Bench(programs)
    turns = arguments.turns
    try:
        shape = "through HTTP only"
        if not arguments.serve:
            shape = "the floor's first messages {} bytes, an observation {} bytes more".format(*bench.calibrate())
        print(f"{os.cpu_count()} cores, {turns} turns; {shape}\n")
        print(f"{'what':58} {'bar':>8} {'reached':>9}   how")
        rows = [
            ("CPU a step over the floor, 10 steps, one at a time", "1.5", "{:.2f}", lambda: cpu_ratio(bench, turns, 10, 1000)),
            ("the same, 80 steps", "1.5", "{:.2f}", lambda: cpu_ratio(bench, turns, 80, 100)),
            ("the same, 200 steps", "1.5", "{:.2f}", lambda: cpu_ratio(bench, turns, 200, 30)),
            ("durable, over the durable floor, 10 steps", "1.5", "{:.2f}", lambda: cpu_ratio(bench, turns, 10, 400, True)),
            ("64 at a time, 20 ms a reply: share of the ideal", "85 %", "{:.1%}", lambda: throughput(bench, turns, 10, 1280, 64, 20, False)),
            ("the same, durable", "80 %", "{:.1%}", lambda: throughput(bench, turns, 10, 1280, 64, 20, True)),
            ("1,000 runs at once: KB a run over idle", "60 KB", "{:.1f}", lambda: memory(bench, min(turns, 3), 1000, 10, 200)),
            ("cold start to exit, one step, scripted: ms", "20 ms", "{:.1f}", lambda: cold_start(programs["loopctl"], 50)),
        ]
        if arguments.dialects:
            rows = [
                (f"{dialect}: CPU a step over the floor, 10 steps, {many} at a time", "-", "{:.2f}",
                 lambda dialect=dialect, many=many, runs=runs, latency=latency: dialect_ratio(
                     bench, turns, dialect, steps=10, runs=runs, concurrency=many, latency=latency))
                for dialect in ("json", "tool_calls", "tags", "final_answer")
                for many, runs, latency in ((1, 1000, 0), (64, 640, 20))
            ]
        load = {"steps": 10, "runs": 1280, "concurrency": 64, "latency": 20}
        wait = waiting(bench, 10_000, 80 * 2 * turns)
        served = [
            ("64 at a time, durable, through HTTP: share of the direct", "85 %", "{:.1%}", lambda: through_http(bench, turns, **load)),
            ("a status meanwhile, 99 of 100: ms", "-", "{:.1f}", lambda: statuses(bench, min(turns, 3), **load)),
            ("10,000 runs wait for a human: MB that the server grows", "100 MB", "{:.1f}", lambda: next(wait)),
            ("the same: a new run's time over that without them", "1.1", "{:.2f}", lambda: next(wait)),
        ]
        if not arguments.dialects:
            rows = served if arguments.serve else rows + served
        for what, bar, shape, figure in rows:
            reached, how = figure()
            print(f"{what:58} {bar:>8} {shape.format(reached):>9}   {how}", flush=True)
    finally:
        bench.close()


if __name__ == "__main__":
    main()
