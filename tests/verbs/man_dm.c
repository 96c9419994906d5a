/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/*
 * ibv_alloc_dm(3), ibv_import_dm(3), and max_dm_size of ibv_query_device_ex(3): allocating device
 * memory, copies to and from it, its regions and its handles. man_dm_traffic.c has access by its
 * keys.
 */
#define _GNU_SOURCE
#include <dirent.h>

#include "man.h"

#define BYTES	 4096u
#define CYCLES	 10000
#define ALL	 (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED)

static struct ibv_dm *alloc(struct ibv_context *context, size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };

	return ibv_alloc_dm(context, &attr);
}

static size_t max_bytes(void)
{
	struct ibv_device_attr_ex attr;

	return ibv_query_device_ex(ctx, NULL, &attr) ? 0 : attr.max_dm_size;
}

/* The call must return this errno value, and errno must have it. */
#define MUST_RETURN(call, want)            \
	do {                               \
		errno = 0;                 \
		MUST_EQ(call, want);       \
		MUST_EQ(errno, want);      \
	} while (0)

/* ---- allocating ---- */

static bool attributes(void)
{
	const unsigned int page = (unsigned int)__builtin_ctzl((size_t)sysconf(_SC_PAGESIZE));
	struct ibv_alloc_dm_attr attr = { .length = BYTES };
	struct ibv_dm *dm;

	for (attr.log_align_req = 0; attr.log_align_req <= page; attr.log_align_req++) {
		MUST(dm = ibv_alloc_dm(ctx, &attr));
		MUST(dm->context == ctx);
		MUST_EQ(dm->comp_mask, IBV_DM_MASK_HANDLE);
		MUST_EQ(ibv_free_dm(dm), 0);
	}
	MUST_FAIL(ibv_alloc_dm(ctx, &attr), EINVAL);
	attr.log_align_req = UINT32_MAX;
	MUST_FAIL(ibv_alloc_dm(ctx, &attr), EINVAL);
	attr.log_align_req = 0;
	for (attr.comp_mask = 1; attr.comp_mask; attr.comp_mask <<= 1)
		MUST_FAIL(ibv_alloc_dm(ctx, &attr), EINVAL);
	MUST_FAIL(alloc(ctx, 0), EINVAL);
	return true;
}

/* "ibv_alloc_dm() may fail if device has no more free device memory left": in one piece, ... */
static bool all_at_once(void)
{
	const size_t max = max_bytes();
	struct ibv_dm *dm;

	MUST(max > 0);
	MUST_FAIL(alloc(ctx, max + 1), ENOMEM);
	MUST_FAIL(alloc(ctx, SIZE_MAX), ENOMEM);
	MUST_FAIL(alloc(ctx, SIZE_MAX - BYTES + 1), ENOMEM);
	for (int i = 0; i < 3; i++) {
		MUST(dm = alloc(ctx, max));
		MUST_FAIL(alloc(ctx, 1), ENOMEM);
		MUST_EQ(ibv_free_dm(dm), 0);
	}
	return true;
}

/* ... and in several pieces, over all contexts of the process: each takes whole pages. */
static bool piece_by_piece(void)
{
	const size_t max = max_bytes(), page = (size_t)sysconf(_SC_PAGESIZE);
	struct ibv_context *other = ibv_open_device(ctx->device);
	struct ibv_dm *dm[4];

	MUST(other);
	MUST(dm[0] = alloc(ctx, max - 3 * page));
	MUST_FAIL(alloc(other, 3 * page + 1), ENOMEM);
	MUST(dm[1] = alloc(other, page + 1));
	MUST_FAIL(alloc(ctx, page + 1), ENOMEM);
	MUST(dm[2] = alloc(ctx, 1));
	MUST_FAIL(alloc(ctx, 1), ENOMEM);
	MUST_FAIL(alloc(other, 1), ENOMEM);
	MUST_EQ(ibv_free_dm(dm[1]), 0);
	MUST(dm[1] = alloc(ctx, page));
	MUST(dm[3] = alloc(other, page));
	MUST_FAIL(alloc(other, 1), ENOMEM);
	for (int i = 0; i < 4; i++)
		MUST_EQ(ibv_free_dm(dm[i]), 0);
	MUST_EQ(ibv_close_device(other), 0);
	return true;
}

/* ---- copies ---- */

