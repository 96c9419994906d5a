/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What `xroce bench` and `xroce ping` read from a command line: numbers, sizes, times, peers. */
#ifndef BENCH_ARGS_H
#define BENCH_ARGS_H

#include <sys/socket.h>

#include "../cli.h"

/* Each is false, and *out undefined, if text is anything else or out of the bounds. */
bool args_number(const char *text, u64 least, u64 most, u64 *out);
/* Bytes: a number that may end in k or M (of 1024). */
bool args_size(const char *text, u64 least, u64 most, u64 *out);
/* Seconds with a fraction, as 0.2; in nanoseconds. */
bool args_seconds(const char *text, u64 least_ns, u64 most_ns, u64 *out_ns);

/* Longest text of an address, with its zero; an IPv6 one has its interface behind a %. */
#define ADDRESS_TEXT 80

/* A peer, the interface by which the kernel sends to it, and the address that it sends from. */
struct peer {
	struct sockaddr_storage address; /* its port is 0 */
	socklen_t address_len;
	struct gid gid, local;
	char text[ADDRESS_TEXT], local_text[ADDRESS_TEXT];
	struct netdev dev;
};

/*
 * name: an address or a host name; family: AF_INET, AF_INET6 or AF_UNSPEC; iface: the interface
 * that it has to be, or NULL. Returns EXIT_OK; EXIT_USAGE or EXIT_FAILED after a line on standard
 * error.
 */
int peer_find(const struct command *command, const char *name, int family, const char *iface,
	      struct peer *out);

/* An address as people write it: an IPv4 one with dots. Returns text. */
const char *gid_text(const struct gid *gid, char text[ADDRESS_TEXT]);
/* The address of a socket, IPv4 as ::ffff:a.b.c.d. */
struct gid gid_of_address(const struct sockaddr_storage *address);

/* What the kernel has learned of the path to the peer: its route's MTU in bytes, 0: unknown. */
u32 peer_route_mtu(const struct peer *peer);

#endif
