#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# xroce export: its output is OpenMetrics by a strict parser and promtool, and agrees with xroce
# stat, qp, cq and the maps; totals outlive processes; series are bounded; many, slow or hostile
# clients. Each alert fires for its cause, and every query of the dashboard has data.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
# Debian's, which has the modules
PYTHON=(/usr/bin/python3 -B)
HELP=$here/tests/netns/export
for tool in promtool prometheus curl; do
	command -v $tool >/dev/null || skip_all "$tool is not installed"
done
"${PYTHON[@]}" -c 'import prometheus_client.openmetrics.parser' 2>/dev/null ||
	skip_all "python3-prometheus-client is not installed"

# ---- asking ----

# scrape [CURL-OPTION...]: the exporter's OpenMetrics, in `scraped`.
scrape() {
	# requests within 100 ms are answered by one text: this one is of now
	read -r -t 0.11 <>"$WORK/quiet"
	in_a curl -sf -m 30 -H 'Accept: application/openmetrics-text; version=1.0.0' "$@" \
		"http://127.0.0.1:$port/metrics" >"$WORK/scraped.out"
}
# say EXPRESSION: of `scraped` (metrics.py), which one program reads for all questions.
mkfifo "$WORK/questions" "$WORK/answers"
"${PYTHON[@]}" "$HELP/metrics.py" "$WORK/scraped.out" "$WORK/questions" "$WORK/answers" >/dev/null &
netns_children+=("$!")
# a request before it has opened its FIFO would be lost
read -r -t 60 _ <>"$WORK/answers" || netns_die "metrics.py does not begin"
say() {
	local said
	printf '%s\n' "$1" 1<>"$WORK/questions"
	IFS= read -r -t 60 said <>"$WORK/answers" || said="nothing in a minute: ${said:-}"
	printf '%s\n' "$said"
}
is_valid() { need_equal "OpenMetrics, strictly" "$(say valid)" True; }
once() { in_a "$XROCE" export --once --format openmetrics "$@" >"$WORK/scraped.out" || fail "--once ends with $?"; }

# exporter [OPTION...]: starts one in A on its own port, in $port, its pid in $exporter.
exporter() {
	start exporter a "$XROCE" export --listen 127.0.0.1:0 "$@"
	exporter=$child
	wait_until 10 exporter_listens || { fail "the exporter does not listen"; show exporter; return 1; }
	port=$(sed -n 's|^xroce export: http://.*:\([0-9]*\)/metrics$|\1|p' "$WORK/exporter.out")
}
exporter_listens() { grep -q '^xroce export: http' "$WORK/exporter.out"; }
end_exporter() {
	kill -TERM "$exporter"
	finish "$exporter" 10
	need_equal "the exporter's exit status" $? 0
}

# ---- processes ----

# two [PORT]: a server on A and its client on B, without end; pids in $server and $client.
two() {
	local at=${1:-18515}
	start server a "$XROCE" run --dev $IF_A -- "$TOOLS/steady_pingpong" -d $DEV_A -g 0 -p "$at"
	server=$child
	wait_until 10 listens_or_gone a "$at" "$server"
	start client b "$XROCE" run --dev $IF_B -- "$TOOLS/steady_pingpong" -d $DEV_B -g 0 -p "$at" $IP4_A
	client=$child
	wait_until 20 has_done 1000 || { fail "nothing is counted"; show server; return 1; }
}
has_done() { [ "$(counter "$server" xroce_eng_stat rx_packets)" -ge "$1" ]; }
# Both are stopped at once: if one waited for the other, a retry would be exceeded.
rest() {
	kill -STOP "$client" "$server"
	wait_until 10 is_stopped "$client" && wait_until 10 is_stopped "$server" || fail "they run on"
}
# all of its threads
is_stopped() { ! grep -h '^State:' "/proc/$1/task/"*/status | grep -qv 'T (stopped)'; }
both_end() { kill -CONT "$server" "$client"; stop "$client"; stop "$server"; }

# waiting NAME PORT COMMAND...: starts a server that waits for its client; its pid is in $waiting.
waiting() {
	local name=$1 at=$2
	shift 2
	start "$name" a "$@" -d $DEV_A -g 0 -p "$at"
	waiting=$child
	wait_until 20 listens_or_gone a "$at" "$waiting"
	listens a "$at" || { fail "$name does not listen"; show "$name"; return 1; }
}

# ---- cases ----

