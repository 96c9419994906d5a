/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Device memory (ibv_alloc_dm(3)): pages of this process that programs access by copies and by the
 * keys of regions, never through a pointer. The engine reads and writes them like any region.
 *
 * Device memory consists of whole, contiguous pages, like the mmap(2) of a BPF array with
 * BPF_F_MMAPABLE. It could therefore become such a map, transparently to programs; docs/memory.md
 * says how, and why it is not one today.
 *
 * The memory exists as long as one of its handles or regions. Handles come from ibv_alloc_dm() and
 * ibv_import_dm(). ibv_free_dm() on any handle ends the object; its other handles are then valid
 * only for ibv_unimport_dm().
 */
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "objects.h"

/* ibv_reg_dm_mr(3) lists no flags; these are mlx5's, which allows no windows there. */
#define DM_ACCESS_KNOWN                                                                            \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE)

/* mlx5's unit of offsets and lengths in ibv_memcpy_to_dm() and ibv_memcpy_from_dm(). */
#define DM_UNIT 4u

/* Shared by handles and regions. */
struct dm {
	u8 *bytes;
	u64 length; /* in bytes, as requested */
	u64 pages;
	u64 counted; /* pages counted for the device, under lists_lock */
	struct fork_entry forks;
	u64 file_id; /* file of the contexts that may import the handle */
	u32 handle;
	struct vdevice *dev;
	/* under lists_lock */
	u32 handles, regions;
	bool freed;
};

static struct vlist dms;

static struct vdm *to_vdm(struct ibv_dm *dm)
{
	return container_of(dm, struct vdm, ibv);
}

static u64 dm_page(void)
{
	return (u64)sysconf(_SC_PAGESIZE);
}

/* ---- the memory ---- */

/* Counts pages for the device. Returns 0, or ENOMEM beyond the process's limit. */
static int dm_take(struct vdevice *dev, u64 pages)
{
	int err = ENOMEM;

	pthread_mutex_lock(&lists_lock);
	if (pages <= VERBS_MAX_DM / dm_page() - dev->dm_pages) {
		dev->dm_pages += pages;
		err = 0;
	}
	pthread_mutex_unlock(&lists_lock);
	return err;
}

/* A forked child's pages are a copy, which does not count for its device. */
static void dm_in_child(struct fork_entry *entry)
{
	struct dm *dm = container_of(entry, struct dm, forks);

	dm->dev->dm_pages -= dm->counted;
	dm->counted = 0;
}

/* The pages do not count any more. After the end of the file, handles and regions keep them. */
static void dm_give(struct fork_entry *entry)
{
	pthread_mutex_lock(&lists_lock);
	dm_in_child(entry);
	pthread_mutex_unlock(&lists_lock);
}

