#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# xroce bench: every path over both families, polling and asleep; its JSON, pictures and comparison;
# peers that send invalid messages, from either end. Its speed is not judged.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"

PORT=18620
ALL=send,write,read,ud,udp,tcp
SHORT=(-D 0.02 --rounds 2 --quiet)

# bench_server [WORD...]: on A, run by these words; its pid is in $server.
bench_server() {
	start server a "$@" ${OWN_XROCE:-"$XROCE"} bench --server
	server=$child
	wait_until 10 listens_or_gone a $PORT "$server"
	listens a $PORT || { fail "no server"; show server; return 1; }
}
server_ends() {
	is_gone_or_zombie "$server" && { fail "the server has gone"; show server; }
	kill "$server"
	finish "$server" 10 || { fail "the server ended with $?"; show server; }
}

# bench_from STATUS OPTION...: on B; standard output is bench.json, the rest `bench`.
bench_from() {
	local want=$1 rc
	shift
	: >"$WORK/bench.out"
	in_b timeout 60 "$XROCE" bench "$@" >"$WORK/bench.json" 2>"$WORK/bench.out" </dev/null
	rc=$?
	[ $rc -eq "$want" ] && return
	fail "xroce bench $* ends with $rc, not $want"
	cat "$WORK/bench.json" >>"$WORK/bench.out"
	show bench
	return 1
}
# json_has EXPRESSION...: each of the document d. One python for all of them, as its start is most
# of their cost.
json_has() {
	local missing
	missing=$(python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
def at(measure, way, size): return next(p for p in d[measure] if (p["way"], p["size"]) == (way, size))
for e in sys.argv[2:]:
    if not eval("(%s)" % e): print("JSON has not:", e)
print("end")' "$WORK/bench.json" "$@")
	[ "$missing" = end ] || fail "$missing"
}

ways() {
	local peer=$IP4_A option=${2:-}
	[ "$1" = v6 ] && peer=$IP6_A
	bench_server || return
	bench_from 0 "${SHORT[@]}" -t $ALL -s 64,2k,16k --json $option "$peer" || return
	server_ends
	# UD takes no more than the path MTU; each round trip is in a bin, percentiles are in order;
	# no acknowledged message is lost
	json_has '[(p["way"], p["size"]) for p in d["latency"]] == [(w, s) for s in (64, 2048, 16384)
		for w in ("send", "write", "read", "ud", "udp", "tcp") if w != "ud" or s <= 4096]' \
		'len(d["bandwidth"]) == len(d["latency"])' \
		"d['path_mtu'] == 4096 and d['peer'] == '$peer' and d['interface'] == 'vb'" \
		"d['events'] is ${3:-False} and d['rounds'] == 2 and d['duration_ns'] == 20000000" \
		'all(len(p["median_ns"]["rounds"]) in (1, 2) for p in d["latency"])' \
		'all(p["median_ns"]["min"] <= p["median_ns"]["median"] <= p["median_ns"]["max"]
			for p in d["latency"])' \
		'all(0 < p["mbps"]["min"] <= p["mbps"]["median"] <= p["mbps"]["max"]
			for p in d["bandwidth"])' \
		'all(sum(n for _, n in p["histogram"]) == p["messages"] > 0 for p in d["latency"])' \
		'all(sorted(p["histogram"]) == p["histogram"] for p in d["latency"])' \
		'all(list(r.values())[2:] == sorted(list(r.values())[2:]) for r in
			(p["rtt_ns"] for p in d["latency"]))' \
		'all(p["lost"] == 0 for m in ("latency", "bandwidth") for p in d[m]
			if p["way"] not in ("ud", "udp"))'
}

