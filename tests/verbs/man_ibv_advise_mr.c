/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/* ibv_advise_mr(3). The kernel reports present pages: mincore(2), /proc/self/pagemap. */
#include <sys/mman.h>

#include "man.h"

#define PAGES 4u

#define READ_IT	 IBV_ADVISE_MR_ADVICE_PREFETCH
#define WRITE_IT IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE
#define NO_FAULT IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT
#define FLUSH	 IBV_ADVISE_MR_FLAG_FLUSH

static const enum ibv_advise_mr_advice advices[] = { READ_IT, WRITE_IT, NO_FAULT };

/* An untouched mapping, and its region. */
struct range {
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	char *mem;
	size_t page, len;
};

static bool range_open(struct range *r, unsigned int access, bool implicit)
{
	*r = (struct range){ .page = (size_t)sysconf(_SC_PAGESIZE) };
	r->len = PAGES * r->page;
	MUST(r->pd = ibv_alloc_pd(ctx));
	r->mem = mmap(FAR_BELOW(0), r->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	MUST(r->mem != MAP_FAILED);
	MUST(!madvise(r->mem, r->len, MADV_NOHUGEPAGE) || errno == EINVAL);
	MUST(r->mr = ibv_reg_mr(r->pd, implicit ? NULL : r->mem, implicit ? SIZE_MAX : r->len,
				access));
	return true;
}

static bool range_close(struct range *r)
{
	MUST(!r->mr || !ibv_dereg_mr(r->mr));
	MUST(!r->pd || !ibv_dealloc_pd(r->pd));
	MUST(!r->mem || !munmap(r->mem, r->len));
	return true;
}

#define IN_RANGE(access, implicit, body)                                \
	do {                                                            \
		struct range r_;                                        \
		bool good_ = range_open(&r_, access, implicit) && body(&r_); \
		return range_close(&r_) && good_;                       \
	} while (0)

static bool is_present(const struct range *r, unsigned int page)
{
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && pread(fd, &entry, sizeof(entry),
			     (off_t)((uintptr_t)r->mem / r->page + page) * 8) != sizeof(entry))
		entry = 0;
	close(fd);
	return entry >> 63;
}

static int advise_at(const struct range *r, enum ibv_advise_mr_advice advice, uint32_t flags,
		     uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { addr, length, r->mr->lkey };

	return ibv_advise_mr(r->pd, advice, flags, &sge, 1);
}

/* "Make pages present": exactly the elements' ones. */
static bool present_body(struct range *r, bool implicit)
{
	struct ibv_sge two[2] = { { (uintptr_t)r->mem + 5, 1, r->mr->lkey },
				  { (uintptr_t)r->mem + 3 * r->page, 10, r->mr->lkey } };

	MUST(!is_present(r, 0) && !is_present(r, 1) && !is_present(r, 2) && !is_present(r, 3));
	/* "without faulting" */
	MUST_EQ(ibv_advise_mr(r->pd, NO_FAULT, FLUSH, two, 2), 0);
	MUST(!is_present(r, 0) && !is_present(r, 3));
	MUST_EQ(ibv_advise_mr(r->pd, WRITE_IT, implicit ? 0 : FLUSH, two, 2), 0);
	MUST(is_present(r, 0) && !is_present(r, 1) && !is_present(r, 2) && is_present(r, 3));
	MUST_EQ(advise_at(r, READ_IT, FLUSH, (uintptr_t)r->mem + r->page, 1), 0);
	MUST(is_present(r, 1) && !is_present(r, 2));
	/* an element of no bytes has no page */
	MUST_EQ(advise_at(r, WRITE_IT, FLUSH, (uintptr_t)r->mem + 2 * r->page, 0), 0);
	MUST(!is_present(r, 2));
	return true;
}

static bool explicit_body(struct range *r)
{
	return present_body(r, false);
}

static bool implicit_body(struct range *r)
{
	return present_body(r, true);
}

