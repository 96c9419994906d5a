/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Completion channels for the verbs layer, and sleeping on one. Any thread. */
#ifndef RUN_PORT_CHANNEL_H
#define RUN_PORT_CHANNEL_H

#include "../engine/types.h"

struct port_channel;

/*
 * Makes a completion channel, possibly before any port: ibv_create_comp_channel(3) attaches
 * nothing. It is a pollable descriptor for events that user space raises. The first channels of a
 * process also get XDP's records once a CQ of a port has joined. Returns 0 or -errno.
 */
int port_channel_create(struct port_channel **out);
void port_channel_destroy(struct port_channel *ch);
/*
 * Detaches the channel from all CQs in a forked child, and leaves its descriptor readable for good.
 * Only port_channel_destroy() may follow. again: in a child of such a child; its descriptors are
 * left alone.
 */
void port_channel_abandon(struct port_channel *ch, bool again);
int port_channel_fd(const struct port_channel *ch);
/*
 * Moves the channel to another descriptor of its file, as the program's descriptor becomes another
 * file (os/signals.h); XDP leaves its events to the workers. Call it once, while the
 * descriptor of port_channel_fd() is open; the caller closes that one. Returns the new descriptor,
 * or -errno if nothing changed.
 */
int port_channel_leave_fd(struct port_channel *ch);

/* Makes the channel's descriptor readable until port_channel_clear(). [any thread] */
void port_channel_raise(struct port_channel *ch);
void port_channel_clear(struct port_channel *ch);

/* ---- channel_sleep.c: sleeps on a channel until it may have an event ---- */

/*
 * Sleeps until the channel may have an event: an XDP record, a raise, an engine deadline, or a
 * packet on a port whose CQs joined it (a record may come before its packet). Then consumes XDP
 * records and runs those ports. Without block it does not sleep. Returns 0 (a hint to look again),
 * 1 if there were records, or -EINTR after a signal.
 */
int port_channel_wait(struct port_channel *ch, bool block);

/*
 * Waits until pending events of the channel are reported, after records without an event: another
 * thread's engine may have taken a CQ's arming, and reports the event when it unlocks the shard.
 */
void port_channel_await_reports(struct port_channel *ch);

/*
 * Raises an event without a completion, after records that led to no event: the packet was refused
 * or completed other work. The channel's descriptor was readable, and ibv_get_cq_event(3) allows
 * such an event. The CQ stays armed.
 */
void port_channel_extra(struct port_channel *ch);

/*
 * Consumes remaining records after an event was taken off the channel, and runs the engines for
 * them. They may belong to that event, and would make the descriptor readable without an event.
 */
void port_channel_settle(struct port_channel *ch);

#endif
