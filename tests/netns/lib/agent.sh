# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# A second host for launchers of parallel programs, instead of a remote shell. `$AGENT HOST
# COMMAND...` runs the command in a shell of the same unprivileged user in namespace B, and exits
# with its status. Sourced after unprivileged.sh.

AGENT=$OWN/bin/agent
cat >"$AGENT" <<END
#!/bin/bash
ended=$OWN/home/ended.\$\$
[ "\$1" = -x ] && shift
shift
mkfifo "\$ended" || exit 1
echo "{ \$*; } </dev/null; echo \\\$? >\$ended" >"$OWN/home/calls"
read -r rc <"\$ended"
rm "\$ended"
exit "\$rc"
END
cat >"$OWN/bin/answer" <<END
#!/bin/bash
exec 3<>"$OWN/home/calls"
while IFS= read -r line <&3; do
	bash -c "\$line" 3>&- &
done
END
chmod 755 "$AGENT" "$OWN/bin/answer"

# agent_start: the host B, with a separate name and no memory shared with another host. Its output
# is the output of `answer`. Its first process stays root's: another user's would outlive unshare.
agent_start() {
	rm -f "$OWN/home/calls"
	mkfifo -m 666 "$OWN/home/calls"
	start answer b unshare --uts --ipc --pid --fork --kill-child --mount-proc \
		sh -c 'hostname "$0"; "$@" & wait' "host-$IF_B" "${NOBODY[@]}" "$OWN/bin/answer"
	agent_pid=$child
}
# A launcher may exit before its agents: notifies agents whose command ended with the host.
agent_stop() {
	local waiting
	kill -9 "$agent_pid"
	finish "$agent_pid" 5
	for waiting in "$OWN/home/ended."*; do
		[ ! -p "$waiting" ] || echo 1 1<>"$waiting"
	done
}
