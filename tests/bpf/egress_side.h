/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two clients' TAP devices, a hairpin and an interface with its wire, with the broker's programs on
 * them as a broker puts them there; for test_egress*.c. Frames are written as a client writes them.
 */
#ifndef TESTS_BPF_EGRESS_SIDE_H
#define TESTS_BPF_EGRESS_SIDE_H

#include <linux/virtio_net.h>

#include "broker.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

#define EGRESS_IP_AT	      14 /* where it is in all frames that are not refused */
#define EGRESS_UDP_AT	      34 /* after an IPv4 header */
#define EGRESS_MTU	      4200
#define EGRESS_WAIT_MS	      10000
#define EGRESS_PKEY_OF_NOBODY (BROKER_PKEY ^ 3)
#define EGRESS_ME	      0 /* the client that sends */
#define EGRESS_OTHER	      1
#define EGRESS_PRIVILEGED     EGRESS_OTHER

struct egress {
	int tap[BROKER_CLIENTS], hairpin_fd, wire;
	uint32_t ifindex[BROKER_CLIENTS], hairpin;
};
extern struct egress egress;
extern const struct virtio_net_hdr egress_plain; /* requests nothing from the kernel */
extern const uint8_t egress_peer_mac[6];

/* In its own network namespace. */
int egress_setup(void **state);
int egress_teardown(void **state);
/* broker_reset(), both clients known, nothing left on the wire. */
void egress_reset(void);

void egress_shell(const char *command); /* fails the test if the command does */
void egress_put_tap(int client);
void egress_put_alive(bool alive); /* whether there is a broker */

struct egress_counts {
	union {
		struct xroce_refused refused;
		uint64_t of[XROCE_EGRESS_COUNT];
	};
	struct xroce_tap tap;
};
struct egress_counts egress_count(int client);
const char *egress_reason_name(int reason);
/*
 * What moved since before: the counter of the one reason, or of none, and with that frames to the
 * wire or round.
 */
void egress_check_counts(const char *what, int client, const struct egress_counts *before,
			 int reason, uint32_t frames, uint32_t hairpin, uint32_t bytes);

/* Writes a frame as a client; false: the kernel refused it, with errno. */
bool egress_sent(int client, const struct virtio_net_hdr *vnet, const uint8_t *bytes, uint32_t len);
/* Fails unless this frame is the next to come out, to that MAC. */
void egress_check_out(const char *what, const uint8_t mac[6], const uint8_t *bytes, uint32_t len);
/* Fails if one comes out. */
void egress_check_nothing_out(const char *what);

/* Sends the frame: refused, on the interface, or at a QP of client `to`, with right counters. */
void egress_expect_refused(int client, const char *what, enum xroce_egress_reason reason,
			   const struct virtio_net_hdr *vnet, const uint8_t *bytes, uint32_t len);
void egress_expect_wire(int client, const char *what, const struct virtio_net_hdr *vnet,
			const uint8_t *bytes, uint32_t len);
void egress_expect_round(const char *what, int to, const struct virtio_net_hdr *vnet,
			 const uint8_t *bytes, uint32_t len);

/* From this interface's address to the peer's, an RC SEND_ONLY; the same over IPv6, of UD. */
struct frame_spec egress_spec(void);
void egress_ipv6(struct frame_spec *s);
void egress_ud(struct frame_spec *s);

#endif
