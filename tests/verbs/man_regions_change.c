/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Regions that change during traffic: ibv_rereg_mr(3) in another thread while a peer writes, reads
 * and does atomics; calls that fail; calls that take rights away. docs/verbs.md, "Regions that
 * change".
 */
#include <sys/mman.h>

#include "regions.h"

#define PART	(32u << 10) /* bytes of a request to a region that moves */
#define PACKET	1024u	    /* qp_to_rtr()'s path MTU */
#define TIMES	60
#define WORDS	400
#define IOVA_AT 0x700000000000ull
#define SECRET	0xee

/* ---- a region that moves in another thread ---- */

/* A region without an explicit address, in one of two pieces of memory. */
struct moving {
	struct pair *p;
	struct ibv_mr *mr;
	unsigned char *piece[2];
	pthread_t thread;
	bool runs;
	atomic_bool stop;
	atomic_int moves;
};

static void *mover(void *arg)
{
	static const int flags[] = { TRANSLATION, TRANSLATION | ACCESS, TRANSLATION | PD | ACCESS,
				     TRANSLATION | PD };
	struct moving *m = arg;

	for (int i = 1; !atomic_load(&m->stop); i++) {
		const int f = flags[i / 2 % 4];

		if (ibv_rereg_mr(m->mr, f, f & PD ? m->p->pd : NULL, m->piece[i % 2], PART,
				 f & ACCESS ? RIGHTS | IBV_ACCESS_ZERO_BASED : 0))
			return m;
		atomic_fetch_add(&m->moves, 1);
		usleep(20); /* lets others have the locks */
	}
	return NULL;
}

static bool moving_begin(struct moving *m, struct pair *p)
{
	*m = (struct moving){ .p = p };
	for (int i = 0; i < 2; i++)
		MUST(m->piece[i] = calloc(1, PART));
	MUST(m->mr = ibv_reg_mr(p->pd, m->piece[0], PART, RIGHTS | IBV_ACCESS_ZERO_BASED));
	MUST(!pthread_create(&m->thread, NULL, mover, m));
	m->runs = true;
	return counted_to(&m->moves, 2) >= 2;
}

static bool moving_end(struct moving *m)
{
	void *failed = NULL;

	atomic_store(&m->stop, true);
	if (m->runs)
		MUST_EQ(pthread_join(m->thread, &failed), 0);
	MUST(!failed);
	MUST(!m->mr || !ibv_dereg_mr(m->mr));
	for (int i = 0; i < 2; i++)
		free(m->piece[i]);
	return true;
}

#define ON_MOVING(name, body)                                                                      \
	static bool name(void)                                                                     \
	{                                                                                          \
		struct pair p;                                                                     \
		struct moving m = { 0 };                                                           \
		bool good = pair_open(&p, OPTIONS(.ops = IBV_QP_EX_WITH_ATOMIC_WRITE)) &&          \
			    moving_begin(&m, &p) && body(&m);                                      \
                                                                                                   \
		good &= moving_end(&m);                                                            \
		return pair_close(&p) && good;                                                     \
	}

/* The region's role in a request: the last three load from the region, the others store to it. */
enum role { WRITTEN, RECEIVED, READ_INTO, READ_FROM, SENT, WRITTEN_FROM, ROLES };