static void fill(char *buf, size_t length, unsigned int seed)
{
	for (size_t i = 0; i < length; i++)
		buf[i] = (char)(seed + i * 7 + (i >> 8));
}

/* Copies exactly the given bytes; from unaligned buffers. */
static bool copies(void)
{
	char want[BYTES] = { 0 }, got[BYTES + 1], from[BYTES + 3];
	struct ibv_dm *dm = alloc(ctx, BYTES);
	unsigned int seed = 0;

	MUST(dm);
	MUST_EQ(ibv_memcpy_from_dm(got, dm, 0, BYTES), 0);
	MUST(!memcmp(got, want, BYTES)); /* no other process's data */
	for (unsigned int offset = 0; offset <= 40; offset += 4)
		for (unsigned int length = 0; length <= 40; length += 4) {
			const unsigned int at = offset + (seed & 1 ? BYTES - 80 : 0);

			fill(from + 3, length, ++seed);
			MUST_EQ(ibv_memcpy_to_dm(dm, at, from + 3, length), 0);
			memcpy(want + at, from + 3, length);
			MUST_EQ(ibv_memcpy_from_dm(got, dm, 0, BYTES), 0);
			MUST(!memcmp(got, want, BYTES));
			memset(got, 0x5a, sizeof(got));
			MUST_EQ(ibv_memcpy_from_dm(got + 1, dm, at, length), 0);
			MUST(!memcmp(got + 1, want + at, length));
			MUST(got[0] == 0x5a && got[length + 1] == 0x5a);
		}
	MUST_EQ(ibv_free_dm(dm), 0);
	return true;
}

/* mlx5's rules: EFAULT beyond the end, EINVAL for sizes that are not multiples of 4. */
static bool bounds(void)
{
	static const struct {
		uint64_t offset;
		size_t length;
		int err;
	} table[] = {
		{ 0, 100, 0 },
		{ 96, 4, 0 },
		{ 100, 0, 0 },
		{ 0, 0, 0 },
		{ 0, 104, EFAULT },
		{ 4, 100, EFAULT },
		{ 100, 4, EFAULT },
		{ 104, 0, EFAULT },
		{ 8, SIZE_MAX - 7, EFAULT },
		{ 8, SIZE_MAX - 3, EFAULT },
		{ UINT64_MAX - 3, 4, EFAULT },
		{ UINT64_MAX - 3, 8, EFAULT },
		{ 0, SIZE_MAX, EFAULT },
		{ UINT64_MAX, 0, EFAULT },
		{ 1, 4, EINVAL },
		{ 2, 4, EINVAL },
		{ 0, 5, EINVAL },
		{ 0, 99, EINVAL },
	};
	struct ibv_dm *dm = alloc(ctx, 100);
	char buf[128];

	MUST(dm);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		memset(buf, 1, sizeof(buf));
		errno = 0;
		MUST_EQ(ibv_memcpy_to_dm(dm, table[i].offset, buf, table[i].length), table[i].err);
		MUST_EQ(errno, table[i].err);
		errno = 0;
		MUST_EQ(ibv_memcpy_from_dm(buf, dm, table[i].offset, table[i].length),
			table[i].err);
		MUST_EQ(errno, table[i].err);
	}
	MUST_EQ(ibv_free_dm(dm), 0);
	return true;
}

/* ---- regions ---- */

static bool refused_regions(struct ibv_pd *pd, struct ibv_dm *dm)
{
	static const unsigned int access[] = {
		0,
		ALL & ~IBV_ACCESS_ZERO_BASED,
		ALL | IBV_ACCESS_MW_BIND,
		ALL | IBV_ACCESS_ON_DEMAND,
		ALL | IBV_ACCESS_HUGETLB,
		ALL | 1 << 10,
		IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_ATOMIC,
	};
	static const struct {
		uint64_t offset;
		size_t length;
	} range[] = {
		{ 0, BYTES + 1 },	{ 1, BYTES },		{ BYTES, 1 },
		{ BYTES + 1, 0 },	{ BYTES, SIZE_MAX },	{ 1, SIZE_MAX },
		{ UINT64_MAX, 1 },	{ UINT64_MAX, 0 },	{ UINT64_MAX - 3, BYTES },
	};

	for (size_t i = 0; i < sizeof(access) / sizeof(access[0]); i++)
		MUST_FAIL(ibv_reg_dm_mr(pd, dm, 0, BYTES, access[i]), EINVAL);
	for (size_t i = 0; i < sizeof(range) / sizeof(range[0]); i++)
		MUST_FAIL(ibv_reg_dm_mr(pd, dm, range[i].offset, range[i].length, ALL), EINVAL);
	return true;
}

