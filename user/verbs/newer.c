/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Verbs of rdma-core 59 and later that need little: DMA handles, buffers, regions by attributes,
 * and exports of dma-bufs. comp_cntr.c has the completion counters, query.c the port's speed.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "objects.h"

/* A macro that came with struct ibv_buf: the header has all structs of this file. */
#ifdef IBV_DEVICE_CC_DMA_BOUNCE
_Static_assert(sizeof(struct newer_mr_attr) == sizeof(struct ibv_mr_init_attr) &&
		       offsetof(struct newer_mr_attr, buf) ==
			       offsetof(struct ibv_mr_init_attr, buf) &&
		       (int)REG_MR_BUF == (int)IBV_REG_MR_MASK_BUF,
	       "struct ibv_mr_init_attr");
_Static_assert(sizeof(struct newer_dmah_attr) == sizeof(struct ibv_dmah_init_attr) &&
		       offsetof(struct newer_dmah_attr, tph_mem_type) ==
			       offsetof(struct ibv_dmah_init_attr, tph_mem_type),
	       "struct ibv_dmah_init_attr");
_Static_assert(offsetof(struct verbs_context, query_port) -
			       offsetof(struct verbs_context, free_buf) ==
		       sizeof(struct newer_ops),
	       "struct verbs_context");
#endif

/* ---- DMA handles ---- */

/*
 * Hints for an adapter's PCIe transactions (ibv_alloc_dmah(3)). Here the CPU accesses all memory,
 * so a handle is checked and counted, and has no other effect.
 */

static struct vdmah *to_vdmah(struct newer_dmah *dmah)
{
	return container_of(dmah, struct vdmah, ibv);
}

/* Returns 0 or a positive errno. The rules of mlx5 and of its kernel driver. */
static int dmah_check(const struct newer_dmah_attr *attr)
{
	const u32 steering = DMAH_CPU_ID | DMAH_MEM_TYPE;
	const u32 given = attr->comp_mask & steering;

	if (attr->comp_mask & ~(steering | DMAH_PH))
		return EOPNOTSUPP;
	if (!(attr->comp_mask & DMAH_PH) || attr->ph > DMAH_PH_MAX)
		return EINVAL;
	if (!given)
		return 0;
	if (given != steering || attr->tph_mem_type > DMAH_PERSISTENT)
		return EINVAL;
	return attr->cpu_id < (u64)sysconf(_SC_NPROCESSORS_CONF) ? 0 : EINVAL;
}

struct newer_dmah *alloc_dmah(struct ibv_context *context, struct newer_dmah_attr *attr)
{
	int err = context_gone(context) ? EIO : dmah_check(attr);
	struct vdmah *dmah;

	if (verb_fails(context, CALL_ibv_alloc_dmah))
		return verb_fail(errno);
	if (err)
		return verb_fail(err);
	dmah = calloc(1, sizeof(*dmah));
	if (!dmah)
		return verb_fail(ENOMEM);
	dmah->ibv.context = context;
	context_get(to_vcontext(context));
	return &dmah->ibv;
}

int dealloc_dmah(struct newer_dmah *ibdmah)
{
	struct vdmah *dmah = to_vdmah(ibdmah);
	struct vcontext *ctx = to_vcontext(ibdmah->context);

	if (verb_fails(ibdmah->context, CALL_ibv_dealloc_dmah))
		return verb_report(errno);
	if (users_left(&dmah->users))
		return verb_report(EBUSY);
	free(dmah);
	context_put(ctx);
	return 0;
}

/* ---- buffers ---- */

/* Memory of ibv_alloc_buf(3): whole pages of the process. */
struct ibv_buf {
	struct ibv_pd *pd;
	u8 *addr;
	size_t length; /* in bytes, as requested */
};

static size_t buf_bytes(size_t length)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (length + page - 1) & ~(page - 1);
}

void *alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **out)
{
	struct ibv_buf *buf;

	if (verb_fails(pd->context, CALL_ibv_alloc_buf))
		return verb_fail(errno);
	if (!object_is_known(to_vpd(pd)))
		return verb_fail(ENOENT);
	if (!size)
		return verb_fail(EINVAL);
	if (context_gone(pd->context))
		return verb_fail(EIO);
	buf = calloc(1, sizeof(*buf));
	if (!buf || buf_bytes(size) < size)
		goto no_memory;
	buf->addr = mmap(NULL, buf_bytes(size), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf->addr == MAP_FAILED)
		goto no_memory;
	buf->pd = pd;
	buf->length = size;
	pd_use(to_vpd(pd));
	*out = buf;
	return buf->addr;
no_memory:
	free(buf);
	return verb_fail(ENOMEM);
}

