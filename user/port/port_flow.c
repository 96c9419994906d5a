/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flows of a port's raw packet QPs: in its engines, in XDP's map, and the MACs that the interface
 * accepts for them.
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
