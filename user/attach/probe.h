/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a port needs of the kernel, tried out by a child process in a network namespace of its own,
 * where there is nothing to disturb. It leaves nothing behind; for `xroce doctor`.
 */
#ifndef ATTACH_PROBE_H
#define ATTACH_PROBE_H

/* Each is 0 (works) or -errno; -ENODATA: not tried, because something that it needs failed. */
struct probe {
	int program;	 /* the XDP program and all of its maps load */
	/* a network namespace could be made: what follows is tried in it, on its lo */
	int namespace;
	int link;	 /* the program attaches by a bpf_link, in generic mode */
	int socket;	 /* an AF_XDP socket can be made (tried without a namespace, too) */
	int bind;	 /* it binds, in copy mode */
	int multibuffer; /* it binds with XDP_USE_SG */
	/*
	 * the transmit program loads, and a TAP device for it can be made (in another namespace of
	 * its own)
	 */
	int redirect;
	const char *redirect_step; /* the step of that which failed */
	int gso;	 /* a packet socket for super-packets can be made */
	const char *gso_step;
	int dispatcher;	 /* the program can go into a dispatcher, beside others */
	const char *dispatcher_step;
};

/* Returns 0, or -errno if nothing could be tried. */
int probe_run(struct probe *probe);

#endif
