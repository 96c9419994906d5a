/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends SEND_ONLY packets of RC or UD to a queue pair of another host, from any address: singly, or
 * several at a time as one Ethernet frame that looks like a UDP super-packet and is cut by its
 * receiver.
 *
 *	supers -i IFACE -D MAC -S FROM -T TO -q QPN [-Q QKEY] [-s SEGMENTS] [-l PAYLOAD]
 *		[-n FRAMES] [-r RATE] [-P PORT] [-w]
 *
 *	-Q QKEY	UD; else RC, which takes such a packet for a duplicate or for one from the future
 *	-w	the first packet's ICRC is wrong, the others' are right
 *	-P PORT	the UDP source port, by which frames may be spread over queues
 *	-r RATE	RATE frames a second; default: full speed
 *
 * Prints how many packets it sent in how many frames.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../user/engine/gso.h"
#include "lib/ctl.h"
#include "lib/wire.h"

#define PSN 0x4d2

static struct {
	const char *ifname;
	struct path path;
	struct packet packet;
	u32 segments;
	unsigned long frames, rate;
	bool wrong;
} options = { .segments = 1,
	      .frames = 1,
	      .packet = { .pkey = 0xffff, .payload_len = 64, .psn = PSN } };

static void get_gid(struct gid *gid, const char *text)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	must(inet_pton(AF_INET, text, gid->raw + 12) == 1, "'%s' is no IPv4 address", text);
}

static void get_options(int argc, char **argv)
{
	u8 *mac = options.path.dmac;
	bool ud = false;
	int c;

	options.path.udp_sport = ROCE_UDP_SPORT_MIN;
	while ((c = getopt(argc, argv, "i:D:S:T:q:Q:s:l:n:r:P:w")) != -1) {
		switch (c) {
		case 'i': options.ifname = optarg; break;
		case 'D':
			must(sscanf(optarg, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2,
				    mac + 3, mac + 4, mac + 5) == 6,
			     "-D %s", optarg);
			break;
		case 'S': get_gid(&options.path.local, optarg); break;
		case 'T': get_gid(&options.path.peer, optarg); break;
		case 'q': options.packet.dest_qpn = (u32)strtoul(optarg, NULL, 0); break;
		case 'Q':
			ud = true;
			options.packet.qkey = (u32)strtoul(optarg, NULL, 0);
			break;
		case 's': options.segments = (u32)strtoul(optarg, NULL, 0); break;
		case 'l': options.packet.payload_len = (u32)strtoul(optarg, NULL, 0); break;
		case 'n': options.frames = strtoul(optarg, NULL, 0); break;
		case 'r': options.rate = strtoul(optarg, NULL, 0); break;
		case 'P': options.path.udp_sport = (u16)strtoul(optarg, NULL, 0); break;
		case 'w': options.wrong = true; break;
		default: die("see the head of supers.c");
		}
	}
	must(options.ifname && options.packet.dest_qpn && options.segments >= 1 &&
		     options.segments <= GSO_SEGMENTS_MAX &&
		     options.packet.payload_len <= ROCE_PMTU_MAX,
	     "supers -i IFACE -D MAC -S FROM -T TO -q QPN; up to %u segments", GSO_SEGMENTS_MAX);
	options.packet.opcode = OPCODE(ud ? XROCE_UD : XROCE_RC, OP5_SEND_ONLY);
	options.path.hop_limit = 64;
}

/* The frame's length. */
static u32 build(u8 *whole)
{
	static u8 bytes[GSO_SEGMENTS_MAX][PACKET_FRAME_MAX];
	static struct gso_frame frame[GSO_SEGMENTS_MAX];
	static struct gso_ids ids;
	u8 header[GSO_HEADER_BYTES];
	u32 len = GSO_HEADER_BYTES;

	for (u32 i = 0; i < options.segments; i++) {
		u8 *payload = packet_put_headers(bytes[i], &options.path, &options.packet);

		memset(payload, (int)i, options.packet.payload_len);
		frame[i] = (struct gso_frame){ bytes[i], packet_seal(bytes[i], payload,
								     options.packet.payload_len) };
	}
	if (options.segments > 1)
		gso_join(&ids, frame, options.segments, header);
	else
		memcpy(header, bytes[0], sizeof(header));
	if (options.wrong)
		frame[0].bytes[frame[0].len - 1] ^= 1;
	memcpy(whole, header, sizeof(header));
	for (u32 i = 0; i < options.segments; i++) {
		must(len + frame[i].len <= WIRE_FRAME_MAX, "too long for a frame");
		memcpy(whole + len, bytes[i] + GSO_HEADER_BYTES, frame[i].len - GSO_HEADER_BYTES);
		len += frame[i].len - GSO_HEADER_BYTES;
	}
	return len;
}

/* Until the i-th is due. */
static void pace(const struct timespec *begin, unsigned long i)
{
	const unsigned long long ns = begin->tv_nsec + i * 1000000000ull / options.rate;
	const struct timespec due = { .tv_sec = begin->tv_sec + (time_t)(ns / 1000000000),
				      .tv_nsec = (long)(ns % 1000000000) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

int main(int argc, char **argv)
{
	static u8 whole[WIRE_FRAME_MAX];
	struct timespec begin;
	u32 len;
	int wire;

	get_options(argc, argv);
	wire = wire_open(options.ifname, false);
	len = build(whole);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (unsigned long i = 0; i < options.frames; i++) {
		if (options.rate && i % 32 == 0)
			pace(&begin, i);
		wire_send(wire, whole, len);
	}
	printf("sent %lu packets in %lu frames of %u bytes\n", options.frames * options.segments,
	       options.frames, len);
	return 0;
}
