#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From what bench.sh measured (DIR/raw.tsv, DIR/curve.tsv) to tables, DIR/summary.tsv and plots: bench-report.py DIR."""
import collections
import os
import statistics
import sys

out = sys.argv[1]
values, units = collections.OrderedDict(), {}
for line in open(os.path.join(out, "raw.tsv")):
    name, value, unit = line.rstrip("\n").split("\t")
    values.setdefault(name, []).append(float(value))
    units[name] = unit


def show(v):
    return f"{v:,.0f}" if v >= 1000 else f"{v:.3g}" if v >= 100 or 0 < v < 0.01 else f"{v:.2f}"


print(f"\n| measured | min | median | max | unit |\n|---|---|---|---|---|")
with open(os.path.join(out, "summary.tsv"), "w") as f:
    print("name\tmin\tmedian\tmax\tunit\tn", file=f)
    for name, v in values.items():
        low, mid, high = min(v), statistics.median(v), max(v)
        print(f"| {name} | {show(low)} | {show(mid)} | {show(high)} | {units[name]} |")
        print(f"{name}\t{low}\t{mid}\t{high}\t{units[name]}\t{len(v)}", file=f)

median = {name: statistics.median(v) for name, v in values.items()}
raw_sizes = [int(n[4:]) for n in median if n.startswith("xsk_") and n[4:].isdigit()]
if raw_sizes:
    median["xsk_best"] = max(median[f"xsk_{s}"] * s * 8 / 1e9 for s in raw_sizes)

# Text, measured name, compared name or number, factor of the compared side, sign and limit.
# With XDP in native mode at both ends (names in _n) a message alone is faster, and all else slower: of both modes the figures are shown.
TARGETS = [
    ("ib_send_bw -s 64, messages/s, to raw AF_XDP packets/s", "send_64", "xsk_64", 1, ">=", 2.0),
    ("ib_write_bw -s 65536 to TCP", "write_64k", "tcp_stream", 1, ">=", 1.3),
    ("ib_write_bw -s 65536 to raw AF_XDP bytes/s at its best size", "write_64k", "xsk_best", 1, ">=", 2.0),
    ("ib_write_bw -s 1 MiB to TCP", "write_1m", "tcp_stream", 1, ">=", 1.3),
    ("ib_write_bw -s 1 MiB to raw AF_XDP bytes/s at its best size", "write_1m", "xsk_best", 1, ">=", 2.0),
    ("ib_read_bw -s 65536 to ib_write_bw", "read_64k", "write_64k", 1, ">=", 0.9),
    ("ib_send_lat -s 64, half round trip, to raw AF_XDP", "send_lat", "xsk_rtt_spin", 1, "<=", 0.75),
    ("ib_send_lat -s 64, half round trip, to UDP", "send_lat", "udp_rtt_spin", 1, "<=", 0.45),
    ("ib_read_lat -s 64 to ib_send_lat's round trip", "read_lat", "send_lat", 2, "<=", 1.3),
    ("ib_send_lat -e to raw AF_XDP in poll()", "send_lat_e", "xsk_rtt_poll", 1, "<=", 1.3),
    ("UD ib_send_bw -s 1024, messages/s, to raw AF_XDP packets/s", "ud_1024", "xsk_1102", 1, ">=", 2.0),
    ("engine alone, 64 B sends, both ends on one core, M/s", "engine_send", None, 1e6, ">=", 5.0),
    ("engine alone, 64 B sends, a core for each end, M/s", "engine_send_two", None, 1e6, ">=", 10.0),
    ("engine alone, 4 KiB writes, a core for each end, Gbit/s", "engine_write", None, 1, ">=", 80.0),
    ("engine alone, 10,000 QPs in turn, to one QP", "engine_send_10k", "engine_send", 1, ">=", 0.7),
    ("memory of an idle QP without its rings, the engine's, bytes", "qp_bytes", None, 1, "<=", 4096),
    ("idle with 100 QPs, % of a core", "idle_100_qps", None, 1, "<=", 0.1),
    ("the same, blocked in ibv_get_cq_event, % of a core", "idle_100_qps_e", None, 1, "<=", 0.1),
    ("connections made and ended by librdmacm a second", "cm_cycles", None, 1, ">=", 2000),
]

# Processes that share an interface against a process alone; two processes of one interface against
# two over the wire.
TARGETS += [
    (f"{text}: {what}", f"{left}_{name}", f"{right}_{name}", 1, sign, limit)
    for text, left, right, rate, latency in [
        ("shared, one process, to alone", "shared", "alone", 0.9, 1.1),
        ("shared, two processes of one interface, to alone over the wire", "near", "alone", 1.0, 1.0),
    ]
    for what, name, sign, limit in [
        ("ib_send_bw -s 64", "send_64", ">=", rate),
        ("ib_write_bw -s 65536", "write_64k", ">=", rate),
        ("ib_send_lat -s 64", "send_lat", "<=", latency),
        ("ib_read_lat -s 64", "read_lat", "<=", latency),
        ("ib_send_lat -s 64 -e", "send_lat_e", "<=", latency),
    ]
] + [("shared, eight processes together, to one: ib_write_bw -s 65536", "together_8", "together_1", 1, ">=", 0.9)]


