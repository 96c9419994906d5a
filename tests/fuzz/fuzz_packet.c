/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=7 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer on the packet codec: any frame, split into two buffers at any place. In addition to the
 * sanitizers' checks, an accepted packet must add up, be independent of the split, and, built again
 * from its parsed fields, parse to the same.
 *
 *   fuzz_packet CORPUS_DIR
 *	with XROCE_SEED_DIR=dir first: writes the golden packets there as seeds and ends
 *
 * The first two bytes of an input say where the linear part ends; the rest is the frame.
 */
#include <string.h>

#include "../../user/engine/packet.h"
#include "fuzz.h"
#include "golden.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct golden golden;

	if (!fuzz_seed_dir())
		return 0;
	if (golden_load(&golden))
		exit(1);
	for (size_t i = 0; i < golden.count; i++)
		fuzz_seed("golden", i, "\xff\xff", 2, golden.packets[i].frame,
			  golden.packets[i].len);
	golden_free(&golden);
	exit(0);
}

/* Fields that packet_put_headers() writes and packet_parse() must return. */
static void rebuild(const struct packet *p, const u8 *payload)
{
	static u8 frame[PACKET_FRAME_MAX];
	struct path path = {
		.has_vlan = p->has_vlan,
		.vlan_tci = p->vlan_tci,
		.is_ipv6 = p->is_ipv6,
		.tos = p->tos,
		.hop_limit = p->hop_limit,
		.udp_sport = p->udp_sport,
		.local = p->src,
		.peer = p->dst,
	};
	struct rx_frame f = { .data = frame };
	u8 *at = packet_put_headers(frame, &path, p);
	struct packet q;

	REQUIRE((u32)(at - frame) == packet_header_bytes(&path, p->opcode));
	memcpy(at, payload, p->payload_len);
	f.len = packet_seal(frame, at, p->payload_len);
	REQUIRE(packet_parse(&q, &f) == 0);
	REQUIRE(packet_icrc_ok(&q));
	REQUIRE(memcmp(q.payload, payload, p->payload_len) == 0);
	/*
	 * from the first field to the last that both directions carry; padding bytes of the struct
	 * are not looked at
	 */
	REQUIRE(q.opcode == p->opcode && q.pad == p->pad && q.solicited == p->solicited &&
		q.migreq == p->migreq);
	REQUIRE(q.ackreq == p->ackreq && q.fecn == p->fecn && q.becn == p->becn &&
		q.pkey == p->pkey && q.flags == p->flags);
	REQUIRE(q.dest_qpn == p->dest_qpn && q.psn == p->psn && q.va == p->va &&
		q.rkey == p->rkey && q.dma_len == p->dma_len);
	REQUIRE(q.swap_add == p->swap_add && q.compare == p->compare && q.original == p->original);
	REQUIRE(q.syndrome == p->syndrome && q.msn == p->msn && q.qkey == p->qkey &&
		q.src_qpn == p->src_qpn && q.imm == p->imm);
	REQUIRE(q.inv_rkey == p->inv_rkey && q.xrc_srqn == p->xrc_srqn && q.flush == p->flush);
	REQUIRE(q.is_ipv6 == p->is_ipv6 && q.tos == p->tos && q.hop_limit == p->hop_limit &&
		q.ip_id == p->ip_id);
	REQUIRE(q.udp_sport == p->udp_sport && q.vlan_tci == p->vlan_tci &&
		q.has_vlan == p->has_vlan);
	REQUIRE(gid_equal(&q.src, &p->src) && gid_equal(&q.dst, &p->dst));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u8 payload[ROCE_PMTU_MAX], *first, *second;
	struct packet whole, split;
	bool accepted;
	size_t at;

	if (size < 2)
		return 0;
	at = data[0] << 8 | data[1];
	data += 2;
	size -= 2;
	if (at > size)
		at = size;
	accepted = packet_parse(&whole, &(struct rx_frame){ .data = data, .len = (u32)size }) == 0;

	/* each part in memory of exactly its size */
	first = malloc(at ? at : 1);
	second = malloc(size - at ? size - at : 1);
	REQUIRE(first && second);
	memcpy(first, data, at);
	memcpy(second, data + at, size - at);
	if (packet_parse(&split, &(struct rx_frame){ first, (u32)at, at < size ? second : NULL,
						     (u32)(size - at) }) == 0) {
		REQUIRE(accepted);
		REQUIRE(split.payload_len == whole.payload_len &&
			split.payload_len <= ROCE_PMTU_MAX);
		REQUIRE((u32)(split.end - split.payload) + split.frag_len ==
			split.payload_len + split.pad + ROCE_ICRC_BYTES);
		REQUIRE(packet_icrc_ok(&split) == packet_icrc_ok(&whole));
		packet_copy_payload(&split, 0, payload, split.payload_len);
		REQUIRE(memcmp(payload, whole.payload, whole.payload_len) == 0);
		rebuild(&split, payload);
	}
	free(first);
	free(second);
	return 0;
}
