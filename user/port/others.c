/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Other processes on the interface of a port with AF_XDP sockets. The broker tells when they come
 * and go (broker/sole.h). The watch thread then gets a TAP device by which frames to their QPs
 * leave, and the ring buffer by which theirs arrive becomes input of the first shard. The data path
 * waits only for the shards' locks.
 */
#include <stdio.h>
#include <string.h>

#include "../os/complain.h"
#include "../os/kernel.h"
#include "port_object.h"

static int others_connect(struct port *port)
{
	int err = 0;

	port_lock(port);
	for (u32 i = 0; !err && i < port->shards.num; i++) {
		attach_close_local(&port->made, i);
		err = attach_open_local(&port->dev, &port->made, i);
	}
	port->shards.shared = !err;
	xsk_join(&port->made.io[0].xsks, &port->made.local);
	port_unlock(port);
	/* its worker does not sleep on the ring yet */
	worker_kick(&port->shards.shard[0]);
	return err;
}

static void others_disconnect(struct port *port)
{
	port_lock(port);
	port->shards.shared = false;
	for (u32 i = 0; i < port->shards.num; i++)
		attach_close_local(&port->made, i);
	port_unlock(port);
}

/* until another attempt, after a failure */
#define OTHERS_PAUSE_NS NSEC_PER_SEC

/* Reports a failure once, and asks again later: the broker reports the other processes once. */
static void others_try_again(struct port *port, int err, u64 now_ns)
{
	struct link_watch_input next = port->others_input;

	if (!port->told_of_others)
		complain("%s: cannot send to other processes on the interface: %s",
			 port->shards.name, strerror(-err));
	port->told_of_others = true;
	kernel_event_raise(next.fd);
	next.resume_ns = now_ns + OTHERS_PAUSE_NS;
	link_watch_input_change(port->watch, &next);
}

static void others_change(void *arg)
{
	struct port *port = arg;
	int err;

	kernel_event_clear(attach_others_fd(&port->made));
	err = attach_meet_others(&port->made);
	if (!err)
		err = others_connect(port);
	else
		others_disconnect(port);
	/* after the broker's end the port is lost, and reports that */
	if (err && err != -ENOENT && !ask_is_over(err))
		others_try_again(port, err, clock_now_ns());
}

int others_start(struct port *port)
{
	port->others_input = (struct link_watch_input){ .fn = others_change,
						       .arg = port,
						       .fd = attach_others_fd(&port->made) };
	return port->others_input.fd < 0 ? 0 : link_watch_also(port->watch, &port->others_input);
}
