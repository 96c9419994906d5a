/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=3 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer target: any datagram, as the kernel's receive offload joins packets, with its ancillary
 * data, into the receiver of a broker with UDP sockets (user/host/receive.c) and the receiving
 * programs as functions of the broker (user/host/program.c). Looks for reads after the datagram.
 *
 * A second broker gets the packets of the datagram one by one. Each client of the first one must
 * find the same packets in its ring, in the same order, and no others: a joined packet takes no
 * other with it, and hides none. What user space refuses of a super-packet counts as refused. If no
 * packets were joined, both brokers have counted the same.
 *
 * scripts/fuzz.sh BUILD host SECONDS runs it. An input is struct shape, then the datagram.
 */
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <sanitizer/asan_interface.h>
#include <string.h>
#include <sys/socket.h>

#include "../../user/host/receive.h"

static struct host_receive receive; /* of the first broker */
static u32 inputs;		    /* frames of that broker */
static void fuzz_input(struct host *h, u8 *frame, u32 len);
static int fuzz_recvmmsg(struct mmsghdr *msg, unsigned int num);
#define recvmmsg(fd, msg, num, flags, timeout) fuzz_recvmmsg(msg, num)
#define host_input fuzz_input
#include "../../user/host/receive.c"
#undef host_input
#undef recvmmsg

#include "../../user/cm/mad.h"
#include "fuzz.h"
#include "golden.h"

#define CLIENTS	   2u
#define RING_BYTES (1u << 20)
#define FOUND_MAX  4096u
#define PORT	   7480 /* of a service of client 1 */
#define QKEY	   0x11111111u
#define PKEY	   0xffff
#define UDP_MAX	   65507u /* with IPv4 headers */
#define CHANGES	   4u

/* Flags of an input. */
enum {
	IS_IPV6 = 1 << 0,
	IS_TRUNCATED = 1 << 1,
	IS_TO_GROUP = 1 << 2,
	IS_TO_OTHER = 1 << 3, /* no address of the interface */
	HAS_BYTES = 1 << 4,   /* TOS and TTL in one byte each */
	FIX_QPN = 1 << 5,     /* each packet is for some QP of a client, with its P_Key and Q_Key */
	FIX_ALIKE = 1 << 6,   /* each packet is for the QP of the first */
	HAS_CHANGES = 1 << 7, /* the clients have written to their maps */
};

struct shape {
	u8 flags, tos, ttl, qp;
	u16 sport, source; /* source 0: the QPs' peer */
	s32 segment;
	/* bytes of struct xroce_qp that a client has written */
	struct change {
		u8 qp, at, value;
	} changes[CHANGES];
};

/* ---- what is not here ---- */

u64 clock_now_ns(void)
{
	return 1;
}

int kernel_send(int fd, const void *message, u32 bytes)
{
	return 0;
}

int kernel_set_make(void)
{
	return -ENOSYS;
}

int kernel_random(void *to, size_t bytes)
{
	memset(to, 0x5a, bytes);
	return 0;
}

/* ---- two brokers ---- */

static void fuzz_input(struct host *h, u8 *frame, u32 len)
{
	inputs += h == receive.host;
	host_input(h, frame, len);
}

/* A packet that a client, or the broker itself, has found. */
struct found {
	u32 client;
	u32 dest_qpn, len; /* from the BTH to the ICRC */
	u32 is_whole;
	u64 sum; /* of these bytes and the IP header */
};

/* The tracers of a client: slot 0 gets received packets, slot 1 dropped ones. */
enum { TRACERS = 2 };

static struct side {
	struct host *host;
	struct host_ring tracer[CLIENTS][TRACERS];
	struct host_client *client[CLIENTS];
	unsigned long at[CLIENTS]; /* the reader's position */
	u32 num;
	struct found found[FOUND_MAX];
} joined, single;

static struct host_address address;
static const struct shape *now_shape;
static const u8 *now_data;
static u32 now_len;

static const struct gid own_v4 = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 } };
static const struct gid peer_v4 = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 } };
static const struct gid group_v4 = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [15] = 7 } };
static const struct gid own_v6 = { .raw = { 0xfd, [15] = 1 } };
static const struct gid peer_v6 = { .raw = { 0xfd, [15] = 2 } };
static const struct gid group_v6 = { .raw = { 0xff, 0x0e, [15] = 7 } };
static const struct gid other_v4 = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 9 } };
static const struct gid other_v6 = { .raw = { 0xfd, [15] = 9 } };

