/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * rdma_bind_addr(3), rdma_get_src_port(3), rdma_get_local_addr(3), rdma_listen(3) as far as it
 * binds, and rdma_set_option(3)'s RDMA_OPTION_ID_REUSEADDR and RDMA_OPTION_ID_AFONLY.
 */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "man.h"

static struct rdma_event_channel *ch;

static struct rdma_cm_id *new_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	return rdma_create_id(ch, &id, NULL, ps) ? NULL : id;
}

static bool begin(void)
{
	return (ch = rdma_create_event_channel()) != NULL;
}

static bool end(bool good)
{
	rdma_destroy_event_channel(ch);
	return good;
}

/* A specific address: the device is known, port 0 is replaced by one of the kernel's range. */
static bool specific(int family)
{
	union address at = own(family, 0);
	struct rdma_cm_id *id;
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");
	int low, high, port;

	MUST(f && fscanf(f, "%d %d", &low, &high) == 2 && !fclose(f));
	MUST(begin() && (id = new_id(RDMA_PS_TCP)));
	/* "If the rdma_cm_id is not bound to a port, the returned value is 0", and all zeroes */
	MUST_EQ(rdma_get_src_port(id), 0);
	MUST_EQ(rdma_get_dst_port(id), 0);
	MUST_EQ(rdma_get_local_addr(id)->sa_family, 0);
	MUST_EQ(rdma_get_peer_addr(id)->sa_family, 0);
	MUST(!id->verbs && !id->pd);
	MUST_EQ(rdma_bind_addr(id, &at.sa), 0);
	MUST(id->verbs);
	MUST_EQ(id->port_num, 1);
	port = ntohs(rdma_get_src_port(id));
	MUST(port >= low && port <= high);
	MUST(same_host(rdma_get_local_addr(id), &at));
	MUST_EQ(port_of(rdma_get_local_addr(id)), port);
	MUST_EQ(rdma_get_dst_port(id), 0);
	/* an id is bound once */
	MUST_ERR(rdma_bind_addr(id, &at.sa), EINVAL);
	MUST_EQ(rdma_destroy_id(id), 0);
	MUST(no_event(ch));
	return end(true);
}
BOTH(specific)

/* "bound to an RDMA port number only": no device */
static bool wildcard(int family)
{
	union address at = wild(family, 0);
	struct rdma_cm_id *id;

	MUST(begin() && (id = new_id(RDMA_PS_TCP)));
	MUST_EQ(rdma_bind_addr(id, &at.sa), 0);
	MUST(!id->verbs);
	MUST(rdma_get_src_port(id) != 0);
	MUST_EQ(rdma_listen(id, 1), 0);
	MUST(!id->verbs);
	MUST(same_host(rdma_get_local_addr(id), &at));
	MUST_EQ(rdma_destroy_id(id), 0);
	return end(true);
}
BOTH(wildcard)

static bool bad_addresses(int family)
{
	union address foreign = other(family, ABSENT, 0), none = { 0 };
	union address at = own(family, 0);
	struct rdma_cm_id *id;

	MUST(begin() && (id = new_id(RDMA_PS_TCP)));
	MUST_ERR(rdma_bind_addr(id, NULL), EINVAL);
	none.sa.sa_family = AF_UNIX;
	MUST_ERR(rdma_bind_addr(id, &none.sa), EINVAL);
	MUST_ERR(rdma_bind_addr(id, &foreign.sa), EADDRNOTAVAIL);
	/* none of them has bound it */
	MUST_EQ(rdma_bind_addr(id, &at.sa), 0);
	MUST_EQ(rdma_destroy_id(id), 0);
	return end(true);
}
BOTH(bad_addresses)

/* ---- conflicts ---- */

struct one {
	union address at;
	enum rdma_port_space ps;
	bool reuse, afonly, listens;
};
#define ONE(address, space, ...) ((struct one){ .at = address, .ps = space, ##__VA_ARGS__ })

static int option(struct rdma_cm_id *id, int name, int value)
{
	return rdma_set_option(id, RDMA_OPTION_ID, name, &value, sizeof(value));
}

static struct rdma_cm_id *bound(const struct one *o, uint16_t port)
{
	struct rdma_cm_id *id = new_id(o->ps);
	union address at = o->at;