# The text output, one measurement alone, a requested path MTU.
tables() {
	bench_server || return
	bench_from 0 "${SHORT[@]}" -s 64 --mtu 1024 $IP4_A || return
	cp "$WORK/bench.json" "$WORK/table.out"
	need_line table '^10.77.0.2 \(vb\) to 10.77.0.1, path MTU 1024, polling, 2 rounds of 0.02 s$'
	need_line table '^Round trip in us'
	need_line table '^ +64  RC SEND  ( +[0-9.]+){8}$'
	need_line table '^ +64  UDP .*'
	need_line table '^Bandwidth in Mbit/s'
	need_line table '^ +64  TCP  ( +[0-9.]+){4}$'
	bench_from 0 "${SHORT[@]}" -s 64 --only bandwidth $IP4_A
	cp "$WORK/bench.json" "$WORK/table.out"
	need_no_line table 'Round trip'
	bench_from 1 "${SHORT[@]}" -d $IF_B --tcp-port 1 $IP4_A
	need_line bench "cannot connect to 10.77.0.1, TCP port 1: .*run 'xroce bench --server' there"
	ip -n $NS_A link set $IF_A mtu 1500
	bench_from 1 "${SHORT[@]}" --mtu 4096 $IP4_A
	need_line bench 'path MTUs of the devices are 1024 and 4096, not 4096 as requested'
	bench_from 0 "${SHORT[@]}" -t send,ud -s 1k --json $IP4_A
	json_has 'd["path_mtu"] == 1024'
	ip -n $NS_A link set $IF_A mtu 4500
	server_ends
}

# Both ends of users without privileges, by brokers.
by_brokers() {
	local a
	serve a $IF_A && a=$broker && serve b $IF_B || return
	OWN_XROCE=$OWN/bin/xroce bench_server "${NOBODY[@]}" || return
	start bench b "${NOBODY[@]}" "$OWN/bin/xroce" bench "${SHORT[@]}" -t send,ud,read -s 64,4k $IP4_A
	finish "$child" 60 || { fail "the client ended with $?"; show bench; }
	need_line bench '^ +4096  RC RDMA READ '
	server_ends
	stop "$a"
	stop "$broker"
}

picture() {
	local options
	command -v gnuplot >/dev/null || { skip_reason="no gnuplot"; return 77; }
	bench_server || return
	for options in "" "--only latency" "--only bandwidth"; do
		# shellcheck disable=SC2086 # none or two words
		bench_from 0 "${SHORT[@]}" -t $ALL -s 64,4k $options --svg "$WORK/a b'c.svg" $IP4_A || continue
		need_equal "what gnuplot says" "$(cat "$WORK/bench.out")" ""
		python3 - "$WORK/a b'c.svg" <<-'END' || fail "no picture: $options"
			import sys, xml.dom.minidom
			d = xml.dom.minidom.parse(sys.argv[1])
			def text(n): return n.data if n.nodeType == n.TEXT_NODE else "".join(map(text, n.childNodes))
			words = text(d.documentElement)
			assert d.documentElement.tagName == "svg"
			for w in ("RC SEND", "UD SEND", "UDP", "TCP", "10.77.0.1"):
			    assert w in words, w
			assert len(d.getElementsByTagName("path")) > 20
		END
	done
	bench_from 1 "${SHORT[@]}" -s 64 --svg "$WORK/none/x.svg" $IP4_A
	need_line bench 'none/x.svg: No such file or directory'
	server_ends
}

# A missing gnuplot is reported before any measurement.
no_gnuplot() {
	bench_server || return
	start bench b env PATH="$WORK" "$XROCE" bench "${SHORT[@]}" --svg "$WORK/x.svg" $IP4_A
	finish "$child" 20
	need_equal "its status" $? 1
	need_line bench "^xroce bench: --svg needs gnuplot; install it"
	need_no_line bench 'Round trip'
	[ ! -e "$WORK/x.svg" ] || fail "a file was made"
	server_ends
}