/* One request of PART bytes between the region and the buffer of the pair. */
static bool request(struct moving *m, enum role role)
{
	struct pair *p = m->p;
	struct ibv_sge region = { 0, PART, m->mr->lkey }, near = sge_of(p, 0, 0, PART),
		       far = sge_of(p, 1, 0, PART);
	struct ibv_send_wr send = { .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_recv_wr recv = { .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	switch (role) {
	case WRITTEN:
		send = one_sided(&near, IBV_WR_RDMA_WRITE, 0, m->mr->rkey);
		break;
	case READ_FROM:
		send = one_sided(&near, IBV_WR_RDMA_READ, 0, m->mr->rkey);
		break;
	case READ_INTO:
		send = one_sided(&region, IBV_WR_RDMA_READ, far.addr, p->mr[1]->rkey);
		break;
	case WRITTEN_FROM:
		send = one_sided(&region, IBV_WR_RDMA_WRITE, far.addr, p->mr[1]->rkey);
		break;
	default:
		send.sg_list = role == SENT ? &region : &near;
		recv.sg_list = role == SENT ? &far : &region;
		MUST_EQ(ibv_post_recv(p->qp[1], &recv, &bad), 0);
	}
	MUST_EQ(run(p, 0, send), IBV_WC_SUCCESS);
	if (recv.sg_list) {
		MUST(wait_wc(p->cq[1], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.byte_len, PART);
	}
	return true;
}

static bool is_uniform(const unsigned char *packet)
{
	return !memcmp(packet, packet + 1, PACKET - 1);
}

/* Each packet of the message is in one piece only, and whole; the other piece has older bytes. */
static bool one_piece_has(struct moving *m, unsigned char value)
{
	for (uint32_t at = 0; at < PART; at += PACKET) {
		const unsigned char *a = m->piece[0] + at, *b = m->piece[1] + at;

		MUST(is_uniform(a) && is_uniform(b));
		MUST((a[0] == value) + (b[0] == value) == 1);
	}
	return true;
}

static bool stored(struct moving *m, enum role role, unsigned char value)
{
	memset(m->p->buf[role == READ_INTO], value, PART);
	return request(m, role) && one_piece_has(m, value);
}

static bool loaded(struct moving *m, enum role role, unsigned char value)
{
	const unsigned char *to = (unsigned char *)m->p->buf[role != READ_FROM];

	for (int i = 0; i < 2; i++)
		memset(m->piece[i], value + i, PART);
	memset(m->p->buf[role != READ_FROM], 0, PART);
	MUST(request(m, role));
	for (uint32_t at = 0; at < PART; at += PACKET) {
		MUST(is_uniform(to + at));
		MUST(to[at] == value || to[at] == value + 1);
	}
	return true;
}

static bool packets_body(struct moving *m)
{
	for (enum role role = 0; role < ROLES; role++) {
		for (int i = 0; i < 2; i++)
			memset(m->piece[i], 0, PART);
		for (int i = 0; i < TIMES; i++)
			if (!(role < READ_FROM ? stored : loaded)(m, role,
								  (unsigned char)(2 * i + 1))) {
				printf("# role %d, time %d\n", role, i);
				return false;
			}
	}
	return true;
}

/* "a packet meets the old region or the new one" */
ON_MOVING(a_packet_meets_one_region, packets_body)

/* Fills the send queue with atomics of the region's second word; each is counted in one piece. */
static bool atomics_body(struct moving *m)
{
	struct ibv_sge sge = sge_of(m->p, 0, 0, 8);
	struct ibv_send_wr wr = one_sided(&sge, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, m->mr->rkey), *bad;
	uint64_t word[2];
	struct ibv_wc wc;

	wr.send_flags = IBV_SEND_SIGNALED;
	for (int sent = 0, done = 0; done < WORDS; done++) {
		for (; sent < WORDS && sent - done < QUEUE; sent++)
			MUST_EQ(ibv_post_send(m->p->qp[0], &wr, &bad), 0);
		MUST(wait_wc(m->p->cq[0], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
	}
	for (int i = 0; i < 2; i++)
		memcpy(&word[i], m->piece[i] + 8, 8);
	MUST_EQ(word[0] + word[1], WORDS);
	/* ATOMIC WRITE likewise: the last value is in one piece, an older one in the other */
	wr = one_sided(&sge, IBV_WR_ATOMIC_WRITE, PART - 8, m->mr->rkey);
	for (uint64_t n = 1; n <= WORDS; n++) {
		memcpy(m->p->buf[0], &n, 8);
		MUST_EQ(run(m->p, 0, wr), IBV_WC_SUCCESS);
		for (int i = 0; i < 2; i++)
			memcpy(&word[i], m->piece[i] + PART - 8, 8);
		MUST((word[0] == n) + (word[1] == n) == 1);
		MUST(word[0] <= n && word[1] <= n);
	}
	return true;
}

ON_MOVING(a_word_is_changed_in_one_region, atomics_body)

/* ---- failures during traffic ---- */

struct failing {
	struct pair *p;
	struct ibv_pd *foreign;
	void *none;
	atomic_bool stop;
	atomic_int rounds;
};

static void *failer(void *arg)
{
	struct failing *f = arg;
	struct ibv_mr *mr = f->p->mr[1];
	const struct {
		int flags;
		struct ibv_pd *pd;
		void *addr;
		size_t length;
		int access, err;
	} rows[] = {
		{ TRANSLATION, NULL, f->none, 4096, 0, EFAULT },
		{ TRANSLATION | PD | ACCESS, f->p->pd, f->none, 4096, RIGHTS, EFAULT },
		{ TRANSLATION | ACCESS, NULL, f->p->buf[0], 64, IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ TRANSLATION | PD, f->foreign, f->p->buf[0], 64, 0, EINVAL },
		{ ACCESS, NULL, NULL, 0, 1 << 9, EOPNOTSUPP },
		{ TRANSLATION, NULL, f->p->buf[0], 0, 0, EINVAL },
		{ 0, NULL, NULL, 0, 0, EINVAL },
		{ 8, NULL, NULL, 0, 0, EINVAL },
	};

	for (int i = 0; !atomic_load(&f->stop); i++) {
		errno = 0;
		if (ibv_rereg_mr(mr, rows[i % 8].flags, rows[i % 8].pd, rows[i % 8].addr,
				 rows[i % 8].length,
				 rows[i % 8].access) != IBV_REREG_MR_ERR_INPUT ||
		    errno != rows[i % 8].err) {
			printf("# row %d: errno %d\n", i % 8, errno);
			return f;
		}
		atomic_fetch_add(&f->rounds, 1);
		usleep(20); /* lets others have the locks */
	}
	return NULL;
}

static bool between_failures(struct pair *p)
{
	const uint64_t at = (uintptr_t)p->buf[1];
	uint64_t word;

	for (uint64_t i = 0; i < 100; i++) {
		struct ibv_sge all = sge_of(p, 0, 0, BUF_BYTES - 16),
			       eight = sge_of(p, 0, BUF_BYTES - 8, 8);

		memset(p->buf[0], (int)i, all.length);
		MUST_EQ(run(p, 0, one_sided(&all, IBV_WR_RDMA_WRITE, at, p->mr[1]->rkey)),
			IBV_WC_SUCCESS);
		MUST(!memcmp(p->buf[1], p->buf[0], all.length));
		memset(p->buf[1], (int)i + 1, all.length);
		MUST_EQ(run(p, 0, one_sided(&all, IBV_WR_RDMA_READ, at, p->mr[1]->rkey)),
			IBV_WC_SUCCESS);
		MUST(!memcmp(p->buf[1], p->buf[0], all.length));
		MUST_EQ(run(p, 0,
			    one_sided(&eight, IBV_WR_ATOMIC_FETCH_AND_ADD, at + BUF_BYTES - 8,
				      p->mr[1]->rkey)),
			IBV_WC_SUCCESS);
		memcpy(&word, p->buf[0] + BUF_BYTES - 8, 8);
		MUST_EQ(word, i);
	}
	return true;
}

/* "Old MR is valid": also for requests that access the region during the failing call. */
static bool failures_body(struct pair *p)
{
	struct ibv_context *other = ibv_open_device(ctx->device);
	struct failing f = { .p = p, .foreign = ibv_alloc_pd(other) };
	pthread_t thread;
	void *failed;
	bool good;

	f.none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(f.foreign && f.none != MAP_FAILED);
	MUST_EQ(pthread_create(&thread, NULL, failer, &f), 0);
	good = between_failures(p);
	good &= counted_to(&f.rounds, 8) >= 8;
	atomic_store(&f.stop, true);
	MUST_EQ(pthread_join(thread, &failed), 0);
	munmap(f.none, 4096);
	MUST_EQ(ibv_dealloc_pd(f.foreign), 0);
	MUST_EQ(ibv_close_device(other), 0);
	return good && !failed;
}

ON_PAIR(failures_disturb_no_request, failures_body)

/* ---- rights that end during requests ---- */

/* A byte that the device may be writing. */
__attribute__((noinline, no_sanitize("thread"))) static unsigned char
peek(const volatile unsigned char *at)
{
	return *at;
}

/* How the peer loses access to the region's bytes. */
enum loss { NO_RIGHTS, OTHER_PD, OTHER_PLACE, ALL_OF_IT, LOSSES };

struct taken {
	struct pair *p;
	struct ibv_pd *other;
	struct ibv_mr *mr, *own; /* of mem, of buf */
	unsigned char *mem, *buf, *elsewhere;
};

static bool taken_open(struct taken *t, struct pair *p)
{
	*t = (struct taken){ .p = p, .other = ibv_alloc_pd(ctx) };
	MUST((t->mem = calloc(1, MESSAGE)) && (t->buf = calloc(1, MESSAGE)) &&
	     (t->elsewhere = calloc(1, MESSAGE)) && t->other);
	MUST(t->mr = ibv_reg_mr(p->pd, t->mem, MESSAGE, RIGHTS));
	MUST(t->own = ibv_reg_mr(p->pd, t->buf, MESSAGE, IBV_ACCESS_LOCAL_WRITE));
	return true;
}

static bool taken_close(struct taken *t)
{
	MUST(!t->mr || !ibv_dereg_mr(t->mr));
	MUST(!t->own || !ibv_dereg_mr(t->own));
	MUST(!t->other || !ibv_dealloc_pd(t->other));
	free(t->mem);
	free(t->buf);
	free(t->elsewhere);
	return true;
}

static int take_away(struct taken *t, enum loss loss)
{
	switch (loss) {
	case NO_RIGHTS:
		return ibv_rereg_mr(t->mr, ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE);
	case OTHER_PD:
		return ibv_rereg_mr(t->mr, PD, t->other, NULL, 0, 0);
	case OTHER_PLACE:
		return ibv_rereg_mr(t->mr, TRANSLATION, NULL, t->elsewhere, MESSAGE, 0);
	default:
		return ibv_rereg_mr(t->mr, TRANSLATION | PD | ACCESS, t->other, t->elsewhere,
				    MESSAGE, 0);
	}
}

static bool has_begun(struct taken *t, const unsigned char *first)
{
	const long long end = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * 1000000ll;

	while (!peek(first)) {
		MUST(cq_is_empty(t->p->cq[1]));
		MUST(clock_ns(CLOCK_MONOTONIC) < end);
	}
	return true;
}

/* One request is in progress, and one is posted after the loss, which cannot succeed. */
static bool loses(struct taken *t, enum ibv_wr_opcode op, enum loss loss)
{
	const bool is_read = op == IBV_WR_RDMA_READ;
	struct ibv_sge sge = { (uintptr_t)t->buf, MESSAGE, t->own->lkey };
	struct ibv_send_wr wr = one_sided(&sge, op, (uintptr_t)t->mem, t->mr->rkey), *bad;
	unsigned char was, *then = malloc(MESSAGE);
	int status[2];
	struct ibv_wc wc;

	wr.send_flags = IBV_SEND_SIGNALED;
	memset(is_read ? t->mem : t->buf, 1, MESSAGE);
	MUST_EQ(ibv_post_send(t->p->qp[0], &wr, &bad), 0);
	MUST(then && has_begun(t, is_read ? t->buf : t->mem));
	MUST_EQ(take_away(t, loss), 0);
	was = peek(t->mem + MESSAGE - 1);
	if (is_read)
		memset(t->mem, SECRET, MESSAGE);
	memcpy(then, t->mem, MESSAGE);
	MUST_EQ(ibv_post_send(t->p->qp[0], &wr, &bad), 0);
	for (int i = 0; i < 2; i++) {
		MUST(wait_wc(t->p->cq[0], &wc));
		status[i] = wc.status;
	}
	if (status[0] == IBV_WC_SUCCESS)
		status[0] = status[1];
	else
		MUST_EQ(status[1], IBV_WC_WR_FLUSH_ERR);
	if (!is_read || status[0] != IBV_WC_RETRY_EXC_ERR) /* docs/limits.md, of READs */
		MUST_EQ(status[0], IBV_WC_REM_ACCESS_ERR);
	MUST(is_read || peek(t->mem + MESSAGE - 1) == was);
	MUST(!memcmp(then, t->mem, MESSAGE));
	MUST(!memchr(t->buf, SECRET, MESSAGE));
	MUST(!memchr(t->elsewhere, 1, MESSAGE));
	free(then);
	return take_async(IBV_EVENT_QP_ACCESS_ERR, t->p->qp[1]);
}

/*
 * After ibv_rereg_mr() returns, no lost byte is written or read, not even by a partly executed
 * request of many packets.
 */
static bool each_loss(enum ibv_wr_opcode op)
{
	for (enum loss loss = 0; loss < LOSSES; loss++)
		for (int i = 0; i < 3; i++) {
			struct pair p;
			struct taken t = { 0 };
			bool good = pair_open(&p, OPTIONS(0)) && taken_open(&t, &p) &&
				    loses(&t, op, loss);

			if (!good)
				printf("# loss %d\n", loss);
			good &= taken_close(&t);
			MUST(pair_close(&p) && good);
		}
	return true;
}

static bool nothing_is_written_after_the_loss(void)
{
	return each_loss(IBV_WR_RDMA_WRITE);
}

static bool nothing_is_read_after_the_loss(void)
{
	return each_loss(IBV_WR_RDMA_READ);
}

/* Atomics in progress: the word counts as many as succeed, and none after the loss. */
static bool atomics_lose(struct taken *t, enum loss loss)
{
	struct ibv_sge sge = { (uintptr_t)t->buf, 8, t->own->lkey };
	struct ibv_send_wr wr = one_sided(&sge, IBV_WR_ATOMIC_FETCH_AND_ADD, (uintptr_t)t->mem,
					  t->mr->rkey),
			   *bad;
	uint64_t word, later, succeeded = 0;
	struct ibv_wc wc;

	wr.send_flags = IBV_SEND_SIGNALED;
	for (int i = 0; i < QUEUE - 1; i++)
		MUST_EQ(ibv_post_send(t->p->qp[0], &wr, &bad), 0);
	MUST_EQ(take_away(t, loss), 0);
	memcpy(&word, t->mem, 8);
	MUST_EQ(ibv_post_send(t->p->qp[0], &wr, &bad), 0);
	for (int i = 0; i < QUEUE; i++) {
		MUST(wait_wc(t->p->cq[0], &wc));
		if (wc.status == IBV_WC_SUCCESS)
			MUST_EQ(succeeded++, i);
		else
			MUST_EQ(wc.status,
				i > (int)succeeded ? IBV_WC_WR_FLUSH_ERR : IBV_WC_REM_ACCESS_ERR);
	}
	memcpy(&later, t->mem, 8);
	MUST_EQ(later, word);
	MUST_EQ(succeeded, word);
	MUST(succeeded < QUEUE);
	memcpy(&word, t->elsewhere, 8);
	MUST_EQ(word, 0);
	return take_async(IBV_EVENT_QP_ACCESS_ERR, t->p->qp[1]);
}

static bool nothing_is_added_after_the_loss(void)
{
	for (int i = 0; i < 3 * LOSSES; i++) {
		struct pair p;
		struct taken t = { 0 };
		bool good = pair_open(&p, OPTIONS(0)) && taken_open(&t, &p) &&
			    atomics_lose(&t, (enum loss)(i % LOSSES));

		if (!good)
			printf("# loss %d\n", i % LOSSES);
		good &= taken_close(&t);
		MUST(pair_close(&p) && good);
	}
	return true;
}

/* ---- the rights of the changed region ---- */

static bool rights_body(struct pair *p)
{
	static const struct {
		int access;
		bool read, write, atomic;
	} rows[] = {
		{ 0, false, false, false },
		{ IBV_ACCESS_LOCAL_WRITE, false, false, false },
		{ IBV_ACCESS_REMOTE_READ, true, false, false },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, false, true, false },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, false, false, true },
		{ RIGHTS | IBV_ACCESS_ON_DEMAND, true, true, true },
		{ RIGHTS, true, true, true },
	};
	const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
					   IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP };
	struct ibv_sge sge = sge_of(p, 0, 0, 8);

	for (int i = 0; i < (int)(sizeof(rows) / sizeof(rows[0])); i++)
		for (int op = 0; op < 4; op++) {
			const bool granted = op == 0 ? rows[i].read :
					     op == 1 ? rows[i].write :
						       rows[i].atomic;

			MUST_EQ(ibv_rereg_mr(p->mr[1], ACCESS, NULL, NULL, 0, rows[i].access), 0);
			MUST_EQ(run(p, 0,
				    one_sided(&sge, ops[op], (uintptr_t)p->buf[1] + 64,
					      p->mr[1]->rkey)),
				granted ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
			if (granted)
				continue;
			MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, p->qp[1]));
			MUST(pair_reconnect(p));
		}
	return true;
}

ON_PAIR(rights_are_those_of_the_last_call, rights_body)

/* A region with an explicit address keeps it until it gets another translation. */
static bool iova_body(struct pair *p)
{
	struct ibv_sge sge = sge_of(p, 0, 0, 64);
	struct ibv_mr *mr = ibv_reg_mr_iova(p->pd, p->buf[1] + 128, 4096, IOVA_AT, RIGHTS);
	const uint64_t second = (uintptr_t)p->buf[1] + 8192;

	MUST(mr);
	memset(p->buf[0], 'i', 64);
	MUST_EQ(ibv_rereg_mr(mr, ACCESS | PD, p->pd, NULL, 0, RIGHTS), 0);
	MUST_EQ(run(p, 0, one_sided(&sge, IBV_WR_RDMA_WRITE, IOVA_AT + 4032, mr->rkey)),
		IBV_WC_SUCCESS);
	MUST(!memcmp(p->buf[1] + 128 + 4032, p->buf[0], 64));
	MUST_EQ(ibv_rereg_mr(mr, TRANSLATION, NULL, p->buf[1] + 8192, 4096, 0), 0);
	MUST(mr->addr == p->buf[1] + 8192);
	MUST_EQ(run(p, 0, one_sided(&sge, IBV_WR_RDMA_WRITE, second + 4032, mr->rkey)),
		IBV_WC_SUCCESS);
	MUST(!memcmp(p->buf[1] + 8192 + 4032, p->buf[0], 64));
	MUST_EQ(run(p, 0, one_sided(&sge, IBV_WR_RDMA_WRITE, IOVA_AT, mr->rkey)),
		IBV_WC_REM_ACCESS_ERR);
	MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, p->qp[1]));
	MUST_EQ(ibv_dereg_mr(mr), 0);
	return true;
}

