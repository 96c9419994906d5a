/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=7 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer target: frames into an engine with a connected QP of each transport, receives posted
 * and requests outstanding. Looks for memory errors, undefined behaviour, engines that never stop
 * sending, and bad packets sent; the protocol's own rules are tests/sim's.
 *
 * Build and run, from the top of the tree (clang with compiler-rt):
 *
 *   clang -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Itests/common \
 *     -Itests/sim -DXROCE_GOLDEN_DIR='"tests/golden"' tests/fuzz/fuzz_engine.c \
 *     tests/sim/world.c tests/sim/pair.c tests/common/golden.c \
 *     user/engine/[a-z]*.c -lcmocka -lisal -o fuzz_engine
 *   # writes each golden capture as one input
 *   mkdir -p corpus && XROCE_SEED_DIR=corpus ./fuzz_engine
 *   ./fuzz_engine -max_len=16384 -max_total_time=300 corpus
 *
 * An input is a row of records of four bytes (struct record) and, for a frame, its bytes.
 */
#include <stdlib.h>

#include "golden.h"
#include "pair.h"

enum { RECORD_FRAME, RECORD_SEND, RECORD_RECV, RECORD_TIME, RECORD_KINDS };

/* The repairs of a frame, so that it passes the first checks. */
enum {
	MEND_QPN = 1 << 0,	/* one of ours, of the opcode's transport */
	/* what that QP expects next (or has outstanding, for a response), plus value */
	MEND_PSN = 1 << 1,
	MEND_KEY = 1 << 2,	/* a good R_Key and address */
	MEND_ICRC = 1 << 3,
};

struct record {
	u8 kind;
	u8 mend;		/* RECORD_FRAME; else an opcode or such */
	u8 value;
	u8 len_16;		/* bytes of frame that follow, in units of 16, at least one */
};

#define NUM_SIDES 6
#define MEM_BYTES 16384

static struct world *world;
static struct buffer *mem;
/* RC over IPv4, RC over IPv6 on a tag-matching SRQ, UC, UD, XRC initiator, XRC target */
static struct side sides[NUM_SIDES];
static struct watched_cq *xrc_cq, *tag_cq;
static struct srq *xrc_srq, *tag_srq;
/* of the RC QP over IPv4: bound onto mem, and bound by its requests */
static struct mr *window, *own_window;

static void make_sides(void)
{
	static const enum xroce_transport transports[NUM_SIDES] = {
		XROCE_RC, XROCE_RC, XROCE_UC, XROCE_UD, XROCE_XRC, XROCE_XRC
	};
	struct mr_table *t = engine_mr_table(world->node[1].engine);

	tag_cq = world_cq(&world->node[1], 64);
	tag_srq = world_tag_srq(&world->node[1], 8, 4, 4, tag_cq);
	for (u32 i = 0; i < NUM_SIDES; i++) {
		struct pair_options o = pair_defaults();

		o.transport = transports[i];
		o.is_ipv6 = i == 1;
		o.timeout = 10;
		o.xrc_target = i == 5;
		sides[i] = side_create(&world->node[1], &o, i == 1 ? tag_srq : NULL);
		side_init(&sides[i], &o);
		side_rtr(&sides[i], &o, 0, 77, 0x1000);
		side_rts(&sides[i], &o, 0x2000);
		for (u32 k = 0; k < 8 && sides[i].recv && i != 1; k++)
			post_recv_buffer(&sides[i], k, mem, k * 512, 4096);
	}
	xrc_cq = world_cq(&world->node[1], 64);
	xrc_srq = world_xrc_srq(&world->node[1], 8, pair_defaults().xrcd, PAIR_PD, xrc_cq);
	engine_srq_set_limit(world->node[1].engine, xrc_srq, 2);
	for (u32 k = 0; k < 4; k++)
		post_srq_recv(xrc_srq, k, &(struct sge){ buffer_va(mem), 4096, mem->mr->key }, 1);
	if (mw_add(t, PAIR_PD, MR_WINDOW_2, &window) ||
	    mw_add(t, PAIR_PD, MR_WINDOW_2, &own_window) ||
	    mw_bind(t, window, window->key, mem->mr->key, buffer_va(mem), MEM_BYTES,
		    MR_REMOTE_WRITE, sides[0].qp->qpn))
		abort();
}

