/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shipped programs of the broker and of two clients, with their maps, connected as a broker
 * does it; for test_mux*.c and test_egress*.c. Each client has an RC and a UD QP.
 */
#ifndef TESTS_BPF_BROKER_H
#define TESTS_BPF_BROKER_H

#include "bench.h"
#include "xroce_broker.skel.h"

#define BROKER_CLIENTS	  2
#define BROKER_RING_BYTES (1u << 20)
/* numbers of client c's QPs */
#define BROKER_RC(c)	  (0x100u * ((c) + 1) + 1)
#define BROKER_UD(c)	  (0x100u * ((c) + 1) + 2)
#define BROKER_QKEY	  0x11111111u
/* in addition to the default one */
#define BROKER_PKEY	  0x8001
#define BROKER_PKEY_LIMITED 0x0002

struct broker_client {
	struct xroce_bpf *skel;
	struct ring_buffer *reader;
	/* since the last broker_read() */
	uint32_t records;
	uint32_t len;
	uint8_t frame[BENCH_BYTES];
};

struct broker {
	struct xroce_broker_bpf *skel;
	struct broker_client client[BROKER_CLIENTS];
};
extern struct broker *broker;

int broker_setup(void **state);
int broker_teardown(void **state);

/*
 * Everything as after broker_setup(): bench_local4 and bench_local6 are the interface's addresses
 * in the broker's map and the clients', the RC QPs are connected to peer, rings are empty.
 */
void broker_reset(const uint8_t peer[16]);

/* Into any map of these programs, and out of it: all elements, whose keys have up to 32 bytes. */
void broker_put(const struct bpf_map *map, const void *key, const void *value);
void broker_clear(const struct bpf_map *map);
void broker_put_qp(int client, uint32_t qpn, const struct xroce_qp *qp);
void broker_put_place(uint32_t place, uint32_t client, uint64_t serial);
void broker_put_owner(uint32_t qpn, int client); /* -1: none */
void broker_put_program(uint32_t client, bool present);

/* Takes all records of a client's ring: how many, and the last frame. */
void broker_read(int client);

/* The broker's own counters. */
struct bench_counts broker_count(void);
/* The maps of a client's program. */
struct bench_counts broker_count_of(int client);

#endif
