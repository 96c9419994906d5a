/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port's maps, and the XDP program that runs on them (program.c). User space reaches the maps by
 * the functions of user/os/kernel.h, which xdp.c has, and the arrays by their memory.
 */
#ifndef PORTSIM_XDP_H
#define PORTSIM_XDP_H

#include <stdbool.h>
#include <xroce/abi.h>

#include "../../user/os/xdp_maps.h"

enum xdp_map {
	MAP_QP, MAP_CQ, MAP_EXPECT, MAP_CHANNEL, MAP_ENGINE, MAP_VECTOR, MAP_GID, MAP_GROUP,
	MAP_DROP, MAP_RX, MAP_XSK
};
enum xdp_map xdp_map_named(const void *map);

struct record_ring;
struct packet_ring;
#define XDP_GIDS 8

/* shared: what the port maps and opens. The rest is the kernel's. */
struct port_maps {
	struct xdp_maps shared;
	int gid_fd, channel_fd;
	__u32 num_rings; /* of channels */
	__u8 gid[XDP_GIDS][16];
	__u32 num_gids;
	struct record_ring *channel[XROCE_MAX_CHANNEL];
	struct packet_ring *packets; /* of a port without sockets; NULL */
	/* the program's counters */
	struct xroce_rx_stats rx;
	struct xroce_drops drop;
};

struct port_maps *xdp_maps_new(void);
void xdp_maps_free(struct port_maps *m);

/* A packet before the program: at most len bytes, of which linear are in one piece. */
struct xdp_packet {
	const unsigned char *bytes;
	__u32 len, linear;
	/* the program's metadata in front of it */
	unsigned char meta[32];
	__u32 meta_len;
};
/* Returns true if the packet is redirected to a socket. cpu: 0 .. 15, which runs no other program
 * at that time. */
bool xdp_run(struct port_maps *m, struct xdp_packet *p, __u32 queue, __u32 cpu);

/* program.c: the constant that is set before the program is loaded. */
void xdp_set_shared(bool shared);
/* Of the program that the running actor is in. */
struct packet_ring *xdp_packets(void);

/* A ring buffer that was made by bpf_map_create(). */
struct record_ring *xdp_ring(int fd);

#endif