/* Regions of the buffer are deregistered first, as with any memory that a program frees. */
void free_buf(struct ibv_buf *buf)
{
	munmap(buf->addr, buf_bytes(buf->length));
	pd_unuse(to_vpd(buf->pd));
	free(buf);
}

/* "If buf is not backed by a DMA-buf, errno is set to ENODATA." None is. */
int export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	return verb_fail_int(ENODATA);
}

/* Device memory is pages of this process, of which the kernel makes no dma-buf. */
int dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	if (verb_fails(dm->context, CALL_ibv_dm_export_dmabuf_fd))
		return -1;
	return verb_fail_int(EOPNOTSUPP);
}

/* ---- regions by attributes ---- */

/* Checks that a region lies in its buffer. Returns 0 or EINVAL. */
static int buf_check(const struct ibv_pd *pd, const struct newer_mr_attr *attr)
{
	const struct ibv_buf *buf = attr->buf;
	u64 offset;

	if (!buf || buf->pd != pd || !(attr->comp_mask & REG_MR_ADDR) ||
	    attr->comp_mask & (REG_MR_FD | REG_MR_FD_OFFSET))
		return EINVAL;
	offset = (uintptr_t)attr->addr - (uintptr_t)buf->addr;
	return offset > buf->length || attr->length > buf->length - offset ? EINVAL : 0;
}

/* Checks the combination of attributes. Returns 0 or a positive errno, as rdma-core does. */
static int reg_check(const struct ibv_pd *pd, const struct newer_mr_attr *attr)
{
	const u64 of_fd = REG_MR_FD | REG_MR_FD_OFFSET;

	if (attr->comp_mask & ~(of_fd | REG_MR_IOVA | REG_MR_ADDR | REG_MR_DMAH | REG_MR_BUF))
		return EOPNOTSUPP;
	if (attr->comp_mask & REG_MR_DMAH && (!attr->dmah || attr->dmah->context != pd->context))
		return EINVAL;
	/* as mlx5's kernel driver */
	if (attr->comp_mask & REG_MR_DMAH && attr->access & IBV_ACCESS_ON_DEMAND)
		return EOPNOTSUPP;
	if (attr->comp_mask & REG_MR_BUF)
		return buf_check(pd, attr);
	if (attr->comp_mask & REG_MR_ADDR)
		return attr->comp_mask & of_fd ? EINVAL : 0;
	return (attr->comp_mask & (of_fd | REG_MR_IOVA)) == (of_fd | REG_MR_IOVA) ? 0 : EINVAL;
}

struct ibv_mr *reg_mr_ex(struct ibv_pd *pd, struct newer_mr_attr *attr)
{
	int err = reg_check(pd, attr);
	struct ibv_mr *mr;

	if (verb_fails(pd->context, CALL_ibv_reg_mr_ex))
		return verb_fail(errno);
	if (err)
		return verb_fail(err);
	if (attr->comp_mask & REG_MR_FD)
		mr = ibv_reg_dmabuf_mr(pd, attr->fd_offset, attr->length, attr->iova, attr->fd,
				       attr->access);
	else if (attr->comp_mask & REG_MR_IOVA)
		mr = ibv_reg_mr_iova(pd, attr->addr, attr->length, attr->iova, attr->access);
	else
		mr = ibv_reg_mr(pd, attr->addr, attr->length, attr->access);
	if (mr && attr->comp_mask & REG_MR_DMAH) {
		to_vmr(mr)->dmah = to_vdmah(attr->dmah);
		users_count(&to_vmr(mr)->dmah->users, 1);
	}
	return mr;
}

struct ibv_mr *reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
			  int access)
{
	struct newer_mr_attr attr = { .length = length,
				      .access = access,
				      .comp_mask = REG_MR_BUF | REG_MR_ADDR,
				      .addr = addr,
				      .buf = buf };

	return reg_mr_ex(pd, &attr);
}

/* ---- the context's table ---- */

/* Distance from the first of the newer members to the end of struct verbs_context. */
#define NEWER_SIZE                                                                                 \
	(sizeof(struct verbs_context) - offsetof(struct verbs_context, query_port) +               \
	 sizeof(struct newer_ops))

void context_set_newer_ops(struct vcontext *ctx)
{
	static const struct newer_ops ops = {
		.free_buf = free_buf,
		.alloc_buf = alloc_buf,
		.dm_export_dmabuf_fd = dm_export_dmabuf_fd,
		.reg_mr_ex = reg_mr_ex,
		.dealloc_dmah = dealloc_dmah,
		.alloc_dmah = alloc_dmah,
	};

	memcpy((u8 *)ctx + offsetof(struct vcontext, v.query_port) - sizeof(ops), &ops,
	       sizeof(ops));
	ctx->v.sz = max_u64(sizeof(ctx->v), NEWER_SIZE);
}
