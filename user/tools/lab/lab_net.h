/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lab's network: a namespace for each host, with an interface eth0 whose other end, p1, p2 and
 * so on, is in the cable's namespace.
 */
#ifndef LAB_NET_H
#define LAB_NET_H

#include "../../fault/lab_rule.h"

#define LAB_IFACE "eth0"

struct lab_host {
	int ns_fd;
	char ipv4[16], ipv6[46];
	u8 mac[6];
	u32 port_index; /* of the cable's end, in the cable's namespace */
};

/* Sets the addresses of the host with that number, from 1. */
void lab_net_name(struct lab_host *host, u32 number);
/*
 * Makes the namespaces of all hosts, joined to the calling thread's, which is the cable's. Returns
 * 0, or -errno with *step the step that failed; descriptors stay open until the process ends.
 */
int lab_net_make(struct lab_host *hosts, u32 num, u32 mtu, const char **step);
/* Enters a host's network namespace. Returns 0 or -errno. */
int lab_net_enter(const struct lab_host *host);
/* Sets the cable's end of a host's link up or down. Returns 0 or -errno. */
int lab_net_set_link(const struct lab_host *host, bool up);
/* Adds or removes a host's addresses. Returns 0 or -errno. */
int lab_net_set_addresses(const struct lab_host *host, bool present);

#endif
