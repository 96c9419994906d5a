/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shared parts of the contract tests: one device, a pair of QPs of this process that are connected
 * over the device's GID, and assertions that end a case and print their place. A case is a function
 * that returns false when it failed.
 */
#ifndef TESTS_VERBS_CONTRACT_H
#define TESTS_VERBS_CONTRACT_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_BYTES  (64 * 1024)
#define QUEUE	   8	     /* WRs a queue */
#define WAIT_MS	   60000 /* less than a program's bound: a late event is no failure */
#define SLOW_MS	   10000 /* is said */
#define UD_QKEY	   0x11111111

extern struct ibv_context *ctx;

/* Two ends in one process: end 0 sends, end 1 receives, unless the case does otherwise. */
struct pair {
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* of cq[1] */
	struct ibv_cq *cq[2];
	struct ibv_srq *srq;		  /* of end 1, or NULL */
	struct ibv_qp *qp[2];
	struct ibv_mr *mr[2];
	char *buf[2];
};

struct pair_options {
	enum ibv_qp_type type; /* 0: RC */
	bool srq;
	bool channel;
	int rnr_retry;	       /* 0: 7, for ever */
	int cqe;	       /* 0: enough */
	uint64_t ops;	       /* end 0: ibv_create_qp_ex() with these send operations */
	/* end 1: ibv_create_cq_ex() with these attributes and the pair's channel */
	const struct ibv_cq_init_attr_ex *ex;
};

bool pair_open(struct pair *p, struct pair_options o);
/* Also after a failed case: takes down what there is. Returns false if anything refuses to go. */
bool pair_close(struct pair *p);

/* To INIT; to RTR against the peer; to RTR and RTS. */
int qp_to_init(struct ibv_qp *qp);
int qp_to_rtr(struct ibv_qp *qp, uint32_t dest_qpn);
int qp_to_rts(struct ibv_qp *qp, uint32_t dest_qpn, int rnr_retry);
struct ibv_ah_attr own_address(void);

/* Wait for one completion, in bounded time. False if none comes. */
bool wait_wc(struct ibv_cq *cq, struct ibv_wc *wc);
/*
 * True if the CQ stays empty while everything that is under way arrives: after a later completion
 * of cq_other has been seen, or at once.
 */
bool cq_is_empty(struct ibv_cq *cq);

struct ibv_sge sge_of(const struct pair *p, int end, uint32_t offset, uint32_t length);
int post_recv(struct pair *p, uint64_t wr_id, uint32_t offset, uint32_t length);
int post_send(struct pair *p, uint64_t wr_id, uint32_t offset, uint32_t length, unsigned int flags);

/* ---- events ---- */
bool set_nonblocking(int fd, bool on);
/* Handles SIGUSR1 by a function that does nothing, with these flags of sigaction(2). */
bool catch_usr1(int flags);
/* Waits until the count is `want`, for WAIT_MS at most. */
bool count_becomes(int (*count)(void), int want);
bool readable(int fd, int timeout_ms);
/* True if no event is pending, by a non-blocking get. */
bool no_cq_event(struct ibv_comp_channel *ch);
bool no_async_event(void);
/* One message and its completions, polled for; the event, if any, is left. */
bool message(struct pair *p, unsigned int flags);

/* ---- a destroy that must wait ---- */
struct destruction {
	pthread_t thread;
	int (*destroy)(void *object);
	void *object;
	atomic_bool done;
};

/* Started in its own thread, and it waits. */
bool destroy_begins(struct destruction *d, int (*destroy)(void *object), void *object);
bool destroy_waits(struct destruction *d);
/* Expects that the destruction ends now and returns 0. */
bool destroy_ends(struct destruction *d);
int destroy_cq(void *cq);

/* The body of a case that runs on a pair. */
#define IN_PAIR(p, options, body)                  \
	do {                                       \
		bool good_ = pair_open(p, options); \
		if (good_)                         \
			good_ = body(p);           \
		return pair_close(p) && good_;     \
	} while (0)

#define OPTIONS(...) ((struct pair_options){ __VA_ARGS__ })

/* A case that is nothing but its body on a pair with these options, if any. */
#define ON_PAIR(name, body, ...)                             \
	static bool name(void)                               \
	{                                                    \
		struct pair p;                               \
							     \
		IN_PAIR(&p, OPTIONS(__VA_ARGS__), body);     \
	}

#define MUST(cond)                                                                            \
	do {                                                                                  \
		if (!(cond)) {                                                                \
			printf("# %s:%d: %s (errno %d)\n", __FILE__, __LINE__, #cond, errno); \
			return false;                                                         \
		}                                                                             \
	} while (0)

#define MUST_EQ(got, want)                                                                         \
	do {                                                                                       \
		long long g_ = (long long)(got), w_ = (long long)(want);                           \
		if (g_ != w_) {                                                                    \
			printf("# %s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got, g_,    \
			       w_);                                                                \
			return false;                                                              \
		}                                                                                  \
	} while (0)

/* The call must give NULL and this errno. */
#define MUST_FAIL(call, want)                                                                      \
	do {                                                                                       \
		errno = 0;                                                                         \
		if ((call) != NULL || errno != (want)) {                                           \
			printf("# %s:%d: %s: errno %d, not %d\n", __FILE__, __LINE__, #call,       \
			       errno, (want));                                                     \
			return false;                                                              \
		}                                                                                  \
	} while (0)

#define CASE(f) { #f, f }

struct test_case {
	const char *name;
	bool (*run)(void);
};

/* Opens the device of that name; NULL if there is none. */
struct ibv_context *open_device(const char *name);
/* Run a list that ends with an empty entry, and print each result. True if all held. */
bool run_all(const struct test_case *c);

extern const struct test_case object_cases[], errno_cases[], traffic_cases[], event_cases[],
	mw_cases[], xrc_cases[];

/*
 * A hint to mmap(2) for memory that is unmapped under way: far below the kernel's own choices, so
 * that no library's or sanitizer's next mapping lands in the hole.
 */
#define FAR_BELOW(i) ((void *)(0x200000000000 + ((uintptr_t)(i) << 30)))

#endif
