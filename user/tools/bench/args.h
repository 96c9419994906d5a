/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Command-line arguments of `xroce bench` and `xroce ping`: sizes, peers; and the signals that stop
 * these commands.
 */
#ifndef BENCH_ARGS_H
#define BENCH_ARGS_H

#include <sys/socket.h>

#include "../../os/gid_text.h"
#include "../cli.h"

/*
 * Parses bytes: a number that may end in k or M (powers of 1024). Returns false, with *out
 * undefined, if text is malformed or out of bounds.
 */
bool args_size(const char *text, u64 least, u64 most, u64 *out);

/* Longest text of an address with its NUL; an IPv6 address may have %INTERFACE appended. */
#define ADDRESS_TEXT 80

/* A peer, the interface on the kernel's route to it, and the source address. */
struct peer {
	struct sockaddr_storage address; /* port 0 */
	socklen_t address_len;
	struct gid gid, local;
	char text[ADDRESS_TEXT], local_text[ADDRESS_TEXT];
	struct netdev dev;
};

/*
 * Resolves a peer. name: an address or a host name; family: AF_INET, AF_INET6 or AF_UNSPEC; iface:
 * required interface, or NULL. Returns EXIT_OK, or EXIT_USAGE or EXIT_FAILED after a line on
 * standard error.
 */
int peer_find(const struct command *command, const char *name, int family, const char *iface,
	      struct peer *out);

/* Converts a socket address to a GID, IPv4 as ::ffff:a.b.c.d. */
struct gid gid_of_address(const struct sockaddr_storage *address);

/* Returns the MTU in bytes of the kernel's route to the peer; 0: unknown. */
u32 peer_route_mtu(const struct peer *peer);

/* SIGINT and SIGTERM stop a command in order: it still prints its results. */
void stop_catch_signals(void);
bool stop_requested(void);

#endif