static bool pages_of_a_region(void)
{
	IN_RANGE(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND, false, explicit_body);
}

static bool pages_of_the_whole_address_space(void)
{
	IN_RANGE(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND, true, implicit_body);
}

/* "ENOTSUP The advise operation isn't supported." "EINVAL ... The flags are invalid." */
static bool arguments_body(struct range *r)
{
	struct ibv_sge sge = { (uintptr_t)r->mem, 1, r->mr->lkey };
	uint32_t handle = r->pd->handle;

	for (int i = 0; i < 3; i++) {
		MUST_EQ(ibv_advise_mr(r->pd, advices[i], FLUSH << 1, &sge, 1), EINVAL);
		MUST_EQ(ibv_advise_mr(r->pd, advices[i], ~0u, &sge, 1), EINVAL);
		MUST_EQ(ibv_advise_mr(r->pd, advices[i], 0, &sge, 0), EINVAL);
		MUST_EQ(ibv_advise_mr(r->pd, advices[i], 0, NULL, 1), EINVAL);
		/* "The PD is invalid" */
		r->pd->handle = ~handle;
		MUST_EQ(ibv_advise_mr(r->pd, advices[i], 0, &sge, 1), EINVAL);
		r->pd->handle = handle;
	}
	MUST_EQ(ibv_advise_mr(r->pd, (enum ibv_advise_mr_advice)3, 0, &sge, 1), ENOTSUP);
	MUST_EQ(errno, ENOTSUP);
	MUST(!is_present(r, 0));
	return true;
}

static bool arguments(void)
{
	IN_RANGE(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND, false, arguments_body);
}

/* "EFAULT ... the range requested is out of the MR bounds" */
static bool bounds_body(struct range *r)
{
	const uint64_t at = (uintptr_t)r->mem;

	for (int i = 0; i < 3; i++) {
		MUST_EQ(advise_at(r, advices[i], FLUSH, at - 1, 1), EFAULT);
		MUST_EQ(advise_at(r, advices[i], FLUSH, at + r->len, 1), EFAULT);
		MUST_EQ(advise_at(r, advices[i], FLUSH, at, (uint32_t)r->len + 1), EFAULT);
		MUST_EQ(advise_at(r, advices[i], FLUSH, at + 1, (uint32_t)r->len), EFAULT);
		MUST_EQ(advise_at(r, advices[i], FLUSH, UINT64_MAX, 2), EFAULT);
		MUST_EQ(advise_at(r, advices[i], FLUSH, at + 1, (uint32_t)r->len - 1), 0);
	}
	return true;
}

static bool bounds(void)
{
	IN_RANGE(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND, false, bounds_body);
}

/* "or when parts of it are not part of the process address space" */
static bool unmapped_body(struct range *r)
{
	const uint64_t at = (uintptr_t)r->mem;

	MUST_EQ(munmap(r->mem + 2 * r->page, r->page), 0);
	for (int i = 0; i < 3; i++) {
		MUST_EQ(advise_at(r, advices[i], FLUSH, at, (uint32_t)r->len), EFAULT);
		MUST_EQ(advise_at(r, advices[i], 0, at + 2 * r->page, 1), EFAULT);
		MUST_EQ(advise_at(r, advices[i], FLUSH, at, 2 * (uint32_t)r->page), 0);
		/* where no process has anything */
		MUST_EQ(advise_at(r, advices[i], FLUSH, 1ull << 60, 1), EFAULT);
		MUST_EQ(advise_at(r, advices[i], FLUSH, 0, 1), EFAULT);
	}
	/* read-only memory is there to be read */
	MUST_EQ(mprotect(r->mem, r->page, PROT_READ), 0);
	MUST_EQ(advise_at(r, WRITE_IT, FLUSH, at, 1), EFAULT);
	MUST_EQ(advise_at(r, READ_IT, FLUSH, at, 1), 0);
	return true;
}

static bool unmapped(void)
{
	IN_RANGE(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND, true, unmapped_body);
}