/* Returns 0 or ENOMEM. */
static int dm_new(struct ibv_context *context, u64 length, struct dm **out)
{
	struct vdevice *dev = to_vdevice(context->device);
	u64 pages = length / dm_page() + (length % dm_page() != 0);
	struct dm *dm = calloc(1, sizeof(*dm));
	int err = dm ? dm_take(dev, pages) : ENOMEM;

	if (err) {
		free(dm);
		return err;
	}
	*dm = (struct dm){ .length = length,
			   .pages = pages,
			   .counted = pages,
			   .file_id = to_vcontext(context)->file_id,
			   .handle = new_handle(),
			   .dev = dev };
	/* Populated now, so that an engine under a lock takes no page fault. */
	dm->bytes = mmap(NULL, pages * dm_page(), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (dm->bytes == MAP_FAILED) {
		dm_give(&dm->forks);
		free(dm);
		return ENOMEM;
	}
	device_get(dev);
	fork_add_to(to_vcontext(context), &dm->forks, dm_in_child, dm_give);
	*out = dm;
	return 0;
}

static void dm_destroy(struct dm *dm)
{
	fork_remove(&dm->forks);
	munmap(dm->bytes, dm->pages * dm_page());
	dm_give(&dm->forks);
	device_put(dm->dev);
	free(dm);
}

/* Decrements one of the counts; frees the memory with the last one. */
static void dm_drop(struct dm *dm, u32 *count)
{
	bool last;

	pthread_mutex_lock(&lists_lock);
	--*count;
	last = !dm->handles && !dm->regions;
	pthread_mutex_unlock(&lists_lock);
	if (last)
		dm_destroy(dm);
}

/* Caller holds lists_lock, and a region or handle that keeps dm. */
void dm_use(struct dm *dm)
{
	dm->regions++;
}

void dm_unuse(struct dm *dm)
{
	dm_drop(dm, &dm->regions);
}

/* ---- copies ---- */

/* Returns 0, EFAULT beyond the end, or EINVAL: not a multiple of mlx5's unit. */
static int dm_check_range(const struct dm *dm, u64 offset, u64 length)
{
	if (offset > dm->length || length > dm->length - offset)
		return EFAULT;
	return (offset | length) % DM_UNIT ? EINVAL : 0;
}

/*
 * Copies aligned 8-byte words as a whole, and 4 bytes before and after them: a counter that peers
 * add to is never read torn. Programs order copies of the same bytes themselves. The program's
 * buffer may have any alignment.
 */
static u32 dm_step(u64 offset, u64 length)
{
	return offset % sizeof(u64) || length < sizeof(u64) ? sizeof(u32) : sizeof(u64);
}

static int dm_copy_to(struct ibv_dm *ibdm, uint64_t offset, const void *host, size_t length)
{
	const struct dm *dm = to_vdm(ibdm)->dm;
	int err = dm_check_range(dm, offset, length);
	const u8 *from = host;
	u32 step, half;
	u64 word;

	for (; !err && length; from += step, offset += step, length -= step) {
		void *at = dm->bytes + offset;

		step = dm_step(offset, length);
		if (step == sizeof(word)) {
			memcpy(&word, from, sizeof(word));
			atomic_store_explicit((_Atomic u64 *)at, word, memory_order_relaxed);
		} else {
			memcpy(&half, from, sizeof(half));
			atomic_store_explicit((_Atomic u32 *)at, half, memory_order_relaxed);
		}
	}
	return verb_report(err);
}

static int dm_copy_from(void *host, struct ibv_dm *ibdm, uint64_t offset, size_t length)
{
	const struct dm *dm = to_vdm(ibdm)->dm;
	int err = dm_check_range(dm, offset, length);
	u32 step, half;
	u8 *to = host;
	u64 word;

	for (; !err && length; to += step, offset += step, length -= step) {
		void *at = dm->bytes + offset;

		step = dm_step(offset, length);
		if (step == sizeof(word)) {
			word = atomic_load_explicit((_Atomic u64 *)at, memory_order_relaxed);
			memcpy(to, &word, sizeof(word));
		} else {
			half = atomic_load_explicit((_Atomic u32 *)at, memory_order_relaxed);
			memcpy(to, &half, sizeof(half));
		}
	}
	return verb_report(err);
}

/* ---- handles ---- */

/* Initializes the handle, which the caller has added to dm->handles. */
static struct ibv_dm *vdm_ready(struct vdm *vdm, struct ibv_context *context, struct dm *dm)
{
	vdm->dm = dm;
	vdm->ibv = (struct newer_dm){ .context = context,
				      .memcpy_to_dm = dm_copy_to,
				      .memcpy_from_dm = dm_copy_from,
				      .comp_mask = DM_MASK_HANDLE,
				      .handle = dm->handle };
	object_know(vdm);
	context_get(to_vcontext(context));
	vlist_add(&dms, &vdm->listed);
	return (struct ibv_dm *)&vdm->ibv;
}

static void vdm_free(struct vdm *vdm)
{
	struct vcontext *ctx = to_vcontext(vdm->id.context);

	vlist_remove(&dms, &vdm->listed);
	dm_drop(vdm->dm, &vdm->dm->handles);
	free(vdm);
	context_put(ctx);
}

/* Checks that need no resources. Returns 0 or a positive errno. */
static int dm_check_attr(struct ibv_context *context, const struct ibv_alloc_dm_attr *attr)
{
	/* Device memory begins at a page: larger alignments are not possible. */
	if (attr->comp_mask || !attr->length ||
	    attr->log_align_req > (u32)__builtin_ctzll(dm_page()))
		return EINVAL;
	/* Works in a forked child, which gets its own memory. */
	return context_interface_gone(context) ? EIO : 0;
}

struct ibv_dm *alloc_dm_op(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	int err = dm_check_attr(context, attr);
	struct vdm *vdm;
	struct dm *dm;

	if (verb_fails(context, CALL_ibv_alloc_dm))
		return verb_fail(errno);
	if (err)
		return verb_fail(err);
	vdm = calloc(1, sizeof(*vdm));
	err = vdm ? dm_new(context, attr->length, &dm) : ENOMEM;
	if (err) {
		free(vdm);
		return verb_fail(err);
	}
	dm->handles = 1;
	return vdm_ready(vdm, context, dm);
}

int free_dm_op(struct ibv_dm *ibdm)
{
	struct vdm *vdm = to_vdm(ibdm);
	int err = 0;

	if (verb_fails(ibdm->context, CALL_ibv_free_dm))
		return verb_report(errno);
	pthread_mutex_lock(&lists_lock);
	if (!object_is_known(vdm) || vdm->dm->freed)
		err = ENOENT;
	else if (vdm->dm->regions)
		err = EBUSY;
	else
		vdm->dm->freed = true;
	pthread_mutex_unlock(&lists_lock);
	if (err)
		return verb_report(err);
	vdm_free(vdm);
	return 0;
}

EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	struct dm *dm = NULL;
	struct vdm *vdm;

	if (verb_fails(context, CALL_ibv_import_dm))
		return verb_fail(errno);
	if (context_gone(context))
		return verb_fail(EIO);
	vdm = calloc(1, sizeof(*vdm));
	if (!vdm)
		return verb_fail(ENOMEM);
	pthread_mutex_lock(&lists_lock);
	for (struct vlink *n = dms.first; n && !dm; n = n->next) {
		struct vdm *d = container_of(n, struct vdm, listed);

		if (d->dm->handle == dm_handle && !d->dm->freed && !context_gone(d->id.context) &&
		    d->dm->file_id == to_vcontext(context)->file_id)
			dm = d->dm;
	}
	if (dm)
		dm->handles++;
	pthread_mutex_unlock(&lists_lock);
	if (dm)
		return vdm_ready(vdm, context, dm);
	free(vdm);
	return verb_fail(ENOENT);
}

