/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rdma_bind_addr(): address, device and port of an id. */
#include <stdio.h>
#include <stdlib.h>

#include "../os/kernel.h"
#include "../os/clock.h"
#include "../os/privilege.h"

#include "addr.h"
#include "cm_device.h"

/* Attempts to draw a port that no other process has. */
#define BIND_DRAWS 64
#define RANGE_NS   (NSEC_PER_SEC / 10)

static struct ports ports; /* of this process; under the lock */

/* Reads the first one or two numbers of a /proc/sys/net file. Returns false if that fails. */
static bool bind_sysctl(const char *path, u32 *a, u32 *b)
{
	FILE *f = fopen(path, "re");
	bool is_read;

	if (!f)
		return false;
	is_read = fscanf(f, "%u", a) == 1 && (!b || fscanf(f, "%u", b) == 1);
	fclose(f);
	return is_read;
}

/* Returns the range for drawn ports, at most RANGE_NS old. */
static void bind_range(struct ports_rules *rules)
{
	static struct {
		u64 until_ns; /* under the lock, as low and high */
		u32 low, high;
	} range;
	const u64 now_ns = clock_now_ns();
	u32 low, high;
	bool is_known;

	rdmacm_enter();
	is_known = now_ns < range.until_ns;
	low = range.low;
	high = range.high;
	rdmacm_leave();
	if (!is_known &&
	    (!bind_sysctl("/proc/sys/net/ipv4/ip_local_port_range", &low, &high) ||
	     low > UINT16_MAX || high > UINT16_MAX)) {
		low = 32768; /* the kernel's default */
		high = 60999;
	}
	rules->low = (u16)low;
	rules->high = (u16)high;
	if (is_known)
		return;
	rdmacm_enter();
	range.low = low;
	range.high = high;
	range.until_ns = now_ns + RANGE_NS;
	rdmacm_leave();
}

/* Returns the rules for binding a port; 0: a port is drawn. */
static struct ports_rules bind_rules(u16 port)
{
	struct ports_rules rules = { 0 };

	if (port) {
		rules.privileged = privilege_has(privilege_caps(), CAP_NET_BIND_SERVICE);
		return rules;
	}
	bind_range(&rules);
	if (kernel_random(&rules.random, sizeof(rules.random)))
		rules.random = 0;
	return rules;
}

/* Without the option an IPv6 address also serves IPv4, unless net.ipv6.bindv6only is set. */
static bool bind_family_only(const struct rdmacm_id *id, const struct address *local)
{
	u32 only;

	if (id->afonly_set)
		return id->afonly;
	return address_is_ipv4(local) ||
	       (bind_sysctl("/proc/sys/net/ipv6/bindv6only", &only, NULL) && only);
}

/* Returns the device with an address. 0: with a reference; -EADDRNOTAVAIL, -ENODEV or -errno. */
static int bind_device(const struct address *local, struct rdmacm_device **dev, u8 mac[6])
{
	struct netdev_session *session;
	struct netdev_route route;
	struct netdev nd;
	int err = interfaces_session(&session);

	if (err)
		return err;
	err = netdev_route(session, &local->ip, NULL, local->scope, &route);
	if (kernel_is_short(err))
		return err;
	if (err == -ENODEV || ((err || !route.is_local) && local->scope))
		return -ENODEV;
	if (err || !route.is_local)
		return -EADDRNOTAVAIL;
	err = interfaces_get(route.ifindex, &nd);
	if (err)
		return err;
	if (interfaces_gid_index(&nd, &local->ip) < 0)
		return -EADDRNOTAVAIL;
	memcpy(mac, nd.mac, sizeof(nd.mac));
	err = cm_device_get(route.ifindex, dev);
	if (!err)
		err = cm_device_start(*dev);
	return err ? err : interfaces_follow();
}

/* ---- ports among processes; without the lock ---- */

/*
 * A port among the processes of an interface: a service of libibverbs at each device where the id
 * may receive requests. The service also routes the requests.
 */

static struct xroce_cm_service claim_service(const struct port_use *use)
{
	struct xroce_cm_service s = { .id = cm_service_id(use->space, use->local.port) };

	if (!cm_is_any(&use->local.ip))
		memcpy(s.address.raw, use->local.ip.raw, sizeof(s.address.raw));
	else if (address_is_ipv4(&use->local))
		s.families = XROCE_CM_IPV4;
	else
		s.families = XROCE_CM_IPV6 | (use->family_only ? 0 : XROCE_CM_IPV4);
	return s;
}

