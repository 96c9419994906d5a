/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce bench: latency and bandwidth between two hosts, by our verbs and, on the same path, by UDP
 * and TCP. A client asks a server for one test after another over a TCP connection; each test has
 * its own queue pairs or sockets. Rounds are interleaved: each round runs every way and size once,
 * so that other load on a machine affects all of them alike.
 */
#ifndef BENCH_H
#define BENCH_H

#include "args.h"
#include "histogram.h"
#include "verbs.h"

#define BENCH_PORT	 18620
#define BENCH_MOST_SIZES 32u
#define BENCH_MOST_ROUNDS 100u
#define BENCH_LEAST_SIZE 16u /* size of a datagram's header */
#define BENCH_MOST_SIZE	 (8u << 20)
#define BENCH_MOST_DEPTH 128u
#define BENCH_MOST_NS	 (60 * NSEC_PER_SEC)
/* Time after which an unanswered datagram counts as lost. */
#define BENCH_LOST_NS	 (100 * NSEC_PER_MSEC)

/* X(NAME, word, text) */
#define BENCH_WAYS(X)                                          \
	X(SEND, "send", "RC SEND")                             \
	X(WRITE, "write", "RC RDMA WRITE")                     \
	X(READ, "read", "RC RDMA READ")                        \
	X(UD, "ud", "UD SEND")                                 \
	X(UDP, "udp", "UDP")                                   \
	X(TCP, "tcp", "TCP")

enum bench_way {
#define BENCH_WAY_ENUM(name, word, text) BENCH_##name,
	BENCH_WAYS(BENCH_WAY_ENUM)
#undef BENCH_WAY_ENUM
	BENCH_WAY_END
};
extern const char *const bench_way_word[BENCH_WAY_END], *const bench_way_text[BENCH_WAY_END];

enum bench_measure { BENCH_LATENCY, BENCH_BANDWIDTH, BENCH_MEASURE_END };

static inline bool bench_way_is_rdma(enum bench_way way)
{
	return way < BENCH_UDP;
}

/* A test, as the client requests it. */
struct bench_test {
	enum bench_way way;
	enum bench_measure measure;
	bool events;	/* both ends sleep until events; otherwise they poll */
	u32 size, depth;
	u32 path_mtu;	/* bytes */
	u64 duration_ns;
};

/* Results of a test at one end. */
struct bench_outcome {
	u64 messages, bytes, elapsed_ns;
	u64 lost;	/* datagrams */
	struct histogram rtt; /* of a latency test, at the client */
};

/* Returns the largest message in bytes that this way supports. */
u32 bench_way_most(enum bench_way way, u32 path_mtu);
/* Returns the number of outstanding requests, limited to a few MiB. */
u32 bench_depth(u32 size);

/* ---- the control connection: wire.c (pure), bench_run.c ---- */

enum bench_type {
	BENCH_HELLO,  /* client: its GID; server: its GID and its device's path MTU */
	BENCH_SETUP,  /* client: a test, and its receive addresses */
	BENCH_READY,  /* server: its receive addresses */
	BENCH_STOP,   /* client: end of the test */
	BENCH_DONE,   /* server: its results */
	BENCH_FAILED, /* either: status is an errno */
	BENCH_TYPE_END
};

struct bench_message {
	enum bench_type type;
	struct bench_test test; /* SETUP */
	struct gid gid;		/* HELLO */
	u32 path_mtu;		/* HELLO, from the server */
	u32 status;		/* FAILED */
	u32 qpn, psn, rkey;
	u64 va;
	u16 port;  /* READY, for UDP and TCP */
	u64 token; /* SETUP: begins the data sent to that port */
	u64 messages, bytes, elapsed_ns; /* DONE */
};

#define BENCH_WIRE_BYTES 160u

void bench_encode(u8 wire[BENCH_WIRE_BYTES], const struct bench_message *m);
/* Returns NULL, or a description of the fault, and then *m is undefined. */
const char *bench_decode(struct bench_message *m, const u8 wire[BENCH_WIRE_BYTES]);

/* Sends within BENCH_PATIENCE_NS. Returns 0, -ETIMEDOUT, -EINTR (stop requested) or -errno. */
int bench_tell(int fd, const struct bench_message *m);
/*
 * Receives a message of that type. Returns 0, the negative status of a FAILED message, -ETIMEDOUT,
 * -EINTR (stop requested), -ECONNRESET (closed by the peer), -EPROTO or -errno.
 */