	if (at.sa.sa_family == AF_INET6)
		at.in6.sin6_port = htons(port);
	else
		at.in.sin_port = htons(port);
	if (!id)
		return NULL;
	if ((o->reuse && option(id, RDMA_OPTION_ID_REUSEADDR, 1)) ||
	    (o->afonly && option(id, RDMA_OPTION_ID_AFONLY, 1)) || rdma_bind_addr(id, &at.sa) ||
	    (o->listens && rdma_listen(id, 1))) {
		int err = errno;

		rdma_destroy_id(id);
		errno = err;
		return NULL;
	}
	return id;
}

/*
 * The kernel's errno if either address is a wildcard. EADDRINUSE is as good, and better: two()
 * takes both.
 */
#define OVERLAPS EADDRNOTAVAIL

/* Binds the second to the first's port: 0, or this errno. The port is free again at the end. */
static bool two(struct one a, struct one b, int want)
{
	struct rdma_cm_id *first, *second;
	uint16_t port;

	MUST(begin() && (first = bound(&a, 0)));
	port = ntohs(rdma_get_src_port(first));
	errno = 0;
	second = bound(&b, port);
	if (second || want != OVERLAPS || errno != EADDRINUSE)
		MUST_EQ(second ? 0 : errno, want);
	if (second) {
		MUST_EQ(ntohs(rdma_get_src_port(second)), port);
		MUST_EQ(rdma_destroy_id(second), 0);
	}
	MUST_EQ(rdma_destroy_id(first), 0);
	b.reuse = false;
	MUST(second = bound(&b, port));
	MUST_EQ(rdma_destroy_id(second), 0);
	return end(true);
}

static bool conflict_same(int f)
{
	struct one a = ONE(own(f, 0), RDMA_PS_TCP);

	return two(a, a, EADDRINUSE);
}
BOTH(conflict_same)

static bool conflict_wildcard_second(int f)
{
	return two(ONE(own(f, 0), RDMA_PS_TCP), ONE(wild(f, 0), RDMA_PS_TCP), OVERLAPS);
}
BOTH(conflict_wildcard_second)

static bool conflict_wildcard_first(int f)
{
	return two(ONE(wild(f, 0), RDMA_PS_TCP), ONE(own(f, 0), RDMA_PS_TCP), OVERLAPS);
}
BOTH(conflict_wildcard_first)

static bool spaces_are_apart(int f)
{
	return two(ONE(own(f, 0), RDMA_PS_TCP), ONE(own(f, 0), RDMA_PS_UDP), 0);
}
BOTH(spaces_are_apart)

/* Both say that it may be shared, until one listens. */
static bool reuse_both(int f)
{
	struct one a = ONE(own(f, 0), RDMA_PS_TCP, .reuse = true);

	return two(a, a, 0);
}
BOTH(reuse_both)

static bool reuse_second_only(int f)
{
	return two(ONE(own(f, 0), RDMA_PS_TCP), ONE(own(f, 0), RDMA_PS_TCP, .reuse = true),
		   EADDRINUSE);
}
BOTH(reuse_second_only)

static bool reuse_first_only(int f)
{
	return two(ONE(own(f, 0), RDMA_PS_TCP, .reuse = true), ONE(own(f, 0), RDMA_PS_TCP),
		   EADDRINUSE);
}
BOTH(reuse_first_only)

static bool reuse_of_a_listener(int f)
{
	return two(ONE(own(f, 0), RDMA_PS_TCP, .reuse = true, .listens = true),
		   ONE(own(f, 0), RDMA_PS_TCP, .reuse = true), EADDRINUSE);
}
BOTH(reuse_of_a_listener)

/* Two that share a port cannot listen; the remaining one can. */
static bool reuse_listen(int f)
{
	struct one a = ONE(own(f, 0), RDMA_PS_TCP, .reuse = true);
	struct rdma_cm_id *id[2];

	MUST(begin() && (id[0] = bound(&a, 0)));
	MUST(id[1] = bound(&a, ntohs(rdma_get_src_port(id[0]))));
	for (int i = 0; i < 2; i++)
		MUST_ERR(rdma_listen(id[i], 1), EADDRINUSE);
	MUST_EQ(rdma_destroy_id(id[0]), 0);
	MUST_EQ(rdma_listen(id[1], 1), 0);
	MUST_EQ(rdma_destroy_id(id[1]), 0);
	return end(true);
}
BOTH(reuse_listen)