nobody_there() {
	once
	is_valid
	need_equal "what there is" "$(say '(v("xroce_up"), s("xroce_device_info"), s("xroce_process_info"), s("xroce_qp_info"))')" "(1, [], [], [])"
	# a requested interface has its zeros
	once --dev $IF_A
	is_valid
	need_equal "what it has" "$(say "(s('xroce_device_info'), v('xroce_device_tx_packets_total', device='$IF_A'))")" \
		"([({'device': '$IF_A', 'ibdevice': '$DEV_A', 'mode': 'unused'}, 1)], 0)"
}

# All that stat, qp, cq and mr tell of a process that stands still, name by name, and the maps.
values() {
	local what name
	two || return
	rest
	for what in stat qp cq mr; do
		in_a "$XROCE" $what --json >"$WORK/$what.json" || fail "xroce $what ends with $?"
	done
	once
	is_valid
	need_equal "counters that differ from stat's" "$(say '[(f, k) for p in j("'"$WORK"'/stat.json")["ports"] for l, f in (("process", dict(pid=p["pid"])), ("device", dict(device=p["dev"]))) for k, n in p["counters"].items() if not k.startswith("drop_") and k != "tx_pacer" and v(f"xroce_{l}_{k}_total", **f) != n]')" "[]"
	need_equal "drops that differ" "$(say '[k for p in j("'"$WORK"'/stat.json")["ports"] for k, n in p["counters"].items() if k.startswith("drop_") and v("xroce_device_drops_total", device=p["dev"], reason=k[5:]) != n]')" "[]"
	need_equal "names that differ" "$(say '[k for p in j("'"$WORK"'/stat.json")["ports"] for f in ("mlx5", "rxe", "port") for k, n in p[f].items() if v("xroce_device_" + (f + "_" if f != "port" else "") + k + "_total", device=p["dev"]) != n]')" "[]"
	need_equal "the QP's that differ" "$(say '[k for q in j("'"$WORK"'/qp.json")["qps"] for k, m in (("tx_packets", "tx_packets"), ("rx_packets", "rx_packets"), ("tx_bytes", "tx_bytes"), ("rx_bytes", "rx_bytes"), ("retransmitted", "tx_retransmitted_packets"), ("timeouts", "timeouts"), ("rx_rnr_naks", "rx_rnr_naks"), ("wakeups", "wakeups")) if v(f"xroce_qp_{m}_total", qpn="0x%06x" % q["qpn"], pid=q["pid"]) != q[k]]')" "[]"
	need_equal "the QP" "$(say '[(l["type"], l["peer"], l["peer_qpn"], v("xroce_qp_state", qpn=l["qpn"])) for l, _ in s("xroce_qp_info")]')" \
		"$(say '[(q["type"], q["peer"], "0x%06x" % q["peer_qpn"], 3) for q in j("'"$WORK"'/qp.json")["qps"]]')"
	need_equal "the CQ" "$(say '[v("xroce_device_" + k) for k in ("cqs", "cq_entries", "cq_waiting", "cq_completions_total")]')" \
		"$(say '[1] + [j("'"$WORK"'/cq.json")["cqs"][0][k] for k in ("entries", "waiting", "completions")]')"
	need_equal "the region" "$(say '[v("xroce_process_mrs"), v("xroce_process_mr_bytes")]')" "[1, $(counter "$server" xroce_mr_stat length)]"
	for name in rx_packets tx_packets tx_bytes tx_acks; do
		need_equal "$name of the map" "$(say "v('xroce_process_${name}_total', pid=$server)")" "$(counter "$server" xroce_eng_stat $name)"
	done
	need_equal "redirected of the map" "$(say 'v("xroce_device_xdp_redirected_total")')" "$(counter "$server" xroce_rx redirected)"
	need_equal "states" "$(say '[(l["state"], n) for l, n in s("xroce_device_qps") if n]')" "[('rts', 1)]"
	both_end
}

# The older format, for promtool and the text file collector.
text_format() {
	two || return
	in_a "$XROCE" export --once >"$WORK/text.out" || fail "--once ends with $?"
	promtool check metrics <"$WORK/text.out" >"$WORK/lint.out" 2>&1 || fail "promtool check metrics ends with $?"
	need_equal "what promtool says" "$(cat "$WORK/lint.out")" ""
	need_no_line text '^# (UNIT|EOF)'
	need_line text '^# TYPE xroce_device_tx_bytes_total counter$'
	both_end
}

