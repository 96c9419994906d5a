/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce lab: hosts in network namespaces, joined by a cable with faults. The command. */
#include <errno.h>
#include <string.h>

#include "lab_each.h"
#include "lab_keep.h"
#include "lab_record.h"
#include "lab_report.h"
#include "lab_space.h"

int lab_failed(const char *what, int err)
{
	fprintf(stderr, "xroce lab: cannot %s: %s\n", what, strerror(-err));
	return EXIT_FAILED;
}

static int lab_main(int argc, char **argv)
{
	static struct lab lab;
	int ret;

	if (argc > 1 && lab_live_is_command(argv[1]))
		return lab_live(argc, argv);
	if (!lab_begin(&lab))
		return lab_failed("allocate memory", -ENOMEM);
	ret = cli_parse(&command_lab, &argc, &argv, lab_option, &lab);
	if (!ret && lab.replay)
		ret = lab_replay(&lab);
	if (!ret)
		ret = lab_take_command(&lab, argc, argv);
	if (!ret)
		ret = lab_prepare(&lab);
	if (!ret && lab.cases)
		return lab_each(&lab);
	if (!ret)
		ret = lab_check(&lab);
	if (!ret && lab.record)
		ret = lab_record(&lab);
	if (!ret)
		ret = lab_capture_open(&lab, lab.capture);
	if (ret)
		return ret;
	ret = lab_space_run(&lab);
	if (!lab.shown->began)
		return ret;
	ret = lab_report(&lab, ret);
	if (ret && !lab_space_interrupted()) {
		fputs("xroce lab: to run it again: ", stderr);
		lab_print_command(&lab, stderr);
		fputc('\n', stderr);
	}
	return ret;
}

const struct command command_lab = {
	.name = "lab",
	.summary = "run programs on two hosts of its own, with faults on the wire",
	.main = lab_main,
	.help = "usage: xroce lab [OPTION...] [--] COMMAND [ARGUMENT...]\n"
		"       xroce lab [OPTION...] --h1 COMMAND --h2 COMMAND\n"
		"       xroce lab --cases FILE [--each] [OPTION...] [COMMAND...]\n"
		"       xroce lab up NAME [OPTION...] | down NAME | list\n"
		"       xroce lab exec NAME HOST [--] COMMAND [ARGUMENT...]\n"
		"       xroce lab fault NAME add RULE | list | clear [RULE]\n"
		"\n"
		"Makes hosts h1, h2, ... in network namespaces of its own, each with an interface\n"
		"eth0 and a device xroce_eth0, and runs programs in them: COMMAND in h1, or one\n"
		"for each host. On the way between the hosts it drops, delays, duplicates, swaps,\n"
		"corrupts or marks the RoCEv2 packets that rules select (xroce-lab(8)). The same\n"
		"rules and the same seed hit the same packets again. At the end it reports what\n"
		"each rule has hit, and nothing of the lab remains.\n"
		"\n",
	.options = lab_options,
	.is_wrapper = true,
	.help_end =
		"\n"
		"Programs find LAB_IP1, LAB_IP2, ... and LAB_IPV6_1, ... in their environment,\n"
		"LAB_HOSTS, the names of the hosts, and LAB_HOST, their own.\n"
		"\n"
		"Needs root, or user namespaces; then devices use UDP sockets.\n"
		"Exit status: the highest of the programs'; 1 if a rule never hit; 124 after the\n"
		"time limit; 2 for wrong usage.\n"
		"\n"
		"Examples:\n"
		"  xroce lab --h1 'ib_write_bw' --h2 'ib_write_bw $LAB_IP1'\n"
		"  xroce lab --fault 'drop h2>h1 rc.ack nth=3' -- ./test.sh\n"
		"  xroce lab --cases wire --each --junit out.xml -- ./test.sh\n",
};