/* Keys: "invalid" EFAULT, "aren't consistent with the MR's" ENOENT, of another PD EPERM. */
static bool keys_body(struct range *r)
{
	struct ibv_pd *other = ibv_alloc_pd(ctx);
	struct ibv_sge sge[2] = { { (uintptr_t)r->mem, 1, r->mr->lkey },
				  { (uintptr_t)r->mem, 1, r->mr->lkey } };
	struct ibv_mr *pinned = ibv_reg_mr(r->pd, &sge, sizeof(sge), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *null = ibv_alloc_null_mr(r->pd);
	struct ibv_mw *mw = ibv_alloc_mw(r->pd, IBV_MW_TYPE_2);
	uint32_t gone;

	MUST(other && pinned && null && mw);
	for (int i = 0; i < 3; i++) {
		MUST_EQ(ibv_advise_mr(other, advices[i], FLUSH, sge, 2), EPERM);
		sge[1].lkey = r->mr->lkey ^ 1;
		MUST_EQ(ibv_advise_mr(r->pd, advices[i], FLUSH, sge, 2), ENOENT);
		/* "The requested address doesn't belong to a MR, but a MW or something." */
		for (uint32_t bits = 0; bits < 2; bits++) {
			sge[1].lkey = mw->rkey ^ bits;
			MUST_EQ(ibv_advise_mr(r->pd, advices[i], FLUSH, sge, 2), EINVAL);
		}
		/* "all the lkeys ... must be associated with ODP MRs" */
		sge[1] = (struct ibv_sge){ (uintptr_t)sge, 1, pinned->lkey };
		MUST_EQ(ibv_advise_mr(r->pd, advices[i], FLUSH, sge, 2), EINVAL);
		sge[1].lkey = null->lkey;
		MUST_EQ(ibv_advise_mr(r->pd, advices[i], FLUSH, sge, 2), EINVAL);
		sge[1] = sge[0];
	}
	gone = mw->rkey;
	MUST_EQ(ibv_dealloc_mw(mw), 0);
	MUST_EQ(ibv_dereg_mr(null), 0);
	MUST_EQ(ibv_dereg_mr(pinned), 0);
	sge[1].lkey = gone;
	MUST_EQ(ibv_advise_mr(r->pd, WRITE_IT, FLUSH, sge, 2), EFAULT);
	/* Of all these lists the first element was good: nothing was fetched. */
	MUST(!is_present(r, 0));
	MUST_EQ(ibv_dealloc_pd(other), 0);
	return true;
}

static bool keys(void)
{
	IN_RANGE(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND, false, keys_body);
}

/* EPERM: "PREFETCH_WRITE but the specified MR ... is not registered as writable access" */
static bool rights_body(struct range *r)
{
	MUST_EQ(advise_at(r, WRITE_IT, FLUSH, (uintptr_t)r->mem, 1), EPERM);
	MUST(!is_present(r, 0));
	MUST_EQ(advise_at(r, READ_IT, FLUSH, (uintptr_t)r->mem, 1), 0);
	MUST(is_present(r, 0));
	return true;
}

static bool rights(void)
{
	IN_RANGE(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND, false, rights_body);
}

/* A zero-based region's addresses are offsets. */
static bool offsets_body(struct range *r)
{
	MUST_EQ(advise_at(r, WRITE_IT, FLUSH, (uintptr_t)r->mem, 1), EFAULT);
	MUST_EQ(advise_at(r, WRITE_IT, FLUSH, 2 * r->page, 1), 0);
	MUST(is_present(r, 2) && !is_present(r, 0));
	return true;
}

static bool offsets(void)
{
	IN_RANGE(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED, false,
		 offsets_body);
}

const struct test_case man_cases[] = {
	CASE(pages_of_a_region),
	CASE(pages_of_the_whole_address_space),
	CASE(arguments),
	CASE(bounds),
	CASE(unmapped),
	CASE(keys),
	CASE(rights),
	CASE(offsets),
	{ 0 },
};