# A process that is killed leaves its interface's totals as its maps have them, also if that was
# after the last scrape; the next one's are added.
totals_outlive() {
	local before all name
	exporter || return
	two || return
	scrape || fail "no answer"
	need_equal "processes" "$(say 'v("xroce_device_processes")')" 1
	before=$(say "v('xroce_device_tx_packets_total')")
	wait_until 10 has_done $((before + 2000))
	keep_maps "$server" dead || fail "no maps"
	rest
	kill -9 "$server"
	finish "$server" 10
	scrape || fail "no answer"
	is_valid
	need_least "packets of one that is dead" "$(say 'v("xroce_device_tx_packets_total")')" $((before + 1000))
	for name in rx_packets tx_packets tx_bytes; do
		need_equal "$name of one that is dead" "$(say "v('xroce_device_${name}_total')")" "$(kept dead xroce_eng_stat $name)"
	done
	need_equal "redirected" "$(say 'v("xroce_device_xdp_redirected_total")')" "$(kept dead xroce_rx redirected)"
	need_equal "who is there" "$(say '(v("xroce_device_processes"), s("xroce_process_info"), v("xroce_device_qps", state="rts"), v("xroce_device_cqs"))')" "(0, [], 0, 0)"
	all=$(kept dead xroce_eng_stat tx_packets)
	drop_maps dead
	kill -CONT "$client"
	stop "$client"
	two 18516 || return
	rest
	scrape || fail "no answer"
	need_equal "packets of both" "$(say 'v("xroce_device_tx_packets_total")')" $((all + $(counter "$server" xroce_eng_stat tx_packets)))
	need_equal "packets of the second" "$(say "v('xroce_process_tx_packets_total', pid=$server)")" "$(counter "$server" xroce_eng_stat tx_packets)"
	scrape || fail "no answer"
	need_equal "packets of both, again" "$(say 'v("xroce_device_tx_packets_total")')" $((all + $(counter "$server" xroce_eng_stat tx_packets)))
	both_end
	end_exporter
}

# The process that was alone becomes one of several, under another program: its counts are in the
# totals once. Both times it is a client.
first_becomes_one_of_several() {
	local second
	exporter || return
	two || return
	scrape || fail "no answer"
	need_equal "how it is used" "$(say 's("xroce_device_info")[0][0]["mode"]')" shared
	need_equal "processes, of one" "$(say "(v('xroce_device_processes'), [int(l['pid']) for l, _ in s('xroce_process_info')])")" "(1, [$server])"
	# its own program
	in_a "$XROCE" list $IF_A >"$WORK/list.out"
	need_line list ' program [0-9]+ xroce_xdp, '
	waiting second 18517 "$XROCE" run --dev $IF_A -- ibv_rc_pingpong || { both_end; end_exporter; return 1; }
	second=$waiting
	scrape || fail "no answer"
	rest
	scrape || fail "no answer"
	is_valid
	in_a "$XROCE" list $IF_A >"$WORK/list.out"
	need_line list ' program [0-9]+ xroce_mux, '
	need_equal "how it is used" "$(say 's("xroce_device_info")[0][0]["mode"]')" shared
	need_equal "processes" "$(say 'v("xroce_device_processes")')" 2
	in_a "$XROCE" stat --json >"$WORK/stat.json"
	need_equal "totals that are not the sums" "$(say '[k for k in ("tx_packets", "rx_packets", "tx_bytes", "loopback_packets") if v(f"xroce_device_{k}_total") != sum(p["counters"][k] for p in j("'"$WORK"'/stat.json")["ports"])]')" "[]"
	stop "$second"
	both_end
	end_exporter
}