/* The memory remains while it has another handle or a region. */
EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
	vdm_free(to_vdm(dm));
}

/* ---- regions ---- */

/* Returns 0, with the region counted, or a positive errno. */
static int dm_check_region(struct vdm *vdm, struct ibv_pd *pd, u64 offset, u64 length,
			   unsigned int access)
{
	struct dm *dm = vdm->dm;
	int err = 0;

	if (!(access & IBV_ACCESS_ZERO_BASED) || access & ~(unsigned int)DM_ACCESS_KNOWN ||
	    offset > dm->length || length > dm->length - offset)
		return EINVAL;
	pthread_mutex_lock(&lists_lock);
	if (!object_is_known(vdm) || dm->freed ||
	    dm->file_id != to_vcontext(pd->context)->file_id)
		err = ENOENT;
	else
		dm_use(dm);
	pthread_mutex_unlock(&lists_lock);
	return err;
}

struct ibv_mr *reg_dm_mr_op(struct ibv_pd *pd, struct ibv_dm *ibdm, uint64_t offset, size_t length,
			    unsigned int access)
{
	struct vdm *vdm = to_vdm(ibdm);
	int err = dm_check_region(vdm, pd, offset, length, access);
	struct ibv_mr *mr;

	if (verb_fails(pd->context, CALL_ibv_reg_dm_mr))
		return verb_fail(errno);
	if (err)
		return verb_fail(err);
	mr = mr_reg_dm(pd, vdm->dm, vdm->dm->bytes + offset, length, access);
	if (!mr) {
		err = errno;
		dm_unuse(vdm->dm);
		return verb_fail(err);
	}
	return mr;
}

/* ---- dma-buf ---- */

/*
 * ibv_reg_dmabuf_mr(3): regions of buffers that other drivers share by a descriptor. The engine
 * copies with the CPU, so the buffer is mapped. A buffer that cannot be mapped (device memory that
 * the CPU cannot reach) cannot be registered. The region owns the mapping, which keeps the buffer
 * after the descriptor is closed, until ibv_dereg_mr(). A page removed under the mapping causes a
 * fault, which run/fault.c turns into an access error.
 */

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

	if (verb_fails(pd->context, CALL_ibv_reg_dmabuf_mr))
		return verb_fail(errno);
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
