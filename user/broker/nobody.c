/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "nobody.h"

#include <bpf/libbpf.h>

#include "../cm/cm.h"
#include "../engine/packet.h"
#include "broker_object.h"

#define NOBODY_AT_ONCE 16u /* MADs a turn, so that clients are served in between */

/* Decodes the MAD of a packet from xroce_mux. Returns false if its ICRC or content is wrong. */
static bool nobody_read(const struct packet *p, struct cm_mad *m)
{
	u8 mad[CM_MAD_BYTES];

	if (p->payload_len != CM_MAD_BYTES || p->src_qpn != XROCE_CM_QPN || !packet_icrc_ok(p))
		return false;
	packet_copy_payload(p, 0, mad, sizeof(mad));
	return cm_mad_decode(m, mad, sizeof(mad)) == CM_DROP_none;
}

static int nobody_record(void *arg, void *data, size_t size)
{
	const struct xroce_rx_record *r = data;
	const struct rx_frame frame = { .data = r->frame, .len = r->len };
	struct broker *b = arg;
	struct speech speech;
	struct packet p;
	struct cm_mad m;

	if (packet_parse(&p, &frame) == XROCE_DROP_none && nobody_read(&p, &m) &&
	    cm_refuse(&m, &speech.mad)) {
		speech.own = p.dst;
		speech.peer = p.src;
		mad_sender_say(&b->speaker, XROCE_CM_PLACE_NOBODY, &speech);
	}
	return --b->nobody.left ? 0 : -EAGAIN;
}

static void nobody_ready(struct source *s, u32 events)
{
	struct broker *b = container_of(s, struct broker, nobody.source);

	b->nobody.left = NOBODY_AT_ONCE;
	ring_buffer__consume(b->nobody.ring);
}

int nobody_open(struct broker *b)
{
	struct nobody *n = &b->nobody;
	int err;

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