# Few of many queue pairs and processes are shown, the busiest; the others are one, and nothing is
# missing.
bounded() {
	local many
	wait_until 10 has_no_broker a $IF_A
	start many a "$XROCE" run --dev $IF_A -- "$TOOLS/idle_qps" -d $DEV_A -q 40 -t 1000
	many=$child
	wait_until 10 listens_or_gone a 18630 "$many"
	start peer b "$XROCE" run --dev $IF_B -- "$TOOLS/idle_qps" -d $DEV_B -q 40 -t 1000 $IP4_A
	wait_until 20 has_qps "$many" 40 || fail "no 40 queue pairs"
	exporter --max-qps 4 --max-processes 1 || return
	scrape || fail "no answer"
	is_valid
	in_a "$XROCE" qp --json >"$WORK/qp.json"
	need_equal "series of queue pairs" "$(say 'len(s("xroce_qp_tx_packets_total"))')" 5
	need_equal "those that are shown" "$(say 'len(s("xroce_qp_info"))')" 4
	need_equal "others" "$(say '(v("xroce_device_qps_other"), v("xroce_device_processes_other"))')" "(36, 0)"
	need_equal "the rest" "$(say '[sorted(l.items()) for l, _ in s("xroce_qp_tx_packets_total", qpn="other")]')" \
		"[[('command', 'other'), ('device', '$IF_A'), ('pid', 'other'), ('qpn', 'other')]]"
	need_equal "packets of all queue pairs" "$(say 'total("xroce_qp_tx_packets_total")')" \
		"$(say 'sum(q["tx_packets"] for q in j("'"$WORK"'/qp.json")["qps"])')"
	end_exporter
	once --max-qps 0 --max-processes 0
	is_valid
	need_equal "with none shown" "$(say '(len(s("xroce_qp_tx_packets_total")), len(s("xroce_process_info")), total("xroce_process_tx_packets_total") == v("xroce_device_tx_packets_total"))')" "(1, 0, True)"
	once --max-qps 1000
	need_equal "with all shown" "$(say 'len(s("xroce_qp_info"))')" 40
	stop "$child"; stop "$many"
}
has_qps() { [ "$(in_a "$XROCE" qp --json --pid "$1" --state rts | grep -c '"qpn"')" -eq "$2" ]; }

# A program may be called anything.
hostile_names() {
	local name=$'a"} 9\\\t#\xc3\xa9\xff'
	mkdir -p "$OWN/odd" && cp "$(command -v ibv_rc_pingpong)" "$OWN/odd/$name"
	serve a $IF_A || return
	waiting odd 18518 "$XROCE" run --dev $IF_A -- "$OWN/odd/$name" || return
	once
	is_valid
	# printable characters pass unchanged
	need_equal "its name" "$(say "[l['command'] for l, _ in s('xroce_process_info', pid=$waiting)]")" "['a\"} 9\\\\?#???']"
	in_a "$XROCE" export --once >"$WORK/text.out"
	promtool check metrics <"$WORK/text.out" >"$WORK/lint.out" 2>&1 || { fail "promtool check metrics ends with $?"; show lint; }
	stop "$waiting"; stop "$broker"
}

# A user sees its own processes; that there are others is reported.
unprivileged() {
	local own other
	serve a $IF_A || return
	waiting own 18519 "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A -- ibv_rc_pingpong && own=$waiting
	waiting other 18520 "$XROCE" run --dev $IF_A -- ibv_rc_pingpong && other=$waiting
	in_a "${NOBODY[@]}" "$OWN/bin/xroce" export --once --format openmetrics >"$WORK/scraped.out" || fail "ends with $?"
	is_valid
	need_equal "what nobody sees" "$(say '[(int(l["pid"]), l["uid"]) for l, _ in s("xroce_process_info")]')" "[($own, '65534')]"
	need_equal "its queue pairs" "$(say '[int(l["pid"]) for l, _ in s("xroce_qp_info")]')" "[$own]"
	need_equal "what is hidden" "$(say 'v("xroce_device_hidden")')" 1
	once
	need_equal "what root sees" "$(say "sorted(int(l['pid']) for l, _ in s('xroce_process_info', kind='client')) == sorted(($own, $other))")" True
	need_equal "what is hidden from root" "$(say 'v("xroce_device_hidden")')" 0
	# the capabilities of the unit are enough
	local unit=(setpriv --bounding-set=-all,+sys_admin,+net_admin --inh-caps=-all)
	in_a "${unit[@]}" "$XROCE" export --once --format openmetrics >"$WORK/scraped.out" || fail "ends with $?"
	need_equal "what the unit sees" "$(say "(v('xroce_device_hidden'), sorted(int(l['pid']) for l, _ in s('xroce_process_info', kind='client')) == sorted(($own, $other)))")" "(0, True)"
	stop "$own"; stop "$other"; stop "$broker"
	# a process of root that has the interface to itself shows nothing to users
	waiting alone 18521 "$XROCE" run --dev $IF_A -- ibv_rc_pingpong || return
	in_a "${NOBODY[@]}" "$OWN/bin/xroce" export --once --format openmetrics >"$WORK/scraped.out" || fail "ends with $?"
	need_equal "what is hidden" "$(say '(v("xroce_device_hidden"), s("xroce_process_info"))')" "(1, [])"
	stop "$waiting"
	# nor does a process that admits no others
	waiting alone 18524 "$XROCE" run --dev $IF_A --share never -- ibv_rc_pingpong || return
	in_a "${NOBODY[@]}" "$OWN/bin/xroce" export --once --format openmetrics >"$WORK/scraped.out" || fail "ends with $?"
	need_equal "what is hidden" "$(say '(v("xroce_device_hidden"), s("xroce_process_info"))')" "(1, [])"
	# and the unit reports it
	in_a "${unit[@]}" "$XROCE" export --once --format openmetrics >"$WORK/scraped.out"
	need_equal "what the unit sees" "$(say "(v('xroce_device_hidden'), [int(l['pid']) for l, _ in s('xroce_qp_info')])")" "(0, [$waiting])"
	stop "$waiting"
}

