/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ports of one process's ids. */
#include "ports.h"

#define PORT_PRIVILEGED 1024u /* lower ports */

static struct port_use **ports_bucket(struct ports *ports, u16 port)
{
	return &ports->bucket[port % PORTS_BUCKETS];
}

/* Returns the next other use of that port after prev; the first one if prev is NULL. */
static struct port_use *ports_next(struct ports *ports, const struct port_use *use, u16 port,
				   struct port_use *prev)
{
	struct port_use *other = prev ? prev->next : *ports_bucket(ports, port);

	while (other && (other == use || other->space != use->space || other->local.port != port))
		other = other->next;
	return other;
}

static void ports_insert(struct ports *ports, struct port_use *use)
{
	struct port_use **bucket = ports_bucket(ports, use->local.port);

	use->next = *bucket;
	*bucket = use;
	use->bound = true;
}

/* Checks a port that the program named, for binding or listening. */
static int ports_check(struct ports *ports, const struct port_use *use, bool reuse)
{
	struct port_use *other = NULL;

	while ((other = ports_next(ports, use, use->local.port, other))) {
		if (reuse && other->reuse)
			continue;
		if (use->family_only && other->family_only &&
		    address_is_ipv4(&use->local) != address_is_ipv4(&other->local))
			continue;
		if (address_is_any(&use->local) || address_is_any(&other->local))
			return -EADDRNOTAVAIL;
		if (address_equal(&use->local, &other->local))
			return -EADDRINUSE;
	}
	return 0;
}

/* True if both are specific and differ. */
static bool ports_addresses_differ(const struct address *a, const struct address *b)
{
	return !address_is_any(a) && !address_is_any(b) && !address_equal(a, b);
}

/* True if the port may be drawn for use. Connections that differ in one end may share it. */
static bool ports_is_free(struct ports *ports, const struct port_use *use, u16 port)
{
	struct port_use *other = NULL;

	while ((other = ports_next(ports, use, port, other))) {
		const u16 here = use->remote.port, there = other->remote.port;

		if (!(here && there && here != there) &&
		    !ports_addresses_differ(&use->local, &other->local) &&
		    !ports_addresses_differ(&use->remote, &other->remote))
			return false;
	}
	return true;
}

static int ports_draw(struct ports *ports, struct port_use *use, const struct ports_rules *rules)
{
	const u32 count = rules->high < rules->low ? 0 : (u32)rules->high - rules->low + 1;

	for (u32 i = 0; i < count; i++) {
		const u16 port = (u16)(rules->low + (rules->random % count + i) % count);

		/* Not the last drawn port again at once: its last user's peers know it. */
		if (port && port != ports->last_drawn && ports_is_free(ports, use, port)) {
			ports->last_drawn = port;
			use->local.port = port;
			return 0;
		}
	}
	return -EADDRNOTAVAIL;
}

static bool ports_has_space(enum cm_port_space space)
{
	return space == CM_PS_TCP || space == CM_PS_UDP || space == CM_PS_IPOIB ||
	       space == CM_PS_IB;
}

int ports_bind(struct ports *ports, struct port_use *use, const struct ports_rules *rules)
{
	int ret;

	if (!ports_has_space(use->space))
		return -EPROTONOSUPPORT;
	if (!use->local.port)
		ret = ports_draw(ports, use, rules);
	else if (use->local.port < PORT_PRIVILEGED && !rules->privileged)
		ret = -EACCES;
	else
		ret = ports_check(ports, use, use->reuse);
	if (!ret)
		ports_insert(ports, use);
	return ret;
}

int ports_listen(struct ports *ports, struct port_use *use)
{
	int ret = use->reuse ? ports_check(ports, use, false) : 0;

	if (!ret)
		use->reuse = false;
	return ret;
}

void ports_release(struct ports *ports, struct port_use *use)
{
	struct port_use **link = ports_bucket(ports, use->local.port);

	if (!use->bound)
		return;
	while (*link != use)
		link = &(*link)->next;
	*link = use->next;
	use->bound = false;
}
