/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port among the processes of an interface: a service of libibverbs at each device where an id
 * may be asked for. It is the route of requests as well.
 */
#include <stdlib.h>

#include "addr.h"
#include "interfaces.h"

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

bool claim_is_at(const struct addr_binding *b, const struct rdmacm_device *dev)
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

/* Takes back what was claimed since there were those behind it. */
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

/* Can anybody ask for an address there? */
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
		/* an interface without an address is no error: it may get one */
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

int claim_all(struct addr_binding *b, struct rdmacm_device *dev)
{
	int err = dev ? claim_at(b, dev) : claim_at_all(b);

	return err == -EEXIST ? 0 : err;
}
