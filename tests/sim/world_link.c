/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The links between nodes: what becomes of a frame that an engine sends, by the faults of its
 * direction, and when it arrives.
 */
#include "world_internal.h"

#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>

static const char *const fate_names[] = { "",		" DROPPED", " DUPLICATED",
					  " CORRUPTED", " HELD",    " NO SUCH NODE",
					  " FLOODED" };

static void link_trace(const struct world *w, const struct sent_frame *f)
{
	const struct packet *p = &f->packet;

	fprintf(stderr, "%10llu %u>%u %-28s qp %06x psn %06x%s%s", (unsigned long long)f->time_ns,
		f->from, f->to, opcode_name(p->opcode), p->dest_qpn, p->psn, p->ackreq ? " A" : "",
		p->solicited ? " SE" : "");
	if (p->flags & OP_AETH)
		fprintf(stderr, " syndrome %02x msn %u", p->syndrome, p->msn);
	if (p->flags & (OP_RETH | OP_ATOMIC_ETH))
		fprintf(stderr, " rkey %08x len %u", p->rkey, p->dma_len);
	fprintf(stderr, " payload %u%s\n", p->payload_len, fate_names[f->fate]);
}

static void link_launch(struct world *w, u32 from, u32 to, const u8 *data, u32 len, u64 time_ns,
		   u32 overtake)
{
	struct flight *f;

	w->flights = world_grow(w->flights, w->num_flights, &w->flights_room, sizeof(*w->flights));
	f = &w->flights[w->num_flights++];
	*f = (struct flight){ .time_ns = time_ns,
			      .sequence = w->flight_sequence++,
			      .from = from,
			      .to = to,
			      .overtake = overtake,
			      .held = overtake > 0,
			      .len = len };
	f->data = malloc(len);
	assert_non_null(f->data);
	memcpy(f->data, data, len);
}

/* One more packet passed the held packets of this direction. */
static void link_release(struct world *w, u32 from, u32 to)
{
	for (u32 i = 0; i < w->num_flights; i++) {
		struct flight *f = &w->flights[i];

		if (!f->held || f->from != from || f->to != to || --f->overtake)
			continue;
		f->held = false;
		f->time_ns = w->now_ns + w->latency_ns;
		f->sequence = w->flight_sequence++;
	}
}

static bool link_is_scheduled(u64 mask, u64 n)
{
	return n < 64 && mask >> n & 1;
}

static enum fate link_choose_fate(struct world *w, struct faults *l, const struct sent_frame *f)
{
	u64 n = l->count++;

	if (l->dead || link_is_scheduled(l->drop, n) || (l->drops && l->drops(f, l->drops_arg)))
		return FATE_DROPPED;
	if (link_is_scheduled(l->duplicate, n))
		return FATE_DUPLICATED;
	if (link_is_scheduled(l->corrupt, n))
		return FATE_CORRUPTED;
	if (link_is_scheduled(l->hold, n))
		return FATE_HELD;
	if (l->drop_rate && rng_chance(&w->rng, l->drop_rate))
		return FATE_DROPPED;
	if (l->duplicate_rate && rng_chance(&w->rng, l->duplicate_rate))
		return FATE_DUPLICATED;
	if (l->corrupt_rate && rng_chance(&w->rng, l->corrupt_rate))
		return FATE_CORRUPTED;
	if (l->hold_rate && rng_chance(&w->rng, l->hold_rate))
		return FATE_HELD;
	return FATE_DELIVERED;
}

/* Flip one bit that the ICRC covers: extension headers, payload, or the ICRC itself. */
static void link_corrupt(struct world *w, u8 *data, u32 len, const struct packet *p)
{
	u32 first = (u32)(p->ip - data) + (p->is_ipv6 ? 40 : 20) + 8 + 12;

	data[first + rng_below(&w->rng, len - first)] ^= (u8)(1u << rng_below(&w->rng, 8));
}

/*
 * To a group, as a switch without a filter does it; the sender's own port keeps a copy if it has
 * members. What each of them finds in it is the engines' matter.
 */
static void link_flood(struct world *w, u32 from, const u8 *frame, u32 len)
{
	const struct rx_frame rx = { .data = frame, .len = len };

	for (u32 to = 0; to < w->num_nodes; to++)
		if (to != from || group_takes_frame(w->node[to].engine, &rx))
			link_launch(w, from, to, frame, len, w->now_ns + w->latency_ns, 0);
}

void link_transmit(struct world *w, u32 from, u8 *frame, u32 len)
{
	struct rx_frame rx = { .data = frame, .len = len };
	struct sent_frame f = { .time_ns = w->now_ns,
				.from = from,
				.to = WORLD_MAX_NODES,
				.fate = FATE_NO_NODE,
				.len = len };
	struct faults *l = NULL;

	/* Whatever an engine sends must be a good packet. */
	check_eq(w, packet_parse(&f.packet, &rx), 0);
	check(w, packet_icrc_ok(&f.packet));
	for (u32 i = 0; i < w->num_nodes; i++)
		if (gid_equal(&f.packet.dst, &w->node[i].gid4) ||
		    gid_equal(&f.packet.dst, &w->node[i].gid6))
			f.to = i;
	if (group_is_address(&f.packet.dst))
		f.fate = FATE_FLOODED;
	if (f.to < w->num_nodes) {
		check(w, memcmp(frame, w->node[f.to].mac, 6) == 0 &&
				 memcmp(frame + 6, w->node[from].mac, 6) == 0);
		l = &w->node[from].to[f.to];
		f.fate = link_choose_fate(w, l, &f);
		link_release(w, from, f.to);
	}
	if (w->trace)
		link_trace(w, &f);
	if (w->keep_frames) {
		f.data = malloc(len);
		assert_non_null(f.data);
		memcpy(f.data, frame, len);
		rx.data = f.data;
		check_eq(w, packet_parse(&f.packet, &rx), 0);
		w->sent = world_grow(w->sent, w->num_sent, &w->sent_room, sizeof(*w->sent));
		w->sent[w->num_sent++] = f;
	}
	/*
	 * a congested switch; over IPv4 it updates the header checksum as well, which no node here
	 * checks
	 */
	if (l && l->mark_rate && !f.packet.is_ipv6 && f.packet.tos & 3 &&
	    rng_chance(&w->rng, l->mark_rate))
		frame[14 + 1] |= 3;
	switch (f.fate) {
	case FATE_FLOODED:
		link_flood(w, from, frame, len);
		return;
	case FATE_DROPPED:
	case FATE_NO_NODE:
		return;
	case FATE_CORRUPTED:
		link_corrupt(w, frame, len,
			&(struct packet){ .ip = frame + (f.packet.has_vlan ? 18 : 14),
					  .is_ipv6 = f.packet.is_ipv6 });
		break;
	case FATE_DUPLICATED:
		link_launch(w, from, f.to, frame, len, w->now_ns + w->latency_ns, 0);
		break;
	case FATE_HELD:
		/* Where nothing follows to overtake it, it comes late all the same. */
		link_launch(w, from, f.to, frame, len, w->now_ns + 20 * w->latency_ns,
		       l->hold_packets ? l->hold_packets : 1);
		return;
	case FATE_DELIVERED:
		break;
	}
	link_launch(w, from, f.to, frame, len, w->now_ns + w->latency_ns, 0);
}
