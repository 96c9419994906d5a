/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Builds frames for tests byte by byte, independent of the code under test: there is no opcode
 * table, and the caller chooses the extension headers. Lengths and the IPv4 checksum are right; the
 * ICRC is four arbitrary bytes. Tests then corrupt any part.
 */
#ifndef TESTS_FRAME_H
#define TESTS_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define FRAME_MAX      5000
#define FRAME_EXT_MAX  64
#define FRAME_TAGS_MAX 3

struct frame_spec {
	unsigned int tags;	/* VLAN tags, outermost first */
	uint16_t tag_proto[FRAME_TAGS_MAX];
	uint16_t tag_tci[FRAME_TAGS_MAX];
	bool ipv6;
	uint8_t src[16], dst[16]; /* GIDs; IPv4 takes the last four bytes */
	uint8_t tos;
	uint8_t option_bytes;	/* IPv4 options, a multiple of 4 */
	uint8_t protocol;	/* 0: UDP */
	uint16_t sport;
	uint16_t dport;		/* 0: 4791 */
	uint8_t opcode;
	uint8_t bth_flags;	/* solicited, MigReq, TVer; the pad count is added */
	uint16_t pkey;
	uint32_t ecn_qpn;	/* BTH bytes 4..7 */
	uint32_t ack_psn;	/* BTH bytes 8..11 */
	uint8_t ext[FRAME_EXT_MAX];
	uint32_t ext_len;
	uint32_t payload_len;	/* without pad */
};

struct frame {
	uint8_t bytes[FRAME_MAX];
	uint32_t len;
	uint32_t l3, l4, bth, ext, payload; /* offsets */
};

void frame_build(struct frame *f, const struct frame_spec *spec);

/* Rewrites the IP and UDP lengths (and the IPv4 checksum), as if the packet ended at f->len. */
void frame_fix_lengths(struct frame *f);

void frame_put16(uint8_t *p, uint16_t v);
void frame_put32(uint8_t *p, uint32_t v);
uint16_t frame_get16(const uint8_t *p);
uint32_t frame_get32(const uint8_t *p);

#endif