/* A refused registration keeps nothing; an accepted one keeps the memory, unchanged. */
static bool regions(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_dm *dm = alloc(ctx, BYTES);
	struct ibv_mr *mr[3];

	MUST(pd && dm && refused_regions(pd, dm));
	MUST_EQ(ibv_free_dm(dm), 0);
	MUST(dm = alloc(ctx, BYTES));
	MUST(mr[0] = ibv_reg_dm_mr(pd, dm, 0, BYTES, ALL | IBV_ACCESS_RELAXED_ORDERING));
	MUST(mr[1] = ibv_reg_dm_mr(pd, dm, BYTES - 4, 4, IBV_ACCESS_ZERO_BASED));
	MUST(mr[2] = ibv_reg_dm_mr(pd, dm, BYTES, 0, ALL));
	MUST(mr[0]->pd == pd && mr[0]->context == ctx && !mr[0]->addr);
	MUST_EQ(mr[0]->length, BYTES);
	MUST_EQ(mr[1]->length, 4);
	MUST_EQ(ibv_rereg_mr(mr[0], IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL),
		IBV_REREG_MR_ERR_INPUT);
	MUST_EQ(errno, EINVAL);
	for (int i = 0; i < 3; i++) {
		MUST_RETURN(ibv_free_dm(dm), EBUSY);
		MUST_EQ(ibv_dereg_mr(mr[i]), 0);
	}
	MUST_EQ(ibv_free_dm(dm), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/* Memory of another context, and with public fields that differ from the created ones. */
static bool unknown(void)
{
	struct ibv_context *other = ibv_open_device(ctx->device);
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *pd2;
	struct ibv_dm *dm = alloc(ctx, BYTES);

	MUST(other && pd && dm);
	MUST(pd2 = ibv_alloc_pd(other));
	MUST_FAIL(ibv_reg_dm_mr(pd2, dm, 0, BYTES, ALL), ENOENT);
	MUST_FAIL(ibv_import_dm(other, dm->handle), ENOENT);
	dm->handle++;
	MUST_RETURN(ibv_free_dm(dm), ENOENT);
	MUST_FAIL(ibv_reg_dm_mr(pd, dm, 0, BYTES, ALL), ENOENT);
	dm->handle--;
	dm->context = other;
	MUST_RETURN(ibv_free_dm(dm), ENOENT);
	dm->context = ctx;
	pd->handle++;
	MUST_FAIL(ibv_reg_dm_mr(pd, dm, 0, BYTES, ALL), ENOENT);
	pd->handle--;
	MUST_EQ(ibv_free_dm(dm), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	MUST_EQ(ibv_dealloc_pd(pd2), 0);
	MUST_EQ(ibv_close_device(other), 0);
	return true;
}

/* ---- imports ---- */

/* Both handles access the same bytes; a region of either keeps them. */
static bool import_shares(struct ibv_context *other, struct ibv_pd *pd)
{
	struct ibv_dm *dm = alloc(ctx, BYTES), *dm2;
	struct ibv_mr *mr, *mr2;
	struct ibv_pd *pd2;
	uint64_t word = 0x1122334455667788;

	MUST(dm);
	MUST_FAIL(ibv_import_dm(other, dm->handle + 1000), ENOENT);
	MUST(dm2 = ibv_import_dm(other, dm->handle));
	MUST(dm2->context == other && dm2->handle == dm->handle);
	MUST_EQ(dm2->comp_mask, IBV_DM_MASK_HANDLE);
	MUST_EQ(ibv_memcpy_to_dm(dm, 16, &word, sizeof(word)), 0);
	word = 0;
	MUST_EQ(ibv_memcpy_from_dm(&word, dm2, 16, sizeof(word)), 0);
	MUST_EQ(word, 0x1122334455667788);
	MUST_EQ(ibv_memcpy_to_dm(dm2, BYTES, &word, 4), EFAULT);
	MUST(mr = ibv_reg_dm_mr(pd, dm2, 0, BYTES, ALL));
	MUST_RETURN(ibv_free_dm(dm), EBUSY);
	ibv_unimport_dm(dm2);
	MUST_RETURN(ibv_free_dm(dm), EBUSY);
	/* also an imported region, after the process that registered it has exited */
	MUST(pd2 = ibv_import_pd(other, pd->handle));
	MUST(mr2 = ibv_import_mr(pd2, mr->handle));
	ibv_unimport_mr(mr);
	MUST_RETURN(ibv_free_dm(dm), EBUSY);
	MUST_EQ(ibv_dereg_mr(mr2), 0);
	ibv_unimport_pd(pd2);
	MUST_EQ(ibv_free_dm(dm), 0);
	return true;
}

/*
 * "Once destroy is done no other process can touch the object except for unimport": by either
 * handle. Until then the memory counts.
 */
static bool import_of_the_freed(struct ibv_context *other, struct ibv_pd *pd, bool by_import)
{
	const size_t max = max_bytes();
	struct ibv_dm *dm = alloc(ctx, max), *dm2, *left;
	uint32_t handle;
	char word[8];

	MUST(dm);
	handle = dm->handle;
	MUST(dm2 = ibv_import_dm(other, handle));
	left = by_import ? dm : dm2;
	MUST_EQ(ibv_free_dm(by_import ? dm2 : dm), 0);
	MUST_FAIL(ibv_import_dm(other, handle), ENOENT);
	MUST_FAIL(ibv_reg_dm_mr(pd, left, 0, BYTES, ALL), ENOENT);
	MUST_RETURN(ibv_free_dm(left), ENOENT);
	MUST_EQ(ibv_memcpy_from_dm(word, left, 0, sizeof(word)), 0);
	MUST_FAIL(alloc(ctx, 1), ENOMEM);
	ibv_unimport_dm(left);
	MUST(dm = alloc(ctx, max));
	MUST_EQ(ibv_free_dm(dm), 0);
	return true;
}

static bool imports(void)
{
	struct ibv_context *other = ibv_import_device(dup(ctx->cmd_fd));
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	bool good;

	MUST(other && pd);
	good = import_shares(other, pd) && import_of_the_freed(other, pd, false) &&
	       import_of_the_freed(other, pd, true);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	MUST_EQ(ibv_close_device(other), 0);
	return good;
}

/* ---- fork ---- */

struct inherited {
	struct ibv_pd *pd;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
};

/* In the child: its copy of the parent's memory, and its own device memory. */
static bool in_child(void *arg)
{
	struct ibv_mr *mr = ((struct inherited *)arg)->mr;
	struct ibv_dm *dm = ((struct inherited *)arg)->dm, *mine;
	struct ibv_pd *pd = ((struct inherited *)arg)->pd;
	struct ibv_context *own;
	uint64_t word = 0;

	MUST_EQ(ibv_memcpy_from_dm(&word, dm, 0, sizeof(word)), 0);
	MUST_EQ(word, 1);
	word = 2;
	MUST_EQ(ibv_memcpy_to_dm(dm, 0, &word, sizeof(word)), 0);
	MUST_FAIL(ibv_reg_dm_mr(pd, dm, 0, BYTES, ALL), EIO);
	MUST_FAIL(ibv_import_dm(ctx, dm->handle), EIO);
	MUST(mine = alloc(ctx, BYTES));
	MUST_EQ(ibv_memcpy_to_dm(mine, 0, &word, sizeof(word)), 0);
	MUST_FAIL(ibv_reg_dm_mr(pd, mine, 0, BYTES, ALL), EIO);
	MUST_EQ(ibv_free_dm(mine), 0);
	MUST(own = ibv_open_device(ctx->device));
	MUST_FAIL(ibv_import_dm(own, dm->handle), ENOENT);
	MUST_EQ(ibv_close_device(own), 0);
	MUST(own = ibv_import_device(dup(ctx->cmd_fd)));
	MUST_FAIL(ibv_import_dm(own, dm->handle), ENOENT);
	MUST_EQ(ibv_close_device(own), 0);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(ibv_free_dm(dm), 0);
	return true;
}

/* All device memory; a forked child has as much, whatever it inherited and does with it. */
static bool child_at_the_limit(void *inherited)
{
	struct ibv_context *own = ibv_open_device(ctx->device);
	struct ibv_alloc_dm_attr all = { .length = max_bytes() }, one = { .length = 1 };
	struct ibv_dm *dm;

	MUST(own && (dm = ibv_alloc_dm(own, &all)));
	MUST_FAIL(ibv_alloc_dm(own, &one), ENOMEM);
	MUST_EQ(ibv_free_dm(inherited), 0);
	MUST_FAIL(ibv_alloc_dm(own, &one), ENOMEM);
	MUST_EQ(ibv_free_dm(dm), 0);
	MUST(dm = ibv_alloc_dm(own, &all));
	MUST_EQ(ibv_free_dm(dm), 0);
	MUST_EQ(ibv_close_device(own), 0);
	return true;
}

static bool forked_at_the_limit(void)
{
	struct ibv_dm *dm = alloc(ctx, max_bytes());

	MUST(dm);
	MUST(in_a_child(child_at_the_limit, dm));
	MUST_FAIL(alloc(ctx, 1), ENOMEM);
	MUST_EQ(ibv_free_dm(dm), 0);
	return true;
}

static bool forked(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_dm *dm = alloc(ctx, BYTES);
	struct ibv_mr *mr;
	uint64_t word = 1;

	MUST(pd && dm);
	MUST(mr = ibv_reg_dm_mr(pd, dm, 0, BYTES, ALL));
	MUST_EQ(ibv_memcpy_to_dm(dm, 0, &word, sizeof(word)), 0);
	MUST(in_a_child(in_child, &(struct inherited){ pd, dm, mr }));
	MUST_EQ(ibv_memcpy_from_dm(&word, dm, 0, sizeof(word)), 0);
	MUST_EQ(word, 1);
	MUST_RETURN(ibv_free_dm(dm), EBUSY);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(ibv_free_dm(dm), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/* ---- leftovers ---- */

struct held {
	int descriptors, mappings;
	long pages;
};

static bool held_now(struct held *h)
{
	FILE *f = fopen("/proc/self/maps", "re");
	DIR *d = opendir("/proc/self/fd");
	int c;

	MUST(f && d);
	*h = (struct held){ 0 };
	while (readdir(d))
		h->descriptors++;
	closedir(d);
	while ((c = getc(f)) != EOF)
		h->mappings += c == '\n';
	fclose(f);
	MUST(f = fopen("/proc/self/statm", "re"));
	MUST_EQ(fscanf(f, "%ld", &h->pages), 1);
	fclose(f);
	return true;
}

static bool cycle(struct ibv_context *other, struct ibv_pd *pd, int i)
{
	struct ibv_dm *dm = alloc(ctx, 1 + (size_t)i % (3 * BYTES)), *dm2;
	struct ibv_mr *mr;

	MUST(dm);
	MUST(mr = ibv_reg_dm_mr(pd, dm, 0, 1, ALL));
	MUST_FAIL(ibv_reg_dm_mr(pd, dm, 0, 1, 0), EINVAL);
	MUST_FAIL(ibv_reg_dm_mr(pd, dm, 0, 1, ALL & ~IBV_ACCESS_LOCAL_WRITE), EINVAL);
	MUST(dm2 = ibv_import_dm(other, dm->handle));
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(ibv_free_dm(i & 1 ? dm : dm2), 0);
	ibv_unimport_dm(i & 1 ? dm2 : dm);
	MUST_FAIL(alloc(ctx, SIZE_MAX), ENOMEM);
	return true;
}

static bool ten_thousand(void)
{
	struct ibv_context *other = ibv_import_device(dup(ctx->cmd_fd));
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct held before, after;
	struct ibv_dm *dm;

	MUST(other && pd);
	for (int i = 0; i < 100; i++)
		MUST(cycle(other, pd, i));
	MUST(held_now(&before));
	for (int i = 0; i < CYCLES; i++)
		MUST(cycle(other, pd, i));
	MUST(held_now(&after));
	MUST_EQ(after.descriptors, before.descriptors);
	/* the heap may have grown by one step; an object each would be 250 pages */
	MUST(after.mappings <= before.mappings + 1);
	MUST(after.pages < before.pages + 100);
	MUST(dm = alloc(ctx, max_bytes()));
	MUST_EQ(ibv_free_dm(dm), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	MUST_EQ(ibv_close_device(other), 0);
	return true;
}

const struct test_case man_cases[] = {
	CASE(attributes),
	CASE(all_at_once),
	CASE(piece_by_piece),
	CASE(copies),
	CASE(bounds),
	CASE(regions),
	CASE(unknown),
	CASE(imports),
	CASE(forked),
	CASE(forked_at_the_limit),
	CASE(ten_thousand),
	{ 0 },
};
