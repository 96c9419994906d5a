/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * ibv_reg_dmabuf_mr() of ibv_reg_mr(3). Without /dev/udmabuf the kernel makes no dma-buf without a
 * device: then a memfd stands for one, and this program's fstatfs() tells the library that it is
 * one. The two differ here in nothing else, except for the buffer that shrinks.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "man.h"

#define DMA_BUF_MAGIC 0x444d4142
#define ALL                                                                                        \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define NAME "stands_for_a_dma_buf"

static long page;
static int stand_ins[2] = { -1, -1 };

/* The library's calls come here: the program is linked with -rdynamic. */
int fstatfs(int fd, struct statfs *st)
{
	int err = (int)syscall(SYS_fstatfs, fd, st);

	if (!err && (fd == stand_ins[0] || fd == stand_ins[1]))
		st->f_type = DMA_BUF_MAGIC;
	return err;
}

static int memory_file(long bytes)
{
	int fd = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd >= 0 && !ftruncate(fd, bytes) ? fd : -1;
}

/* Makes a dma-buf of `pages` pages, by the kernel if it can. */
static int buffer_new(long pages)
{
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), memory = memory_file(pages * page);
	struct udmabuf_create create = { .memfd = (uint32_t)memory,
					 .flags = UDMABUF_FLAGS_CLOEXEC,
					 .size = (uint64_t)(pages * page) };
	int fd = -1;

	if (device >= 0 && !fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK))
		fd = ioctl(device, UDMABUF_CREATE, &create);
	if (device >= 0)
		close(device);
	if (fd < 0)
		return stand_ins[0] = memory;
	close(memory);
	return fd;
}

static void buffer_close(int fd)
{
	stand_ins[0] = -1;
	close(fd);
}

/* How many mappings of stand-ins this process has. */
static int mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, NAME) != NULL;
	if (f)
		fclose(f);
	return n;
}

static bool refusals_body(struct pair *p)
{
	int fd, other, read_only;
	char path[64];
	uint64_t at;

	page = sysconf(_SC_PAGESIZE);
	at = (uint64_t)page;
	MUST((fd = buffer_new(3)) >= 0 && (other = memory_file(3 * page)) >= 0);
	/* "The dma-buf is identified by the file descriptor fd." */
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, 0, 8, 0, -1, ALL), EBADF);
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, 0, 8, 0, other, ALL), EINVAL);
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, 0, 8, 0, ctx->async_fd, ALL), EINVAL);
	/* "only the following flags are supported" */
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, 0, 8, 0, fd, ALL | IBV_ACCESS_MW_BIND), EINVAL);
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, 0, 8, 0, fd, ALL | IBV_ACCESS_ZERO_BASED), EINVAL);
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, 0, 8, 0, fd, ALL | IBV_ACCESS_ON_DEMAND), EINVAL);
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, 0, 8, 0, fd, ALL | IBV_ACCESS_HUGETLB), EINVAL);
	/* "If IBV_ACCESS_REMOTE_WRITE ... is set, then IBV_ACCESS_LOCAL_WRITE must be set too." */
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, 0, 8, 0, fd, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, 0, 8, 0, fd, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
	/* "It must have the same page offset as offset." */
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, 8, 8, 16, fd, ALL), EINVAL);
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, at, 8, at + 1, fd, ALL), EINVAL);
	/* "The MR starts at offset of the dma-buf and its size is length." */
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, 0, 0, 0, fd, ALL), EINVAL);
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, 0, 3 * at + 1, 0, fd, ALL), EINVAL);
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, at + 1, 2 * at, 1, fd, ALL), EINVAL);
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, 3 * at, 1, 0, fd, ALL), EINVAL);
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, UINT64_MAX - at + 1, 2 * at, 0, fd, ALL), EINVAL);
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, at, SIZE_MAX, 0, fd, ALL), EINVAL);
	/* the end of the addresses */
	MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, 0, 2 * at, UINT64_MAX - at + 1, fd, ALL), EINVAL);
	MUST_EQ(mappings(), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd == stand_ins[0]) {
		MUST((read_only = open(path, O_RDONLY | O_CLOEXEC)) >= 0);
		stand_ins[1] = read_only;
		MUST_FAIL(ibv_reg_dmabuf_mr(p->pd, 0, 8, 0, read_only, ALL), EACCES);
		stand_ins[1] = -1;
		close(read_only);
	}
	close(other);
	buffer_close(fd);
	return true;
}

static bool transfer(struct pair *p, enum ibv_wr_opcode op, uint64_t remote, uint32_t rkey,
		     uint32_t length, enum ibv_wc_status status)
{
	struct ibv_sge sge = sge_of(p, 0, 0, length);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = remote;
	wr.wr.rdma.rkey = rkey;
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, status);
	return true;
}

