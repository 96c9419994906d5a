/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The transfers of words.c: jobs drawn from a seed, the same at both ends. A job is a queue pair
 * with its regions, and some messages of one operation, length and pair of lists. Offsets are bytes
 * from the start of an end's memory unless they say otherwise.
 */
#ifndef NETNS_WORDS_JOB_H
#define NETNS_WORDS_JOB_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AREA	 (1u << 16)
#define LANDING	 0u /* the area where messages are placed */
#define SLOTS	 2u /* messages under way; each has an area of its source's memory */
#define SLOT(n)	 (AREA * (1 + (n) % SLOTS))
#define MEMORY	 (AREA * (1 + SLOTS))
#define LONGEST	 20000u /* bytes of a message */
#define ELEMENTS 8u
#define INLINE	 300u /* bytes */
#define GRH	 40u
#define WORD	 8u
#define MESSAGES 4u /* of a job, at most */

enum service { ON_RC, ON_SRQ, ON_XRC, ON_UC, ON_UD, SERVICES };
enum region { PLAIN, ZERO_BASED, IOVA, ON_DEMAND, WHOLE_SPACE, REGIONS };

struct element {
	uint32_t at, len;
	bool null; /* of the null region */
};

struct list {
	uint32_t n;
	struct element e[ELEMENTS];
};

/* An aligned word of memory that a message fills: its offset in memory and in the message. */
struct word {
	uint32_t at, msg;
};

struct job {
	uint32_t number;
	enum service service;
	enum ibv_wr_opcode op;
	bool is_moving; /* the source changes all the time, else the landing is watched */
	bool is_inline, has_window, has_zero_window;
	bool is_in_order; /* messages come in order, each once; of words.c */
	enum ibv_mtu mtu;
	uint32_t len, messages, grh; /* grh: bytes of the landing before the message */
	enum region region[2];	     /* of the server and the client */
	uint32_t skew[2];	     /* of zero based regions: where these begin */
	struct list from, to;	     /* from: relative to its slot */
	struct word words[LONGEST / WORD + 1];
	uint32_t num_words;
};

/* limit: the longest path MTU, in bytes. */
void job_draw(struct job *j, uint64_t seed, uint32_t number, uint32_t limit);
void job_print(const struct job *j);
static inline bool job_is_atomic(const struct job *j)
{
	return j->op == IBV_WR_ATOMIC_FETCH_AND_ADD || j->op == IBV_WR_ATOMIC_CMP_AND_SWP;
}
static inline bool job_is_reliable(const struct job *j)
{
	return j->service != ON_UC && j->service != ON_UD;
}
/* A request ends with a completion of a receive. */
static inline bool job_takes_receives(const struct job *j)
{
	return j->op == IBV_WR_SEND || j->op == IBV_WR_SEND_WITH_IMM ||
	       j->op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/*
 * The message of that generation, len bytes at out: words of job_stamp() where they are watched,
 * other bytes that depend on the generation and their place, zeros from the null region.
 */
void job_image(const struct job *j, uint16_t generation, uint8_t *out);
/* A word of one generation: each half holds it. */
static inline uint64_t job_stamp(uint16_t generation)
{
	return generation * 0x0001000100010001ull;
}
static inline bool job_is_whole(uint64_t word)
{
	return word == job_stamp((uint16_t)word);
}

/* Copies bytes to where the list has them; base is added to its offsets. Not to null elements. */
void list_put(const struct list *l, uint8_t *memory, uint32_t base, const uint8_t *bytes);
/* The opposite direction; null elements read as zeros, or leave the bytes unchanged. */
void list_get(const struct list *l, const uint8_t *memory, uint32_t base, bool skip_null,
	      uint8_t *bytes);
bool list_is_null(const struct list *l, uint32_t pos, uint32_t len);

#endif