# result FILE MEDIAN SPREAD: a result with one point of each measure.
result() {
	cat >"$WORK/$1" <<-END
		{"xroce_bench": 1, "version": "1", "kernel": "${4:-k}", "from": "a", "peer": "b", "events": false,
		 "latency": [{"way": "send", "size": 64, "median_ns":
		   {"min": $(($2 - $3)), "median": $2, "max": $(($2 + $3))}}],
		 "bandwidth": [{"way": "tcp", "size": 4096, "mbps":
		   {"min": $(($2 - $3)), "median": $2, "max": $(($2 + $3))}},
		   {"way": "udp", "size": 64, "mbps": {"min": 1, "median": 1, "max": 1}, "new": [{}]}]}
	END
}
compare() {
	result one 1000 10
	result two 2000 10 kk
	result near 1015 10
	result other 1 0
	sed -i 's/"tcp"/"ud"/; s/"send"/"read"/; s/"udp"/"write"/' "$WORK/other"
	bench_from 1 --compare "$WORK/one" "$WORK/two"
	need_line bench '^xroce bench: 1 of 3 medians are worse in .*/two$'
	cp "$WORK/bench.json" "$WORK/table.out"
	need_line table '^note: kernel is k before, kk after$'
	need_line table '^ +64  send +1\.0 +2\.0 us +2 x  worse$'
	need_line table '^ +4096  tcp +1000\.0 +2000\.0 Mbit/s +2 x  better$'
	bench_from 1 --json --compare "$WORK/two" "$WORK/one"
	json_has '[(p["way"], p["ratio"], p["verdict"]) for p in d] ==
		[("send", 0.5, "better"), ("tcp", 0.5, "worse"), ("udp", 1, "within the rounds")]'
	bench_from 0 --json --compare "$WORK/one" "$WORK/near"
	json_has '[p["verdict"] for p in d] == 3 * ["within the rounds"]'
	# a shorter round trip alone is no failure
	result better 500 10
	sed -i 's/"tcp"/"ud"/' "$WORK/better"
	bench_from 0 --json --compare "$WORK/one" "$WORK/better"
	json_has '[p["verdict"] for p in d] == ["better", "within the rounds"]'
	need_equal "what it says" "$(cat "$WORK/bench.out")" ""
	bench_from 1 --compare "$WORK/one" "$WORK/other"
	need_line bench 'no transport and size in common'
	bench_from 2 --compare "$WORK/one"
	bench_from 1 --compare "$WORK/one" "$WORK/none"
	need_line bench 'No such file'
	echo '{"xroce_bench": 2}' >"$WORK/later"
	echo '{"xroce_bench": 1, ' >"$WORK/cut"
	: >"$WORK/empty"
	echo '[1]' >"$WORK/list"
	for file in later cut empty list ../..; do
		bench_from 1 --compare "$WORK/one" "$WORK/$file"
		need_line bench '^xroce bench: cannot read .*: (invalid JSON|not a result)'
	done
	need_equal "what it prints of none" "$(cat "$WORK/bench.json")" ""
	# what a run has given is equal to itself
	bench_server || return
	bench_from 0 "${SHORT[@]}" -s 64,4k --json $IP4_A
	server_ends
	cp "$WORK/bench.json" "$WORK/run.json"
	bench_from 0 --json --compare "$WORK/run.json" "$WORK/run.json"
	json_has 'len(d) == 12 and all(p["ratio"] == 1 and p["verdict"] == "within the rounds" for p in d)'
}

