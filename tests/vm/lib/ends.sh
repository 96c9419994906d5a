# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Programs between any two ends. Sourced after guest.sh. An end is
#   host			our library in A
#   GUEST/rxe0		the guest's Soft-RoCE, by the name of its device
#   GUEST/xroce_IFACE	our library in the guest, on that interface
# with the variables of END_ENV (XROCE_TX=gso ...) for our library in a guest; the host's are ours.
#
#   end_pair SERVER CLIENT FAMILY PORT SECONDS PROGRAM GID-OPTION [OPTION...]
#	runs PROGRAM -d DEVICE GID-OPTION GID OPTION... at both; 0 if both end well
#   end_address GUEST IP4	where a guest is called for control connections

declare -A end_ip4=([host]=$IP4_A) end_gids=()
END_ENV=

end_address() { end_ip4[$1]=$2; }
end_host() { case $1 in host) echo "${end_ip4[host]}" ;; *) echo "${end_ip4[${1%%/*}]}" ;; esac; }

# How a program is started at an end, as the guest's shell or ours has it.
end_prefix() {
	case $1 in
	*/xroce_*) echo "env $END_ENV /xroce/bin/xroce run --dev ${1#*/xroce_} --" ;;
	esac
}
end_device() { case $1 in host) echo $DEV_A ;; *) echo "${1#*/}" ;; esac; }

# end_gid END FAMILY: the index of its GID; asked for once. vlan4 and vlan6 are addresses of a VLAN:
# Soft-RoCE takes no VLAN interface, but has its addresses among the GIDs of the one below.
end_gid() {
	local want=fd77::
	case $2 in
	v4) want=::ffff:10.77. ;;
	vlan4) want=::ffff:10.78. ;;
	vlan6) want=fd77:5: ;;
	esac
	if [ -z "${end_gids[$1.$2]:-}" ]; then
		if [ "$1" = host ]; then
			on_a timeout 20 ibv_devinfo -v >"$WORK/devinfo.out" 2>&1
		else
			guest_do "${1%%/*}" devinfo "$(end_prefix "$1") ibv_devinfo -v -d $(end_device "$1")"
		fi
		end_gids[$1.$2]=$(sed -n 's/^[[:space:]]*GID\[ *\([0-9]*\)\]:[[:space:]]*\([^,[:space:]]*\).*/\1 \2/p' "$WORK/devinfo.out" |
			awk -v p="$want" 'index($2, p) == 1 { print $1; exit }')
	fi
	end_gid=${end_gids[$1.$2]}
	[ -n "$end_gid" ] || { fail "no $2 GID at $1"; show devinfo; return 1; }
}

# end_start END NAME PROGRAM ARGUMENT...
end_start() {
	local end=$1 name=$2
	shift 2
	if [ "$end" = host ]; then
		start_on "$name" a "$@"
		end_child[host]=$child
	else
		guest_start "${end%%/*}" "$name" "$(end_prefix "$end") ${1##*/} ${*:2}"
	fi
}
declare -A end_child=()
end_listens() {
	if [ "$1" = host ]; then
		listens_or_gone a "$2" "${end_child[host]}"
	else
		guest_do "${1%%/*}" listens "netstat -ltn | grep -q ':$2 '" || guest_has_ended "${1%%/*}" "$3"
	fi
}
# end_finish END NAME SECONDS PROGRAM
end_finish() {
	local rc
	if [ "$1" = host ]; then
		finish "${end_child[host]}" "$3"
		return
	fi
	guest_wait "${1%%/*}" "$2" "$3"
	rc=$?
	[ $rc -ne 124 ] || guest_do "${1%%/*}" kill "killall -9 ${4##*/}"
	return $rc
}

end_pair() {
	local server=$1 client=$2 family=$3 port=$4 bound=$5 program=$6 gid_option=$7 rc=0 gid
	shift 7
	end_gid "$server" "$family" || return
	end_start "$server" server "$program" -d "$(end_device "$server")" "$gid_option" "$end_gid" "$@"
	wait_until 20 end_listens "$server" "$port" server
	end_gid "$client" "$family" || return
	end_start "$client" client "$program" -d "$(end_device "$client")" "$gid_option" "$end_gid" "$@" "$(end_host "$server")"
	end_finish "$client" client "$bound" "$program" || { fail "the client ended with $?: ${program##*/} $*"; rc=1; }
	# a server whose client failed has no reason to end
	[ $rc -eq 0 ] || bound=1
	end_finish "$server" server "$bound" "$program" || { fail "the server ended with $?: ${program##*/} $*"; rc=1; }
	[ $rc -eq 0 ] || { show client; show server; }
	return $rc
}

# Programs on eth0 of the guest `guest`, whose server listens at port 18515. WHO: the words before a
# program that run it there.
listening() { guest_do guest listens "netstat -ltn | grep -q ':18515 '" || guest_has_ended guest server; }

# near WHO TOOL OPTION...: both in the guest
near() {
	local who=$1 rc
	shift
	guest_start guest server "$who $* -d xroce_eth0"
	wait_until 20 listening
	guest_start guest client "$who $* -d xroce_eth0 $IP4_B"
	guest_wait guest client 60
	rc=$?
	[ $rc -eq 0 ] || { fail "the client ended with $rc"; show client; guest_do guest kill "killall -9 $1"; show server; return 1; }
	guest_wait guest server 10 || { fail "the server ended with $?"; show server; }
}

# wire WHO TOOL OPTION...: the server in the guest, the client here, by XDP
wire() {
	local who=$1 rc
	shift
	guest_start guest server "$who $* -d xroce_eth0"
	wait_until 20 listening
	start client a env XROCE_PORT=xdp "$XROCE" run --dev $IF_A --share never -- "$@" -d $DEV_A $IP4_B
	finish "$child" 60
	rc=$?
	[ $rc -eq 0 ] || { fail "the client ended with $rc"; show client; guest_do guest kill "killall -9 $1"; show server; return 1; }
	guest_wait guest server 10 || { fail "the server ended with $?"; show server; }
}
