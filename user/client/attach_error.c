/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../os/complain.h"
#include "../os/options.h"
#include "../os/privilege.h"
#include "attach_error.h"
#include "broker_socket.h"

void attach_complain(const struct netdev *dev, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	complain("%s: %s", dev->name, text);
}

/* Returns whether a holder that admits others has no socket here. *pid: 0 if it has none here. */
static bool attach_lacks_socket(const struct netdev *dev, pid_t *pid)
{
	struct sockaddr_un at;
	char comm[32];
	int err;

	*pid = 0;
	broker_socket_path(dev->ifindex, &at);
	if (!access(at.sun_path, F_OK) || !netdev_lets_in(dev->ifindex))
		return false;
	err = netdev_holder(dev->ifindex, pid, comm, sizeof(comm));
	/* root without a number here cannot show a socket, but its XDP program */
	return !err || (dev->xdp_program && !privilege_in_first_user_namespace());
}

bool attach_holder_is_outside(const struct netdev *dev)
{
	pid_t pid;

	return attach_lacks_socket(dev, &pid) && !pid;
}

/* A holder that starts or ends has no socket either, but its PID is known on the host. */
bool attach_lacks_mount(const struct netdev *dev)
{
	pid_t pid;

	return attach_lacks_socket(dev, &pid) && (!pid || access(ASK_DIR, F_OK));
}

bool attach_complain_of_mount(const struct netdev *dev)
{
	if (!attach_lacks_mount(dev))
		return false;
	attach_complain(dev, "the broker's socket is not in " ASK_DIR
			     " of this container; " ATTACH_MOUNT);
	return true;
}

int attach_limited(const char *name, const char *what, const char *option, int err)
{
	if (err == -EDQUOT)
		complain("%s: this user has reached its limit of %s; end some, or raise "
			 "the limit (`xroce serve %s N %s`)",
			 name, what, option, name);
	else if (err == -ENOSPC)
		complain("%s: the limit of %s of all users together is reached", name, what);
	return err == -EDQUOT ? -ENOSPC : err;
}

/* AF_XDP counts packet memory of all processes of the user against RLIMIT_MEMLOCK. */
static void attach_error_memlock(const struct netdev *dev, const char *step)
{
	struct rlimit lim = { 0 };

	getrlimit(RLIMIT_MEMLOCK, &lim);
	attach_complain(
		dev,
		"cannot %s: the limit of locked memory (`ulimit -l`, %llu KiB for all processes "
		"of this user together) is reached; raise it (`ulimit -l unlimited` as root, "
		"LimitMEMLOCK= of a service), or run with CAP_IPC_LOCK",
		step, (unsigned long long)lim.rlim_cur >> 10);
}

int attach_failed(const struct netdev *dev, const char *step, int err)
{
	const bool is_refused = err == -EPERM || err == -EACCES;

	if (is_refused && options_share() != SHARE_NEVER && attach_complain_of_mount(dev))
		return -EPERM;
	/* without any capability, the user namespace (`xroce run` makes one) is not the cause */
	if (is_refused && privilege_caps() && !privilege_in_first_user_namespace())
		attach_complain(
			dev,
			"not permitted to %s: the kernel requires privileges of the initial "
			"user namespace; run `xroce serve %s` as root of that namespace: "
			"clients of a broker need no privileges",
			step, dev->name);
	else if (is_refused && options_share() == SHARE_NEVER)
		attach_complain(dev,
				"not permitted to %s; run as root, or with CAP_NET_ADMIN, "
				"CAP_BPF and CAP_NET_RAW",
				step);
	else if (is_refused)
		attach_complain(dev,
				"not permitted to %s, and no broker on %s; as root, run `xroce "
				"serve %s`; or run as root, or with CAP_NET_ADMIN, CAP_BPF and "
				"CAP_NET_RAW",
				step, dev->name, dev->name);
	else if (err == -ENODEV)
		attach_complain(dev,
				"cannot %s: no such interface; `ip link` lists the "
				"interfaces",
				step);
	else if (err == -ENOBUFS)
		attach_error_memlock(dev, step);
	else if (err == -EFBIG)
		attach_complain(dev,
				"cannot %s: the limit of a file's size (`ulimit -f`) is too low; "
				"raise it to 8 MiB, also the hard one",
				step);
	else if (err == -ENOMEM)
		attach_complain(dev,
				"cannot %s: out of memory; raise `ulimit -l` or the memory limit "
				"of this control group",
				step);
	else
		attach_complain(dev, "cannot %s: %s; run `xroce doctor %s`", step, strerror(-err),
				dev->name);
	return err == -EACCES ? -EPERM : err;
}

int attach_failed_random(const struct netdev *dev, int err)
{
	attach_complain(dev,
			"cannot get random numbers: getrandom(2) fails (%s) and /dev/urandom "
			"cannot be read; a seccomp filter must permit one of them",
			strerror(-err));
	return err;
}

int attach_in_use(const struct netdev *dev)
{
	char comm[32] = "?", who[64] = "another process";
	pid_t pid = 0;

	if (attach_complain_of_mount(dev))
		return -EBUSY;
	if (netdev_holder(dev->ifindex, &pid, comm, sizeof(comm)) == 0 && pid > 0)
		snprintf(who, sizeof(who), "process %d (%s)", (int)pid, comm);
	attach_complain(dev,
			"in use by %s for a process that shares it with no other; end that "
			"process (`xroce list %s` shows it), or use another interface",
			who, dev->name);
	return -EBUSY;
}
