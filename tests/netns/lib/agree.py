# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# agree.py FOLDER PID COUNTERS-DOC DEVICE v4|v6: compares all reports on an idle process. Prints a
# line for each number that differs from the maps. The folder has
#   MAP.json    `bpftool -j map dump` of its maps
#   stat.json, qp.json, metrics (OpenMetrics), files (a line "counters/NAME VALUE" each)
# The counters in counters.md are computed from the maps by the formulas there.
import json
import re
import sys

folder, pid, doc, device, gids = sys.argv[1], int(sys.argv[2]), *sys.argv[3:6]
differing = []
compared = 0


def need(what, got, want):
    global compared
    compared += 1
    if got != want:
        differing.append(f"{what} is {got}, not {want}")


def elements(name):
    """The values of a map, each CPU's by itself."""
    for element in json.load(open(f"{folder}/{name}.json")):
        element = element.get("formatted", element)
        for one in element.get("values", [element]):
            yield element["key"], one["value"]


def summed(name):
    sums = {}
    for _, value in elements(name):
        for field, n in value.items():
            if isinstance(n, int):
                sums[field] = sums.get(field, 0) + n
    return sums


MAPS = {name: summed(name) for name in
        ("xroce_eng_stat", "xroce_eng_drop", "xroce_rx", "xroce_drop", "xroce_sock")}
engine, refused, rx, dropped = (MAPS[name] for name in
                                ("xroce_eng_stat", "xroce_eng_drop", "xroce_rx", "xroce_drop"))
qps = {q["qpn"]: q for _, q in elements("xroce_qp_stat") if q["pid"]}
steered = {q["qpn"]: q for _, q in elements("xroce_qp") if q["qpn"]}
ports = json.load(open(f"{folder}/stat.json"))["ports"]
mine, = (p for p in ports if p["pid"] == pid)
shown = {q["qpn"]: q for q in json.load(open(f"{folder}/qp.json"))["qps"] if q["pid"] == pid}
files = dict(line.split() for line in open(f"{folder}/files"))

samples = {}
for line in open(f"{folder}/metrics", encoding="utf-8"):
    if found := re.fullmatch(r'(\w+)(?:\{(.*)\})? ([-+.\de]+)\n', line):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', found[2] or ""))
        samples.setdefault(found[1], []).append((labels, float(found[3])))


def sample(name, **labels):
    hits = [n for have, n in samples.get(name, [])
            if all(have.get(k) == str(v) for k, v in labels.items())]
    return int(hits[0]) if len(hits) == 1 else f"missing ({len(hits)} samples)"


# ---- the maps among each other (docs/maps.md) ----

handed = rx["redirected"] - rx["super_packets"] + rx["super_segments"]
sock = MAPS["xroce_sock"]
need("redirected", rx["redirected"],
     sock["rx_frames"] + sock["rx_ring_full"] + sock["rx_dropped"] + sock["rx_left"])
need("packets taken", sock["rx_frames"] - sock["rx_super_packets"] + sock["rx_super_segments"],
     engine["rx_packets"] - engine["loopback_packets"])
need("packets of XDP's QPs", sum(q["rx_packets"] for q in steered.values()), handed)
need("frames that XDP dropped", sum(dropped.values()), rx["dropped"])
# the engine answers for flow control itself, in a packet of 74 bytes by IPv4 or 94
answers = engine["flow_answers"]
need("tx_packets of the QPs, and answers", sum(q["tx_packets"] for q in qps.values()) + answers,
     engine["tx_packets"])
need("tx_bytes of the QPs, and answers",
     sum(q["tx_bytes"] for q in qps.values()) + answers * {"v4": 74, "v6": 94}[gids],
     engine["tx_bytes"])
if not rx["super_packets"]:
    need("rx_bytes of the QPs", sum(q["rx_bytes"] for q in qps.values()), rx["redirected_bytes"])
for field in ("rx_packets", "tx_retransmitted", "tx_retransmitted_bytes",
              "timeouts", "rto_probes", "rto_spurious", "late_deadlines", "tx_sequence_naks",
              "rx_sequence_naks", "implied_naks", "tx_rnr_naks", "rx_rnr_naks", "remote_errors",
              "duplicate_requests", "rx_held", "rx_ce", "tx_cnps", "rx_cnps", "credit_waits", "flow_waits", "rx_writes",
              "rx_reads", "rx_atomics"):
    need(f"{field} of the QPs", sum(q[field] for q in qps.values()), engine[field])
