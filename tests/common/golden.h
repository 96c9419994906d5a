/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The golden captures of tests/golden: every packet of every file with its line of decode.txt.
 * Reads files only; never decodes a packet itself, so that what a test expects comes from
 * decode.txt and from nowhere else.
 */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct golden_packet {
	const char *file;      /* "v4-rc-send-imm.pcap" */
	uint32_t index;	       /* in that file, from 0 */
	const uint8_t *frame;  /* from the Ethernet header on, ICRC included */
	uint32_t len;
	/*
	 * its line of decode.txt without file name and index: "v4 tos=00 ... | RC.SEND_ONLY se=0
	 * ... ok"
	 */
	const char *decode;
};

struct golden {
	struct golden_packet *packets; /* in the order of decode.txt */
	size_t count;
	void *store[64];	       /* the files' bytes, which the packets point into */
	size_t stores;
};

/*
 * Load all captures of XROCE_GOLDEN_DIR. Returns 0, or -1 after a line on standard error when a
 * file cannot be read, is no pcap, or when decode.txt and the captures do not name the same
 * packets.
 */
int golden_load(struct golden *g);
void golden_free(struct golden *g);

/*
 * The number after "name=" in the decode line, read in the given base: hexadecimal for tos, id,
 * frag, ipck, uck, w0, pkey, qp, psn, qkey, src, imm, ieth, va, rkey, syn, orig, swap/add, cmp,
 * icrc; decimal for ttl, hop, sp, ulen, se, m, pad, tv, a, len, msn, data. Returns false, leaving
 * *value alone, when the packet has no such field.
 */
bool golden_field(const struct golden_packet *p, const char *name, int base, uint64_t *value);

/* The BTH opcode that the decode line names; -1 for a name that is not in the protocol sheet. */
int golden_opcode(const struct golden_packet *p);

bool golden_is_ipv6(const struct golden_packet *p);

#endif
