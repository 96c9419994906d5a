/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets made by hand; see raw.h. */
#include "raw.h"

#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

#define MEM_BYTES 16384

struct raw raw_create(const struct pair_options *o, const char *label)
{
	return raw_create_with(o, &(struct world_options){ 0 }, label);
}

struct raw raw_create_with(const struct pair_options *o, const struct world_options *wo,
			   const char *label)
{
	/* the plainest responder: each packet is answered for itself */
	const u32 plain = ENGINE_NO_REORDER | ENGINE_NO_CREDITS;
	struct world_options options = *wo;
	struct raw r;

	options.disable[0] = options.disable[1] = plain;
	r = (struct raw){ .w = world_create_with(2, 11, &options) };
	world_label(r.w, "%s", label);
	r.w->node[1].to[0].dead = true;
	r.s = side_create(&r.w->node[1], o, o->srq[1]);
	side_init(&r.s, o);
	side_rtr(&r.s, o, 0, RAW_PEER_QPN, RAW_PSN);
	side_rts(&r.s, o, RAW_SQ_PSN);
	r.path = world_path(r.w, 0, 1, o->is_ipv6);
	r.mem = world_buffer_pd(&r.w->node[1], MEM_BYTES, PAIR_ACCESS_ALL, o->pd);
	r.frame = malloc(PACKET_FRAME_MAX);
	assert_non_null(r.frame);
	return r;
}

struct raw raw_create_small(const char *label)
{
	struct pair_options o = pair_defaults();

	o.pmtu = RAW_PMTU;
	o.max_dest_rd_atomic = 2;
	return raw_create(&o, label);
}

void raw_destroy(struct raw *r)
{
	side_destroy(&r->s);
	world_destroy(r->w);
	free(r->frame);
}

struct packet raw_request(u8 opcode, u32 psn)
{
	return (struct packet){ .opcode = opcode, .psn = psn, .ackreq = true };
}

struct packet raw_access(const struct raw *r, u8 opcode, u32 psn, u32 offset, u32 len)
{
	struct packet p = raw_request(opcode, psn);

	p.va = buffer_va(r->mem) + offset;
	p.rkey = r->mem->mr->key;
	p.dma_len = len;
	return p;
}

u64 raw_load(const struct raw *r, u32 offset)
{
	u64 value;

	memcpy(&value, r->mem->bytes + offset, sizeof(value));
	return value;
}

void raw_store(struct raw *r, u32 offset, u64 value)
{
	memcpy(r->mem->bytes + offset, &value, sizeof(value));
}

u32 raw_build(struct raw *r, struct packet p, const void *payload, u32 len)
{
	u8 *at;

	check(r->w, len <= ROCE_PMTU_MAX);
	if (!p.dest_qpn)
		p.dest_qpn = r->s.qp->qpn;
	if (!p.pkey)
		p.pkey = ROCE_DEFAULT_PKEY;
	p.migreq = !r->is_rxe;
	p.payload_len = len;
	at = packet_put_headers(r->frame, &r->path, &p);
	if (payload)
		memcpy(at, payload, len);
	else
		buffer_fill(at, len, p.psn);
	r->frame_len = packet_seal(r->frame, at, len);
	return r->frame_len;
}

enum xroce_drop raw_deliver(struct raw *r, struct packet p, const void *payload, u32 len)
{
	raw_build(r, p, payload, len);
	return world_deliver(r->w, 1, r->frame, r->frame_len);
}

enum xroce_drop raw_send_frame(struct raw *r)
{
	enum xroce_drop result = world_deliver(r->w, 1, r->frame, r->frame_len);

	world_settle(r->w);
	return result;
}

enum xroce_drop raw_send(struct raw *r, struct packet p, const void *payload, u32 len)
{
	raw_build(r, p, payload, len);
	return raw_send_frame(r);
}

const struct packet *raw_answer(struct raw *r)
{
	return r->answers < r->w->num_sent ? &r->w->sent[r->answers++].packet : NULL;
}

void raw_expect_ack(struct raw *r, u8 syndrome, u32 psn, u32 msn, const char *file, int line)
{
	const struct packet *p = raw_answer(r);

	if (!p) {
		world_check(r->w, false, "no answer", file, line);
		return;
	}
	world_check_u64(r->w, p->opcode, OPCODE(r->s.qp->transport, OP5_ACKNOWLEDGE),
			"answer is an ACKNOWLEDGE", file, line);
	world_check_u64(r->w, p->dest_qpn, RAW_PEER_QPN, "dest_qpn", file, line);
	world_check_u64(r->w, p->psn, psn, "psn", file, line);
	world_check_u64(r->w, p->syndrome, syndrome, "syndrome", file, line);
	world_check_u64(r->w, p->msn, msn, "msn", file, line);
}

void raw_expect_silence(struct raw *r, const char *file, int line)
{
	const struct packet *p = raw_answer(r);

	if (p)
		print_error("answered %s psn %06x syndrome %02x\n", opcode_name(p->opcode), p->psn,
			    p->syndrome);
	world_check(r->w, !p, "no answer", file, line);
}

void raw_expect_failed(struct raw *r, u8 nak, const char *file, int line)
{
	enum engine_event_type event =
		nak == NAK_REMOTE_ACCESS ? EVENT_QP_ACCESS_ERR : EVENT_QP_REQ_ERR;
	struct packet late = raw_request(OPCODE(r->s.qp->transport, OP5_SEND_ONLY), RAW_PSN);

	world_check_u64(r->w, qp_state(r->s.qp), QPS_ERR, "state", file, line);
	world_check_u64(r->w, world_events(r->s.node, event, r->s.qp), 1, "events of the failure",
			file, line);
	world_check_u64(r->w, world_events(r->s.node, EVENT_QP_STATE, r->s.qp), 1,
			"events of the state", file, line);
	world_check_u64(r->w, raw_send(r, late, NULL, 4), XROCE_DROP_qp_state, "drop", file, line);
	raw_expect_silence(r, file, line);
}