static const struct fuzz_qp {
	u32 qpn, client;
	enum xroce_transport transport;
	bool is_ipv6;
} qps[] = {
	{ 0x000010, 0, XROCE_RC, false }, { 0x123411, 1, XROCE_RC, false },
	{ 0x000012, 0, XROCE_UC, false }, { 0x000013, 0, XROCE_UD, false },
	{ 0x000014, 1, XROCE_UD, false }, { 0x000015, 0, XROCE_RC, true },
	{ 0x010001, 1, XROCE_RC, false }, { 0x000017, 0, XROCE_XRC, false },
};

static struct xroce_qp *side_qp(const struct side *s, const struct fuzz_qp *qp)
{
	return &s->client[qp->client]->maps.qp[XROCE_QP_SLOT(qp->qpn)];
}

static void side_set_qp(const struct side *s, const struct fuzz_qp *qp)
{
	struct xroce_qp *q = side_qp(s, qp);

	*q = (struct xroce_qp){ .qpn = qp->qpn,
				.transport = qp->transport,
				.receiving = 1,
				.pkey = PKEY };
	if (qp->transport == XROCE_UD) {
		q->qkey = QKEY;
		return;
	}
	memcpy(q->local, (qp->is_ipv6 ? &own_v6 : &own_v4)->raw, sizeof(q->local));
	memcpy(q->peer, (qp->is_ipv6 ? &peer_v6 : &peer_v4)->raw, sizeof(q->peer));
}

static void side_add_tracers(struct side *s, u32 i)
{
	for (u32 k = 0; k < TRACERS; k++) {
		struct host_ring *ring = &s->tracer[i][k];

		REQUIRE(!host_ring_make(ring, "xroce_trace", RING_BYTES, false));
		s->client[i]->tracer[k] = ring;
		s->client[i]->trace->tracer[k] = (struct xroce_tracer){
			.until_ns = UINT64_MAX,
			.what = k ? XROCE_TRACE_DROPPED : XROCE_TRACE_RECEIVED,
			.bytes = UINT32_MAX
		};
	}
	s->client[i]->trace->listening = (1u << TRACERS) - 1;
}

/* Client i has place i + 1, as place 0 is of a process that refuses all other requests. */
static void side_add_client(struct side *s, u32 i)
{
	const struct xroce_cm_client place = { .client = i, .serial = 7 + i };
	const u32 number = i + 1;

	REQUIRE(!host_client_make(RING_BYTES, &s->client[i]));
	s->host->client[i] = s->client[i];
	side_add_tracers(s, i);
	REQUIRE(!host_map_put(&s->host->map[HOST_CM_CLIENT], &number, &place));
}

static void side_add_groups(struct side *s)
{
	const struct xroce_members members = { .num = CLIENTS, .client = { 0, 1 } };

	REQUIRE(!host_map_put(&s->host->map[HOST_MEMBERS], &group_v4, &members));
	REQUIRE(!host_map_put(&s->host->map[HOST_MEMBERS], &group_v6, &members));
}

static void side_add_services(struct side *s)
{
	struct xroce_service_key key = { .id = cm_service_id(CM_PS_TCP, PORT) };
	const struct xroce_service service = { .place = 2 };

	REQUIRE(!host_map_put(&s->host->map[HOST_SERVICE], &key, &service));
	key.address[10] = key.address[11] = 0xff;
	REQUIRE(!host_map_put(&s->host->map[HOST_SERVICE], &key, &service));
}

/*
 * Returns whether the ICRC is correct as far as the engine knows, which does not know the
 * identification (icrc.h). That of a super-packet's packets is another one.
 */
static bool icrc_is_explained(const struct packet *p)
{
	static struct icrc_unknown of[ICRC_ID_TAIL_MAX / 4];
	const u32 bytes = (u32)(p->end - p->ip), difference = packet_icrc_difference(p);
	struct icrc_unknown *u = &of[bytes / 4];

	if (p->is_ipv6)
		return !difference;
	REQUIRE(bytes / 4 < ARRAY_SIZE(of));
	if (!u->tail)
		icrc_unknown_init(u, bytes - ICRC_BEFORE_TAIL - ROCE_ICRC_BYTES);
	return icrc_unknown_explains(u, difference);
}