def ratio_of(left, right, factor):
    if left not in median or (right and right not in median):
        return None
    return median[left] / ((median[right] if right else 1) * factor)


def in_native_mode(name):
    return f"{name}_n" if f"{name}_n" in median else name


def verdict(ratio, sign, limit):
    if ratio is None:
        return "not measured"
    return "met" if (ratio >= limit if sign == ">=" else ratio <= limit) else "missed"


def print_targets():
    print("\n| target | wanted | as it comes | | XROCE_XDP=native | |\n|---|---|---|---|---|---|")
    for text, left, right, factor, sign, limit in TARGETS:
        ratio = ratio_of(left, right, factor)
        cells = ["-" if ratio is None else show(ratio), verdict(ratio, sign, limit)]
        if in_native_mode(left) != left:
            ratio = ratio_of(in_native_mode(left), right and in_native_mode(right), factor)
            cells += ["-" if ratio is None else show(ratio), verdict(ratio, sign, limit)]
        else:
            cells += ["", ""]
        print(f"| {text} | {sign} {limit:g} | {' | '.join(cells)} |")


if any(left in median for _, left, *_ in TARGETS):
    print_targets()

# Two shards on two cores, without a target.
SCALING = [
    ("SENDs of 64 bytes", "sharded_send"),
    ("WRITEs of 64 KiB", "sharded_write"),
]
if any(f"{name}_s2" in median for _, name in SCALING):
    print("\n| two queues, messages/s | one thread an end, one core | two, two cores, one shard | two shards | two shards to one | to one core |\n"
          "|---|---|---|---|---|---|")
for text, name in SCALING:
    one, s1, s2 = (median.get(f"{name}_{x}") for x in ("one", "s1", "s2"))
    if one and s1 and s2:
        print(f"| {text} | {show(one)} | {show(s1)} | {show(s2)} | {show(s2 / s1)} | {show(s2 / one)} |")
one, two = median.get("engine_sharded_one"), median.get("engine_sharded_two")
if one and two:
    print(f"\nTwo engines an end alone, no kernel, 64-byte SENDs: one thread with one of them {show(one / 1e6)} M/s, "
          f"two threads with both {show(two / 1e6)} M/s: {show(two / one)} x")


def svg(path, title, unit, series):
    """A plot of values against what they were measured for, at equal distances; series: name -> [(for what, value)]."""
    width, height, left, top = 720, 420, 70, 40
    sizes = sorted({s for points in series.values() for s, _ in points})
    peak = max(v for points in series.values() for _, v in points) or 1
    x = lambda s: left + sizes.index(s) * (width - left - 130) / max(1, len(sizes) - 1)
    y = lambda v: height - 50 - v / peak * (height - 50 - top)
    colours = ["#1b6ca8", "#c8553d", "#3a7d44", "#7b4b94", "#b08900", "#5a6772"]
    with open(path, "w") as f:
        print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
              f'<rect width="100%" height="100%" fill="white"/><text x="{left}" y="22" font-size="15">{title}</text>', file=f)
        for i in range(6):
            v = peak * i / 5
            print(f'<line x1="{left}" x2="{width - 130}" y1="{y(v):.1f}" y2="{y(v):.1f}" stroke="#ddd"/>'
                  f'<text x="{left - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{show(v)}</text>', file=f)
        for s in sizes:
            print(f'<text x="{x(s):.1f}" y="{height - 32}" text-anchor="middle">{s}</text>', file=f)
        print(f'<text x="{left}" y="{height - 10}">{unit}</text>', file=f)
        for i, (name, points) in enumerate(series.items()):
            line = " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in sorted(points))
            print(f'<polyline points="{line}" fill="none" stroke="{colours[i % len(colours)]}" stroke-width="2"/>'
                  f'<text x="{width - 120}" y="{top + 18 * i}" fill="{colours[i % len(colours)]}">{name}</text>', file=f)
        print("</svg>", file=f)


curve = os.path.join(out, "curve.tsv")
if os.path.exists(curve):
    rate, bandwidth = {}, {}
    for line in open(curve):
        tool, size, per_s, gbit = line.split("\t")
        tool = f"{tool.removesuffix('_n')}, native" if tool.endswith("_n") else tool
        rate.setdefault(tool, []).append((int(size), float(per_s) / 1e3))
        bandwidth.setdefault(tool, []).append((int(size), float(gbit)))
    if rate:
        svg(os.path.join(out, "rate.svg"), "Messages a second", "message size, bytes; thousand messages/s", rate)
        svg(os.path.join(out, "bandwidth.svg"), "Bandwidth", "message size, bytes; Gbit/s", bandwidth)

# Of the slowest of a thousand more is to be seen than of the others.
latency = os.path.join(out, "latency.tsv")
if os.path.exists(latency):
    shown = [1, 10, 100, 250, 500, 750, 900, 950, 990, 999]
    series = {}
    for line in open(latency):
        name, quantile, us = line.split("\t")
        if int(quantile) in shown:
            name = f"{name.removesuffix('_n')}, native" if name.endswith("_n") else name
            series.setdefault(name, []).append((int(quantile), float(us)))
    if series:
        svg(os.path.join(out, "latency.svg"), "Half round trip of 64 bytes", "how many of 1000 took no longer; us", series)
