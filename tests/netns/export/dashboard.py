# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# dashboard.py FILE PORT DEVICE COMMAND: asks the Prometheus at 127.0.0.1:PORT every query of a
# Grafana dashboard, its variables set to the device and the command, until each has said something
# within a bound. Prints a line for each that has not, and how many there are. A query that takes
# the place of several (topk, ratios) must say more than that it can be read: a sample.
import json
import re
import sys
import time
import urllib.parse
import urllib.request

path, port, device, command = sys.argv[1:]
dashboard = json.load(open(path))
BOUND = 60


def ask(expression):
    data = urllib.parse.urlencode({"query": expression}).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query", data, timeout=10) as f:
        answer = json.load(f)
    assert answer["status"] == "success", answer
    return answer["data"]["result"]


def fill(expression):
    for name, value in (("device", device), ("process", command), ("__rate_interval", "15s")):
        expression = expression.replace("$" + name, value)
    assert "$" not in expression, expression
    return expression


queries = []
for panel in dashboard["panels"]:
    assert panel["type"] == "row" or panel["targets"], panel["title"]
    for target in panel.get("targets", []):
        queries.append((panel["title"], fill(target["expr"]), target["legendFormat"]))
for variable in dashboard["templating"]["list"]:
    if variable["type"] == "query":
        series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"]).groups()
        queries.append(("variable " + variable["name"], fill(series), "{{" + label + "}}"))
ids = [panel["id"] for panel in dashboard["panels"]]
assert len(ids) == len(set(ids)), "two panels of one id"

end, left = time.monotonic() + BOUND, list(queries)
while left and time.monotonic() < end:
    still = []
    for query in left:
        title, expression, legend = query
        labels = re.findall(r"\{\{(\w+)\}\}", legend)
        got = ask(expression)
        # and its legend's labels are there
        if not got or any(name not in sample["metric"] for sample in got for name in labels):
            still.append(query)
    left = still
    if left:
        time.sleep(0.5)
for title, expression, _ in left:
    print("no data:", title, expression)
print(len(queries), "queries,", len(left), "without data")