/* Adds a frame that a client or the broker has got. */
static void side_find(struct side *s, u32 client, const struct packet *p)
{
	struct found *f = &s->found[s->num++];
	const u8 *bth = p->ip + (p->is_ipv6 ? 48 : 28);

	REQUIRE(s->num <= FOUND_MAX);
	*f = (struct found){ .client = client, .dest_qpn = p->dest_qpn };
	f->is_whole = icrc_is_explained(p);
	f->len = (u32)(p->end - bth) - ROCE_ICRC_BYTES;
	f->sum = p->tos | (u64)p->hop_limit << 8 | (u64)p->udp_sport << 16 | (u64)p->is_ipv6 << 32;
	for (u32 i = 0; i < 16; i++)
		f->sum = f->sum * 0x100000001b3 + p->src.raw[i] * 257u + p->dst.raw[i];
	/* in the reserved bits the broker writes a code for a super-packet's length */
	for (u32 i = 0; i < f->len; i++)
		f->sum = (f->sum ^ (i == offsetof(struct bth, ecn_qpn) ?
					    bth[i] & ~(BTH_RESERVED >> 24) :
					    bth[i])) * 0x100000001b3;
}

/* A MAD that the broker itself refuses. */
static void side_nobody(void *arg, const u8 *frame, u32 len)
{
	const struct rx_frame f = { .data = frame, .len = len };
	struct packet p;

	REQUIRE(packet_parse(&p, &f) == XROCE_DROP_none && p.dest_qpn == XROCE_CM_QPN);
	side_find(arg, CLIENTS, &p);
}

static void side_make(struct side *s)
{
	const u32 index = 0;

	REQUIRE(!host_make(&s->host));
	s->host->unowned = side_nobody;
	s->host->unowned_arg = s;
	for (u32 i = 0; i < CLIENTS; i++)
		side_add_client(s, i);
	for (u32 i = 0; i < ARRAY_SIZE(qps); i++) {
		const struct xroce_owner owner = { .client = qps[i].client };

		REQUIRE(!host_map_put(&s->host->map[HOST_OWNER], &qps[i].qpn, &owner));
	}
	REQUIRE(!host_map_put(&s->host->map[HOST_GID], &own_v4, &index));
	REQUIRE(!host_map_put(&s->host->map[HOST_GID], &own_v6, &index));
	side_add_groups(s);
	side_add_services(s);
}

static void side_forget_one(void *arg, const void *key, const void *value)
{
	host_map_remove(arg, key);
}

/* As at first: an input alone repeats its result. */
static void side_begin(struct side *s, const struct shape *shape)
{
	struct host *h = s->host;

	host_map_each(&h->map[HOST_ASKED], side_forget_one, &h->map[HOST_ASKED]);
	host_map_each(&h->map[HOST_CONN], side_forget_one, &h->map[HOST_CONN]);
	memset(&h->drops, 0, sizeof(h->drops));
	memset(&h->stats, 0, sizeof(h->stats));
	for (u32 i = 0; i < CLIENTS; i++) {
		memset(s->client[i]->drops, 0, sizeof(*s->client[i]->drops));
		memset(s->client[i]->stats, 0, sizeof(*s->client[i]->stats));
		for (u32 k = 0; k < TRACERS; k++)
			s->client[i]->trace->tracer[k].recorded =
				s->client[i]->trace->tracer[k].lost = 0;
	}
	for (u32 i = 0; i < ARRAY_SIZE(qps); i++)
		side_set_qp(s, &qps[i]);
	for (u32 i = 0; i < CHANGES && shape->flags & HAS_CHANGES; i++) {
		const struct change *c = &shape->changes[i];
		struct xroce_qp *qp = side_qp(s, &qps[c->qp % ARRAY_SIZE(qps)]);

		((u8 *)qp)[c->at % sizeof(*qp)] = c->value;
	}
	s->num = 0;
}

/* ---- the clients ---- */

static void read_single(struct side *s, u32 client, const struct xroce_rx_record *r)
{
	const struct rx_frame frame = { .data = r->frame, .len = r->len };
	struct packet p;

	REQUIRE(packet_parse(&p, &frame) == XROCE_DROP_none);
	REQUIRE(r->cqe.qpn == p.dest_qpn && r->cqe.opcode == p.opcode && r->cqe.tos == p.tos);
	REQUIRE(r->cqe.byte_len == p.payload_len && r->cqe.src_qpn == p.src_qpn);
	side_find(s, client, &p);
}