ON_PAIR(a_translation_brings_its_address, iova_body)

/* Receives posted earlier are checked against the region at the time the message arrives. */
static bool receives_body(struct pair *p)
{
	struct ibv_pd *other = ibv_alloc_pd(ctx);
	struct ibv_wc wc;

	MUST(other);
	for (int i = 0; i < 2; i++) {
		MUST_EQ(post_recv(p, 3, 0, 64), 0);
		MUST_EQ(i ? ibv_rereg_mr(p->mr[1], PD, other, NULL, 0, 0) :
			    ibv_rereg_mr(p->mr[1], ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ),
			0);
		memset(p->buf[0], 'r', 8);
		MUST_EQ(post_send(p, 4, 0, 8, IBV_SEND_SIGNALED), 0);
		MUST(wait_wc(p->cq[0], &wc));
		MUST_EQ(wc.status, IBV_WC_REM_OP_ERR);
		MUST(wait_wc(p->cq[1], &wc));
		MUST_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
		MUST_EQ(p->buf[1][0], 0);
		MUST(pair_reconnect(p));
		MUST_EQ(ibv_rereg_mr(p->mr[1], PD | ACCESS, p->pd, NULL, 0, RIGHTS), 0);
		MUST_EQ(post_recv(p, 3, 100, 64), 0);
		MUST_EQ(post_send(p, 4, 0, 8, IBV_SEND_SIGNALED), 0);
		MUST(wait_wc(p->cq[0], &wc) && wc.status == IBV_WC_SUCCESS);
		MUST(wait_wc(p->cq[1], &wc) && wc.status == IBV_WC_SUCCESS);
		MUST_EQ(p->buf[1][100], 'r');
		p->buf[1][100] = 0;
	}
	MUST_EQ(ibv_dealloc_pd(other), 0);
	return true;
}