static void destroy_sides(void)
{
	struct mr_table *t = engine_mr_table(world->node[1].engine);

	for (u32 i = 0; i < NUM_SIDES; i++)
		side_destroy(&sides[i]);
	world_tag_srq_destroy(tag_srq);
	world_cq_destroy(&world->node[1], tag_cq);
	world_xrc_srq_destroy(&world->node[1], xrc_srq);
	world_cq_destroy(&world->node[1], xrc_cq);
	mr_remove(t, window);
	mr_remove(t, own_window);
}

/* The one of our QPs that an opcode and an IP version may reach. */
static struct side *side_for(u8 opcode, bool is_response, bool is_ipv6)
{
	switch (OPCODE_TRANSPORT(opcode)) {
	case XROCE_XRC:
		return &sides[is_response ? 4 : 5];
	case XROCE_UC:
		return &sides[2];
	case XROCE_UD:
		return &sides[3];
	default:
		return &sides[is_ipv6];
	}
}

static void mend_frame(u8 *frame, u32 *len, u8 mend, u8 value)
{
	struct rx_frame rx = { .data = frame, .len = *len };
	u8 payload[ROCE_PMTU_MAX], built[PACKET_FRAME_MAX], *at;
	struct path path;
	struct packet p;
	struct side *s;

	if (packet_parse(&p, &rx))
		return;
	s = side_for(p.opcode, p.flags & OP_RESPONSE, p.is_ipv6);
	path = world_path(world, 0, 1, p.is_ipv6);
	if (mend & MEND_QPN)
		p.dest_qpn = s->qp->qpn;
	if (mend & MEND_PSN)
		p.psn = psn_add(p.flags & OP_RESPONSE ? s->qp->req.unacked_psn :
							s->qp->resp.seq.expected_psn,
				(u32)(s32)(int8_t)value);
	if (mend & MEND_KEY) {
		p.rkey = value & 1 ? window->key : mem->mr->key;
		p.inv_rkey = window->key;
		p.va = buffer_va(mem) + value * 8u;
		p.qkey = PAIR_QKEY;
		p.xrc_srqn = xrc_srq->number;
	}
	packet_copy_payload(&p, 0, payload, p.payload_len);
	if (s == &sides[1] && mend & MEND_KEY && p.flags & OP_SEND && p.flags & OP_START &&
	    p.payload_len >= sizeof(struct tmh) + sizeof(struct rvh)) {
		struct tmh h = { .opcode = value & 3, .tag = htobe64(value >> 2 & 3) };
		struct rvh v = { .va = htobe64(buffer_va(mem)),
				 .rkey = htobe32(mem->mr->key),
				 .len = htobe32(value * 64u) };

		memcpy(payload, &h, sizeof(h));
		memcpy(payload + sizeof(h), &v, sizeof(v));
	}
	at = packet_put_headers(built, &path, &p);
	memcpy(at, payload, p.payload_len);
	*len = packet_seal(built, at, p.payload_len);
	memcpy(frame, built, *len);
}

static void deliver(const struct record *r, const u8 *data, u32 len)
{
	u8 *frame = malloc(PACKET_FRAME_MAX);

	if (!frame)
		abort();
	memcpy(frame, data, len);
	if (r->mend & MEND_ICRC)
		mend_frame(frame, &len, r->mend, r->value);
	world_deliver(world, 1, frame, len);
	free(frame);
}

static void post(const struct record *r)
{
	struct side *s = &sides[r->mend % NUM_SIDES];
	struct path path = world_path(world, 1, 0, r->value & 1);
	struct send send = { .wr_id = r->value,
			     .opcode = r->mend / NUM_SIDES % WR_OPCODES,
			     .flags = WR_SIGNALED,
			     .num_sge = 1,
			     .sge = { buffer_sge(mem, 0, r->value * 16u) },
			     .remote_addr = buffer_va(mem),
			     .rkey = mem->mr->key,
			     .path = &path,
			     .remote_qpn = 77,
			     .remote_qkey = PAIR_QKEY };

	if (send.opcode == WR_CMP_SWAP || send.opcode == WR_FETCH_ADD)
		send.sge[0].length = 8;
	if (send.opcode == WR_FLUSH || send.opcode == WR_ATOMIC_WRITE ||
	    send.opcode == WR_LOCAL_INV || send.opcode == WR_BIND_MW) {
		send.num_sge = 0;
		send.length = send.opcode == WR_FLUSH || send.opcode == WR_ATOMIC_WRITE ? 8 : 0;
		send.compare_add = 1;
		send.inv_rkey = own_window->key;
		send.bind.mw_key = own_window->key;
		send.bind.new_key = own_window->key + (r->value < 250);
		send.bind.lkey = mem->mr->key;
		send.bind.addr = buffer_va(mem);
		send.bind.length = r->value * 64u;
		send.bind.access = MR_REMOTE_READ;
	}
	try_post_send(s, &send);
}