static void read_super(struct side *s, u32 client, const struct xroce_rx_record *r)
{
	static struct segments segments;
	struct rx_frame frame;
	struct packet p;

	REQUIRE(s == &joined);
	segments.part[0] = (struct segment_part){ .data = (u8 *)(uintptr_t)r->frame,
						  .len = r->len };
	segments.parts = 1;
	REQUIRE(segments_begin(&segments, r->cqe.l3_offset));
	for (u32 i = 0; segments_next(&segments, &frame); i++) {
		const enum xroce_drop drop = packet_parse(&p, &frame);

		REQUIRE(i || drop == XROCE_DROP_none);
		if (drop == XROCE_DROP_none)
			side_find(s, client, &p);
	}
}

/* Reads the client's ring, whose records the broker has completed, and empties it. */
static void read_ring(struct side *s, u32 client)
{
	const struct host_ring *ring = &s->client[client]->rx;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	while (s->at[client] != ring->at) {
		const u8 *at = ring->memory + 2 * page + (s->at[client] & (ring->bytes - 1));
		const struct xroce_rx_record *r = (const void *)(at + BPF_RINGBUF_HDR_SZ);
		u32 len;

		memcpy(&len, at, sizeof(len));
		REQUIRE(!(len & (BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT)));
		REQUIRE(len >= sizeof(*r) && r->len <= len - sizeof(*r));
		if (r->cqe.flags & XROCE_RX_GSO)
			read_super(s, client, r);
		else
			read_single(s, client, r);
		s->at[client] += (BPF_RINGBUF_HDR_SZ + len + 7) & ~7ul;
		REQUIRE(ring->at - s->at[client] <= ring->bytes);
	}
	memcpy(ring->memory, &s->at[client], sizeof(s->at[client]));
}

/* Reads the rings of the client's tracers, and empties them. */
static void read_tracers(struct side *s, u32 client)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (u32 k = 0; k < TRACERS; k++) {
		const struct host_ring *ring = &s->tracer[client][k];
		unsigned long at;

		for (memcpy(&at, ring->memory, sizeof(at)); at != ring->at;) {
			const u8 *record = ring->memory + 2 * page + (at & (ring->bytes - 1));
			const struct xroce_record *r = (const void *)(record + BPF_RINGBUF_HDR_SZ);
			u32 len;

			memcpy(&len, record, sizeof(len));
			REQUIRE(!(len & BPF_RINGBUF_BUSY_BIT));
			REQUIRE(len & BPF_RINGBUF_DISCARD_BIT || r->len <= len - sizeof(*r));
			REQUIRE(r->kind == (k ? XROCE_RECORD_DROPPED : XROCE_RECORD_RECEIVED));
			at += (BPF_RINGBUF_HDR_SZ + (len & ~BPF_RINGBUF_DISCARD_BIT) + 7) & ~7ul;
			REQUIRE(ring->at - at <= ring->bytes);
		}
		memcpy(ring->memory, &at, sizeof(at));
	}
}

/* ---- datagrams ---- */

/* Leaves no addressable byte after the datagram. */
static void show_payload(u8 *payload, u32 len)
{
	ASAN_UNPOISON_MEMORY_REGION(payload, PAYLOAD_MAX);
	memcpy(payload, now_data, len);
	ASAN_POISON_MEMORY_REGION(payload + len, PAYLOAD_MAX - len);
}

static struct cmsghdr *put_control(struct cmsghdr *c, int level, int type, int value, bool is_byte)
{
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = is_byte ? CMSG_LEN(1) : CMSG_LEN(sizeof(value));
	if (is_byte)
		*CMSG_DATA(c) = (u8)value;
	else
		memcpy(CMSG_DATA(c), &value, sizeof(value));
	return (struct cmsghdr *)((u8 *)c + CMSG_ALIGN(c->cmsg_len));
}

static void put_controls(struct msghdr *m)
{
	const struct shape *s = now_shape;
	const bool is_ipv6 = s->flags & IS_IPV6, is_byte = s->flags & HAS_BYTES;
	const int level = is_ipv6 ? IPPROTO_IPV6 : IPPROTO_IP;
	struct cmsghdr *c = m->msg_control;

	if (s->segment)
		c = put_control(c, IPPROTO_UDP, UDP_GRO, s->segment, false);
	c = put_control(c, level, is_ipv6 ? IPV6_TCLASS : IP_TOS, s->tos, is_byte);
	c = put_control(c, level, is_ipv6 ? IPV6_HOPLIMIT : IP_TTL, s->ttl, is_byte);
	m->msg_controllen = (size_t)((u8 *)c - (u8 *)m->msg_control);
}

