/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flows of a port's raw packet QPs: in its engines, in XDP's map, and the MACs that the interface
 * accepts for them; their counters (ibv_create_counters(3)); copies of frames.
 */
#include <errno.h>
#include <stdlib.h>

#include "../os/kernel.h"
#include "port_object.h"

struct port_flow {
	struct port_flow *next;
	struct raw_flow *raw;
	struct netdev_macs macs;
	bool takes_macs; /* macs were requested of the interface; else it accepts them anyway */
};

/*
 * Gets the MACs of a rule. Returns whether the interface needs a request to accept them: all MACs,
 * all multicast, or one whole MAC that is neither its own nor broadcast.
 */
static bool port_flow_wants_macs(const struct port *port, const struct flow_rule *rule,
				 struct netdev_macs *macs)
{
	static const u8 whole[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	*macs = (struct netdev_macs){ .which = rule->macs };
	if (rule->macs != NETDEV_ONE_MAC)
		return rule->macs != NETDEV_OWN_MAC;
	memcpy(macs->mac, rule->raw.value.dst_mac, sizeof(macs->mac));
	return !memcmp(rule->raw.mask.dst_mac, whole, sizeof(whole)) &&
	       memcmp(rule->raw.value.dst_mac, port->dev.mac, sizeof(port->dev.mac)) &&
	       memcmp(rule->raw.value.dst_mac, whole, sizeof(whole));
}

/* Adds the flow to the engines and to XDP. All shards locked. Returns 0 or -errno. */
static int port_flow_add(struct port *port, struct qp *qp, const struct flow_rule *rule,
			 struct port_flow *flow)
{
	struct engine *e = port_engine(port);
	int err = raw_attach(e, qp, &rule->raw, &flow->raw);

	if (err)
		return err;
	err = shards_steer_flows(&port->shards);
	if (err) {
		raw_detach(e, flow->raw);
		return err;
	}
	flow->next = port->flows;
	port->flows = flow;
	return 0;
}

/* Returns the port's socket for MAC requests, opened at the first call, or -errno. */
static int port_open_macs(struct port *port)
{
	int fd, spare = -1;

	port_lock(port);
	fd = port->shards.dead ? -EIO : port->macs_fd;
	port_unlock(port);
	if (fd != -1)
		return fd;
	fd = netdev_open_macs();
	if (fd < 0)
		return fd;
	port_lock(port);
	if (port->macs_fd >= 0)
		spare = fd;
	else
		port->macs_fd = fd;
	fd = port->macs_fd;
	port_unlock(port);
	/* another thread was first */
	if (spare >= 0)
		kernel_close(spare);
	return fd;
}

void port_close_macs(struct port *port)
{
	if (port->macs_fd >= 0)
		kernel_close(port->macs_fd);
	port->macs_fd = -1;
}

/* Asks the interface to accept frames to the flow's MACs. Returns 0 or -errno. */
static int port_flow_take_macs(struct port *port, struct port_flow *flow)
{
	int fd = port_open_macs(port), err;

	if (fd < 0)
		return fd;
	err = netdev_take_macs(fd, port->ifindex, &flow->macs);
	flow->takes_macs = !err;
	return err;
}

static void port_flow_leave_macs(const struct port *port, const struct port_flow *flow)
{
	/* a forked child's port has no such socket */
	if (flow->takes_macs && port->macs_fd >= 0)
		netdev_leave_macs(port->macs_fd, port->ifindex, &flow->macs);
}

int port_create_flow(struct port *port, struct qp *qp, const struct flow_rule *rule,
		     struct port_flow **out)
{
	struct port_flow *flow = calloc(1, sizeof(*flow));
	bool wants_macs;
	int err = 0;

	if (!flow)
		return -ENOMEM;
	port_lock(port);
	wants_macs = port_flow_wants_macs(port, rule, &flow->macs);
	port_unlock(port);
	if (rule->raw.copies)
		err = port_open_copies(port);
	if (!err && wants_macs)
		err = port_flow_take_macs(port, flow);
	port_lock(port);
	if (!err)
		err = port->shards.dead ? -EIO : port_flow_add(port, qp, rule, flow);
	port_unlock(port);
	if (err) {
		port_flow_leave_macs(port, flow);
		free(flow);
		return err;
	}
	*out = flow;
	return 0;
}

void port_destroy_flow(struct port *port, struct port_flow *flow)
{
	struct port_flow **p = &port->flows;

	port_lock(port);
	while (*p != flow)
		p = &(*p)->next;
	*p = flow->next;
	raw_detach(port_engine(port), flow->raw);
	/* cannot fail: the kernel needs no memory for one flow less */
	shards_steer_flows(&port->shards);
	port_unlock(port);
	port_flow_leave_macs(port, flow);
	free(flow);
}

/*
 * ---- counters: a key of XDP's map, and the map's value at the time the key was assigned ----
 *
 * The engine writes a counter's own part, for frames that do not pass XDP.
 */

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

/*
 * ---- the ring buffer by which XDP hands over copies of frames (bpf/sniff.h) ----
 *
 * The first flow with copies creates the ring, which stays until the port's end, as threads may
 * sleep on it.
 */

static int copies_make(struct port *port)
{
	struct port_copies *c = &port->copies;
	const u32 zero = 0;
	int fd, err;

	if (port->made.maps.copies_fd < 0)
		return -EOPNOTSUPP;
	fd = kernel_ring_make_of(XROCE_COPY_RING_BYTES);
	if (fd < 0)
		return fd;
	err = xsk_open_ring(&c->set, fd, XROCE_COPY_RING_BYTES, &c->counted);
	if (!err) {
		c->set.copies = true;
		err = kernel_map_put(port->made.maps.copies_fd, &zero, &fd);
		if (err)
			xsk_close(&c->set);
	}
	if (err)
		kernel_close(fd);
	else
		c->fd = fd;
	return err;
}

/* Creates the ring without the shards' locks: the kernel takes some time to publish it. */
int port_open_copies(struct port *port)
{
	int err = 0;

	pthread_mutex_lock(&port->numbers);
	if (port->shards.dead)
		err = -EIO;
	else if (!xsk_is_ring(&port->copies.set))
		err = copies_make(port);
	if (!err) {
		port_lock(port);
		xsk_join(&port->made.io[0].xsks, &port->copies.set);
		port_unlock(port);
		/* its worker does not sleep on the new ring yet */
		worker_kick(&port->shards.shard[0]);
	}
	pthread_mutex_unlock(&port->numbers);
	return err;
}

void port_close_copies(struct port *port)
{
	if (!xsk_is_ring(&port->copies.set))
		return;
	xsk_close(&port->copies.set);
	kernel_close(port->copies.fd);
}
