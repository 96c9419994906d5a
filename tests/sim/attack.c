/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Forged packets; see attack.h. */
#include "attack.h"

int attack_deliver(struct world *w, const struct side *victim, u32 from, struct packet p,
		   const void *payload, u32 len)
{
	struct path path = world_path(w, from, victim->node->index, victim->qp->path.is_ipv6);
	u8 frame[PACKET_FRAME_MAX], *at;

	p.dest_qpn = victim->qp->qpn;
	p.pkey = ROCE_DEFAULT_PKEY;
	p.payload_len = len;
	at = packet_put_headers(frame, &path, &p);
	if (len)
		memcpy(at, payload, len);
	return world_deliver(w, victim->node->index, frame, packet_seal(frame, at, len));
}
