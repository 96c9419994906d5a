/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of the faked kernel, shared by faked.c, faked_mux.c and faked_instance.c. */
#ifndef BROKERSIM_FAKED_H
#define BROKERSIM_FAKED_H

#include "sim.h"

#define WAITING_MAX   16
#define TAPS_MAX      4096
#define SOLE_TAPS_MAX 32 /* devices of sole clients that exist at the same time */
#define PROGRAMS_MAX  64 /* programs with sockets in a run */
#define FAKED_GROUPS  4
#define SERVICES      64

enum tap_state {
	TAP_NONE, /* not made, or deleted by the broker */
	TAP_THERE,
	TAP_GONE, /* deleted by the kernel, as its last descriptor was closed */
};

struct faked {
	struct broker *broker;
	u32 generation;
	struct {
		u32 client, pid;
	} owner[NUMBERS * GENERATIONS];
	u32 owner_end; /* no later one has been written in this run */
	bool program[XROCE_MAX_CLIENT];
	u32 programs;
	struct {
		struct gid address;
		struct xroce_members members; /* num 0: unused */
	} group[FAKED_GROUPS];
	u32 place[PLACES]; /* the client; ~0u: unused */
	u32 places;	   /* that are used */
	struct faked_service {
		struct xroce_service_key key;
		u32 place; /* 0: unused */
	} service[SERVICES];
	u32 hook;	   /* the program on the interface: HOOK_EMPTY, HOOK_MUX, or its prog_id */
	u32 sole_programs; /* made in this run; their prog_id is 1 to this number */
	/* the listening socket: connections not accepted yet */
	int door_fd; /* -1: no listener */
	struct visitor waiting[WAITING_MAX];
	u32 num_waiting;
	bool wanted; /* a process found no listener */
	u32 told;    /* dead peers */
	u32 instances;
	u32 taps;
	enum tap_state tap[TAPS_MAX];
	u32 sender[TAPS_MAX]; /* whose frames are admitted from the device: client + 1; 0: none */
	/* devices of sole clients: pipes, of which this is the reading end; 0: unused */
	struct {
		u32 tap;
		int fd;
	} sole_tap[SOLE_TAPS_MAX];
	enum fault fault;
	u32 nth;
};
extern struct faked faked;

/* Returns whether the call fails, and counts it. */
bool faked_fails(enum fault fault);
/* Makes a step, in runs with sole clients only. */
void faked_step(void);

/* ---- faked_mux.c, faked_instance.c ---- */

/* Returns the descriptor of a program with sockets. */
int faked_prog_fd(const struct xroce_bpf *bpf);
void faked_lose_mux(void);
void faked_lose_instances(void);
/* Closes the pipes of devices whose last descriptor was closed. */
void faked_sweep_taps(void);

#endif
