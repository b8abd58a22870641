#!/usr/bin/env python3
"""What a durable step costs with loopctl, DBOS and LangGraph on one PostgreSQL, turn about; and what its floor is.

A step is one reply of a model and one call of a tool, with the outcome of both in the database before what follows. Each
peer makes the same steps: the reply is a script's and the tool compares two lists, both within the process. The cost of a step
is that of runs with steps less that of as many runs without, so what a run costs by itself, and its request, are in no
figure. The floor inserts the two outcomes of 500 bytes, each in a transaction of its own, with psycopg.

Needs what store.py needs, and a Python with the peers, which are installed outside of the project:

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install dbos langgraph langgraph-checkpoint-postgres 'psycopg[binary]'
    python3 benches/durable.py --python /tmp/peers/bin/python
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import store

STEPS = store.STEPS
MESSAGE = "x" * 100
PEERS = ("loopctl", "dbos", "langgraph", "floor")
# A peer of Python has fewer runs than loopctl: its figure is as exact, because its CPU is many times more.
FEWER = 10
CLIENTS = (1, 16, 64)


def reply(number):
    """What the model says: its next call, of an action that compares two lists within the process."""
    entry = [{"id": f"{number} {MESSAGE}"}]
    return store.think("match", {"left": entry, "right": entry, "matchOn": ["id"]})


def project(folder):
    """A folder with two loops: of ten steps, and of none."""
    done = store.think("__complete__", {"answer": "done"})
    scripts = {"ten": [reply(number) for number in range(STEPS)] + [done], "none": [done]}
    for name, replies in scripts.items():
        document = {"type": "loop", "name": name, "actions": [{"action_name": "match", "kind": "matcher", "description": "Compares lists."}],
                    "properties": {"mode": "react", "model": name, "objective": "Compare.", "max_iterations": 20,
                                   "tools": [{"type": "action", "name": "match"}]}}
        for path, content in ((f"{name}.script.json", {"replies": replies}), (f"{name}.json", document)):
            with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
                json.dump(content, file)
    models = {name: {"provider": "script", "script": f"{name}.script.json"} for name in scripts}
    with open(os.path.join(folder, "loopctl.json"), "w", encoding="utf-8") as file:
        json.dump({"models": models}, file)


def match(call):
    """What the action does in loopctl."""
    left, right = call["action_input"]["left"], call["action_input"]["right"]
    return {"matched": [{"a": a, "b": b} for a in left for b in right if a["id"] == b["id"]], "unmatchedLeft": [], "unmatchedRight": []}


def dbos_runs(url, _clients):
    """The model and the tool are steps of a workflow; each outcome is a row before what follows."""
    from dbos import DBOS
    DBOS(config={"name": "durable", "system_database_url": url, "run_admin_server": False, "log_level": "ERROR"})

    @DBOS.step()
    def model(number):
        return reply(number)

    @DBOS.step()
    def tool(call):
        return match(call)

    @DBOS.workflow()
    def work(steps):
        for number in range(steps):
            tool(model(number))
        return "done"

    DBOS.launch()
    return work, DBOS.destroy


def langgraph_runs(url, clients):
    """A graph of a model and a tool; the state is a list of messages, and each checkpoint is written before what follows."""
    import operator
    import uuid
    from typing import Annotated, TypedDict

    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.graph import END, START, StateGraph
    from psycopg.rows import dict_row
    from psycopg_pool import ConnectionPool

    class State(TypedDict):
        messages: Annotated[list, operator.add]
        number: int
        steps: int

    def model(state):
        return {"messages": [reply(state["number"])]}

    def tool(state):
        return {"messages": [match(state["messages"][-1])], "number": state["number"] + 1}

    def onward(state):
        return "model" if state["number"] < state["steps"] else END

    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool = ConnectionPool(url, min_size=clients, max_size=clients, kwargs=options, open=True)
    saver = PostgresSaver(pool)
    saver.setup()
    graph = StateGraph(State)
    graph.add_node("model", model)
    graph.add_node("tool", tool)
    graph.add_conditional_edges(START, onward, ["model", END])
    graph.add_edge("model", "tool")
    graph.add_conditional_edges("tool", onward, ["model", END])
    compiled = graph.compile(checkpointer=saver)

    def work(steps):
        config = {"configurable": {"thread_id": str(uuid.uuid4())}, "recursion_limit": 2 * steps + 10}
        ended = compiled.invoke({"messages": [], "number": 0, "steps": steps}, config, durability="sync")
        if ended["number"] != steps:
            sys.exit(f"a run of LangGraph made {ended['number']} steps")

    return work, pool.close


def floor_runs(url, clients):
    """Two bare inserts for each step."""
    from psycopg_pool import ConnectionPool
    pool = ConnectionPool(url, min_size=clients, max_size=clients, kwargs={"autocommit": True, "prepare_threshold": 0}, open=True)
    with pool.connection() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS outcomes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, outcome bytea NOT NULL)")
    outcome = b"x" * store.EVENT_BYTES

    def work(steps):
        with pool.connection() as connection:
            for _ in range(2 * steps):
                connection.execute("INSERT INTO outcomes (outcome) VALUES (%s)", (outcome,))

    return work, pool.close


def versions(python):
    """Which versions of the peers are measured."""
    script = "from importlib.metadata import version as v; print(*(f'{n} {v(n)}' for n in ('dbos', 'langgraph', 'langgraph-checkpoint-postgres', 'psycopg')), sep=', ')"
    found = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    return found.stdout.strip() or sys.exit(f"{python} lacks a peer: {found.stderr.strip().splitlines()[-1]}")


def peer(name, url, clients):
    """Plays what each line asks for (runs, steps), and answers with the seconds that it took."""
    work, close = {"dbos": dbos_runs, "langgraph": langgraph_runs, "floor": floor_runs}[name](url, clients)
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        print("ready", flush=True)
        for line in sys.stdin:
            runs, steps = (int(word) for word in line.split())
            start = time.perf_counter()
            for _ in pool.map(work, [steps] * runs):
                pass
            print(time.perf_counter() - start, flush=True)
    close()


class PythonPeer:
    """A process of this program that plays one peer."""

    def __init__(self, name, python, postgres, clients):
        database = f"{name}_{clients}_{time.monotonic_ns()}"
        postgres.sql(f"CREATE DATABASE {database}")
        url = f"postgresql://loopctl@/{database}?host={postgres.folder}"
        self.process = subprocess.Popen([python, os.path.abspath(__file__), "--peer", name, "--url", url, "--clients", str(clients)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            sys.exit(f"{name} did not start")

    def play(self, runs, steps):
        self.process.stdin.write(f"{runs} {steps}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline() or sys.exit("a peer ended"))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Loopctl:
    """`loopctl serve` with its store in a schema of its own."""

    def __init__(self, program, folder, postgres, clients):
        self.worker = store.Worker(program, folder, f"{postgres.url}?schema=durable_{time.monotonic_ns()}")
        self.process, self.clients = self.worker.process, clients

    def play(self, runs, steps):
        return self.worker.play("ten" if steps else "none", runs, self.clients)

    def close(self):
        self.worker.close()


def counters(postgres, pid):
    """CPU of the peer and of the database, and transactions that wrote: only these take a number."""
    return (store.cpu_of(pid), store.cpu_of(postgres.process.pid), postgres.number("SELECT pg_snapshot_xmax(pg_current_snapshot())::text"))


def measured(postgres, peer_process, runs):
    """Milliseconds of CPU of the peer and of the database, commits, and milliseconds of elapsed time, for a step."""
    found = []
    for steps in (0, STEPS):
        before = counters(postgres, peer_process.process.pid)
        taken = peer_process.play(runs, steps)
        after = counters(postgres, peer_process.process.pid)
        found.append([one - other for one, other in zip(after, before)] + [taken])
    own, database, commits, taken = [(with_ - without) / (runs * STEPS) for with_, without in zip(found[1], found[0])]
    return own * 1000, database * 1000, commits, taken * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loopctl", default="target/release/loopctl", help="the program (target/release/loopctl)")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the peers (this one)")
    parser.add_argument("--runs", type=int, default=300, help="runs of loopctl in a measurement; the peers have a tenth (300)")
    parser.add_argument("--turns", type=int, default=3, help="turns; a figure is their median (3)")
    parser.add_argument("--json", help="a file for the figures")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--clients", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        return peer(arguments.peer, arguments.url, arguments.clients)
    print(versions(arguments.python), flush=True)
    found = {}
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        folder, data = os.path.join(top, "loops"), os.path.join(top, "pg")
        os.mkdir(folder)
        os.mkdir(data)
        project(folder)
        with contextlib.closing(store.Postgres(data)) as postgres:
            for turn in range(arguments.turns):
                for clients in CLIENTS:
                    for name in PEERS if turn % 2 == 0 else PEERS[::-1]:
                        # At least two rounds of all that are at once.
                        runs = max(arguments.runs // FEWER, 2 * clients)
                        if name == "loopctl":
                            runs, played = FEWER * runs, Loopctl(os.path.abspath(arguments.loopctl), folder, postgres, clients)
                        else:
                            played = PythonPeer(name, arguments.python, postgres, clients)
                        # One client waits for a sync at each commit: a quarter is enough.
                        runs = max(runs // (1 if clients > 1 else 4), 2)
                        with contextlib.closing(played):
                            played.play(max(runs // 8, 2), STEPS)
                            found.setdefault((clients, name), []).append(measured(postgres, played, runs))
    figures = {key: [statistics.median(column) for column in zip(*lines)] for key, lines in found.items()}
    print("| runs at once | peer | CPU a step: process | database | both, over loopctl's | commits a step | elapsed |\n|---|---|---|---|---|---|---|")
    for (clients, name), (own, database, commits, taken) in figures.items():
        ours = sum(figures[clients, "loopctl"][:2])
        print(f"| {clients} | {name} | {own:.3f} ms | {database:.3f} ms | {(own + database) / ours:.1f} | {commits:.2f} | {taken:.2f} ms |")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({f"{name} {clients}": values for (clients, name), values in figures.items()}, file, indent=1)
    return None


if __name__ == "__main__":
    main()
