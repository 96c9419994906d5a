# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# metrics.py FILE QUESTIONS ANSWERS: for each line of QUESTIONS, a FIFO, reads the OpenMetrics in
# FILE by prometheus_client's parser, which takes nothing else, and writes what the expression in
# that line is, or what went wrong, as a line to ANSWERS, another one, which has "ready" first. It
# knows
#   v(name, label=value...)  the one sample of these, an error if there is not exactly one
#   s(name, label=value...)  all that match, as (labels, value)
#   total(name, ...)         their sum
#   j(path)                  a JSON document
#   families                 by name
# and that what else is to be held of any exposition is: `valid` is True, or it has been raised.
import json
import os
import re
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

path, questions, answers = sys.argv[1:]
text, families, samples, valid = None, {}, {}, False


def parse(new):
    """Of a text that is the last one's, what is known of it holds."""
    global text, families, samples, valid
    if valid and new == text:
        return
    text, valid = new, False
    families = {f.name: f for f in text_string_to_metric_families(text)}
    samples = {}
    for family in families.values():
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    valid = check()


def s(name, **labels):
    if re.sub("_(total|info)$", "", name) not in families:
        raise KeyError(name)
    return [(have, value) for have, value in samples.get(name, [])
            if all(have.get(k) == str(want) for k, want in labels.items())]


def v(name, **labels):
    (_, value), = s(name, **labels)
    return int(value) if value == int(value) else value


def total(name, **labels):
    return int(sum(value for _, value in s(name, **labels)))


def j(path):
    return json.load(open(path, encoding="utf-8"))


def check():
    """What a reader of OpenMetrics may expect, beside what the parser refuses."""
    assert text.endswith("\n# EOF\n")
    for f in families.values():
        assert re.fullmatch(r"xroce_[a-z0-9_]+", f.name), f.name
        assert f.documentation and f.type in ("gauge", "counter", "info"), f.name
        assert not f.unit or f.name.endswith("_" + f.unit), f.name
        for unit in ("bytes", "packets", "seconds"):
            assert not f.name.endswith("_" + unit) or f.unit == unit, f.name
        seen = set()
        for sample in f.samples:
            suffix = {"gauge": "", "counter": "_total", "info": "_info"}[f.type]
            assert sample.name == f.name + suffix, sample.name
            key = tuple(sorted(sample.labels.items()))
            assert key not in seen, (sample.name, key)
            seen.add(key)
            assert sample.value >= 0, sample
            for value in sample.labels.values():
                assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]", value), value
    return True


def answer(expression):
    try:
        with open(path, encoding="utf-8", newline="") as f:
            parse(f.read())
        return str(eval(expression, globals()))
    except Exception as e:
        return f"{type(e).__name__}: {e}"


def write(said):
    with open(answers, "w", encoding="utf-8") as f:
        print(said.replace("\n", " "), file=f)


# opened both ways, it never ends
with open(os.open(questions, os.O_RDWR), encoding="utf-8") as asked:
    write("ready")
    for line in asked:
        write(answer(line.rstrip("\n")))
