/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce doctor: says in one line each what is wrong and what to do about it. It changes nothing. */
#include <stdarg.h>
#include <stdlib.h>

#include "../tx/tx_probe.h"
#include "doctor.h"

void finding(struct doctor *d, enum level level, const char *what, const char *remedy,
	     const char *fmt, ...)
{
	static const char *const word[] = {
		[LEVEL_OK] = "ok", [LEVEL_WARN] = "warn", [LEVEL_FAIL] = "FAIL"
	};
	va_list ap;

	d->failures += level == LEVEL_FAIL;
	printf("%-4s  %s: ", word[level], what);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	if (remedy)
		printf(" -> %s", remedy);
	putchar('\n');
}

/*
 * Without a name: all that a program could use, which is what is up and has an address; lo only by
 * name.
 */
static int doctor_interfaces(struct doctor *d)
{
	struct netdev *list;
	int n = netdev_list(&list), usable = 0;

	if (n < 0) {
		fprintf(stderr, "xroce doctor: cannot read the network interfaces: %s\n",
			strerror(-n));
		return EXIT_FAILED;
	}
	for (int i = 0; i < n; i++) {
		if (list[i].is_loopback || !list[i].is_up || !list[i].num_gids)
			continue;
		doctor_iface(d, &list[i]);
		usable++;
	}
	free(list);
	if (!usable)
		finding(d, LEVEL_FAIL, "interfaces",
			"`ip link set IFACE up`, `ip address add ADDRESS/PREFIX dev IFACE`",
			"none that is up and has an address, but for lo");
	return EXIT_OK;
}

static int doctor_main(int argc, char **argv)
{
	struct doctor d = { 0 };
	struct netdev dev;
	int ret;

	if (argc > 1 && argv[1][0] == '-')
		return usage_error(&command_doctor, "unknown option '%s'", argv[1]);
	if (argc > 2)
		return usage_error(&command_doctor, "more than one interface");
	if (argc == 2) {
		ret = find_device(&command_doctor, argv[1], &dev);
		if (ret)
			return ret;
	}
	/* The probes fork: what is buffered would be written twice, and lines would come late. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	doctor_host(&d);
	if (argc == 2) {
		doctor_iface(&d, &dev);
	} else {
		ret = doctor_interfaces(&d);
		if (ret)
			return ret;
	}
	return d.failures ? EXIT_FAILED : EXIT_OK;
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "check what xroce needs, and say what to do where it is missing",
	.main = doctor_main,
	.help = "usage: xroce doctor [IFACE]\n"
		"\n"
		"Checks this process's privileges, the kernel, and IFACE, or every interface that "
		"is up and has an address, and prints a line\n"
		"for each thing that it looked at:\n"
		"\n"
		"  ok    what: finding\n"
		"  warn  what: finding -> what to do          it will work, but less well, or not "
		"at the same time\n"
		"  FAIL  what: finding -> what to do          it will not work\n"
		"\n"
		"What it looks at: capabilities; locked memory; kernel release and type "
		"information (BTF); BPF map and program types; whether the\n"
		"XDP program loads, attaches by bpf_link and AF_XDP sockets bind, with frames of "
		"several buffers; whether a TAP device can be\n"
		"made, which the fast way out goes through (" TX_TUN_DEVICE
		", CAP_SYS_ADMIN); our library; and of each interface its link, addresses,\n"
		"MTU and the path MTU that it gives, receive queues, the XDP mode that it will "
		"have, who is on its XDP hook, and RDMA devices\n"
		"of the kernel that use it.\n"
		"\n"
		"It changes nothing: what needs trying out is tried in a network namespace of its "
		"own. Run it as the user, and in the network\n"
		"namespace, that programs will run in: the answers are theirs.\n"
		"\n"
		"Exit status: 0 if nothing failed, 1 if something did, 2 for wrong usage or no "
		"such interface.\n",
};
