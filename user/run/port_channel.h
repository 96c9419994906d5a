/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion channels, as the verbs layer has them; sleeping on one is in
 * run/channel_sleep.h. Any thread.
 */
#ifndef RUN_PORT_CHANNEL_H
#define RUN_PORT_CHANNEL_H

#include "../engine/types.h"

struct port_channel;

/*
 * A completion channel may exist before any port does (ibv_create_comp_channel(3) attaches
 * nothing): it is a pollable descriptor of events that user space raises and, of the first channels
 * of the process, of XDP's records once a CQ of a port has joined it.
 * Returns 0 or -errno.
 */
int port_channel_create(struct port_channel **out);
void port_channel_destroy(struct port_channel *ch);
/*
 * In a forked child: of no CQ any more, and its descriptor readable for good. Then only
 * port_channel_destroy().
 */
void port_channel_abandon(struct port_channel *ch);
int port_channel_fd(const struct port_channel *ch);
/*
 * The program's descriptor becomes another file (os/signals.h), so the channel goes on with another
 * descriptor of its own file, and XDP leaves its events to the service threads. Once; with that of
 * port_channel_fd() still open, which is the caller's to close from here on. Returns the
 * channel's new descriptor, or -errno: it stays what it was.
 */
int port_channel_leave_fd(struct port_channel *ch);

/*
 * User space raises the channel: its descriptor becomes readable until port_channel_clear(). [any
 * thread]
 */
void port_channel_raise(struct port_channel *ch);
void port_channel_clear(struct port_channel *ch);

#endif