# An XDP program that is not xroce's hides no process.
foreign_program() {
	printf '__attribute__((section("xdp"), used)) int other(void *ctx) { return 2; }\nchar l[] __attribute__((section("license"), used)) = "GPL";\n' >"$WORK/other.bpf.c"
	clang -target bpf -O2 -g -c "$WORK/other.bpf.c" -o "$WORK/other.o" || { fail "clang ends with $?"; return; }
	# ip mounts bpffs, and leaves it in its private mount namespace
	in_a unshare --mount ip link set $IF_A xdpgeneric obj "$WORK/other.o" sec xdp || { fail "ip link set xdp ends with $?"; return; }
	in_a "${NOBODY[@]}" "$OWN/bin/xroce" export --once --format openmetrics >"$WORK/scraped.out" || fail "ends with $?"
	need_equal "what is hidden" "$(say 's("xroce_device_hidden")')" "[]"
	in_a ip link set $IF_A xdpgeneric off
}

# A broker that does not answer is waited for two seconds, and what its clients had stays.
broker_stands_still() {
	serve a $IF_A || return
	waiting one 18522 "$XROCE" run --dev $IF_A -- ibv_rc_pingpong || return
	exporter || return
	scrape || fail "no answer"
	need_equal "errors" "$(say 'v("xroce_exporter_errors_total", what="broker")')" 0
	kill -STOP "$broker"
	scrape || fail "no answer while the broker stands still"
	is_valid
	need_equal "errors" "$(say 'v("xroce_exporter_errors_total", what="broker")')" 1
	need_equal "its clients' queue pairs" "$(say "[int(l['pid']) for l, _ in s('xroce_qp_info')]")" "[$waiting]"
	kill -CONT "$broker"
	# the exporter asks a broker that was silent again after 60 seconds
	wait_until 70 answers_again || fail "the broker is not asked again"
	need_equal "its clients" "$(say 'v("xroce_device_processes")')" 1
	end_exporter
	stop "$waiting"; stop "$broker"
}
# A killed broker is reported, by later exporters as well, until another serves; a stopped broker is
# not. Nor is a killed process that had the interface to itself, but its killed broker is.
broker_killed() {
	serve a $IF_A || return
	exporter || return
	scrape || fail "no answer"
	need_equal "lost while it serves" "$(say 'v("xroce_device_broker_lost")')" 0
	kill -9 "$broker"
	finish "$broker" 10
	wait_until 10 xdp_off $NS_A $IF_A
	scrape || fail "no answer"
	is_valid
	need_equal "lost after kill -9" "$(say 'v("xroce_device_broker_lost")')" 1
	once
	need_equal "lost to a second exporter" "$(say 'v("xroce_device_broker_lost")')" 1
	serve a $IF_A || return
	scrape || fail "no answer"
	need_equal "lost while another serves" "$(say 'v("xroce_device_broker_lost")')" 0
	stop "$broker"
	wait_until 10 xdp_off $NS_A $IF_A
	scrape || fail "no answer"
	need_equal "lost after its end" "$(say 'v("xroce_device_broker_lost")')" 0
	waiting alone 18523 "$XROCE" run --dev $IF_A -- ibv_rc_pingpong || return
	scrape || fail "no answer"
	kill -9 "$waiting"
	finish "$waiting" 10
	wait_until 10 xdp_off $NS_A $IF_A
	scrape || fail "no answer"
	need_equal "lost after one that was alone" "$(say 'v("xroce_device_broker_lost")')" 0
	wait_until 10 has_no_broker a $IF_A || fail "the broker is left"
	waiting alone 18525 "$XROCE" run --dev $IF_A -- ibv_rc_pingpong || return
	scrape || fail "no answer"
	need_equal "lost with one that is alone" "$(say 'v("xroce_device_broker_lost")')" 0
	kill -9 "$(in_a "$XROCE" list $IF_A | sed -n 's/^  broker *pid \([0-9]*\) (xroce)$/\1/p')"
	stop "$waiting" # it waits for its client, and does not notice
	wait_until 10 xdp_off $NS_A $IF_A
	scrape || fail "no answer"
	need_equal "lost after the broker of one that was alone" "$(say 'v("xroce_device_broker_lost")')" 1
	end_exporter
}
answers_again() { scrape && [ "$(say 'v("xroce_device_processes")')" = 1 ]; }