/* Returns the source address of the datagram. */
static struct gid source_gid(const struct shape *s)
{
	struct gid gid = s->flags & IS_IPV6 ? peer_v6 : peer_v4;

	if (s->source)
		put16(gid.raw + 14, s->source);
	return gid;
}

static void put_sender(struct sockaddr_in6 *from)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)from;
	const struct gid gid = source_gid(now_shape);

	from->sin6_family = now_shape->flags & IS_IPV6 ? AF_INET6 : AF_INET;
	from->sin6_port = htons(now_shape->sport);
	if (now_shape->flags & IS_IPV6)
		memcpy(&from->sin6_addr, gid.raw, sizeof(from->sin6_addr));
	else
		memcpy(&v4->sin_addr, gid.raw + 12, sizeof(v4->sin_addr));
}

static int fuzz_recvmmsg(struct mmsghdr *msg, unsigned int num)
{
	struct msghdr *m = &msg->msg_hdr;

	REQUIRE(num == DATAGRAMS && m->msg_iovlen == 1 && m->msg_iov->iov_len == PAYLOAD_MAX);
	show_payload(m->msg_iov->iov_base, now_len);
	put_controls(m);
	put_sender(m->msg_name);
	m->msg_flags = now_shape->flags & IS_TRUNCATED ? MSG_TRUNC : 0;
	msg->msg_len = now_len;
	return 1;
}

/* Returns the bytes of each packet but the last. */
static u32 each_bytes(const struct shape *s)
{
	return s->segment > 0 && (u32)s->segment < now_len ? (u32)s->segment : now_len;
}

static void pass_one_by_one(struct side *s)
{
	static u8 memory[HOST_HEADROOM + PAYLOAD_MAX] __attribute__((aligned(64)));
	const u32 bytes = each_bytes(now_shape);
	u8 *payload = memory + HOST_HEADROOM;

	for (u32 at = 0; at < now_len; at += bytes) {
		const u32 len = min_u32(bytes, now_len - at);
		struct host_datagram d = { .payload = payload,
					   .len = len,
					   .src = source_gid(now_shape),
					   .dst = address.gid,
					   .sport = now_shape->sport,
					   .tos = now_shape->tos,
					   .ttl = now_shape->ttl };

		memcpy(payload, now_data + at, len);
		host_receive_datagram(s->host, &d);
	}
	host_wake(s->host);
}

/* ---- comparison ---- */

/* The packets of one client or, as client CLIENTS, of the broker. */
static u32 found_by(const struct side *s, u32 client, u32 from)
{
	while (from < s->num && s->found[from].client != client)
		from++;
	return from;
}

static void compare(u32 client)
{
	u32 i = 0, j = 0;

	for (;; i++, j++) {
		i = found_by(&joined, client, i);
		j = found_by(&single, client, j);
		REQUIRE((i < joined.num) == (j < single.num));
		if (i == joined.num)
			return;
		REQUIRE(!memcmp(&joined.found[i], &single.found[j], sizeof(struct found)));
	}
}

/* The packets received by a client that its tracer got, or had no room for. */
static u64 traced_of(const struct host_client *c)
{
	return c->trace->tracer[0].recorded + c->trace->tracer[0].lost;
}

static void compare_counts(void)
{
	const struct host *a = joined.host, *b = single.host;

	REQUIRE(!memcmp(&a->drops, &b->drops, sizeof(a->drops)));
	REQUIRE(!memcmp(&a->stats, &b->stats, sizeof(a->stats)));
	for (u32 i = 0; i < CLIENTS; i++) {
		const struct host_client *c = joined.client[i], *d = single.client[i];

		REQUIRE(!memcmp(c->drops, d->drops, sizeof(*c->drops)));
		REQUIRE(!memcmp(c->stats, d->stats, sizeof(*c->stats)));
		REQUIRE(traced_of(c) == traced_of(d));
	}
}

/* ---- inputs ---- */

static void fix_packet(u8 *bth, u32 len, const struct fuzz_qp *qp)
{
	if (len < sizeof(struct bth))
		return;
	put16(bth + 2, PKEY);
	bth[5] = (u8)(qp->qpn >> 16);
	put16(bth + 6, qp->qpn);
	if (qp->transport == XROCE_UD && len >= sizeof(struct bth) + 4)
		memset(bth + sizeof(struct bth), QKEY & 0xff, 4);
}

