#!/usr/bin/env python3
"""The soak of a server whose runs use everything: `http`, `command`, `db` and `llm`, a loop that is called,
memory of a session, an approval that is decided, a callback. Its memory and its files are printed on the way.

Needs Python 3.9, Linux (/proc) and nothing else. The models are scripts; what is called listens on this machine.
"""
import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import urlsplit

from figures import Bench, build
from soak import look

STEPS = [("ask", {"n": 1}), ("say", {}), ("rows", {}), ("translate", {"text": "x"}), ("child", {}),
         ("__store_memory__", {"key": "k", "value": 1}), ("risky", {"n": 2})]


def think(action, given):
    return {"thought": f"I call {action}.", "action": action, "action_input": given}


def lay_out(folder, base):
    """The served folder."""
    done = think("__complete__", {"answer": "ok"})
    number = {"type": "object", "properties": {"n": {"type": "integer"}}}
    post = {"kind": "http", "description": "Posts.", "url": f"{base}/post", "http_method": "POST", "parameters": number}
    actions = [
        {"action_name": "ask", "idempotent": True, **post},
        {"action_name": "risky", **post},
        {"action_name": "say", "kind": "command", "description": "Says.", "program": "echo", "args": ["hi"], "parameters": {"type": "object"}},
        {"action_name": "rows", "kind": "db", "description": "Asks.", "datasource": "shop", "query": "SELECT * FROM t"},
        {"action_name": "translate", "kind": "llm", "description": "Translates.", "template": "Translate {{text}}", "model": "mock"},
    ]
    tools = [{"type": "action", "name": name} for name in ("ask", "say", "rows", "translate")]
    tools += [{"type": "action", "name": "risky", "requires_approval": True}, {"type": "loop", "name": "child"}]
    looped = {"mode": "react", "objective": "Do all.", "model": "all", "tools": tools}
    child = {"mode": "react", "objective": "Help.", "model": "child", "tools": []}
    files = {
        "all.json": {"type": "loop", "name": "all", "actions": actions, "properties": looped},
        "loops/child.json": {"type": "loop", "name": "child", "description": "Helps.", "properties": child},
        "script.json": {"replies": [*(think(*step) for step in STEPS), done]},
        "child-script.json": {"replies": [think("__log_progress__", {"message": "x"}), done]},
        "init.sql": "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO t (name) VALUES ('a'), ('b');",
        "hook.key": "a key of this soak\n",
        "loopctl.json": {
            "serve": {"callback_secret": "file:hook.key"},
            "models": {"all": {"provider": "script", "script": "script.json"},
                       "child": {"provider": "script", "script": "child-script.json"},
                       "mock": {"provider": "openai", "base_url": base, "model": "mock-k0-l0"}},
            "allow": {"private_addresses": True, "commands": ["echo"]},
            "datasources": {"shop": {"url": "sqlite:shop.db", "init": "init.sql"}},
        },
    }
    os.mkdir(os.path.join(folder, "loops"))
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))


class Client(threading.Thread):
    """Plays runs, one after the other, until all have started."""

    def __init__(self, server, base, runs):
        super().__init__(daemon=True)
        self.connection, self.base, self.runs = http.client.HTTPConnection(server), base, runs
        self.ended, self.wrong = 0, None

    def call(self, method, path, body=None):
        sent = None if body is None else json.dumps(body)
        self.connection.request(method, path, sent, {"content-type": "application/json"} if body else {})
        return json.loads(self.connection.getresponse().read())

    def run(self):
        for number in self.runs:
            run = self.call("POST", "/agents/execute", {"loop": "all", "session": f"s{number}", "callback_url": f"{self.base}/hook"})
            if run.get("status") == "paused":
                run = self.call("POST", f"/agents/{run['agent_run_id']}/resume", {"approve": True})
            while run.get("status") == "running":
                time.sleep(0.01)
                run = self.call("GET", f"/agents/{run['agent_run_id']}/status")
            if run.get("status") != "completed":
                self.wrong = json.dumps(run)[:1000]
                return
            self.ended += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000, help="how many runs (20,000)")
    parser.add_argument("--clients", type=int, default=8, help="how many at once (8)")
    parser.add_argument("--no-build", action="store_true", help="the programs are given by --programs")
    parser.add_argument("--programs", help="JSON object: loopctl, mock")
    arguments = parser.parse_args()
    programs = json.loads(arguments.programs) if arguments.no_build else build()
    bench = Bench(programs)
    with tempfile.TemporaryDirectory() as folder:
        lay_out(folder, bench.base)
        command = [programs["loopctl"], "serve", folder, "--listen", "127.0.0.1:0", "--store", f"sqlite:{folder}/runs.db"]
        server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            address = urlsplit(server.stdout.readline().strip()).netloc
            clients = [Client(address, bench.base, range(first, arguments.runs, arguments.clients)) for first in range(arguments.clients)]
            for client in clients:
                client.start()
            share = 0
            while share <= 100:
                time.sleep(0.1)
                ended = sum(client.ended for client in clients)
                wrong = [client.wrong for client in clients if client.wrong]
                if wrong:
                    sys.exit(f"a run went wrong: {wrong[0]}")
                if ended < arguments.runs and not any(client.is_alive() for client in clients):
                    sys.exit("the clients lost the server: see above")
                if ended * 100 >= share * arguments.runs:
                    memory, files, cpu = look(server.pid)
                    print(f"{ended:8} runs {memory:8.1f} MB {files:5} files {cpu:8.1f} CPU s", flush=True)
                    share += 5
        finally:
            server.terminate()
            server.wait()
            bench.close()


if __name__ == "__main__":
    main()
