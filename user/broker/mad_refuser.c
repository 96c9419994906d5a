/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "mad_refuser.h"

#include <bpf/libbpf.h>

#include "../cm/cm.h"
#include "../engine/icrc.h"
#include "../engine/packet.h"
#include "broker_object.h"

#define REFUSALS_AT_ONCE 16u /* MADs a turn, so that clients are served in between */

/* Checks the ICRC; a UDP socket does not show the identification. */
static bool mad_refuser_is_whole(const struct packet *p, bool by_udp)
{
	const u32 difference = packet_icrc_difference(p);
	struct icrc_unknown unknown;

	if (!difference || !by_udp || p->is_ipv6)
		return !difference;
	icrc_unknown_init(&unknown, packet_bytes(p) - ICRC_BEFORE_TAIL - ROCE_ICRC_BYTES);
	return icrc_unknown_explains(&unknown, difference);
}

/* Decodes the MAD of a packet from the mux. Returns false if its ICRC or content is wrong. */
static bool mad_refuser_read(const struct packet *p, bool by_udp, struct cm_mad *m)
{
	u8 mad[CM_MAD_BYTES];

	if (p->payload_len != CM_MAD_BYTES || p->src_qpn != XROCE_CM_QPN ||
	    !mad_refuser_is_whole(p, by_udp))
		return false;
	packet_copy_payload(p, 0, mad, sizeof(mad));
	return cm_mad_decode(m, mad, sizeof(mad)) == CM_DROP_none;
}

static void mad_refuser_frame(void *arg, const u8 *bytes, u32 len)
{
	const struct rx_frame frame = { .data = bytes, .len = len };
	struct broker *b = arg;
	struct speech speech;
	struct packet p;
	struct cm_mad m;

	if (packet_parse(&p, &frame) == XROCE_DROP_none && mad_refuser_read(&p, b->mux.host, &m) &&
	    cm_refuse(&m, &speech.mad)) {
		speech.own = p.dst;
		speech.peer = p.src;
		mad_sender_say(&b->mad_sender, XROCE_CM_PLACE_NONE, &speech);
	}
}

/* The same in a broker with UDP sockets. More than REFUSALS_AT_ONCE in a turn are lost. */
static void mad_refuser_frame_by_udp(void *arg, const u8 *bytes, u32 len)
{
	struct broker *b = arg;

	if (!b->mad_refuser.left)
		return;
	b->mad_refuser.left--;
	mad_refuser_frame(b, bytes, len);
}

void mad_refuser_begin_turn(struct broker *b)
{
	b->mad_refuser.left = REFUSALS_AT_ONCE;
}

static int mad_refuser_record(void *arg, void *data, size_t size)
{
	const struct xroce_rx_record *r = data;
	struct broker *b = arg;

	mad_refuser_frame(b, r->frame, r->len);
	return --b->mad_refuser.left ? 0 : -EAGAIN;
}

static void mad_refuser_ready(struct source *s, u32 events)
{
	struct broker *b = container_of(s, struct broker, mad_refuser.source);

	mad_refuser_begin_turn(b);
	ring_buffer__consume(b->mad_refuser.ring);
}

int mad_refuser_open(struct broker *b)
{
	struct mad_refuser *n = &b->mad_refuser;
	int err;

	if (b->mux.host) {
		b->mux.host->unowned = mad_refuser_frame_by_udp;
		b->mux.host->unowned_arg = b;
		return 0;
	}
	n->source = (struct source){ .ready = mad_refuser_ready, .fd = mux_unowned_fd(&b->mux) };
	n->ring = ring_buffer__new(n->source.fd, mad_refuser_record, b, NULL);
	err = n->ring ? loop_add(b->loop, &n->source) : -errno;
	if (err)
		mad_refuser_close(b);
	return err;
}

void mad_refuser_close(struct broker *b)
{
	if (!b->mad_refuser.ring)
		return;
	loop_remove(b->loop, &b->mad_refuser.source);
	ring_buffer__free(b->mad_refuser.ring);
	b->mad_refuser.ring = NULL;
}