# A client that sends invalid messages: each costs its own connection, and the server continues.
hostile_clients() {
	bench_server || return
	in_b timeout 60 python3 - $IP4_A $PORT <<-'END' >"$WORK/hostile.out" 2>&1 || { fail "hostile: $?"; show hostile; }
		import random, socket, struct, sys
		def message(type=0, way=0, measure=0, events=0, port=0, size=64, depth=1, mtu=1024, status=0, qpn=0,
		            psn=0, rkey=0, ns=1000, va=0, token=0, gid=b"", magic=0x5852424e, version=1):
		    m = struct.pack(">IHBBBBHIIIIIIIQQQQQQ16s", magic, version, type, way, measure, events, port, size,
		        depth, mtu, status, qpn, psn, rkey, ns, va, token, 0, 0, 0, gid)
		    return m.ljust(160, b"\0")
		def answers(*sent, hello=True):
		    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 20)
		    own = b"\0" * 10 + b"\xff\xff" + socket.inet_aton(s.getsockname()[0])
		    got = b""
		    try:
		        if hello:
		            s.sendall(message(0, gid=own))
		            while len(got) < 160:
		                d = s.recv(160 - len(got))
		                assert d, "no answer to a HELLO"
		                got += d
		            assert got[6] == 0, "not a HELLO"
		        for m in sent:
		            s.sendall(m)
		        s.shutdown(socket.SHUT_WR)
		        got = b""
		        while d := s.recv(4096):
		            got += d
		    except OSError:
		        pass
		    s.close()
		    return got
		assert answers(hello=False) == b""
		assert answers(b"x", hello=False) == b""
		assert answers(b"GET / HTTP/1.1\r\n\r\n" * 20, hello=False) == b""
		assert answers(message(0, gid=bytes(16)), hello=False) == b"", "another's address is served"
		assert answers(message(1), hello=False) == b""
		bad = [dict(size=0), dict(size=15), dict(size=1 << 30), dict(size=0xffffffff), dict(depth=0),
		    dict(depth=129), dict(depth=0xffffffff), dict(size=8 << 20, depth=3), dict(ns=0), dict(ns=1 << 63),
		    dict(mtu=0), dict(mtu=65536), dict(way=6), dict(way=255), dict(measure=2), dict(events=2),
		    dict(qpn=1 << 24), dict(psn=1 << 24), dict(way=3, size=1025), dict(way=4, size=65508),
		    dict(type=6), dict(type=255), dict(type=2), dict(type=3), dict(type=4), dict(type=5),
		    dict(magic=0), dict(version=2)]
		for b in bad:
		    got = answers(message(**dict(dict(type=1), **b)))
		    assert got == b"", (b, got)
		# the client goes away before, in and after a test of each way
		for way in range(6):
		    for measure in range(2):
		        got = answers(message(1, way=way, measure=measure, qpn=5, token=7))
		        assert got[6] == 2, (way, measure, got)
		        assert answers(message(1, way=way, measure=measure, qpn=5), message(3))[6] == 2
		random.seed(5)
		for i in range(200):
		    m = bytearray(message(1, way=random.randrange(6), qpn=5))
		    for _ in range(random.randrange(1, 4)):
		        m[random.randrange(160)] = random.randrange(256)
		    answers(bytes(m[:random.choice((160, 160, random.randrange(160)))]))
		print("done")
	END
	need_line hostile '^done$'
	is_gone_or_zombie "$server" && { fail "the server died"; show server; return 1; }
	bench_from 0 "${SHORT[@]}" -s 64 --json $IP4_A
	server_ends
}

# Connections that send nothing, or a part of a greeting, do not delay a client.
silent_clients() {
	local stranger begun
	bench_server || return
	start stranger b python3 -c '
import socket, sys, time
s = [socket.create_connection((sys.argv[1], int(sys.argv[2]))) for _ in range(20)]
for one in s[10:]: one.sendall(b"XRBN")
print("connected", flush=True)
time.sleep(60)' $IP4_A $PORT
	stranger=$child
	wait_until 10 grep -q connected "$WORK/stranger.out" || fail "no stranger"
	begun=$SECONDS
	bench_from 0 "${SHORT[@]}" -t tcp -s 64 $IP4_A
	[ $((SECONDS - begun)) -lt 6 ] || fail "a client waited $((SECONDS - begun)) s"
	stop "$stranger"
	server_ends
}

