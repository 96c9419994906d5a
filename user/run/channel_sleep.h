/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sleeps on a completion channel until it may have an event. */
#ifndef RUN_CHANNEL_SLEEP_H
#define RUN_CHANNEL_SLEEP_H

#include "../engine/types.h"

struct port_channel;

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
