#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# Servers with event loops, as Debian has them, under `xroce run --rsockets`, and clients likewise:
# nginx and curl, Redis and its benchmark, Python's asyncio, PostgreSQL, which forks, and pgbench,
# qperf's tests of TCP. A case whose packages are missing is skipped.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$(dirname "$0")/lib/unprivileged.sh"
. "$(dirname "$0")/lib/cm.sh"
CM_RUN=(--rsockets)

skip_case() { skip_reason=$*; return 77; }
# has PROGRAM...: else the case is skipped.
has() {
	local program
	for program in "$@"; do
		command -v "$program" >/dev/null || { skip_case "no $program"; return 77; }
	done
}

# ask SECONDS COMMAND...: a client in B, which must succeed.
ask() {
	local seconds=$1
	shift
	in_b "$XROCE" run --rsockets --dev $IF_B -- timeout "$seconds" "$@" >"$WORK/client.out" 2>&1 && return
	fail "the client ended with $?: $*"
	show client
	show server
	return 1
}

# Nothing listens at the port of TCP, and no connection of TCP was made: the rest is by rsockets.
tcp_opens() { in_b nstat -asz TcpActiveOpens | awk '/ActiveOpens/ {print $2}'; }
no_tcp() {
	[ -z "$(in_a ss -Htln "sport = :$1")" ] || fail "it listens at port $1 of TCP"
	[ "$(tcp_opens)" = "$2" ] || fail "connections were made by TCP"
}

asyncio() {
	local opens
	opens=$(tcp_opens)
	cm_serve python3 "$(dirname "$0")/servers/asyncio_echo.py" serve $IP4_A 7600 || return
	ask 60 python3 "$(dirname "$0")/servers/asyncio_echo.py" ask $IP4_A 7600
	need_line client '^30 connections, 3000 messages$'
	no_tcp 7600 "$opens"
	stop "$cm_server"
}

# Connections begin by TCP while they are in the loops' sets, and go on as rsockets.
asyncio_forks() {
	local octets
	export RDMAV_FORK_SAFE=1
	start server a "$XROCE" run --rsockets --dev $IF_A -- \
		python3 "$(dirname "$0")/servers/asyncio_echo.py" serve $IP4_A 7600
	cm_server=$child
	wait_until 20 listens_or_gone a 7600 "$cm_server"
	ask 60 python3 "$(dirname "$0")/servers/asyncio_echo.py" ask $IP4_A 7600
	unset RDMAV_FORK_SAFE
	need_line client '^30 connections, 3000 messages$'
	octets=$(in_a nstat -az IpExtInOctets | awk '/InOctets/ {print $2}')
	[ "${octets:-0}" -lt 100000 ] || fail "$octets bytes came by TCP"
	stop "$cm_server"
}

nginx_conf() {
	mkdir -p "$WORK/www" "$WORK/nginx"
	chmod 755 "$WORK" "$WORK/www"
	cat >"$WORK/nginx.conf" <<END
daemon off;
$1
pid $WORK/nginx/pid;
error_log stderr;
events { worker_connections 200; }
http {
	access_log off;
	sendfile on;
	tcp_nopush on;
	client_body_temp_path $WORK/nginx;
	proxy_temp_path $WORK/nginx;
	fastcgi_temp_path $WORK/nginx;
	uwsgi_temp_path $WORK/nginx;
	scgi_temp_path $WORK/nginx;
	server {
		listen $IP4_A:8080;
		root $WORK/www;
	}
}
END
}

# get TIMES: pages of some sizes, with and without their own connection.
pages() {
	local i
	for i in 10 5000 3000000; do
		head -c $i /dev/urandom >"$WORK/www/$i"
		chmod 644 "$WORK/www/$i"
	done
	for i in 1 2 3; do
		ask 60 curl -sS --parallel -o "$WORK/got_#1" "http://$IP4_A:8080/{10,5000,3000000}" || return
		ask 60 curl -sS -o "$WORK/got_#1" "http://$IP4_A:8080/{10,5000,3000000}" || return
	done
	for i in 10 5000 3000000; do
		cmp "$WORK/www/$i" "$WORK/got_$i" 2>>"$WORK/case.notes" || fail "another page of $i bytes"
	done
}

web() {
	local opens
	has nginx curl || return
	nginx_conf "master_process off;"
	opens=$(tcp_opens)
	cm_serve nginx -c "$WORK/nginx.conf" || return
	pages
	no_tcp 8080 "$opens"
	stop "$cm_server"
}

