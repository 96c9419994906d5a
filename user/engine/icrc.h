/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The invariant CRC of RoCEv2: CRC-32 (Ethernet's, reflected) over 8 bytes of ones, then the packet
 * from the IP header on, with the fields that routers change replaced by ones (protocol sheet,
 * "RoCEv2 encapsulation"). Computed with ISA-L.
 */
#ifndef ENGINE_ICRC_H
#define ENGINE_ICRC_H

#include "types.h"

/* A running ICRC: a value, copied freely. */
typedef u32 icrc_t;

/*
 * Returns the CRC of the masked headers from ip, the IP header, through the end of the BTH:
 * icrc_start_bytes().
 */
icrc_t icrc_start(const u8 *ip, bool is_ipv6);
/*
 * The same without the BTH's last four bytes (AckReq and PSN): the part that consecutive packets of
 * a QP share.
 */
icrc_t icrc_common(const u8 *ip, bool is_ipv6);
/*
 * The same up to len bytes from ip, len >= icrc_start_bytes(): faster than two steps for a short
 * packet.
 */
icrc_t icrc_packet(const u8 *ip, bool is_ipv6, size_t len);
/* Continues over len unmasked bytes: extension headers, payload, pad. */
icrc_t icrc_update(icrc_t crc, const void *data, size_t len);
/* Stores the value as in the packet: 4 bytes, little-endian. */
void icrc_store(icrc_t crc, u8 out[4]);
bool icrc_equal(icrc_t crc, const u8 stored[4]);
/* Returns the bits in which a computed value differs from the stored one; 0: none. */
static inline u32 icrc_difference(icrc_t crc, const u8 stored[4])
{
	u32 le;

	memcpy(&le, stored, sizeof(le));
	return le32toh(le) ^ crc;
}
/* Returns the bytes that icrc_start() covers: IP + UDP + BTH. */
static inline u32 icrc_start_bytes(bool is_ipv6)
{
	return (is_ipv6 ? 40 : 20) + 8 + 12;
}

/*
 * The same CRC over single words, in registers: a call of ISA-L takes 17 ns for less than 16 bytes,
 * and stalls on stores that are narrower than its loads. entry[k][b]: the effect of byte b on the
 * register when k bytes follow it.
 */
struct icrc_table {
	u32 entry[8][256];
};
void icrc_table_init(struct icrc_table *t);

/* Continues over four bytes, given as loaded from memory. */
static inline icrc_t icrc_word(const struct icrc_table *t, icrc_t crc, u32 word)
{
	u32 r = ~crc ^ le32toh(word);

	return ~(t->entry[3][r & 0xff] ^ t->entry[2][r >> 8 & 0xff] ^ t->entry[1][r >> 16 & 0xff] ^
		 t->entry[0][r >> 24]);
}

/* The same over two words, as in an ACK, without a dependency between them. */
static inline icrc_t icrc_two_words(const struct icrc_table *t, icrc_t crc, u32 word, u32 next)
{
	u32 r = ~crc ^ le32toh(word), s = le32toh(next);

	return ~(t->entry[7][r & 0xff] ^ t->entry[6][r >> 8 & 0xff] ^ t->entry[5][r >> 16 & 0xff] ^
		 t->entry[4][r >> 24] ^ t->entry[3][s & 0xff] ^ t->entry[2][s >> 8 & 0xff] ^
		 t->entry[1][s >> 16 & 0xff] ^ t->entry[0][s >> 24]);
}

/* Up to this many bytes, single words are faster than ISA-L. */
#define ICRC_WORDS_BYTES 16

/* Continues over len bytes, a multiple of 4. */
static inline icrc_t icrc_words(const struct icrc_table *t, icrc_t crc, const u8 *data, size_t len)
{
	const u8 *end = data + len;
	u32 word, next;

	if (len > ICRC_WORDS_BYTES) {
		crc = icrc_update(crc, data, len & ~(size_t)15);
		data += len & ~(size_t)15;
	}
	for (; end - data >= 8; data += 8) {
		memcpy(&word, data, sizeof(word));
		memcpy(&next, data + sizeof(word), sizeof(next));
		crc = icrc_two_words(t, crc, word, next);
	}
	if (data < end) {
		memcpy(&word, data, sizeof(word));
		crc = icrc_word(t, crc, word);
	}
	return crc;
}

/*
 * A CRC is linear: the effect of a changed IPv4 identification on the ICRC depends on the flipped
 * bits and the number of bytes that follow, not on the contents. UDP segmentation increments the
 * identification from segment to segment.
 */
#define ICRC_BEFORE_TAIL 6u /* bytes of an IPv4 packet up to the end of the identification */

struct icrc_id {
	u32 tail;	/* bytes from after the identification to the ICRC; 0 = not initialised */
	u32 bit[16];	/* ICRC bits that flip with each bit, by its value in host order */
};
/* For packets with that tail, up to ICRC_ID_TAIL_MAX. */
#define ICRC_ID_TAIL_MAX 8192u
void icrc_id_init(struct icrc_id *c, u32 tail);
/* The result of icrc_id_change() for a tail that is used once: two passes over tail bytes. */
u32 icrc_id_change_once(u32 tail, u16 flipped);

/* Returns the ICRC bits, in stored order, that flip when these bits of the identification flip. */
static inline u32 icrc_id_change(const struct icrc_id *c, u16 flipped)
{
	u32 change = 0;

	for (; flipped; flipped &= (u16)(flipped - 1))
		change ^= c->bit[__builtin_ctz(flipped)];
	return htole32(change);
}

/*
 * A UDP socket shows neither the IPv4 identification nor the flag "don't fragment" of a packet, and
 * the ICRC covers both. It is computed with identification 0 and the flag set. As it is linear, the
 * difference from the stored value tells the real fields, or that the packet is corrupt: 2^17
 * differences of 2^32 are explained by these fields.
 */
#define ICRC_UNKNOWN_BITS 17u
/*
 * Low identifications, with the flag, come from senders like ours: 0; in the segments of a
 * super-packet 0, 1, 2 and so on, or these and the length of a segment (gso.h).
 */
#define ICRC_LOW_BITS	  13u
#define ICRC_LOW_IDS	  (1u << ICRC_LOW_BITS)

/* The differences for packets with one tail, as struct icrc_id, reduced to echelon form. */
struct icrc_unknown {
	u32 tail;			 /* 0 = not initialised */
	/* in falling order; their highest bits differ */
	u32 row[ICRC_UNKNOWN_BITS];
	u32 made_of[ICRC_UNKNOWN_BITS];	 /* bits of the identification, and the flag as bit 16 */
	u32 low[ICRC_LOW_BITS];		 /* of the low identifications, with the flag set */
};
/* For tails up to ICRC_ID_TAIL_MAX, 2 at least. */
void icrc_unknown_init(struct icrc_unknown *u, u32 tail);

/* Returns whether some identification and flag explain a difference of icrc_difference(). */
static inline bool icrc_unknown_explains(const struct icrc_unknown *u, u32 difference)
{
	for (u32 i = 0; i < ICRC_UNKNOWN_BITS; i++)
		if ((difference ^ u->row[i]) < difference)
			difference ^= u->row[i];
	return !difference;
}

/*
 * Finds the identification that explains the difference, and whether the flag is not set. Returns
 * false if there is none.
 */
bool icrc_unknown_solve(const struct icrc_unknown *u, u32 difference, u16 *id, bool *may_fragment);

/* Returns whether a low identification, with the flag set, explains it. */
static inline bool icrc_unknown_is_low(const struct icrc_unknown *u, u32 difference)
{
	for (u32 i = 0; i < ICRC_LOW_BITS; i++)
		if ((difference ^ u->low[i]) < difference)
			difference ^= u->low[i];
	return !difference;
}

/*
 * Knowledge about the identifications of one peer's packets. xroce sends 0, or a low one in a
 * super-packet. A counter or a random number, as of rdma_rxe, is practically never 0 in four
 * packets without a high one between them. After four such packets only low identifications are
 * accepted.
 */
struct icrc_peer {
	u32 psn;	  /* of the QP when the last packet was checked */
	u32 refused;	  /* the last refused difference that fields explain */
	u8 zeroes;	  /* with identification 0 since a high one; ICRC_PEER_ZEROES: known */
	u8 refusals;	  /* of different differences at this psn */
	bool is_other;	  /* uses high identifications after all: any is accepted */
};
#define ICRC_PEER_ZEROES   4u
#define ICRC_PEER_REFUSALS 4u

/*
 * Returns whether a packet of the peer with this difference is accepted. psn is the PSN up to which
 * the QP has packets of this kind. The packet counts only if psn moved since the one before, so
 * that a stranger's packets do not make the peer known: a genuine packet with a high identification
 * resets the count. If psn does not move while different high identifications are refused, the peer
 * has begun to use them, and they are accepted.
 */
bool icrc_peer_accepts(struct icrc_peer *peer, const struct icrc_unknown *u, u32 psn,
		       u32 difference);

/* Applies a change to the stored ICRC of a packet. */
static inline void icrc_flip(u8 stored[4], u32 change)
{
	u32 icrc;

	memcpy(&icrc, stored, sizeof(icrc));
	icrc ^= change;
	memcpy(stored, &icrc, sizeof(icrc));
}

#endif