# A server that sends invalid messages costs the client a line and an exit status.
hostile_servers() {
	local lie
	for lie in nothing close short garbage other_gid failed bad_errno no_mtu after_hello ready_then_close wrong_order; do
		start liar a python3 -c '
import socket, struct, sys, time
lie, port = sys.argv[1], int(sys.argv[2])
def message(type, gid=b"", mtu=4096, status=0):
    m = struct.pack(">IHBBBBHIIIIIIIQQQQQQ16s", 0x5852424e, 1, type, 0, 0, 0, 9, 64, 1, mtu, status,
        1, 2, 3, 1000, 0, 0, 0, 0, 0, gid)
    return m.ljust(160, b"\0")
l = socket.create_server((sys.argv[3], port))
s, _ = l.accept()
own = b"\0" * 10 + b"\xff\xff" + socket.inet_aton(s.getsockname()[0])
def hear():
    got = b""
    while len(got) < 160 and (d := s.recv(160 - len(got))): got += d
hear()
s.sendall({"nothing": b"", "close": b"", "short": b"XRBN", "garbage": b"\xff" * 400,
    "other_gid": message(0, bytes(16)), "failed": message(5, status=19), "bad_errno": message(5, status=1 << 31),
    "no_mtu": message(0, own, 0), "wrong_order": message(4, own)}.get(lie, message(0, own)))
if lie == "nothing": time.sleep(30)
if lie in ("after_hello", "ready_then_close"): hear()
if lie == "after_hello": s.sendall(message(4))
if lie == "ready_then_close": s.sendall(message(2))
' $lie $PORT $IP4_A
		wait_until 10 listens_or_gone a $PORT "$child"
		bench_from 1 "${SHORT[@]}" -t send -s 64 $IP4_A
		need_line bench '^xroce bench: '
		stop "$child"
	done
}

# Killed in the middle of it: nothing stays on either interface, and the server serves on.
killed() {
	bench_server || return
	start bench b "$XROCE" bench --quiet -t send -D 30 -s 4k $IP4_A
	wait_until 10 is_attached a $IF_A || fail "nothing was measured"
	kill -9 "$child"
	finish "$child" 5
	wait_until 10 is_detached b $IF_B || fail "XDP stays on B"
	bench_from 0 "${SHORT[@]}" -t send -s 64 $IP4_A
	# INT ends it in order, with what there is
	start bench b "$XROCE" bench --quiet -t send -D 30 -s 4k $IP4_A
	wait_until 10 is_attached b $IF_B
	kill -INT "$child"
	finish "$child" 20
	[ $? -ne 124 ] || fail "INT does not end it"
	kill -9 "$server"
	finish "$server" 5
	wait_until 10 is_detached a $IF_A || fail "XDP stays on A"
}
is_attached() { in_ns "$1" ip link show "$2" | grep -q xdp; }
is_detached() { ! is_attached "$@"; }

errors() {
	local words
	while read -ra words; do
		bench_from 2 "${words[@]}"
		need_line bench '^xroce bench: '
	done <<-END
		-t send,tpc $IP4_A
		-t  $IP4_A x
		-s 15 $IP4_A
		-s 9M $IP4_A
		-s 64,64 $IP4_A
		-s 4k,64 $IP4_A
		-s 64, $IP4_A
		-s 18446744073709551615k $IP4_A
		-D 0 $IP4_A
		-D 61 $IP4_A
		-D x $IP4_A
		--rounds 0 $IP4_A
		--rounds 101 $IP4_A
		--mtu 1500 $IP4_A
		--mtu 8192 $IP4_A
		--tcp-port 0 $IP4_A
		--tcp-port 65536 $IP4_A
		--only both $IP4_A
		--nosuch $IP4_A
		--rounds
		--server $IP4_A
		--dev nosuch $IP4_A
		198.51.100.1
		$IP4_A $IP4_B
	END
	bench_from 2
	bench_server || return
	start second a "$XROCE" bench --server
	finish "$child" 10
	need_equal "the second server's status" $? 1
	need_line second "cannot listen on TCP port $PORT: Address already in use"
	server_ends
	start server a "$XROCE" bench --server --one-client
	server=$child
	wait_until 10 listens_or_gone a $PORT "$server"
	bench_from 0 "${SHORT[@]}" -t tcp -s 64 $IP4_A
	finish "$server" 10 || fail "--one-client ends with $?"
	need_line server '^xroce bench: 10.77.0.2: 4 tests$'
}

run_case ways_v4 ways v4
run_long_case ways_v6 ways v6
for family in v4 v6; do
	run_long_case ways_events_$family ways $family --sleep True
done
run_long_case tables tables
run_long_case by_brokers by_brokers
run_long_case picture picture
run_case no_gnuplot no_gnuplot
run_long_case compare compare
run_long_case hostile_clients hostile_clients
run_case silent_clients silent_clients
run_long_case hostile_servers hostile_servers
run_case killed killed
run_long_case errors errors
finish_cases