# Workers, of two processes that share the interface, accept what begins by TCP.
web_workers() {
	local octets
	has nginx curl || return
	nginx_conf "user root; worker_processes 2;"
	export RDMAV_FORK_SAFE=1
	start server a "$XROCE" run --rsockets --dev $IF_A -- nginx -c "$WORK/nginx.conf"
	cm_server=$child
	wait_until 20 listens_or_gone a 8080 "$cm_server"
	pages
	unset RDMAV_FORK_SAFE
	octets=$(in_a nstat -asz IpExtOutOctets | awk '/OutOctets/ {print $2}')
	[ "${octets:-0}" -lt 1000000 ] || fail "$octets bytes left by TCP"
	stop "$cm_server"
	need_no_line server 'librspreload: '
}

# qperf's server forks once it has been asked: that connection stays with TCP.
qperf_tests() {
	has qperf || return
	export XROCE_TCP_PORTS=19765
	start server a "$XROCE" run --rsockets --dev $IF_A -- qperf
	cm_server=$child
	wait_until 20 listens_or_gone a 19765 "$cm_server"
	ask 60 qperf -t 1 $IP4_A tcp_bw tcp_lat udp_lat
	unset XROCE_TCP_PORTS
	need_line client ' bw +='
	need_line client ' latency +='
	local octets
	octets=$(in_a nstat -asz IpExtInOctets | awk '/InOctets/ {print $2}')
	[ "${octets:-0}" -lt 1000000 ] || fail "$octets bytes came by TCP or UDP"
	stop "$cm_server"
}

# Redis and its benchmark, in single requests and in pipelines; stored data is read back.
redis() {
	local opens
	has redis-server redis-cli redis-benchmark || return
	opens=$(tcp_opens)
	cm_serve redis-server --bind $IP4_A --port 6400 --save '' --protected-mode no \
		--dir "$WORK" || return
	ask 60 redis-cli -h $IP4_A -p 6400 set key value
	ask 60 redis-cli -h $IP4_A -p 6400 get key && need_line client '^value$'
	ask 120 redis-benchmark -h $IP4_A -p 6400 -n 5000 -c 30 -t set,get,lpush -q
	need_line client 'GET: [0-9.]+ requests per second'
	ask 120 redis-benchmark -h $IP4_A -p 6400 -n 5000 -c 10 -P 16 -d 10000 -t set,get -q
	need_line client 'GET: [0-9.]+ requests per second'
	# a child that writes the database, while connections are open
	ask 60 redis-cli -h $IP4_A -p 6400 bgsave
	ask 60 redis-cli -h $IP4_A -p 6400 get key && need_line client '^value$'
	no_tcp 6400 "$opens"
	stop "$cm_server"
}

# PostgreSQL, of a user without privileges, forks for each connection: RDMAV_FORK_SAFE=1 has
# connections begin by TCP, and the child has the rsocket.
pg_bin() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1; }
AS_USER=("${NOBODY[@]}" env HOME="$OWN/home" RDMAV_FORK_SAFE=1)
pg_ask() {
	in_b "$XROCE" run --rsockets --dev $IF_B -- env RDMAV_FORK_SAFE=1 PGHOST=$IP4_A \
		PGPORT=6500 PGUSER=tester PGSSLMODE=disable PGGSSENCMODE=disable timeout 100 "$@" \
		>"$WORK/client.out" 2>&1 && return
	fail "the client ended with $?: $*"
	show client
	show server
	return 1
}
postgres() {
	local bin data=$OWN/home/pg server octets
	bin=$(pg_bin)
	[ -n "$bin" ] || { skip_case "no postgresql"; return; }
	serve a $IF_A || return
	"${AS_USER[@]}" "$bin/initdb" -D "$data" -U tester -A trust -N >"$WORK/server.out" 2>&1 ||
		{ fail "initdb ended with $?"; show server; return; }
	echo "host all all $IP4_B/32 trust" >>"$data/pg_hba.conf"
	start server a "${AS_USER[@]}" "$OWN/bin/xroce" run --rsockets --dev $IF_A -- "$bin/postgres" \
		-D "$data" -p 6500 -h $IP4_A -k "$OWN/home" -F
	server=$child
	wait_until 20 listens_or_gone a 6500 "$server"
	pg_ask psql -d postgres -At -c "select repeat('x', 300000)" -c 'select 6 * 7' &&
		need_line client '^42$' && need_line client '^x{32767}'
	pg_ask "$bin/pgbench" -i -q -s 1 postgres
	pg_ask "$bin/pgbench" -c 4 -j 2 -t 50 postgres && need_line client ' 200/200$'
	octets=$(in_a nstat -asz IpExtOutOctets | awk '/OutOctets/ {print $2}')
	[ "${octets:-0}" -lt 200000 ] || fail "$octets bytes left by TCP"
	stop "$server"
	need_no_line server 'librspreload: '
}

run_case asyncio asyncio
run_case asyncio_forks asyncio_forks
run_case nginx web
run_case nginx_workers web_workers
run_case redis redis
run_case postgres postgres
run_case qperf qperf_tests
finish_cases
