#!/usr/bin/env python3
"""lab.py LAB-DIRECTORY GROUP AGENT-COMMAND: the stand-in engine's cases of a group, as a gate.

The lab prints a score and always ends with 0; this decides. A case that fails is run once more, alone: a loaded
machine may miss a time limit, a fault of the program fails twice. Both runs are printed. A wrong message on either
wire (protocol violation, schema error, anything but JSON on standard output) is final at once."""
import json
import os
import subprocess
import sys
import tempfile


def run(lab, agent, out, *args):
    """The lab's results of one run."""
    command = [sys.executable, os.path.join(lab, "run.py"), "--agent", agent, "--json", out, *args]
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
    with open(out, encoding="utf-8") as f:
        return json.load(f)["results"]


def wrong_messages(results):
    kinds = ("violations", "schema_errors", "stdout_garbage")
    return sorted(r["case"] for r in results if any(r[kind] for kind in kinds))


def main():
    lab, group, agent = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "lab.json")
        results = run(lab, agent, out, "--group", group, "--jobs", "2")
        wrong = wrong_messages(results)
        failed = [r["case"] for r in results if r["status"] == "fail"]
        if failed and not wrong:
            print(f"\nonce more, alone: {' '.join(failed)}", flush=True)
            cases = [word for case in failed for word in ("--case", case)]
            again = run(lab, agent, out, "--jobs", "1", *cases)
            wrong = wrong_messages(again)
            failed = [r["case"] for r in again if r["status"] == "fail"]
    if not results:
        sys.exit(f"no case in group {group}")
    if wrong:
        sys.exit(f"wrong messages in: {' '.join(wrong)}")
    if failed:
        sys.exit(f"failed twice: {' '.join(failed)}")


main()
