/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ibv_reg_dmabuf_mr(3): regions of buffers that other drivers share by a descriptor. The engine
 * copies with the CPU, so the buffer is mapped. A buffer that cannot be mapped (device memory that
 * the CPU cannot reach) cannot be registered. The region owns the mapping, which keeps the buffer
 * after the descriptor is closed, until ibv_dereg_mr(). A page removed under the mapping causes a
 * fault, which run/fault.c turns into an access error.
 */
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "objects.h"

#define DMA_BUF_MAGIC 0x444d4142 /* <linux/magic.h>, Linux 5.10 */

/* The flags that the man page lists. */
#define DMABUF_ACCESS                                                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING)

/* Checks [offset, offset + length) of the buffer. Returns 0 or the kernel's positive errno. */
static int dmabuf_check(int fd, u64 offset, size_t length)
{
	struct statfs fs;
	off_t size;
	u64 end;

	if (fstatfs(fd, &fs))
		return errno;
	if ((u32)fs.f_type != DMA_BUF_MAGIC)
		return EINVAL;
	size = lseek(fd, 0, SEEK_END);
	if (size < 0 || !length || __builtin_add_overflow(offset, length, &end) || end > (u64)size)
		return EINVAL;
	return 0;
}

/* Returns 0 or a positive errno: EOPNOTSUPP if the CPU cannot reach the buffer. */
static int dmabuf_map(int fd, u64 offset, size_t length, unsigned int access,
		      struct mr_mapping *mapping)
{
	const u64 in_page = offset & ((u64)sysconf(_SC_PAGESIZE) - 1);
	const int prot = PROT_READ | (access & IBV_ACCESS_LOCAL_WRITE ? PROT_WRITE : 0);

	mapping->length = length + in_page;
	mapping->at = mmap(NULL, mapping->length, prot, MAP_SHARED, fd, (off_t)(offset - in_page));
	if (mapping->at != MAP_FAILED)
		return 0;
	mapping->at = NULL;
	return errno == ENOMEM || errno == EACCES ? errno : EOPNOTSUPP;
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access)
{
	const u64 page = (u64)sysconf(_SC_PAGESIZE);
	struct mr_mapping mapping;
	struct ibv_mr *mr;
	int err;

	if (access & ~DMABUF_ACCESS || ((offset ^ iova) & (page - 1)))
		return verb_fail(EINVAL);
	err = dmabuf_check(fd, offset, length);
	if (!err)
		err = dmabuf_map(fd, offset, length, (unsigned int)access, &mapping);
	if (err)
		return verb_fail(err);
	mr = mr_reg_mapping(pd, &mapping, (u8 *)mapping.at + (offset & (page - 1)), length, iova,
			    (unsigned int)access);
	if (!mr) {
		err = errno;
		mr_unmap(&mapping);
		return verb_fail(err);
	}
	mr->addr = (void *)(uintptr_t)offset; /* as in rdma-core */
	return mr;
}

void mr_unmap(struct mr_mapping *mapping)
{
	if (mapping->at)
		munmap(mapping->at, mapping->length);
	mapping->at = NULL;
}
