/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counters of flows (ibv_create_counters(3)): a key of XDP's map, and the map's value at the time
 * the key was assigned. The engine writes a counter's own part, for frames that do not pass XDP.
 */
#include <errno.h>
#include <stdlib.h>

#include "../os/kernel.h"
#include "port_object.h"

struct port_counter {
	struct raw_counter raw;
	struct xroce_flow_count before; /* in the map, from earlier counters with this key */
};

/* Reads the map's value of a key, summed over all CPUs. All shards locked. Returns 0 or -errno. */
static int port_counter_sum(const struct port *port, u32 key, struct xroce_flow_count *out)
{
	u64 sums[2];
	int err = kernel_map_sum(port->made.maps.flow_count_fd, key, sums, 2);

	_Static_assert(sizeof(sums) == sizeof(*out), "all of a value's words");
	*out = (struct xroce_flow_count){ .packets = sums[0], .bytes = sums[1] };
	return err;
}

/* Returns the lowest free key, or 0 if there is none. */
static u32 port_counter_key(const struct port *port)
{
	for (u32 key = 1; key < XROCE_MAX_COUNTER; key++)
		if (!port->counters[key])
			return key;
	return 0;
}

int port_create_counter(struct port *port, struct raw_counter **out)
{
	struct port_counter *c = calloc(1, sizeof(*c));
	int err = c ? 0 : -ENOMEM;

	if (err)
		return err;
	port_lock(port);
	c->raw.key = port_counter_key(port);
	if (port->shards.dead)
		err = -EIO;
	else
		err = c->raw.key ? port_counter_sum(port, c->raw.key, &c->before) : -ENOMEM;
	if (!err)
		port->counters[c->raw.key] = true;
	port_unlock(port);
	if (err) {
		free(c);
		return err;
	}
	*out = &c->raw;
	return 0;
}

void port_destroy_counter(struct port *port, struct raw_counter *counter)
{
	port_lock(port);
	port->counters[counter->key] = false;
	port_unlock(port);
	free(container_of(counter, struct port_counter, raw));
}

int port_read_counter(struct port *port, const struct raw_counter *counter,
		      struct xroce_flow_count *out)
{
	const struct port_counter *c = container_of(counter, struct port_counter, raw);
	struct xroce_flow_count sum = { 0 };
	int err;

	port_lock(port);
	err = port->shards.dead ? -EIO : port_counter_sum(port, counter->key, &sum);
	out->packets = sum.packets - c->before.packets + counter->own.packets;
	out->bytes = sum.bytes - c->before.bytes + counter->own.bytes;
	port_unlock(port);
	return err;
}