/*
 * Receives of the tag-matching SRQ, and operations on its list: tags are a few bits, so that
 * messages find them.
 */
static void post_tagged(const struct record *r)
{
	struct sge sge = { buffer_va(mem) + r->value * 8u, r->value * 32u, mem->mr->key };
	struct tag_op op = { .wr_id = r->value,
			     .opcode = r->mend % 4,
			     .flags = r->value % 4,
			     .unexpected_cnt = r->value / 4,
			     .handle = r->value,
			     .recv_wr_id = r->value,
			     .tag = r->value & 1,
			     .mask = r->value & 3,
			     .sge = &sge,
			     .num_sge = 1 };

	if (r->value & 1 && rq_slot(&tag_srq->rq, 0))
		post_srq_recv(tag_srq, r->value, &sge, 1);
	else
		tag_post(world->node[1].engine, tag_srq, &op, world->now_ns);
}

static void post_receive(const struct record *r)
{
	struct side *s = &sides[r->mend % NUM_SIDES];

	if (s == &sides[1])
		post_tagged(r);
	else if (!s->recv && rq_slot(&xrc_srq->rq, 0))
		post_srq_recv(xrc_srq, r->value,
			      &(struct sge){ buffer_va(mem), r->value * 32u, mem->mr->key }, 1);
	else if (s->recv && rq_slot(&s->qp->rq, 0))
		post_recv_buffer(s, r->value, mem, 0, r->value * 32u);
}

/* Each capture becomes one input, all its frames repaired. */
static void write_corpus(const char *dir)
{
	struct golden g;
	FILE *f = NULL;

	if (golden_load(&g))
		exit(1);
	for (size_t i = 0; i < g.count; i++) {
		const struct golden_packet *p = &g.packets[i];
		struct record r = { .kind = RECORD_FRAME,
				    .mend = MEND_QPN | MEND_PSN | MEND_KEY | MEND_ICRC,
				    .len_16 = (u8)((p->len + 15) / 16) };
		static const u8 zero[16];
		char name[512];

		if (p->index == 0) {
			if (f)
				fclose(f);
			snprintf(name, sizeof(name), "%s/%s", dir, p->file);
			f = fopen(name, "wb");
		}
		if (!f || p->len > 255 * 16)
			continue;
		fwrite(&r, sizeof(r), 1, f);
		fwrite(p->frame, 1, p->len, f);
		fwrite(zero, 1, r.len_16 * 16u - p->len, f);
	}
	if (f)
		fclose(f);
	golden_free(&g);
	exit(0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	if (getenv("XROCE_SEED_DIR"))
		write_corpus(getenv("XROCE_SEED_DIR"));
	world = world_create(2, 1);
	world_label(world, "fuzz_engine");
	world->node[1].to[0].dead = true;
	world->keep_frames = false;
	mem = world_buffer(&world->node[1], MEM_BYTES,
			   PAIR_ACCESS_ALL | MR_MW_BIND | MR_FLUSH_GLOBAL);
	return 0;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct record r;

	make_sides();
	while (size >= sizeof(r)) {
		u32 len = 0;

		memcpy(&r, data, sizeof(r));
		data += sizeof(r);
		size -= sizeof(r);
		switch (r.kind % RECORD_KINDS) {
		case RECORD_FRAME:
			len = r.len_16 ? r.len_16 * 16u : 16;
			len = size < len ? (u32)size : len;
			if (len)
				deliver(&r, data, len);
			break;
		case RECORD_SEND:
			post(&r);
			break;
		case RECORD_RECV:
			post_receive(&r);
			break;
		case RECORD_TIME:
			world_run_for(world, r.value * 100u * NSEC_PER_USEC);
			break;
		}
		data += len;
		size -= len;
		/* Several frames before the engine may speak, as a batch comes from a ring. */
		if (!(r.mend & 0x80))
			world_settle(world);
	}
	world_settle(world); /* events may refer to objects destroyed now */
	destroy_sides();
	world->node[1].num_events = 0;
	return 0;
}