/* The families: an IPv6 wildcard is IPv4's too, unless RDMA_OPTION_ID_AFONLY is set. */
static bool families_wild_6_then_4(void)
{
	return two(ONE(wild(AF_INET6, 0), RDMA_PS_TCP), ONE(wild(AF_INET, 0), RDMA_PS_TCP),
		   OVERLAPS);
}

static bool families_afonly_6_then_4(void)
{
	return two(ONE(wild(AF_INET6, 0), RDMA_PS_TCP, .afonly = true),
		   ONE(wild(AF_INET, 0), RDMA_PS_TCP), 0);
}

/* Set of an id that is bound, it leaves the port to IPv4 as well. */
static bool families_late_afonly_6_then_4(void)
{
	struct rdma_cm_id *six, *four;
	struct one o = ONE(wild(AF_INET6, 0), RDMA_PS_TCP);

	MUST(begin() && (six = bound(&o, 0)));
	MUST_EQ(option(six, RDMA_OPTION_ID_AFONLY, 1), 0);
	o.at = wild(AF_INET, 0);
	MUST(four = bound(&o, ntohs(rdma_get_src_port(six))));
	MUST(!rdma_destroy_id(four) && !rdma_destroy_id(six));
	return end(true);
}

static bool families_4_then_afonly_6(void)
{
	return two(ONE(wild(AF_INET, 0), RDMA_PS_TCP),
		   ONE(wild(AF_INET6, 0), RDMA_PS_TCP, .afonly = true), 0);
}

static bool families_4_then_6(void)
{
	return two(ONE(wild(AF_INET, 0), RDMA_PS_TCP), ONE(wild(AF_INET6, 0), RDMA_PS_TCP),
		   OVERLAPS);
}

static bool families_specific(void)
{
	return two(ONE(own(AF_INET, 0), RDMA_PS_TCP), ONE(own(AF_INET6, 0), RDMA_PS_TCP), 0);
}

static bool families_specific_4_wild_6(void)
{
	return two(ONE(own(AF_INET, 0), RDMA_PS_TCP), ONE(wild(AF_INET6, 0), RDMA_PS_TCP),
		   OVERLAPS);
}

/* ---- rdma_set_option(3) ---- */

static bool options(int family)
{
	union address at = own(family, 0);
	struct rdma_cm_id *id;
	uint8_t byte = 32;
	int value = 1;

	MUST(begin() && (id = new_id(RDMA_PS_TCP)));
	MUST_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, 1), 0);
	MUST_ERR(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &value, 4), EINVAL);
	byte = 31;
	MUST_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), 0);
	MUST_ERR(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &value, 4),
		 EINVAL);
	MUST_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &value, 4), 0);
	MUST_ERR(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &byte, 1), EINVAL);
	MUST_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &value, 4), 0);
	MUST_ERR(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &byte, 1), EINVAL);
	MUST_ERR(rdma_set_option(id, RDMA_OPTION_ID, 17, &value, 4), ENOSYS);
	MUST_ERR(rdma_set_option(id, RDMA_OPTION_IB, 17, &value, 4), ENOSYS);
	MUST_ERR(rdma_set_option(id, 17, 0, &value, 4), ENOSYS);
	value = 0;
	MUST_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &value, 4), 0);
	MUST_EQ(rdma_bind_addr(id, &at.sa), 0);
	value = 1;
	/* none is too late */
	MUST_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &value, 4), 0);
	MUST_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &value, 4), 0);
	byte = 0;
	MUST_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, 1), 0);
	MUST_EQ(rdma_destroy_id(id), 0);
	return end(true);
}
BOTH(options)

/* ---- listening ---- */

/* The kernel binds an id that is not bound to the IPv4 wildcard. */
static bool listen_unbound(void)
{
	struct rdma_cm_id *id;

	MUST(begin() && (id = new_id(RDMA_PS_TCP)));
	MUST_EQ(rdma_listen(id, 1), 0);
	MUST(rdma_get_src_port(id) != 0);
	MUST_EQ(rdma_get_local_addr(id)->sa_family, AF_INET);
	MUST_EQ(rdma_destroy_id(id), 0);
	return end(true);
}

static bool listen_twice(int family)
{
	struct rdma_cm_id *id;

	MUST(begin() && (id = listener(ch, RDMA_PS_TCP, own(family, 0), 1)));
	MUST_ERR(rdma_listen(id, 1), EINVAL);
	MUST_EQ(rdma_destroy_id(id), 0);
	return end(true);
}
BOTH(listen_twice)

