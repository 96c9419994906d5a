/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Receive side scaling against our own hash: tables, keys, fields and frames drawn at random; each
 * frame reaches exactly the work queue that the hash selects.
 *
 *	raw_hash DEVICE NETNS PEER ROUNDS SEED
 *
 * NETNS and PEER are the other end of the cable, where a packet socket sends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl.h"
#include "lib/raw_side.h"

#define KEY_BYTES  40
#define WQS	   8
#define LAST	   (&raw_queues[WQS])
#define LOG_PLACES 11
#define FRAMES	   60
#define ALL_FIELDS 0xff

struct world {
	uint8_t key[KEY_BYTES];
	uint64_t fields;
	uint32_t log_places;
	uint32_t places[1 << LOG_PLACES]; /* indices of raw_queues */
	struct ibv_cq_ex *cqs[WQS];
	uint32_t num_wqs, num_cqs;
	struct ibv_rwq_ind_table *table;
	struct ibv_qp *qp;
	struct ibv_flow *flow;
};

/* By its definition: for each bit of the input that is 1, the key's 32 bits from there on. */
static uint32_t toeplitz(const uint8_t *key, const uint8_t *input, uint32_t len)
{
	uint32_t hash = 0;

	for (uint32_t bit = 0; bit < 8 * len; bit++) {
		if (!(input[bit / 8] >> (7 - bit % 8) & 1))
			continue;
		for (uint32_t i = 0; i < 32; i++)
			hash ^= (uint32_t)(key[(bit + i) / 8] >> (7 - (bit + i) % 8) & 1)
				<< (31 - i);
	}
	return hash;
}

static uint32_t input_add(uint8_t *input, uint32_t len, const void *from, uint32_t bytes)
{
	memcpy(input + len, from, bytes);
	return len + bytes;
}

static uint32_t hash_of(const struct world *w, const struct frame_fields *f)
{
	const uint64_t sport = f->proto == 6 ? IBV_RX_HASH_SRC_PORT_TCP : IBV_RX_HASH_SRC_PORT_UDP;
	const uint64_t dport = f->proto == 6 ? IBV_RX_HASH_DST_PORT_TCP : IBV_RX_HASH_DST_PORT_UDP;
	uint32_t src4 = htonl(f->src4), dst4 = htonl(f->dst4), len = 0;
	uint16_t ports[2] = { htons(f->sport), htons(f->dport) };
	uint8_t input[36];

	if (f->is_ipv4 && w->fields & IBV_RX_HASH_SRC_IPV4)
		len = input_add(input, len, &src4, 4);
	if (f->is_ipv4 && w->fields & IBV_RX_HASH_DST_IPV4)
		len = input_add(input, len, &dst4, 4);
	if (f->is_ipv6 && w->fields & IBV_RX_HASH_SRC_IPV6)
		len = input_add(input, len, f->src6, 16);
	if (f->is_ipv6 && w->fields & IBV_RX_HASH_DST_IPV6)
		len = input_add(input, len, f->dst6, 16);
	if (f->has_ports && !f->is_fragment && w->fields & sport)
		len = input_add(input, len, &ports[0], 2);
	if (f->has_ports && !f->is_fragment && w->fields & dport)
		len = input_add(input, len, &ports[1], 2);
	return toeplitz(w->key, input, len);
}

static void world_draw(struct world *w)
{
	memset(w, 0, sizeof(*w));
	for (int i = 0; i < KEY_BYTES; i++)
		w->key[i] = (uint8_t)draw(256);
	w->fields = draw(ALL_FIELDS + 1);
	w->num_wqs = 1 + draw(WQS);
	w->num_cqs = 1 + draw(w->num_wqs);
	w->log_places = draw(8) ? draw(8) : LOG_PLACES;
	/* a frame without a hash goes to one queue */
	if (!w->fields)
		w->log_places = 0;
	for (uint32_t i = 0; i < 1u << w->log_places; i++)
		w->places[i] = draw(w->num_wqs);
}

