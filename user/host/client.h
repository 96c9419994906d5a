/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory that a client of a broker with UDP sockets shares with it: the maps of
 * client/shared_maps.h, and rings like BPF's, each in a file (memfd_create(2)) that neither side
 * can resize. The client can write all of it at any time. Here values are read once, and positions
 * that decide where to write are kept in private memory.
 */
#ifndef HOST_CLIENT_H
#define HOST_CLIENT_H

#include <xroce/abi.h>
#include <xroce/trace.h>

#include "../os/ask.h"
#include "../os/xdp_maps.h"

/* Returns a descriptor that the file cannot be written by, or -1. Needs /proc. */
int host_file_read_only(int fd);

/*
 * A ring of records, and a pair of sockets: a message from wake_fd wakes the reader, which has
 * event_fd. An eventfd would not do: its reader could have the broker wait in write(2).
 */
struct host_ring {
	int fd, event_fd, wake_fd;
	u8 *memory;	     /* the consumer's page, the producer's, the data twice */
	u32 bytes;	     /* of the data, a power of two */
	unsigned long at;    /* the producer's position */
	bool wakes;	     /* host_ring_wake() has work */
};

#define HOST_RING_NONE                                                                             \
	{                                                                                          \
		.fd = -1, .event_fd = -1, .wake_fd = -1                                            \
	}

/*
 * Without `wakes` the reader polls, and the ring has no sockets. Returns 0 or -errno, with nothing
 * made.
 */
int host_ring_make(struct host_ring *r, const char *name, u32 bytes, bool wakes);
void host_ring_free(struct host_ring *r);
/*
 * Returns a record of `bytes`, in one piece, or NULL: there is no room. As in a BPF ring the reader
 * sees that it is reserved, with a full barrier after that.
 */
void *host_ring_reserve(struct host_ring *r, u32 bytes);
/* Publishes the record with its size in bytes, or has the reader skip it. */
void host_ring_submit(void *record, u32 bytes);
void host_ring_discard(void *record, u32 bytes);
/* Wakes the reader, if a record asked for that. */
void host_ring_wake(struct host_ring *r);

#define HOST_SHOWN (ASK_FDS + 2)

struct host_client {
	struct xdp_maps maps;	   /* descriptors are not used */
	int map_fd[ASK_FDS];	   /* of the maps; -1: none */
	struct host_ring rx, wake; /* wake: of the worker */
	/* counted by the program, in memory that the client does not get */
	struct xroce_drops *drops;
	struct xroce_rx_stats *stats;
	struct xroce_trace *trace;
	int trace_fd;		   /* of trace; -1: taken */
	struct host_ring *tracer[XROCE_TRACERS]; /* of slots in use; tracers own them */
	u32 num_shown;
	int shown_fd[HOST_SHOWN];  /* read-only descriptors of the maps, for observers */
};

/* Returns 0 or -errno. */
int host_client_make(u32 ring_bytes, struct host_client **out);
void host_client_free(struct host_client *c);
/* Closes the descriptors that only the client needs, which has got them. */
void host_client_given(struct host_client *c);
/* Lists the descriptors for the client in the order of enum ask_fd; they stay the broker's. */
void host_client_fds(const struct host_client *c, int fd[ASK_FDS]);

#endif
