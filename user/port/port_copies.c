/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ring buffer by which XDP hands over copies of frames (bpf/sniff.h). The first flow with
 * copies creates the ring, which stays until the port's end, as threads may sleep on it.
 */
#include <errno.h>

#include "../os/kernel.h"
#include "port_object.h"

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
		/* its service thread does not sleep on the new ring yet */
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
