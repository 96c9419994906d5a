/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "nobody.h"

#include <bpf/libbpf.h>

#include "../cm/cm.h"
#include "../engine/icrc.h"
#include "../engine/packet.h"
#include "broker_object.h"

#define NOBODY_AT_ONCE 16u /* MADs a turn, so that clients are served in between */

/* Checks the ICRC; a UDP socket does not show the identification. */
static bool nobody_is_whole(const struct packet *p, bool by_udp)
{
	const u32 difference = packet_icrc_difference(p);
	struct icrc_unknown unknown;

	if (!difference || !by_udp || p->is_ipv6)
		return !difference;
	icrc_unknown_init(&unknown, packet_bytes(p) - ICRC_BEFORE_TAIL - ROCE_ICRC_BYTES);
	return icrc_unknown_explains(&unknown, difference);
}

/* Decodes the MAD of a packet from the mux. Returns false if its ICRC or content is wrong. */
static bool nobody_read(const struct packet *p, bool by_udp, struct cm_mad *m)
{
	u8 mad[CM_MAD_BYTES];

	if (p->payload_len != CM_MAD_BYTES || p->src_qpn != XROCE_CM_QPN ||
	    !nobody_is_whole(p, by_udp))
		return false;
	packet_copy_payload(p, 0, mad, sizeof(mad));
	return cm_mad_decode(m, mad, sizeof(mad)) == CM_DROP_none;
}

static void nobody_frame(void *arg, const u8 *bytes, u32 len)
{
	const struct rx_frame frame = { .data = bytes, .len = len };
	struct broker *b = arg;
	struct speech speech;
	struct packet p;
	struct cm_mad m;

	if (packet_parse(&p, &frame) == XROCE_DROP_none && nobody_read(&p, b->mux.host, &m) &&
	    cm_refuse(&m, &speech.mad)) {
		speech.own = p.dst;
		speech.peer = p.src;
		mad_sender_say(&b->speaker, XROCE_CM_PLACE_NOBODY, &speech);
	}
}

/* The same in a broker with UDP sockets. More than NOBODY_AT_ONCE in a turn are lost. */
static void nobody_frame_by_udp(void *arg, const u8 *bytes, u32 len)
{
	struct broker *b = arg;

	if (!b->nobody.left)
		return;
	b->nobody.left--;
	nobody_frame(b, bytes, len);
}

void nobody_begin_turn(struct broker *b)
{
	b->nobody.left = NOBODY_AT_ONCE;
}

static int nobody_record(void *arg, void *data, size_t size)
{
	const struct xroce_rx_record *r = data;
	struct broker *b = arg;

	nobody_frame(b, r->frame, r->len);
	return --b->nobody.left ? 0 : -EAGAIN;
}

static void nobody_ready(struct source *s, u32 events)
{
	struct broker *b = container_of(s, struct broker, nobody.source);

	nobody_begin_turn(b);
	ring_buffer__consume(b->nobody.ring);
}

int nobody_open(struct broker *b)
{
	struct nobody *n = &b->nobody;
	int err;

	if (b->mux.host) {
		b->mux.host->nobody = nobody_frame_by_udp;
		b->mux.host->nobody_arg = b;
		return 0;
	}
	n->source = (struct source){ .ready = nobody_ready, .fd = mux_nobody_fd(&b->mux) };
	n->ring = ring_buffer__new(n->source.fd, nobody_record, b, NULL);
	err = n->ring ? loop_add(b->loop, &n->source) : -errno;
	if (err)
		nobody_close(b);
	return err;
}

void nobody_close(struct broker *b)
{
	if (!b->nobody.ring)
		return;
	loop_remove(b->loop, &b->nobody.source);
	ring_buffer__free(b->nobody.ring);
	b->nobody.ring = NULL;
}
