/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A port, as the files of this room know it. */
#ifndef PORT_PORT_OBJECT_H
#define PORT_PORT_OBJECT_H

#include "../attach/attach.h"
#include "../netdev/watch.h"
#include "../shard/shard.h"
#include "port.h"

struct port {
	struct shards shards;
	/* port.c's, under the lock of the list */
	struct port *next;
	u32 ifindex;
	u64 netns;		/* inode of the network namespace */
	struct attachment made;
	struct watch *watch;	/* follow.c */
	/* under all shards' locks */
	struct netdev dev;	/* as last published: GIDs, MAC */
	int follow_err;		/* of publishing it */
};

/* ---- follow.c ---- */
/*
 * Publish the interface's addresses, now and whenever they change. Returns 0 or -errno;
 * follow_stop() in both cases. No lock held.
 */
int follow_start(struct port *port, const struct netdev *dev);
void follow_stop(struct port *port);

#endif