need("rx_dropped of the QPs", sum(q["rx_dropped"] for q in qps.values()), sum(refused.values()))
need("icrc_errors of the QPs", sum(q["icrc_errors"] for q in qps.values()), refused["icrc"])

# ---- xroce stat, and its values as metrics ----

for name, n in mine["counters"].items():
    if name.startswith("drop_"):
        reason = name[5:]
        need(f"{name} of stat", n, dropped[reason] + refused[reason])
        if n:
            need(f"{name} of export", sample("xroce_process_drops_total", pid=pid, reason=reason), n)
        continue
    if name.startswith("xdp_"):
        want = rx[name[4:]]
    elif name.startswith("sock_"):
        want = sock[name[5:]]
    else:
        want = engine[name]
    need(f"{name} of stat", n, want)
    if name != "tx_pacer":
        need(f"{name} of export", sample(f"xroce_process_{name}_total", pid=pid), n)
        need(f"{name} of export's device", sample(f"xroce_device_{name}_total", device=device),
             sum(p["counters"][name] for p in ports))

# ---- the names that the field knows: stat, metrics, files ----

family = None
for line in open(doc, encoding="utf-8"):
    if line.startswith("## "):
        family = {"mlx5": "mlx5", "rxe": "rxe", "The port": "port"}[line[3:].strip()]
    row = re.fullmatch(r"\| `(\w+)` \|.*\| ([^|]*) \|\n", line)
    if not row or not family:
        continue
    name, formula = row[1], row[2]
    want = eval(re.sub(r"`(\w+)\.(\w+)`", r"MAPS['\1']['\2']", formula).replace("/", "//"))
    need(f"{name} of {family}", mine[family].get(name), want)
    everywhere = sum(p[family][name] for p in ports)
    need(f"{name} of {family} in export",
         sample(f"xroce_device_{family}_{name}_total".replace("port_port", "port"), device=device),
         everywhere)
    need(f"the file of {name}",
         int(files[("" if family == "port" else "hw_") + f"counters/{name}"]), everywhere)

# ---- xroce qp, and its values as metrics ----

need("QPs", sorted(shown), sorted(qps))
NAMED = {"retransmitted": "tx_retransmitted", "retransmitted_bytes": "tx_retransmitted_bytes",
         "dropped": "rx_dropped"}
METRICS = {name: name for name in
           ("tx_packets", "rx_packets", "tx_bytes", "rx_bytes", "timeouts", "rto_probes",
            "rto_spurious", "tx_sequence_naks", "rx_sequence_naks", "implied_naks", "tx_rnr_naks",
            "rx_rnr_naks", "remote_errors", "duplicate_requests", "icrc_errors", "rx_ce", "tx_cnps", "rx_cnps",
            "credit_waits", "flow_waits", "rx_writes", "rx_reads", "rx_atomics", "wakeups")}
METRICS |= {"retransmitted": "tx_retransmitted_packets", "dropped": "rx_dropped_packets",
            "retransmitted_bytes": "tx_retransmitted_bytes", "xdp_dropped": "xdp_dropped_packets"}
fields = 0
for qpn, q in shown.items():
    stat, steer = qps[qpn], steered[qpn]
    for name, n in q.items():
        field = NAMED.get(name, name)
        if name.startswith("xdp_"):
            need(f"{name} of qp", n, steer["rx_" + name[4:]])
        elif name == "wakeups":
            need(f"{name} of qp", n, steer["wakeups"])
        elif isinstance(n, int) and isinstance(stat.get(field), int) and field != "error":
            need(f"{name} of qp", n, stat[field])
            fields += 1
        if name in METRICS:
            need(f"{name} of export's QP",
                 sample(f"xroce_qp_{METRICS[name]}_total", pid=pid, qpn=f"0x{qpn:06x}"), n)

if fields < 30 or compared < 300:
    differing.append(f"only {fields} fields of QPs and {compared} numbers were compared")
for line in differing:
    print(line)
print(f"compared {compared}")
sys.exit(bool(differing))