# ---- HTTP ----

status() { in_a curl -s -m 20 -o "$WORK/body.out" -D "$WORK/head.out" -w '%{http_code}' "$@"; }
http() {
	local url
	exporter || return
	url=http://127.0.0.1:$port
	need_equal "/metrics" "$(status $url/metrics)" 200
	need_line head '^Content-Type: text/plain; version=0\.0\.4; charset=utf-8'
	need_equal "OpenMetrics" "$(status -H 'Accept: application/openmetrics-text;version=1.0.0' $url/metrics)" 200
	need_line head '^Content-Type: application/openmetrics-text; version=1\.0\.0; charset=utf-8'
	need_equal "its end" "$(tail -n 1 "$WORK/body.out")" "# EOF"
	need_equal "HEAD" "$(status -I $url/metrics)" 200
	need_line head '^Content-Length: [1-9]'
	need_equal "a body of HEAD" "$(grep -c xroce_up "$WORK/body.out")" 0
	need_equal "/" "$(status $url/)" 200
	need_equal "elsewhere" "$(status $url/metrics/x)" 404
	need_equal "POST" "$(status -d x $url/metrics)" 405
	need_line head '^Allow: GET, HEAD'
	need_equal "another format" "$(status -H 'Accept: image/png' $url/metrics)" 406
	scrape
	need_equal "what was counted" "$(say '[v("xroce_exporter_requests_total", code=c) for c in (200, 404, 405, 406)]')" "[4, 1, 1, 1]"
	end_exporter
}

