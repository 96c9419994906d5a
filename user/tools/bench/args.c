/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses sizes and peers of a command line; notes SIGINT and SIGTERM, which stop a command.
 */
#define _GNU_SOURCE
#include "args.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../cm/mad.h"

/* Any port will do: the path MTU does not depend on it. */
#define SOME_PORT 4791

bool args_size(const char *text, u64 least, u64 most, u64 *out)
{
	u32 shift = 0;
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || errno)
		return false;
	if (*end == 'k' || *end == 'K')
		shift = 10;
	else if (*end == 'M')
		shift = 20;
	if (shift && (*++end || *out > UINT64_MAX >> shift))
		return false;
	*out <<= shift;
	return !*end && *out >= least && *out <= most;
}

/* ---- peers ---- */

struct gid gid_of_address(const struct sockaddr_storage *address)
{
	struct gid gid = { { 0 } };

	if (address->ss_family == AF_INET6) {
		memcpy(gid.raw, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
		return gid;
	}
	gid.raw[10] = gid.raw[11] = 0xff;
	memcpy(gid.raw + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
	return gid;
}

static int peer_look_up(const struct command *command, const char *name, int family,
			struct peer *p)
{
	const struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	int err = getaddrinfo(name, NULL, &hints, &found);

	if (err) {
		fprintf(stderr, "xroce %s: cannot find host %s: %s\n", command->name, name,
			err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
		return EXIT_USAGE;
	}
	memcpy(&p->address, found->ai_addr, found->ai_addrlen);
	p->address_len = found->ai_addrlen;
	freeaddrinfo(found);
	p->gid = gid_of_address(&p->address);
	gid_text(p->gid.raw, p->text);
	return EXIT_OK;
}

static int peer_no_way(const struct command *command, const struct peer *p, const char *iface,
		       int err)
{
	fprintf(stderr, "xroce %s: cannot reach %s%s%s: %s\n", command->name, p->text,
		iface ? " through " : "", iface ? iface : "", strerror(-err));
	return EXIT_USAGE;
}

int peer_find(const struct command *command, const char *name, int family, const char *iface,
	      struct peer *out)
{
	struct netdev_route route;
	u32 ifindex = 0;
	int ret, err;

	*out = (struct peer){ 0 };
	ret = peer_look_up(command, name, family, out);
	if (!ret && iface)
		ret = find_device(command, iface, &out->dev);
	if (ret)
		return ret;
	if (iface)
		ifindex = out->dev.ifindex;
	else if (out->address.ss_family == AF_INET6)
		ifindex = ((const struct sockaddr_in6 *)&out->address)->sin6_scope_id;
	/* no other interface has these addresses */
	if (!ifindex && cm_is_loopback(&out->gid))
		ifindex = if_nametoindex("lo");
	err = netdev_route(NULL, &out->gid, NULL, ifindex, &route);
	if (err)
		return peer_no_way(command, out, iface, err);
	out->local = route.local;
	gid_text(out->local.raw, out->local_text);
	out->dev.ifindex = route.ifindex;
	if (!if_indextoname(route.ifindex, out->dev.name))
		return peer_no_way(command, out, iface, -errno);
	return find_device(command, out->dev.name, &out->dev);
}

u32 peer_route_mtu(const struct peer *peer)
{
	const bool is_ipv4 = peer->address.ss_family == AF_INET;
	struct sockaddr_storage to = peer->address;
	socklen_t len = sizeof(int);
	int mtu = 0, fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return 0;
	if (is_ipv4)
		((struct sockaddr_in *)&to)->sin_port = htons(SOME_PORT);
	else
		((struct sockaddr_in6 *)&to)->sin6_port = htons(SOME_PORT);
	if (connect(fd, (const struct sockaddr *)&to, peer->address_len) ||
	    getsockopt(fd, is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6, is_ipv4 ? IP_MTU : IPV6_MTU, &mtu,
		       &len))
		mtu = 0;
	close(fd);
	return mtu > 0 ? (u32)mtu : 0;
}

/* ---- stopping ---- */

static _Atomic bool stop_is_requested;

static void stop_on_signal(int sig)
{
	atomic_store_explicit(&stop_is_requested, true, memory_order_relaxed);
}

bool stop_requested(void)
{
	return atomic_load_explicit(&stop_is_requested, memory_order_relaxed);
}

/* Without SA_RESTART, so that a signal interrupts waits. */
void stop_catch_signals(void)
{
	const struct sigaction action = { .sa_handler = stop_on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}
