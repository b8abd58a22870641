"""Plays a loop of two tools at each provider of models that there is a key for, and prints what came of it.

    python3 tests/live/providers.py                            # all providers; one without its key is skipped
    python3 tests/live/providers.py --only anthropic,gemini --dialects json

Each provider takes its key from the environment: OPENAI_API_KEY (chat completions and Responses), ANTHROPIC_API_KEY,
GEMINI_API_KEY, OPENROUTER_API_KEY. Another model than the one below is named with `--model PROVIDER=ID`. A run has at most eight
iterations and costs a fraction of a cent. The two tools are called on a local HTTP server of this script.

The script exits with 1 when a run does not complete with the right number after both tools were called. It is not a part of
the test suite, because it needs keys and a network.
"""

import argparse
import copy
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
from llama_cpp import LOOP, ROOT, Tools

PROVIDERS = {
    "openai": {"provider": "openai", "model": "gpt-4.1-mini", "api_key": "env:OPENAI_API_KEY"},
    "openai-responses": {"provider": "openai-responses", "model": "gpt-5-mini", "api_key": "env:OPENAI_API_KEY"},
    "anthropic": {"provider": "anthropic", "model": "claude-haiku-4-5", "api_key": "env:ANTHROPIC_API_KEY"},
    "gemini": {"provider": "gemini", "model": "gemini-2.5-flash", "api_key": "env:GEMINI_API_KEY"},
    "openrouter": {
        "provider": "openai",
        "base_url": "https://openrouter.ai/api/v1",
        "model": "openai/gpt-4.1-mini",
        "api_key": "env:OPENROUTER_API_KEY",
    },
}
DIALECTS = ["tool_calls", "json"]


def play(binary, folder, model, dialect, tools_port):
    """One run; returns what is wrong with it, or None, and what is to be printed of it."""
    project = {
        "model": "live",
        "models": {"live": model},
        "store": "memory",
        "allow": {"hosts": [f"127.0.0.1:{tools_port}"], "private_addresses": True},
    }
    loop = copy.deepcopy(LOOP)
    loop["properties"] |= {"dialect": dialect, "max_iterations": 8, "max_tokens": 2000, "timeout_ms": 300000}
    loop["properties"]["require_tool_before_answer"] = ["stock_of", "reserve"]
    (folder / "loopctl.json").write_text(json.dumps(project))
    (folder / "stock.json").write_text(json.dumps(loop).replace("TOOLS", str(tools_port)))
    command = [binary, "run", "stock.json", "--input", "part=P-1", "--output", "json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    try:
        result = json.loads(done.stdout)
    except json.JSONDecodeError:
        return f"exit {done.returncode}: {done.stderr.strip()[-500:]}", ""
    metadata = result.get("metadata", {})
    seen = f"{metadata.get('rounds', 0)} replies, {metadata.get('invalid_replies', 0)} not read, {metadata.get('tool_calls_made', 0)} tool calls"
    if result.get("status") != "completed":
        return f"{result.get('status')} ({result.get('termination')}): {json.dumps(result.get('error'))[:500]}", seen
    answer = json.dumps((result.get("result") or {}).get("answer"))
    if "14" not in answer:
        return f"the answer is {answer[:200]}, and 14 are in stock", seen
    return None, seen


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--binary", default=str(ROOT / "target" / "release" / "loopctl"))
    options.add_argument("--only", default=",".join(PROVIDERS), help="the providers, with commas between them")
    options.add_argument("--dialects", default=",".join(DIALECTS), help="the dialects, with commas between them")
    options.add_argument("--model", action="append", default=[], metavar="PROVIDER=ID", help="another model")
    options = options.parse_args()
    models = dict(named.split("=", 1) for named in options.model)
    binary = os.path.abspath(options.binary)
    tools = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tools)
    threading.Thread(target=tools.serve_forever, daemon=True).start()
    failed = 0
    for name in options.only.split(","):
        if name not in PROVIDERS:
            raise SystemExit(f"no provider {name!r}: {', '.join(PROVIDERS)}")
        model = PROVIDERS[name] | ({"model": models[name]} if name in models else {})
        variable = model["api_key"].removeprefix("env:")
        if not os.environ.get(variable):
            print(f"{name}: skipped, {variable} is not set", flush=True)
            continue
        for dialect in options.dialects.split(","):
            with tempfile.TemporaryDirectory() as folder:
                wrong, seen = play(binary, pathlib.Path(folder), model, dialect, tools.server_address[1])
            failed += wrong is not None
            print(f"{name}, {model['model']}, {dialect}: {'failed, ' + wrong if wrong else 'completed'}; {seen}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