int bench_hear(int fd, enum bench_type type, u64 timeout_ns, struct bench_message *m);
#define BENCH_PATIENCE_NS (10 * NSEC_PER_SEC)

/* ---- one test at one end ---- */

struct bench_end {
	const struct device *dev;
	struct gid peer;
	int control; /* readable: the test is over, or the other end has exited */
	bool is_client;
	u64 token;
};

/* bench_rdma.c */
struct bench_rdma;
/* Makes the QP and fills *own. Returns 0 or -errno; bench_rdma_free() is due in both cases. */
int bench_rdma_make(const struct bench_end *end, const struct bench_test *test,
		    struct bench_rdma **out, struct bench_message *own);
int bench_rdma_connect(struct bench_rdma *r, const struct bench_message *own,
		       const struct bench_message *peer);
int bench_rdma_client(struct bench_rdma *r, struct bench_outcome *out);
int bench_rdma_server(struct bench_rdma *r, struct bench_outcome *out);
void bench_rdma_free(struct bench_rdma *r);

/* bench_sockets.c: listens and sets own->port. Returns a descriptor or -errno. */
int bench_socket_listen(const struct bench_end *end, const struct bench_test *test,
			struct bench_message *own);
/* fd: from bench_socket_listen(); is closed. */
int bench_socket_server(const struct bench_end *end, const struct bench_test *test, int fd,
			struct bench_outcome *out);
int bench_socket_client(const struct bench_end *end, const struct bench_test *test, u16 port,
			struct bench_outcome *out);

/* ---- a run and its results ---- */

struct bench_options {
	const char *peer, *iface, *svg;
	int family;
	u16 port;
	bool ways[BENCH_WAY_END], measures[BENCH_MEASURE_END];
	u32 sizes[BENCH_MOST_SIZES], num_sizes;
	u32 rounds, path_mtu; /* path_mtu 0: the largest of both ends */
	u64 duration_ns;
	bool events, json, once, quiet;
};

/* Results of one way and size: a number per round, and all rounds together. */
struct bench_point {
	bool is_there;
	u32 rounds;
	double round[BENCH_MOST_ROUNDS]; /* median round trip in ns, or rate in Mbit/s */
	struct bench_outcome all;
};

struct bench_result {
	const struct bench_options *options;
	struct peer peer;
	u32 path_mtu;
	struct bench_point point[BENCH_MEASURE_END][BENCH_WAY_END][BENCH_MOST_SIZES];
};

/* Least, median and greatest round of a point. */
struct bench_spread {
	double min, median, max;
};
struct bench_spread bench_spread(const double *round, u32 rounds);

/* bench_run.c. Return exit codes. */
int bench_client(const struct bench_options *options);
int bench_server(const struct bench_options *options);
/* bench_compare.c. Returns an exit code. */
int bench_compare(const char *before, const char *after, bool json);
/*
 * Returns the object in len bytes of text, its texts cleaned by output_clean(). Returns NULL if it
 * is malformed, too deep or no object, or memory runs out; *at is then the offset of the fault.
 * The caller frees it with json_object_put().
 */
struct json_object *compare_parse(const char *text, size_t len, size_t *at);
/*
 * Prints the differences of two results. Returns the number of points that both have; *worse: of
 * points that are worse in after.
 */
u32 compare_results(struct json_object *before, struct json_object *after, bool as_json,
		    u32 *worse);

enum compare_verdict { COMPARE_SAME, COMPARE_BETTER, COMPARE_WORSE };

/* Returns COMPARE_SAME if the ranges of the rounds overlap. */
enum compare_verdict compare_points(const struct bench_spread *before,
				    const struct bench_spread *after, bool less_is_better);
const char *compare_word(enum compare_verdict verdict);

void bench_print(const struct bench_result *r);	     /* tables */
void bench_print_json(const struct bench_result *r); /* the same data as JSON */
/* Returns whether gnuplot is installed; if not, prints a line on standard error. */
bool bench_svg_possible(void);
/* Returns EXIT_OK, or EXIT_FAILED after an error message. */
int bench_svg(const struct bench_result *r, const char *file);

#endif
