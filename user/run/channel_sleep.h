/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sleeping on a completion channel until it may have an event. */
#ifndef RUN_CHANNEL_SLEEP_H
#define RUN_CHANNEL_SLEEP_H

#include "../engine/types.h"

struct port_channel;

/*
 * Sleep until the channel may have something: an XDP record, a raise, or a packet on a port whose
 * CQs joined it (so that no record that comes
 * before its packet is lost), or an engine deadline; then run those ports. Consumes XDP records.
 * Without block, only consumes records and runs the ports. Returns 0 (look again: it is a hint), 1
 * if there were records, or -EINTR for a signal.
 */
int port_channel_wait(struct port_channel *ch, bool block);

/*
 * There were records, and the channel has no event: an engine may have taken a CQ's arming in the
 * hands of another thread, which reports the event when it unlocks the shard. When this returns, it
 * has been reported.
 */
void port_channel_await_reports(struct port_channel *ch);

/*
 * There were records, and no event came of them: the packet was refused, or completed something
 * else. But the channel's descriptor was readable, so there is an event now, without a completion,
 * as ibv_get_cq_event(3) allows; the CQ stays armed.
 */
void port_channel_extra(struct port_channel *ch);

/*
 * An event was taken off the channel: records that are left may be of it, and would make the
 * descriptor readable for nothing. They are consumed,
 * and what they announce is seen to.
 */
void port_channel_settle(struct port_channel *ch);

#endif