addresses() {
	local at path=$WORK/sock
	for at in 127.0.0.1:9791 '[::1]:9791'; do
		start exporter a "$XROCE" export --listen "${at%:*}"
		exporter=$child
		wait_until 10 exporter_listens || fail "it does not listen at $at"
		need_line exporter "^xroce export: http://${at//[/\\[}/metrics"
		need_equal "$at" "$(status "http://$at/metrics")" 200
		in_a timeout 10 "$XROCE" export --listen "$at" >"$WORK/again.out" 2>&1
		need_equal "exit status where another listens" $? 1
		end_exporter
	done
	start exporter a "$XROCE" export --listen "$path"
	exporter=$child
	wait_until 10 test -S "$path" || fail "no socket"
	wait_until 10 answers_unix || fail "it does not answer at a Unix socket"
	in_a timeout 10 "$XROCE" export --listen "$path" >"$WORK/again.out" 2>&1
	need_equal "exit status where another has the name" $? 1
	kill -9 "$exporter"
	finish "$exporter" 5
	# what a dead one has left is taken, a file is not
	start exporter a "$XROCE" export --listen "$path"
	exporter=$child
	wait_until 10 answers_unix || fail "it does not take the name of one that is dead"
	end_exporter
	[ ! -e "$path" ] || fail "the socket's name is left"
	echo text >"$WORK/file"
	in_a timeout 10 "$XROCE" export --listen "$WORK/file" >"$WORK/again.out" 2>&1
	need_equal "exit status where there is a file" $? 1
	need_equal "the file" "$(cat "$WORK/file")" text
	start activate a systemd-socket-activate -l 127.0.0.1:9792 "$XROCE" export
	wait_until 10 listens a 9792 || fail "systemd-socket-activate does not listen"
	need_equal "by systemd's socket" "$(status http://127.0.0.1:9792/metrics)" 200
	stop "$child"
	for at in localhost 127.0.0.1:x ::1 '[::1' 1.2.3.4.5; do
		in_a timeout 10 "$XROCE" export --listen "$at" >"$WORK/again.out" 2>&1
		need_equal "exit status of --listen $at" $? 2
	done
	for at in --max-qps=-1 --max-qps=65537 --max-processes=x --format=xml --dev=nosuch more '--once --listen=127.0.0.1'; do
		# shellcheck disable=SC2086 # words
		in_a timeout 10 "$XROCE" export $at >"$WORK/again.out" 2>&1
		need_equal "exit status of $at" $? 2
	done
}
answers_unix() { in_a curl -sf -m 5 --unix-socket "$WORK/sock" http://x/metrics | grep -q '^xroce_up 1$'; }

descriptors() { find "/proc/$exporter/fd" -mindepth 1 | wc -l; }
clients_py() { in_a timeout 100 "${PYTHON[@]}" "$HELP/clients.py" "$port" "$@" 2>&1; }

# Whatever clients do: others are answered, and no descriptor stays.
clients() {
	local before
	exporter || return
	two || return
	scrape
	before=$(descriptors)
	need_equal "of 200 at once" "$(clients_py parallel 200)" 200
	need_equal "answers to garbage" "$(clients_py garbage | tr ' ' '\n' | grep -vE '^(-|200|400|404|405|406|413|414|431|501|505)$')" ""
	# as many as there may be, and one more
	need_equal "answered behind 256 that have gone" "$(clients_py gone 256 "$exporter")" True
	need_equal "answered behind 256 that are silent" "$(clients_py silent 256)" True
	need_equal "slow ones that were cut off" "$(clients_py slow 300)" "300 of 300 answered 3"
	scrape || fail "no answer behind them"
	is_valid
	need_least "connections that were cut" "$(say 'v("xroce_exporter_connections_cut_total")')" 100
	need_equal "connections" "$(say 'v("xroce_exporter_connections")')" 1
	wait_until 10 has_descriptors "$before" || fail "it has $(descriptors) descriptors, not $before"
	both_end
	scrape
	# descriptors of the ended process are closed, except the exporter's own
	wait_until 10 has_fewer "$before" || fail "it has $(descriptors) descriptors with no process, $before with one"
	end_exporter
}
has_descriptors() { [ "$(descriptors)" -le "$1" ]; }
has_fewer() { scrape && [ "$(descriptors)" -lt $(($1 - 5)) ]; }

# An answer of more than fits into sockets waits for its reader, and not for ever.
deaf_readers() {
	local many peer
	start many a "$XROCE" run --dev $IF_A -- "$TOOLS/idle_qps" -d $DEV_A -q 500 -t 1000
	many=$child
	wait_until 10 listens_or_gone a 18630 "$many"
	start peer b "$XROCE" run --dev $IF_B -- "$TOOLS/idle_qps" -d $DEV_B -q 500 -t 1000 $IP4_A
	peer=$child
	wait_until 30 has_qps "$many" 500 || fail "no 500 queue pairs"
	start exporter a "$XROCE" export --listen "$WORK/sock" --max-qps 512
	exporter=$child port=$WORK/sock
	wait_until 10 answers_unix || fail "it does not answer"
	need_equal "deaf readers that were cut off" "$(clients_py deaf)" "4 short"
	port=1
	scrape --unix-socket "$WORK/sock" || fail "no answer behind them"
	need_equal "queue pairs" "$(say 'len(s("xroce_qp_info"))')" 500
	need_equal "connections" "$(say '(v("xroce_exporter_connections"), v("xroce_exporter_connections_cut_total"))')" "(1, 4)"
	end_exporter
	stop "$peer"; stop "$many"
}

# Under valgrind: scrapes, garbage, processes that come and go; nothing is lost, and nothing read
# that was not written.
memory() {
	start exporter a valgrind -q --leak-check=full --show-leak-kinds=definite,indirect,possible \
		--errors-for-leak-kinds=definite,indirect --error-exitcode=9 --track-fds=no \
		"$XROCE" export --listen 127.0.0.1:0 --max-qps 1
	exporter=$child
	wait_until 60 exporter_listens || { fail "it does not listen"; show exporter; return 1; }
	port=$(sed -n 's|^xroce export: http://.*:\([0-9]*\)/metrics$|\1|p' "$WORK/exporter.out")
	scrape || fail "no answer"
	two || return
	need_equal "of 20 at once" "$(clients_py parallel 20)" 20
	clients_py garbage >/dev/null
	kill -9 "$server"
	finish "$server" 10
	stop "$client"
	scrape || fail "no answer"
	need_least "packets" "$(say 'v("xroce_device_tx_packets_total")')" 100
	kill -TERM "$exporter"
	finish "$exporter" 30
	need_equal "exit status under valgrind" $? 0 || show exporter
	need_no_line exporter '^=='
}

# ---- Prometheus ----

rules() {
	local name rules=$here/share/prometheus/xroce.rules.yml
	promtool check rules "$rules" >"$WORK/rules.out" 2>&1 || { fail "promtool check rules ends with $?"; show rules; }
	mkdir -p "$WORK/rules" && cp "$rules" "$HELP/alerts.yml" "$WORK/rules/"
	(cd "$WORK/rules" && promtool test rules alerts.yml) >"$WORK/alerts.out" 2>&1 || { fail "promtool test rules ends with $?"; show alerts; }
	# each alert is in the test
	need_equal "alerts without a test" "$(sed -n 's/^ *- alert: //p' "$rules" | while read -r name; do grep -q "alertname=\"$name\",instance=\"bad\"" "$HELP/alerts.yml" || echo "$name"; done)" ""
	# and the metrics of their queries are exported
	two || return
	once
	for name in $(grep -oE 'xroce_[a-z0-9_]+' "$rules" | grep -vE '^xroce_(retransmitted)' | sort -u); do
		say "s('$name')" | grep -q '^\[' || fail "there is no $name"
	done
	both_end
}

