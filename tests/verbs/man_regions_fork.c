/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Regions and fork(): a child that destroys its copies of regions, and a parent that goes on.
 * docs/verbs.md, "fork()".
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "regions.h"

struct family {
	struct pair *p;
	unsigned char *mem, *buf;
	struct ibv_mr *mr, *own;
	struct ibv_mw *mw;
};

static bool family_open(struct family *f, struct pair *p, int flags)
{
	*f = (struct family){ .p = p };
	f->mem = mmap(NULL, MESSAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
	f->buf = mmap(NULL, MESSAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(f->mem != MAP_FAILED && f->buf != MAP_FAILED);
	MUST(f->mr = ibv_reg_mr(p->pd, f->mem, MESSAGE, RIGHTS | IBV_ACCESS_MW_BIND));
	MUST(f->own = ibv_reg_mr(p->pd, f->buf, MESSAGE, IBV_ACCESS_LOCAL_WRITE));
	return true;
}

static bool family_close(struct family *f)
{
	MUST(!f->mw || !ibv_dealloc_mw(f->mw));
	MUST(!f->mr || !ibv_dereg_mr(f->mr));
	MUST(!f->own || !ibv_dereg_mr(f->own));
	munmap(f->mem, MESSAGE);
	munmap(f->buf, MESSAGE);
	return true;
}

#define ON_FAMILY(name, flags, body)                                                               \
	static bool name(void)                                                                     \
	{                                                                                          \
		struct pair p;                                                                     \
		struct family f = { 0 };                                                           \
		bool good = pair_open(&p, OPTIONS(0)) && family_open(&f, &p, flags) && body(&f);   \
                                                                                                   \
		good &= !f.p || family_close(&f);                                                  \
		return pair_close(&p) && good;                                                     \
	}

static bool write_begins(struct family *f, int value)
{
	struct ibv_sge sge = { (uintptr_t)f->buf, MESSAGE, f->own->lkey };
	struct ibv_send_wr wr = one_sided(&sge, IBV_WR_RDMA_WRITE, (uintptr_t)f->mem, f->mr->rkey),
			   *bad;

	wr.send_flags = IBV_SEND_SIGNALED;
	memset(f->buf, value, MESSAGE);
	MUST_EQ(ibv_post_send(f->p->qp[0], &wr, &bad), 0);
	return true;
}

static bool write_ends(struct family *f)
{
	struct ibv_wc wc;

	MUST(wait_wc(f->p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST(!memcmp(f->mem, f->buf, MESSAGE));
	return true;
}

/* Destroys all copies of memory objects, and the memory, in a child. */
static bool child_ends_memory(void *arg)
{
	struct family *f = arg;

	errno = 0;
	MUST(ibv_rereg_mr(f->mr, ACCESS, NULL, NULL, 0, 0) != 0);
	MUST_EQ(errno, EIO);
	errno = 0;
	MUST(ibv_rereg_mr(f->mr, TRANSLATION, NULL, f->buf, MESSAGE, 0) != 0);
	MUST_EQ(errno, EIO);
	MUST(!f->mw || !ibv_dealloc_mw(f->mw));
	MUST_EQ(ibv_dereg_mr(f->mr), 0);
	MUST_EQ(ibv_dereg_mr(f->own), 0);
	MUST_EQ(munmap(f->mem, MESSAGE), 0);
	MUST_EQ(munmap(f->buf, MESSAGE), 0);
	return true;
}

/* The parent's requests continue while children destroy their copies. */
static bool children_body(struct family *f)
{
	for (int i = 1; i <= 8; i++) {
		MUST(write_begins(f, i));
		MUST(in_a_child(child_ends_memory, f));
		MUST(write_ends(f));
	}
	return true;
}

ON_FAMILY(a_childs_copies_are_its_own, MAP_PRIVATE, children_body)
ON_FAMILY(a_child_unmaps_shared_memory, MAP_SHARED, children_body)

static bool bound_body(struct family *f)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = { f->mr, (uintptr_t)f->mem, MESSAGE,
						   IBV_ACCESS_REMOTE_WRITE } };
	struct ibv_sge sge = { (uintptr_t)f->buf, 5000, f->own->lkey };
	struct ibv_wc wc;

	MUST(f->mw = ibv_alloc_mw(f->p->pd, IBV_MW_TYPE_1));
	MUST_EQ(ibv_bind_mw(f->p->qp[1], f->mw, &bind), 0);
	MUST(wait_wc(f->p->cq[1], &wc) && wc.status == IBV_WC_SUCCESS);
	MUST(in_a_child(child_ends_memory, f));
	MUST_EQ(ibv_dereg_mr(f->mr), EBUSY);
	memset(f->buf, 'w', 5000);
	MUST_EQ(run(f->p, 0, one_sided(&sge, IBV_WR_RDMA_WRITE, (uintptr_t)f->mem, f->mw->rkey)),
		IBV_WC_SUCCESS);
	return !memcmp(f->mem, f->buf, 5000);
}

ON_FAMILY(a_childs_windows_are_its_own, MAP_PRIVATE, bound_body)

/* A child that stays alive while its parent changes and destroys the region. */
struct sibling {
	struct family *f;
	int go[2];
	unsigned char expected; /* content of its memory at that time */
};

static bool child_waits(void *arg)
{
	struct sibling *s = arg;
	char c;

	close(s->go[1]);
	MUST_EQ(read(s->go[0], &c, 1), 0); /* the parent's end has closed */
	for (uint32_t i = 0; i < MESSAGE; i += 512)
		MUST_EQ(s->f->mem[i], s->expected);
	return child_ends_memory(s->f);
}

static bool parent_goes_on(struct family *f, bool shared)
{
	struct sibling s = { f, { -1, -1 }, shared ? 2 : 1 };
	struct ibv_mr *mr;
	int status;
	pid_t pid;

	memset(f->mem, 1, MESSAGE);
	MUST_EQ(pipe(s.go), 0);
	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		bool good;

		alarm(CHILD_S);
		good = child_waits(&s);
		fflush(stdout);
		_exit(!good);
	}
	close(s.go[0]);
	/* new data arrives in the parent's pages, also in pages that both had shared */
	MUST(write_begins(f, 2) && write_ends(f));
	mr = f->mr;
	MUST_EQ(ibv_rereg_mr(mr, TRANSLATION | ACCESS, NULL, f->mem, MESSAGE / 2, RIGHTS), 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	f->mr = NULL;
	close(s.go[1]);
	MUST_EQ(waitpid(pid, &status, 0), pid);
	MUST_EQ(status, 0);
	return true;
}

static bool private_body(struct family *f)
{
	return parent_goes_on(f, false);
}

static bool shared_body(struct family *f)
{
	return parent_goes_on(f, true);
}

ON_FAMILY(a_parent_receives_in_its_own_pages, MAP_PRIVATE, private_body)
ON_FAMILY(shared_memory_is_received_for_both, MAP_SHARED, shared_body)

const struct test_case man_cases[] = {
	CASE(a_childs_copies_are_its_own),
	CASE(a_child_unmaps_shared_memory),
	CASE(a_childs_windows_are_its_own),
	CASE(a_parent_receives_in_its_own_pages),
	CASE(shared_memory_is_received_for_both),
	{ 0 },
};