/* Bytes 100 on of the second page, which the peer knows by their own addresses. */
static bool data_body(struct pair *p)
{
	const uint64_t offset = (uint64_t)(page = sysconf(_SC_PAGESIZE)) + 100;
	const uint64_t iova = 0x7000000000ull + 100;
	const uint32_t length = (uint32_t)page + 200; /* into the third */
	struct ibv_mr *mr;
	char *seen;
	int fd = buffer_new(4);

	MUST(fd >= 0);
	seen = mmap(NULL, (size_t)(4 * page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(seen != MAP_FAILED);
	MUST(mr = ibv_reg_dmabuf_mr(p->pd, offset, length, iova, fd,
				    ALL | IBV_ACCESS_RELAXED_ORDERING));
	MUST_EQ((uint64_t)(uintptr_t)mr->addr, offset);
	MUST(mr->length == length && mr->pd == p->pd && mr->context == ctx);
	buffer_close(fd); /* the region keeps the buffer */
	for (uint32_t i = 0; i < length; i++)
		p->buf[0][i] = (char)(i * 7 + 1);
	memset(seen, 0, (size_t)(4 * page));
	MUST(transfer(p, IBV_WR_RDMA_WRITE, iova, mr->rkey, length, IBV_WC_SUCCESS));
	MUST_EQ(memcmp(seen + offset, p->buf[0], length), 0);
	MUST(seen[offset - 1] == 0 && seen[offset + length] == 0);
	memset(seen + offset, 0x33, length);
	MUST(transfer(p, IBV_WR_RDMA_READ, iova, mr->rkey, length, IBV_WC_SUCCESS));
	MUST_EQ(memcmp(seen + offset, p->buf[0], length), 0);
	/* neither before its start nor beyond its end */
	MUST(transfer(p, IBV_WR_RDMA_READ, iova + 1, mr->rkey, length, IBV_WC_REM_ACCESS_ERR));
	MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, p->qp[1]));
	/* it is not the program's memory: nothing of it can be changed */
	MUST_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		IBV_REREG_MR_ERR_INPUT);
	MUST_EQ(errno, EINVAL);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	munmap(seen, (size_t)(4 * page));
	MUST_EQ(mappings(), 0);
	return true;
}

/* Rights are the region's: a read-only one is not written, nor mapped writable. */
static bool rights_body(struct pair *p)
{
	struct ibv_mr *mr;
	int fd;

	page = sysconf(_SC_PAGESIZE);
	MUST((fd = buffer_new(1)) >= 0);
	MUST(mr = ibv_reg_dmabuf_mr(p->pd, 0, 64, 0, fd, IBV_ACCESS_REMOTE_READ));
	MUST(transfer(p, IBV_WR_RDMA_READ, 0, mr->rkey, 64, IBV_WC_SUCCESS));
	MUST(transfer(p, IBV_WR_RDMA_WRITE, 0, mr->rkey, 64, IBV_WC_REM_ACCESS_ERR));
	MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, p->qp[1]));
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(mappings(), 0);
	buffer_close(fd);
	return true;
}

/* The mapping is the region's, whichever handle ends it. */
static bool handles_body(struct pair *p)
{
	struct ibv_context *other = ibv_import_device(dup(ctx->cmd_fd));
	struct ibv_pd *pd = ibv_import_pd(other, p->pd->handle);
	struct ibv_mr *mr, *same;
	int fd, of_one;

	page = sysconf(_SC_PAGESIZE);
	MUST(pd && (fd = buffer_new(1)) >= 0);
	of_one = fd == stand_ins[0];
	MUST(mr = ibv_reg_dmabuf_mr(p->pd, 0, 64, 0, fd, ALL));
	buffer_close(fd);
	MUST_EQ(mappings(), of_one);
	MUST(same = ibv_import_mr(pd, mr->handle));
	ibv_unimport_mr(same);
	MUST_EQ(mappings(), of_one);
	MUST(transfer(p, IBV_WR_RDMA_WRITE, 0, mr->rkey, 64, IBV_WC_SUCCESS));
	MUST(same = ibv_import_mr(pd, mr->handle));
	MUST_EQ(ibv_dereg_mr(same), 0);
	MUST_EQ(mappings(), 0);
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	MUST_EQ(ibv_close_device(other), 0);
	return true;
}

/* A buffer whose pages go away: the request that meets them fails, and the process lives. */
static bool gone_body(struct pair *p)
{
	struct ibv_mr *mr;
	int fd;

	page = sysconf(_SC_PAGESIZE);
	MUST((fd = stand_ins[0] = memory_file(4 * page)) >= 0);
	MUST(mr = ibv_reg_dmabuf_mr(p->pd, 0, (size_t)(4 * page), 0, fd, ALL));
	MUST(transfer(p, IBV_WR_RDMA_WRITE, 0, mr->rkey, (uint32_t)(4 * page), IBV_WC_SUCCESS));
	MUST_EQ(ftruncate(fd, page), 0);
	MUST(transfer(p, IBV_WR_RDMA_WRITE, 0, mr->rkey, (uint32_t)page, IBV_WC_SUCCESS));
	MUST(transfer(p, IBV_WR_RDMA_WRITE, 0, mr->rkey, (uint32_t)(4 * page),
		      IBV_WC_REM_ACCESS_ERR));
	MUST(take_async(IBV_EVENT_QP_ACCESS_ERR, p->qp[1]));
	MUST_EQ(ibv_dereg_mr(mr), 0);
	buffer_close(fd);
	return true;
}

ON_PAIR(what_is_refused, refusals_body)
ON_PAIR(data_by_offset_and_iova, data_body)
ON_PAIR(rights_are_the_regions, rights_body)
ON_PAIR(a_mapping_ends_with_its_region, handles_body)
ON_PAIR(a_buffer_that_goes_away, gone_body)

const struct test_case man_cases[] = {
	CASE(what_is_refused),
	CASE(data_by_offset_and_iova),
	CASE(rights_are_the_regions),
	CASE(a_mapping_ends_with_its_region),
	CASE(a_buffer_that_goes_away),
	{ 0 },
};