# A real Prometheus in A, whose queries are the dashboard's.
dashboard() {
	exporter || return
	two || return
	cat >"$WORK/prometheus.yml" <<-END
		global: {scrape_interval: 1s, evaluation_interval: 1s}
		rule_files: [$here/share/prometheus/xroce.rules.yml]
		scrape_configs:
		  - {job_name: xroce, static_configs: [{targets: ["127.0.0.1:$port"]}]}
	END
	start prometheus a prometheus --config.file="$WORK/prometheus.yml" --storage.tsdb.path="$WORK/tsdb" \
		--web.listen-address=127.0.0.1:9790 --log.level=warn
	wait_until 60 prometheus_is_ready || { fail "Prometheus is not ready"; show prometheus; return 1; }
	in_a timeout 120 "${PYTHON[@]}" "$HELP/dashboard.py" "$here/share/grafana/xroce.json" 9790 $IF_A steady_pingpong >"$WORK/queries.out" 2>&1 ||
		fail "dashboard.py ends with $?"
	need_line queries '^[1-9][0-9]* queries, 0 without data$'
	need_equal "how Prometheus takes it" "$(in_a curl -s 'http://127.0.0.1:9790/api/v1/targets' | python3 -c 'import json, sys
print([(t["health"], t["lastError"]) for t in json.load(sys.stdin)["data"]["activeTargets"]])')" "[('up', '')]"
	need_no_line prometheus 'level=(warn|error)'
	stop "$child"
	both_end
	end_exporter
}
prometheus_is_ready() { in_a curl -sf http://127.0.0.1:9790/-/ready; }

# ---- the unit ----

unit() {
	sed "s#@PREFIX@#$OWN#" "$here/share/xroce-export.service.in" >"$WORK/xroce-export.service"
	mkdir -p "$WORK/man/man8" && cp "$here"/man/xroce-export.8 "$WORK/man/man8/"
	MANPATH=$WORK/man systemd-analyze verify "$WORK/xroce-export.service" >"$WORK/verify.out" 2>&1 || fail "systemd-analyze verify ends with $?"
	need_equal "what it says" "$(cat "$WORK/verify.out")" ""
	systemd-analyze security --offline=true --threshold=30 "$WORK/xroce-export.service" >"$WORK/security.out" 2>&1 ||
		{ fail "it is more exposed than 3.0"; show security; }
}

run_case nobody_there nobody_there
run_case values values
run_long_case text_format text_format
run_long_case totals_outlive totals_outlive
run_long_case first_becomes_one_of_several first_becomes_one_of_several
run_long_case bounded bounded
run_long_case hostile_names hostile_names
run_long_case unprivileged unprivileged
run_long_case foreign_program foreign_program
run_long_case broker_stands_still broker_stands_still
run_long_case broker_killed broker_killed
run_case http http
run_long_case addresses addresses
run_long_case clients clients
run_long_case deaf_readers deaf_readers
run_long_case memory memory
run_long_case rules rules
run_long_case dashboard dashboard
run_case unit unit
finish_cases