/* True if claimed at that device. Caller holds the lock. */
static bool claim_is_at(const struct addr_binding *b, const struct rdmacm_device *dev)
{
	for (const struct addr_claim *c = b->claims; c; c = c->next)
		if (c->device == dev)
			return true;
	return false;
}

int claim_at(struct addr_binding *b, struct rdmacm_device *dev)
{
	struct addr_claim *c;
	bool is_there;
	int err;

	rdmacm_enter();
	is_there = claim_is_at(b, dev);
	rdmacm_leave();
	if (is_there)
		return -EEXIST;
	err = cm_device_start(dev);
	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->device = dev;
	c->service = claim_service(&b->use);
	err = -xroce_cm_bind(dev->verbs, &c->service);
	if (err) {
		free(c);
		return err;
	}
	rdmacm_enter();
	cm_device_hold(dev);
	c->next = b->claims;
	b->claims = c;
	rdmacm_leave();
	return 0;
}

void claim_drop(struct addr_claim *claims)
{
	struct addr_claim *c;

	while ((c = claims)) {
		claims = c->next;
		xroce_cm_unbind(c->device->verbs, &c->service);
		rdmacm_enter();
		cm_device_put(c->device);
		rdmacm_leave();
		free(c);
	}
}

/* Drops the claims made since `before` was the first. */
static void claim_undo(struct addr_binding *b, struct addr_claim *before)
{
	struct addr_claim *claims, **last = &claims;

	rdmacm_enter();
	for (claims = b->claims; *last && *last != before; last = &(*last)->next)
		;
	*last = NULL;
	b->claims = before;
	rdmacm_leave();
	claim_drop(claims);
}

/* True if a peer can reach an address there. */
static bool claim_is_possible(const struct rdmacm_device *dev)
{
	struct netdev nd;

	return !interfaces_get(dev->ifindex, &nd) && nd.is_up && nd.num_gids;
}

static int claim_at_all(struct addr_binding *b)
{
	struct addr_claim *const before = b->claims;
	struct rdmacm_device **devs;
	int n = cm_device_get_all(&devs), err = 0;
	bool in_use = false, is_somewhere = false;

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		int ret = claim_is_possible(devs[i]) && !in_use ? claim_at(b, devs[i]) : -ENODEV;

		is_somewhere |= !ret || ret == -EEXIST;
		in_use |= ret == -EADDRINUSE;
		/* an interface without an address is not an error: it may get one */
		if (ret && ret != -EEXIST && ret != -ENODEV && !err)
			err = ret;
		rdmacm_enter();
		cm_device_put(devs[i]);
		rdmacm_leave();
	}
	free(devs);
	if (in_use) {
		claim_undo(b, before);
		return -EADDRINUSE;
	}
	return is_somewhere ? 0 : err;
}

/*
 * Claims a port at device dev, or at all devices if dev is NULL. Earlier claims remain. Returns 0
 * or -errno: -EADDRINUSE if another process has it at a device, and then nothing is claimed; or the
 * first error if no device claims it.
 */
static int claim_all(struct addr_binding *b, struct rdmacm_device *dev)
{
	int err = dev ? claim_at(b, dev) : claim_at_all(b);

	return err == -EEXIST ? 0 : err;
}

/* ---- binding ---- */

/* Caller holds the lock. */
static void bind_release(struct addr_binding *b)
{
	ports_release(&ports, &b->use);
}

/* Takes a port for b from this process and, with claim, from all processes. */
static int bind_port(struct addr_binding *b, struct rdmacm_device *dev, bool claim)
{
	const bool drawn = !b->use.local.port;
	int err = -EADDRINUSE;

	for (int i = 0; i < (drawn ? BIND_DRAWS : 1) && err == -EADDRINUSE; i++) {
		const struct ports_rules rules = bind_rules(b->use.local.port);

		rdmacm_enter();
		err = ports_bind(&ports, &b->use, &rules);
		rdmacm_leave();
		if (err || !claim)
			return err;
		err = claim_all(b, dev);
		if (!err)
			return 0;
		rdmacm_enter();
		bind_release(b);
		rdmacm_leave();
		if (drawn)
			b->use.local.port = 0;
	}
	return err;
}

