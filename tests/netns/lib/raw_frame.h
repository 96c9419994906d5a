/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames drawn at random, with what a flow or a hash may ask of them, as they were made and not as
 * anything parsed them. Numbers are in host order.
 */
#ifndef NETNS_RAW_FRAME_H
#define NETNS_RAW_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define FRAME_BYTES 512
/* of frames that mark the end of all frames before them */
#define FRAME_TYPE_LAST	     0x88b6
#define FRAME_TYPE_LAST_COPY 0x88b7

struct frame_fields {
	uint8_t dst_mac[6], src_mac[6];
	uint16_t ether_type, vlan_tag;
	bool is_tagged, is_ipv4, is_ipv6, is_fragment, has_ports, is_esp, is_mpls;
	uint32_t src4, dst4;
	uint8_t src6[16], dst6[16];
	uint32_t flow_label;
	uint8_t proto, tos, ttl;
	uint8_t ip_flags; /* 2: DF, 4: MF, as the kernel's enum ib_ipv4_flags */
	uint16_t sport, dport;
	uint32_t spi, seq, mpls;
};

struct frame {
	struct frame_fields f;
	uint32_t len;
	uint8_t bytes[FRAME_BYTES];
};

/* xorshift64*, from a seed that is not 0 */
extern uint64_t frame_seed;
uint32_t draw(uint32_t below);

/*
 * A frame with that number at its end. Its fields are of few values, so that flows drawn by
 * draw_fields() take it often; any_fields: addresses and ports may be any.
 */
void frame_make(struct frame *frame, uint32_t number, bool any_fields);
/* Draws a frame's fields: all have values, whatever the frame's type. */
void draw_fields(struct frame_fields *f, bool any);
/* Appends the number to a frame that was made otherwise. */
void frame_put_number(struct frame *frame, uint32_t number);
/* Makes a frame of that EtherType that ends a round. */
void frame_make_last(struct frame *frame, uint16_t type, uint32_t number);
/* False: it is no frame of ours. */
bool frame_number(const uint8_t *bytes, uint32_t len, uint32_t *number);

#endif
