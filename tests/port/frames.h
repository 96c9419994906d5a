/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames to send, and the received frames, where packets arrive with a struct virtio_net_hdr in
 * front: single frames and super-packets, which are cut and checked as a receiver does.
 */
#ifndef PORT_TEST_FRAMES_H
#define PORT_TEST_FRAMES_H

#include <linux/virtio_net.h>
#include <sys/socket.h>

#include "../unit/packets.h"

#include "../../user/engine/gso.h"

#define FRAMES 120
#define UDP_L4 5 /* VIRTIO_NET_HDR_GSO_UDP_L4 */

static u64 seed;
static int far_end;
static u8 buf[FRAMES][PACKET_FRAME_MAX];
static struct gso_frame frame[FRAMES];
static u8 arrived[1 << 17]; /* the last received frame */

static inline void make_of(u32 i, const struct path *path, u32 payload_len,
			   enum xroce_transport transport)
{
	const u8 middle = transport == XROCE_UD ? OP5_SEND_ONLY : OP5_SEND_MIDDLE;
	struct packet p = random_packet(&seed, OPCODE(transport, middle));
	u8 *payload;

	p.dest_qpn = 0x123456;
	p.pkey = 0xffff;
	p.payload_len = payload_len;
	p.psn = i;
	p.ip_id = 0;
	p.qkey = 0x11111111;
	payload = packet_put_headers(buf[i], path, &p);
	fill_random(&seed, payload, payload_len);
	frame[i] = (struct gso_frame){ buf[i], packet_seal(buf[i], payload, payload_len) };
}

static inline void make(u32 i, const struct path *path, u32 payload_len)
{
	make_of(i, path, payload_len, XROCE_RC);
}

/* The packet that this is, by its PSN: a right one. */
static inline u32 number_of(const u8 *bytes, u32 len)
{
	const struct rx_frame f = { .data = bytes, .len = len };
	struct packet p;

	assert_int_equal(packet_parse(&p, &f), 0);
	assert_true(packet_icrc_ok(&p));
	return p.psn;
}

/*
 * Receives: frames first, first + 1 and so on. Returns how many there are in one packet; 0: no
 * packet.
 */
static inline u32 receive(u32 first)
{
	static u8 one[PACKET_FRAME_MAX];
	struct virtio_net_hdr vnet;
	ssize_t n = recv(far_end, arrived, sizeof(arrived), MSG_DONTWAIT);
	u8 *whole = arrived + sizeof(vnet);
	u32 len = (u32)n - sizeof(vnet), at = GSO_HEADER_BYTES, count = 0;

	if (n < 0)
		return 0;
	memcpy(&vnet, arrived, sizeof(vnet));
	if (vnet.gso_type == VIRTIO_NET_HDR_GSO_NONE) {
		assert_int_equal(vnet.flags, 0);
		assert_int_equal(number_of(whole, len), first);
		assert_int_equal(len, frame[first].len);
		return 1;
	}
	assert_int_equal(vnet.gso_type, UDP_L4);
	assert_int_equal(vnet.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
	/* the kernel's length of the linear part */
	assert_in_range(vnet.hdr_len, GSO_HEADER_BYTES, UINT16_MAX);
	assert_int_equal(vnet.csum_start, 34);
	assert_int_equal(vnet.csum_offset, 6);
	assert_int_equal(vnet.gso_size, frame[first].len - GSO_HEADER_BYTES);
	assert_int_equal(whole[18] << 8 | whole[19], vnet.gso_size);
	for (; at < len; at += vnet.gso_size, count++) {
		u32 payload = min_u32(vnet.gso_size, len - at);
		u32 id = vnet.gso_size + count;

		memcpy(one, whole, GSO_HEADER_BYTES);
		memcpy(one + GSO_HEADER_BYTES, whole + at, payload);
		one[16] = (u8)((28 + payload) >> 8);
		one[17] = (u8)(28 + payload);
		one[18] = (u8)(id >> 8);
		one[19] = (u8)id;
		one[38] = (u8)((8 + payload) >> 8);
		one[39] = (u8)(8 + payload);
		assert_int_equal(number_of(one, GSO_HEADER_BYTES + payload), first + count);
	}
	assert_true(count > 1);
	return count;
}

#endif