static void fix(u8 *data, const struct shape *s)
{
	const u32 bytes = each_bytes(s);

	for (u32 at = 0, i = s->qp; at < now_len && s->flags & FIX_QPN; at += bytes) {
		fix_packet(data + at, min_u32(bytes, now_len - at), &qps[i % ARRAY_SIZE(qps)]);
		if (!(s->flags & FIX_ALIKE))
			i++;
	}
}

static const struct gid *destination(u8 flags)
{
	if (flags & IS_TO_GROUP)
		return flags & IS_IPV6 ? &group_v6 : &group_v4;
	if (flags & IS_TO_OTHER)
		return flags & IS_IPV6 ? &other_v6 : &other_v4;
	return flags & IS_IPV6 ? &own_v6 : &own_v4;
}

/* Returns a QP that takes the packet. */
static u8 qp_for(u8 opcode)
{
	u8 i = 0;

	while (i < ARRAY_SIZE(qps) - 1 && qps[i].transport != OPCODE_TRANSPORT(opcode))
		i++;
	return i;
}

/* The packet count times in a row; the last is `cut` bytes shorter. */
static void seed(const char *name, size_t number, struct shape shape, const u8 *bth, u32 len,
		 u32 count, u32 cut)
{
	static u8 data[PAYLOAD_MAX];

	for (u32 i = 0; i < count; i++)
		memcpy(data + i * len, bth, len);
	shape.segment = count > 1 ? (s32)len : 0;
	fuzz_seed(name, number, &shape, sizeof(shape), data, count * len - cut);
}

static void write_seeds(const struct golden *golden)
{
	for (size_t i = 0; i < golden->count; i++) {
		const struct golden_packet *p = &golden->packets[i];
		const bool is_ipv6 = golden_is_ipv6(p);
		const u32 headers = is_ipv6 ? 62 : 42, len = p->len - headers;
		const u8 *bth = p->frame + headers;
		const bool is_mad = get16(bth + 6) == XROCE_CM_QPN;
		struct shape s = { .flags = (is_ipv6 ? IS_IPV6 : 0) | (is_mad ? 0 : FIX_QPN),
				   .ttl = 64,
				   .qp = qp_for(bth[0]),
				   .sport = 0xc123 };

		seed("one", i, s, bth, len, 1, 0);
		s.flags |= i % 2 ? FIX_ALIKE : HAS_BYTES;
		seed("equal", i, s, bth, len, 5, i % 3 ? 0 : 4);
		s.flags |= FIX_ALIKE;
		if (i % 8 == 4 && len < 200)
			seed("many", i, s, bth, len, 2 * XROCE_SEGMENTS_MAX + 9, 0);
		if (i % 8 == 0) {
			s.flags |= IS_TO_GROUP;
			seed("group", i, s, bth, len, 3, 0);
		}
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct golden golden;

	if (!fuzz_seed_dir()) {
		side_make(&joined);
		side_make(&single);
		receive.host = joined.host;
		receive.buffers = aligned_zero(sizeof(*receive.buffers));
		REQUIRE(receive.buffers);
		return 0;
	}
	if (golden_load(&golden))
		exit(1);
	write_seeds(&golden);
	golden_free(&golden);
	exit(0);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct shape shape;
	u32 each, packets;
	u8 *copy;

	if (size <= sizeof(shape) || size - sizeof(shape) > UDP_MAX)
		return 0;
	memcpy(&shape, data, sizeof(shape));
	now_len = (u32)(size - sizeof(shape));
	each = each_bytes(&shape);
	packets = (now_len + each - 1) / each;
	/* each client of a group finds all of them */
	if (packets > FOUND_MAX / CLIENTS)
		return 0;
	copy = malloc(now_len);
	REQUIRE(copy);
	memcpy(copy, data + sizeof(shape), now_len);
	fix(copy, &shape);
	now_shape = &shape;
	now_data = copy;
	address.gid = *destination(shape.flags);
	inputs = 0;
	side_begin(&joined, &shape);
	side_begin(&single, &shape);
	REQUIRE(!host_take(&receive, &address));
	host_wake(joined.host);
	if (!(shape.flags & IS_TRUNCATED))
		pass_one_by_one(&single);
	for (u32 i = 0; i < CLIENTS; i++) {
		read_ring(&joined, i);
		read_ring(&single, i);
		read_tracers(&joined, i);
		read_tracers(&single, i);
	}
	for (u32 i = 0; i <= CLIENTS; i++)
		compare(i);
	REQUIRE(inputs <= packets);
	if (inputs == packets)
		compare_counts();
	free(copy);
	return 0;
}
