/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests the kernel's support for a port, for `xroce doctor`. A child process runs the tests; those
 * of XDP on an interface use a new network namespace. Nothing remains.
 */
#ifndef BROKER_PROBE_H
#define BROKER_PROBE_H

/* Each is 0 (works) or -errno; -ENODATA: not tested, as a test that it depends on failed. */
struct probe {
	int program;	 /* the XDP program and all of its maps load */
	/* a network namespace can be made: link, bind and multibuffer are tested on its lo */
	int namespace;
	int link;	 /* the program attaches by a bpf_link, in generic mode */
	int socket;	 /* an AF_XDP socket can be made */
	int bind;	 /* it binds, in copy mode */
	int multibuffer; /* it binds with XDP_USE_SG */
	/* the transmit program loads, and a TAP device for it can be made in a new namespace */
	int redirect;
	const char *redirect_step; /* the failed step of redirect */
	int gso;	 /* a packet socket for super-packets can be made */
	const char *gso_step;
	int dispatcher;	 /* the program can be put into a dispatcher, with others */
	const char *dispatcher_step;
};

/* Returns 0, or -errno if nothing could be tested. */
int probe_run(struct probe *probe);

#endif