static void world_make(struct world *w)
{
	static struct ibv_wq *wqs[1 << LOG_PLACES];
	struct ibv_rwq_ind_table_init_attr table = { .log_ind_tbl_size = w->log_places,
						     .ind_tbl = wqs };
	uint8_t key[KEY_BYTES];
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.pd = raw_pd,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, KEY_BYTES, key, w->fields },
	};

	for (uint32_t i = 0; i < w->num_cqs; i++)
		w->cqs[i] = raw_cq();
	for (uint32_t i = 0; i < w->num_wqs; i++)
		raw_add_wq(&raw_queues[i], w->cqs[i % w->num_cqs]);
	for (uint32_t i = 0; i < 1u << w->log_places; i++)
		wqs[i] = raw_queues[w->places[i]].wq;
	w->table = ibv_create_rwq_ind_table(raw_ctx, &table);
	must(w->table, "ibv_create_rwq_ind_table: %s", strerror(errno));
	init.rwq_ind_tbl = w->table;
	memcpy(key, w->key, KEY_BYTES);
	w->qp = ibv_create_qp_ex(raw_ctx, &init);
	must(w->qp, "ibv_create_qp_ex: %s", strerror(errno));
	/* both are the caller's again */
	memset(key, 0, sizeof(key));
	memset(wqs, 0, sizeof(wqs));
	w->flow = raw_flow_default(w->qp, IBV_FLOW_ATTR_ALL_DEFAULT);
}

static void world_end(struct world *w)
{
	must(ibv_destroy_rwq_ind_table(w->table) == EBUSY, "a QP's table is destroyed");
	must(ibv_destroy_qp(w->qp) == EBUSY, "a QP with a flow is destroyed");
	must(ibv_destroy_wq(raw_queues[w->places[0]].wq) == EBUSY, "a table's WQ is destroyed");
	must(!ibv_destroy_flow(w->flow), "ibv_destroy_flow");
	must(!ibv_destroy_qp(w->qp), "ibv_destroy_qp");
	must(!ibv_destroy_rwq_ind_table(w->table), "ibv_destroy_rwq_ind_table");
	must(ibv_destroy_cq(ibv_cq_ex_to_cq(w->cqs[0])) == EBUSY, "a WQ's CQ is destroyed");
	for (uint32_t i = 0; i < w->num_wqs; i++)
		raw_remove(&raw_queues[i]);
	for (uint32_t i = 0; i < w->num_cqs; i++)
		must(!ibv_destroy_cq(ibv_cq_ex_to_cq(w->cqs[i])), "ibv_destroy_cq");
}

static void frame_check(const struct world *w, const struct raw_frame *f)
{
	uint32_t hash = hash_of(w, &f->frame.f);
	uint32_t want = w->places[hash & ((1u << w->log_places) - 1)];

	for (uint32_t i = 0; i <= RAW_QUEUES; i++)
		must(f->copies[i] == (i == want),
		     "%u copies at queue %u; the queue is %u, by hash %x of fields %x, EtherType "
		     "%x, protocol %u, fragment %d",
		     f->copies[i], i, want, hash, (unsigned int)w->fields, f->frame.f.ether_type,
		     f->frame.f.proto, f->frame.f.is_fragment);
}

int main(int argc, char **argv)
{
	struct ibv_flow *last;
	struct world w;
	uint32_t rounds, frames = 0, hashed = 0;

	must(argc == 6, "usage: raw_hash DEVICE NETNS PEER ROUNDS SEED");
	rounds = (uint32_t)atoi(argv[4]);
	frame_seed = strtoull(argv[5], NULL, 0);
	raw_open(argv[1], argv[2], argv[3]);
	raw_add_qp(LAST);
	last = raw_flow_type(LAST->qp, FRAME_TYPE_LAST);
	while (rounds--) {
		world_draw(&w);
		world_make(&w);
		for (int again = 0; again < 2; again++) {
			raw_round(FRAMES, true, LAST);
			for (uint32_t i = 0; i < FRAMES; i++, frames++) {
				frame_check(&w, &raw_frames[i]);
				hashed += hash_of(&w, &raw_frames[i].frame.f) != 0;
			}
		}
		world_end(&w);
	}
	must(!ibv_destroy_flow(last), "ibv_destroy_flow");
	printf("hash: %u frames, %u hashed\n", frames, hashed);
	return 0;
}