/* A backlog below 1 is the kernel's default. */
static bool listen_backlogs(int family)
{
	static const int backlogs[] = { 0, -1, 1, 1 << 30 };

	MUST(begin());
	for (size_t i = 0; i < sizeof(backlogs) / sizeof(*backlogs); i++) {
		struct rdma_cm_id *id = listener(ch, RDMA_PS_TCP, own(family, 0), backlogs[i]);

		MUST(id);
		MUST_EQ(rdma_destroy_id(id), 0);
	}
	return end(true);
}
BOTH(listen_backlogs)

/* 200 ephemeral ports: no two are the same, of one space. */
static bool ports_differ(int family)
{
	enum { N = 200 };
	static struct rdma_cm_id *id[N];
	union address at = own(family, 0);

	MUST(begin());
	for (int i = 0; i < N; i++) {
		MUST(id[i] = new_id(RDMA_PS_TCP));
		MUST_EQ(rdma_bind_addr(id[i], &at.sa), 0);
		for (int k = 0; k < i; k++)
			MUST(rdma_get_src_port(id[i]) != rdma_get_src_port(id[k]));
	}
	for (int i = 0; i < N; i++)
		MUST_EQ(rdma_destroy_id(id[i]), 0);
	return end(true);
}
BOTH(ports_differ)

/* A port below ip_unprivileged_port_start takes CAP_NET_BIND_SERVICE. */
static int privileged_child(int family)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct cap[2];
	union address at = own(family, 1023);
	struct rdma_cm_id *id;

	if (syscall(SYS_capget, &head, cap))
		return 1;
	cap[0].effective &= ~(1u << CAP_NET_BIND_SERVICE);
	if (syscall(SYS_capset, &head, cap) || !begin() || !(id = new_id(RDMA_PS_TCP)))
		return 2;
	errno = 0;
	return rdma_bind_addr(id, &at.sa) == -1 && errno == EACCES ? 0 : 3;
}

static bool privileged(int family)
{
	union address at = own(family, 1023);
	struct rdma_cm_id *id;

	MUST(begin() && (id = new_id(RDMA_PS_TCP)));
	MUST_EQ(rdma_bind_addr(id, &at.sa), 0);
	MUST_EQ(rdma_destroy_id(id), 0);
	return end(true);
}

static bool privileged_port(int family)
{
	pid_t pid = fork();
	int status;

	MUST(pid >= 0);
	if (!pid)
		_exit(privileged_child(family));
	MUST_EQ(waitpid(pid, &status, 0), pid);
	MUST(WIFEXITED(status));
	MUST_EQ(WEXITSTATUS(status), 0);
	return privileged(family);
}

static bool privileged_port_v4(void)
{
	return privileged_port(AF_INET);
}

const struct test_case man_cases[] = {
	CASE(privileged_port_v4), /* the first: it forks */
	CASE(specific_v4),
	CASE(specific_v6),
	CASE(wildcard_v4),
	CASE(wildcard_v6),
	CASE(bad_addresses_v4),
	CASE(bad_addresses_v6),
	CASE(conflict_same_v4),
	CASE(conflict_same_v6),
	CASE(conflict_wildcard_second_v4),
	CASE(conflict_wildcard_second_v6),
	CASE(conflict_wildcard_first_v4),
	CASE(conflict_wildcard_first_v6),
	CASE(spaces_are_apart_v4),
	CASE(spaces_are_apart_v6),
	CASE(reuse_both_v4),
	CASE(reuse_both_v6),
	CASE(reuse_second_only_v4),
	CASE(reuse_second_only_v6),
	CASE(reuse_first_only_v4),
	CASE(reuse_first_only_v6),
	CASE(reuse_of_a_listener_v4),
	CASE(reuse_of_a_listener_v6),
	CASE(reuse_listen_v4),
	CASE(reuse_listen_v6),
	CASE(families_wild_6_then_4),
	CASE(families_afonly_6_then_4),
	CASE(families_late_afonly_6_then_4),
	CASE(families_4_then_afonly_6),
	CASE(families_4_then_6),
	CASE(families_specific),
	CASE(families_specific_4_wild_6),
	CASE(options_v4),
	CASE(options_v6),
	CASE(listen_unbound),
	CASE(listen_twice_v4),
	CASE(listen_twice_v6),
	CASE(listen_backlogs_v4),
	CASE(listen_backlogs_v6),
	CASE(ports_differ_v4),
	CASE(ports_differ_v6),
	{ 0 },
};