/* Stores the results in the id, which takes the device reference. Caller holds the lock. */
static void bind_done(struct rdmacm_id *id, const struct sockaddr *sa, struct addr_binding *b,
		      struct rdmacm_device *dev)
{
	id->binding = b;
	id->afonly = b->use.family_only;
	addr_copy(&id->src, sa);
	address_put(&b->use.local, (struct sockaddr *)&id->src);
	if (!id->dst.ss_family)
		id->dst.ss_family = sa->sa_family;
	id->device = dev;
	if (dev)
		id->path.local = b->use.local.ip;
	id->state = ID_ADDR_BOUND;
}

static bool bind_address(struct address *local, const struct sockaddr *sa, int *err)
{
	if (address_get(local, sa)) {
		*err = address_is_link_local(local) && !local->scope ? -EINVAL : 0;
	} else {
		/* InfiniBand addresses have no device here; no interface has a mapped one */
		*err = sa->sa_family == AF_INET6 ? -EADDRNOTAVAIL : -ENODEV;
	}
	return !*err;
}

int addr_bind(struct rdmacm_id *id, const struct sockaddr *sa, const struct address *remote,
	      bool claim)
{
	struct rdmacm_device *dev = NULL;
	struct addr_binding *b;
	struct address local;
	int err;

	if (id->state != ID_IDLE)
		return -EINVAL;
	if (!bind_address(&local, sa, &err))
		return err;
	if (!address_is_any(&local))
		err = bind_device(&local, &dev, id->mac);
	b = calloc(1, sizeof(*b));
	if (!err && !b)
		err = -ENOMEM;
	if (!err) {
		b->use.space = (enum cm_port_space)id->pub.ps;
		b->use.local = local;
		if (remote)
			b->use.remote = *remote;
		b->use.reuse = id->reuseaddr;
		b->use.family_only = bind_family_only(id, &local);
		/* a port with reuse may be shared with other processes until its id listens */
		err = bind_port(b, dev, claim && !id->reuseaddr);
	}
	rdmacm_enter();
	if (!err)
		bind_done(id, sa, b, dev);
	else if (dev)
		cm_device_put(dev);
	rdmacm_leave();
	if (err)
		free(b);
	return err;
}

EXPORT int rdma_bind_addr(struct rdma_cm_id *cm_id, struct sockaddr *addr)
{
	CANCEL_HELD;
	struct rdmacm_id *id = to_id(cm_id);
	int err = id_check(id);

	if (!err && (!addr || !address_bytes(addr)))
		err = -EINVAL;
	if (!err)
		err = addr_bind(id, addr, NULL, true);
	if (err)
		return rdmacm_report(err);
	route_show(id);
	if (id->device)
		id_show_device(id);
	return 0;
}

/* ---- listening ---- */

int addr_listen(struct rdmacm_id *id)
{
	const struct sockaddr_in any = { .sin_family = AF_INET };
	struct addr_binding *b;
	bool reuse;
	int err;

	if (id->state == ID_IDLE) {
		err = addr_bind(id, (const struct sockaddr *)&any, NULL, true);
		if (err)
			return err;
	}
	if (id->state != ID_ADDR_BOUND)
		return -EINVAL;
	b = id->binding;
	rdmacm_enter();
	reuse = b->use.reuse;
	err = ports_listen(&ports, &b->use);
	rdmacm_leave();
	if (err)
		return err;
	err = claim_all(b, id->device);
	if (!err)
		err = interfaces_follow();
	if (err) {
		rdmacm_enter();
		b->use.reuse = reuse;
		rdmacm_leave();
		return err;
	}
	id->reuseaddr = false;
	return 0;
}

bool addr_is_of_device(const struct rdmacm_id *id, const struct rdmacm_device *dev)
{
	return id->device ? id->device == dev : id->binding && claim_is_at(id->binding, dev);
}

/* ---- the end ---- */

void addr_forget(struct rdmacm_id *id)
{
	struct addr_binding *b;

	addr_wait_unpinned(id);
	resolve_forget(id);
	multicast_forget(id);
	b = id->binding;
	if (!b)
		return;
	id->binding = NULL;
	rdmacm_leave();
	claim_drop(b->claims);
	rdmacm_enter();
	/* only now: the claims also keep other ids of this process off the port */
	bind_release(b);
	free(b);
}
