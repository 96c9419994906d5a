# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs a command that looks into processes, and judges what it prints, as a terminal or a program
that reads it would suffer from it.

looker.py KIND [OPTION...] -- COMMAND...
looker.py -		such words, quoted as for a shell, in lines of standard input

KIND: text, json (one document), lines (a document a line), binary (not looked at).
  --seconds N     it must have ended after that; otherwise 60
  --mib N         memory that it may have had at most; otherwise 400
  --status N,N    how it may exit; otherwise 0,1
  --tty           on a terminal of 24 lines and 80 columns
  --pids P,P      every "pid" in JSON, and `pid N` in text, is one of these
  --rows P FILE   the rows of that process in JSON are those in FILE; they are written to it if it
                  is not there

A line on standard output for each thing that is wrong, and then exit status 1. Of those on standard
input a line `.` comes after each.
"""
import argparse
import fcntl
import json
import os
import pty
import re
import select
import shlex
import signal
import struct
import sys
import termios
import time

MOST = 64 << 20  # bytes of output: more is without bound
# the program's own terminal sequences; a hostile name has others
OWN_SEQUENCES = re.compile(r"\x1b\[(?:\?25[lh]|\?1049[lh]|\?7[lh]|[0-2]?[JK]|(?:\d+;\d+)?H|\d{0,2}m)|\r(?=\n)|\r(?=\x1b)")

wrong = []


def complain(text):
    if text not in wrong:
        wrong.append(text)


def run(command, tty, seconds):
    """Returns the wait status (None: it had to be killed), standard output, standard error, and the
    most memory that a process of it has had, in MiB."""
    err_r, err_w = os.pipe()
    if tty:
        out_r, out_w = pty.openpty()
        fcntl.ioctl(out_w, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    else:
        out_r, out_w = os.pipe()
    pid = os.fork()
    if not pid:
        os.setpgid(0, 0)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(out_w, 1)
        os.dup2(err_w, 2)
        os.closerange(3, 256)
        os.execvp(command[0], command)
    os.close(out_w)
    os.close(err_w)
    end, got, reading = time.monotonic() + seconds, {out_r: b"", err_r: b""}, {out_r, err_r}
    while reading:
        ready = select.select(list(reading), [], [], max(0, end - time.monotonic()))[0]
        if not ready:
            complain(f"has not ended after {seconds} s")
            break
        for fd in ready:
            try:
                data = os.read(fd, 65536)
            except OSError:  # a terminal that nobody has open
                data = b""
            got[fd] += data
            if not data:
                reading.discard(fd)
        if sum(map(len, got.values())) > MOST:
            complain(f"prints more than {MOST} bytes")
            break
    if reading:
        os.killpg(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    os.close(out_r)
    os.close(err_r)
    return None if reading else status, got[out_r], got[err_r], usage.ru_maxrss // 1024


def judge_text(what, data, tty):
    try:
        text = data.decode("utf-8", "strict")
    except UnicodeDecodeError as e:
        complain(f"{what} is no UTF-8: {data[max(0, e.start - 20) : e.start + 20]!r}")
        text = data.decode("utf-8", "replace")
    if tty:
        text = OWN_SEQUENCES.sub("", text)
    for line in text.split("\n"):
        bad = [c for c in line if not c.isprintable()]
        if bad:
            complain(f"{what} has {bad[0]!r}: {line[:160]!r}")
            return


def judge_pids(data, pids):
    for pid in re.findall(rb"\bpid (\d+)", data):
        if int(pid) not in pids:
            complain(f"names process {int(pid)}, which has nothing there")


def once(pairs):
    keys = [k for k, _ in pairs]
    for k in keys:
        if keys.count(k) > 1:
            complain(f"JSON has {k!r} twice in one object")
    return dict(pairs)


def no_number(text):
    complain(f"JSON has {text}")


def parse(text):
    return json.loads(text, object_pairs_hook=once, parse_constant=no_number)


def rows_of(node):
    if isinstance(node, dict):
        if "pid" in node:
            yield node
        for value in node.values():
            yield from rows_of(value)
    elif isinstance(node, list):
        for value in node:
            yield from rows_of(value)


def judge_rows(rows, pids, victim, file):
    for r in rows:
        if pids and r["pid"] not in pids:
            complain(f"a row of process {r['pid']!r}, which has none: {str(r)[:200]}")
            break
    if not victim:
        return
    own = [{k: v for k, v in r.items() if not k.endswith("age_s")} for r in rows if r["pid"] == victim]
    own = sorted(json.dumps(r, sort_keys=True) for r in own)
    if not os.path.exists(file):
        with open(file, "w") as f:
            json.dump(own, f)
        return
    with open(file) as f:
        before = json.load(f)
    for r in own:
        if r not in before:
            complain(f"a row of process {victim} that is not its own: {r[:300]}")
            return
    if len(own) != len(before):
        complain(f"process {victim} has {len(own)} rows, not {len(before)}")


def judge(words):
    """Prints what is wrong, and returns whether anything is."""
    wrong.clear()
    at = words.index("--")
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["text", "json", "lines", "binary"])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--mib", type=int, default=400)
    parser.add_argument("--status", default="0,1")
    parser.add_argument("--tty", action="store_true")
    parser.add_argument("--pids", default="")
    parser.add_argument("--rows", nargs=2, default=(0, ""))
    o = parser.parse_args(words[:at])
    status, out, err, mib = run(words[at + 1 :], o.tty, o.seconds)

    if status is not None and os.WIFSIGNALED(status):
        complain(f"is ended by signal {os.WTERMSIG(status)}")
    elif status is not None and str(os.WEXITSTATUS(status)) not in o.status.split(","):
        complain(f"exits with {os.WEXITSTATUS(status)}, not {o.status}: {err[-300:]!r}")
    if mib > o.mib:
        complain(f"has had {mib} MiB of memory")
    for word in (b"AddressSanitizer", b"LeakSanitizer", b"runtime error:"):
        if word in err:
            complain(f"the sanitizer says: {err[err.index(word) :][:1500].decode(errors='replace')}")
    judge_text("standard error", err, False)
    pids = {int(p) for p in o.pids.split(",") if p}
    if o.kind != "binary":
        judge_text("standard output", out, o.tty)
    if o.kind == "text" and pids:
        judge_pids(out, pids)
    try:
        if o.kind == "json" and (out or os.WEXITSTATUS(status or 0) == 0):
            documents = [parse(out)]
        elif o.kind == "lines":
            # the last may be cut where the command was ended
            documents = [parse(line) for line in out.split(b"\n") if line]
        else:
            documents = []
    except ValueError as e:
        complain(f"no JSON: {e}: {out[:200]!r}")
        documents = []
    for d in documents:
        judge_rows(list(rows_of(d)), pids, int(o.rows[0]), o.rows[1])
    for line in wrong:
        print(line)
    return bool(wrong)


def main():
    if sys.argv[1:] != ["-"]:
        sys.exit(judge(sys.argv[1:]))
    for line in sys.stdin:
        judge(shlex.split(line))
        print(".", flush=True)


main()