ON_PAIR(posted_receives_meet_the_new_region, receives_body)

/* A requester's region without local write can be sent from, and gets no READ data. */
static bool local_body(struct pair *p)
{
	struct ibv_sge sge = sge_of(p, 0, 0, 8);
	const uint64_t at = (uintptr_t)p->buf[1];

	MUST_EQ(ibv_rereg_mr(p->mr[0], ACCESS, NULL, NULL, 0, 0), 0);
	memset(p->buf[0], 'l', 8);
	MUST_EQ(run(p, 0, one_sided(&sge, IBV_WR_RDMA_WRITE, at, p->mr[1]->rkey)), IBV_WC_SUCCESS);
	memset(p->buf[1], 'x', 8);
	MUST_EQ(run(p, 0, one_sided(&sge, IBV_WR_RDMA_READ, at, p->mr[1]->rkey)),
		IBV_WC_LOC_PROT_ERR);
	MUST_EQ(p->buf[0][0], 'l');
	return true;
}

ON_PAIR(a_region_without_local_write_is_sent_from, local_body)

const struct test_case man_cases[] = {
	CASE(a_packet_meets_one_region),
	CASE(a_word_is_changed_in_one_region),
	CASE(failures_disturb_no_request),
	CASE(nothing_is_written_after_the_loss),
	CASE(nothing_is_read_after_the_loss),
	CASE(nothing_is_added_after_the_loss),
	CASE(rights_are_those_of_the_last_call),
	CASE(a_translation_brings_its_address),
	CASE(posted_receives_meet_the_new_region),
	CASE(a_region_without_local_write_is_sent_from),
	{ 0 },
};
