/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san */
/*
 * ibv_reg_mr_ex() of ibv_reg_mr(3), ibv_alloc_dmah(3), ibv_alloc_buf(3), ibv_query_port_speed(3),
 * ibv_dm_export_dmabuf_fd(3), and the members of struct verbs_context that came with them.
 */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "man.h"
#include "newer.h"

#define ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define HINTS ((struct dmah_attr){ .comp_mask = 7, .ph = 3, .tph_mem_type = 1 })

static bool symbols(void)
{
	if (newer_missing())
		printf("# no %s\n", newer_missing());
	return !newer_missing();
}

/* A header's inline function compares sz with the distance of a member from the struct's end. */
static bool context_table(void)
{
	const struct verbs_context *v = verbs_get_ctx(ctx);
	const size_t end = sizeof(*v) - offsetof(struct verbs_context, query_port);
	const struct first_ops *ops;

	MUST(v);
	ops = (const void *)((const char *)&v->query_port - sizeof(*ops));
	MUST(v->sz >= end + sizeof(*ops));
	MUST(ops->alloc_dmah == v_alloc_dmah && ops->dealloc_dmah == v_dealloc_dmah);
	MUST(ops->reg_mr_ex == v_reg_mr_ex);
	MUST(ops->dm_export_dmabuf_fd == v_dm_export_dmabuf_fd);
	MUST(ops->alloc_buf == v_alloc_buf && ops->free_buf == v_free_buf);
	return true;
}

/* ---- regions ---- */

/* A SEND and its receive by these regions: the bytes arrive. */
static bool carries(struct pair *p, struct ibv_mr *from, uint64_t at, struct ibv_mr *to,
		    uint64_t into, const char *sent, const char *received)
{
	struct ibv_sge out = { at, 64, from->lkey }, in = { into, 64, to->lkey };
	struct ibv_send_wr wr = { .sg_list = &out,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr rr = { .sg_list = &in, .num_sge = 1 }, *bad_rr;
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	MUST_EQ(ibv_post_recv(p->qp[1], &rr, &bad_rr), 0);
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.byte_len, 64);
	MUST(wait_wc(p->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST(!memcmp(sent, received, 64));
	return true;
}

/* "enables all the variants of the other ibv_reg_mr_xxx()": by address, with and without IOVA. */
static bool by_address_body(struct pair *p)
{
	struct mr_attr attr = { .length = 4096, .access = ALL, .comp_mask = WITH_ADDR,
				.addr = p->buf[0], .iova = 0x10000, .fd = -1 };
	struct ibv_mr *from, *to;

	MUST(from = v_reg_mr_ex(p->pd, &attr));
	MUST(from->addr == p->buf[0] && from->length == 4096 && from->pd == p->pd);
	attr.addr = p->buf[1];
	attr.comp_mask |= WITH_IOVA;
	MUST(to = v_reg_mr_ex(p->pd, &attr));
	memset(p->buf[0], 'a', 64);
	memset(p->buf[1], 'b', 128);
	MUST(carries(p, from, (uintptr_t)p->buf[0], to, 0x10000, p->buf[0], p->buf[1]));
	MUST(p->buf[1][64] == 'b');
	MUST_EQ(ibv_dereg_mr(from), 0);
	MUST_EQ(ibv_dereg_mr(to), 0);
	return true;
}
ON_PAIR(by_address, by_address_body)

/* Rights count: no LOCAL_WRITE, no receive. */
static bool rights_body(struct pair *p)
{
	struct mr_attr attr = { .length = 4096, .comp_mask = WITH_ADDR, .addr = p->buf[1] };
	struct ibv_mr *mr = v_reg_mr_ex(p->pd, &attr);
	struct ibv_sge in = { (uintptr_t)p->buf[1], 64, mr ? mr->lkey : 0 };
	struct ibv_recv_wr rr = { .sg_list = &in, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	MUST(mr);
	MUST_EQ(ibv_post_recv(p->qp[1], &rr, &bad), 0);
	MUST_EQ(post_send(p, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	MUST(wait_wc(p->cq[1], &wc));
	MUST_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
	MUST_EQ(ibv_dereg_mr(mr), 0);
	attr.access = IBV_ACCESS_REMOTE_WRITE;
	MUST_FAIL(v_reg_mr_ex(p->pd, &attr), EINVAL);
	return true;
}
ON_PAIR(rights, rights_body)

/* "One among mr_init_attr->fd and mr_init_attr->addr is required, both can't come together." */
static bool combinations_body(struct pair *p)
{
	struct mr_attr attr = { .length = 4096, .addr = p->buf[0], .fd = -1 };

	for (uint64_t mask = 0; mask < 16; mask++) {
		attr.comp_mask = mask;
		if ((mask & ~(uint64_t)WITH_IOVA) == WITH_ADDR)
			continue;
		/* a descriptor with all that belongs to it: looked at, and it is none */
		MUST_FAIL(v_reg_mr_ex(p->pd, &attr),
			  mask == (WITH_FD | WITH_OFFSET | WITH_IOVA) ? EBADF : EINVAL);
	}
	for (uint64_t bit = 64; bit; bit <<= 1) {
		attr.comp_mask = WITH_ADDR | bit;
		MUST_FAIL(v_reg_mr_ex(p->pd, &attr), EOPNOTSUPP);
	}
	return true;
}
ON_PAIR(combinations, combinations_body)

/* ---- DMA handles ---- */

/* mlx5's rules: a processing hint is a must, the other two come together. */
static bool handles(void)
{
	const uint32_t good = 1 << 2 | 1 << 7; /* comp_mask 2 and 7 */
	struct dmah_attr attr = HINTS;
	struct dmah *dmah;

	for (attr.comp_mask = 0; attr.comp_mask < 8; attr.comp_mask++) {
		if (!(good >> attr.comp_mask & 1)) {
			MUST_FAIL(v_alloc_dmah(ctx, &attr), EINVAL);
			continue;
		}
		MUST(dmah = v_alloc_dmah(ctx, &attr));
		MUST(dmah->context == ctx);
		MUST_EQ(v_dealloc_dmah(dmah), 0);
	}
	attr.comp_mask = 8;
	MUST_FAIL(v_alloc_dmah(ctx, &attr), EOPNOTSUPP);
	attr = HINTS;
	attr.ph = 4;
	MUST_FAIL(v_alloc_dmah(ctx, &attr), EINVAL);
	attr = HINTS;
	attr.tph_mem_type = 2;
	MUST_FAIL(v_alloc_dmah(ctx, &attr), EINVAL);
	attr = HINTS;
	attr.cpu_id = UINT32_MAX;
	MUST_FAIL(v_alloc_dmah(ctx, &attr), EINVAL);
	return true;
}

/* A handle is busy while a region has it, and of its own context only. */
static bool region_with_handle_body(struct pair *p)
{
	struct ibv_context *other = ibv_open_device(ctx->device);
	struct dmah_attr hints = HINTS;
	struct dmah *dmah = v_alloc_dmah(ctx, &hints), *foreign;
	struct mr_attr attr = { .length = 4096, .access = ALL, .comp_mask = WITH_ADDR | WITH_DMAH,
				.addr = p->buf[0], .dmah = dmah };
	struct ibv_mr *mr[2];

	MUST(other && dmah);
	MUST(foreign = v_alloc_dmah(other, &hints));
	for (int i = 0; i < 2; i++)
		MUST(mr[i] = v_reg_mr_ex(p->pd, &attr));
	memset(p->buf[0], 'c', 64);
	MUST(carries(p, mr[0], (uintptr_t)p->buf[0], p->mr[1], (uintptr_t)p->buf[1], p->buf[0],
		     p->buf[1]));
	MUST_EQ(v_dealloc_dmah(dmah), EBUSY);
	MUST_EQ(ibv_dereg_mr(mr[0]), 0);
	MUST_EQ(v_dealloc_dmah(dmah), EBUSY);
	MUST_EQ(ibv_dereg_mr(mr[1]), 0);
	attr.access |= IBV_ACCESS_ON_DEMAND;
	MUST_FAIL(v_reg_mr_ex(p->pd, &attr), EOPNOTSUPP);
	attr.access = ALL;
	attr.dmah = foreign;
	MUST_FAIL(v_reg_mr_ex(p->pd, &attr), EINVAL);
	MUST_EQ(v_dealloc_dmah(dmah), 0);
	MUST_EQ(v_dealloc_dmah(foreign), 0);
	MUST_EQ(ibv_close_device(other), 0);
	return true;
}
ON_PAIR(region_with_handle, region_with_handle_body)

/* ---- buffers ---- */

/* "at least page aligned": whole, zeroed memory that can be registered in parts. */
static bool buffers_body(struct pair *p)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), length = 3 * page + 5;
	struct ibv_buf *buf = NULL;
	char *at = v_alloc_buf(p->pd, length, &buf);
	struct ibv_mr *all, *part;

	MUST(at && buf && (uintptr_t)at % page == 0);
	for (size_t i = 0; i < length; i++)
		MUST_EQ(at[i], 0);
	MUST(all = v_reg_buf_mr(p->pd, buf, at, length, ALL));
	MUST(all->addr == at && all->length == length && all->pd == p->pd);
	MUST(part = v_reg_buf_mr(p->pd, buf, at + length - 64, 64, ALL));
	memset(at, 'd', 64);
	MUST(carries(p, all, (uintptr_t)at, part, (uintptr_t)at + length - 64, at,
		     at + length - 64));
	MUST_EQ(ibv_dereg_mr(all), 0);
	MUST_EQ(ibv_dereg_mr(part), 0);
	v_free_buf(buf);
	MUST(msync(at, page, MS_ASYNC) && errno == ENOMEM); /* it is unmapped */
	return true;
}
ON_PAIR(buffers, buffers_body)

/* "addr + length must stay within the buffer", "the same protection domain". */
static bool buffer_bounds_body(struct pair *p)
{
	struct ibv_buf *buf = NULL;
	char *at = v_alloc_buf(p->pd, 8192, &buf);
	struct mr_attr attr = { .length = 4096, .access = ALL, .comp_mask = WITH_ADDR | WITH_BUF,
				.addr = at, .buf = buf, .iova = 0x20000, .fd = -1 };
	struct ibv_pd *other = ibv_alloc_pd(ctx);
	struct ibv_mr *mr;

	MUST(at && other);
	MUST_FAIL(v_reg_buf_mr(p->pd, buf, at - 1, 8, ALL), EINVAL);
	MUST_FAIL(v_reg_buf_mr(p->pd, buf, at, 8193, ALL), EINVAL);
	MUST_FAIL(v_reg_buf_mr(p->pd, buf, at + 8190, 3, ALL), EINVAL);
	MUST_FAIL(v_reg_buf_mr(p->pd, buf, at + 8193, 0, ALL), EINVAL);
	MUST_FAIL(v_reg_buf_mr(p->pd, buf, at, SIZE_MAX, ALL), EINVAL);
	MUST_FAIL(v_reg_buf_mr(other, buf, at, 8192, ALL), EINVAL);
	for (uint64_t bit = WITH_FD; bit <= WITH_OFFSET; bit <<= 1) {
		attr.comp_mask = WITH_ADDR | WITH_BUF | bit;
		MUST_FAIL(v_reg_mr_ex(p->pd, &attr), EINVAL);
	}
	attr.comp_mask = WITH_BUF;
	MUST_FAIL(v_reg_mr_ex(p->pd, &attr), EINVAL);
	attr.comp_mask = WITH_ADDR | WITH_BUF | WITH_IOVA; /* plain memory may have one */
	MUST(mr = v_reg_mr_ex(p->pd, &attr));
	MUST_EQ(ibv_dereg_mr(mr), 0);
	/* "The protection domain used for allocation must remain valid" */
	MUST_EQ(v_export_buf_dmabuf_fd(buf), -1);
	MUST_EQ(errno, ENODATA);
	v_free_buf(buf);
	MUST(v_alloc_buf(other, 1, &buf));
	MUST_EQ(ibv_dealloc_pd(other), EBUSY);
	v_free_buf(buf);
	MUST_EQ(ibv_dealloc_pd(other), 0);
	MUST_FAIL(v_alloc_buf(p->pd, 0, &buf), EINVAL);
	MUST_FAIL(v_alloc_buf(p->pd, SIZE_MAX, &buf), ENOMEM);
	MUST_FAIL(v_alloc_buf(p->pd, SIZE_MAX / 2, &buf), ENOMEM);
	return true;
}
ON_PAIR(buffer_bounds, buffer_bounds_body)

/* A permission that a device without bounced DMA does not use. */
static bool unprotected_domain(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *domain;
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .comp_mask = 1 << 2 };
	struct ibv_buf *buf;
	struct ibv_mr *mr;
	void *at;

	MUST(pd && (domain = ibv_alloc_parent_domain(ctx, &attr)));
	MUST(at = v_alloc_buf(domain, 4096, &buf));
	MUST_FAIL(v_reg_buf_mr(pd, buf, at, 4096, ALL), EINVAL);
	MUST(mr = v_reg_buf_mr(domain, buf, at, 4096, ALL));
	MUST_EQ(ibv_dereg_mr(mr), 0);
	v_free_buf(buf);
	MUST_EQ(ibv_dealloc_pd(domain), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	attr.comp_mask = 1 << 3;
	MUST(pd = ibv_alloc_pd(ctx));
	attr.pd = pd;
	MUST_FAIL(ibv_alloc_parent_domain(ctx, &attr), EINVAL);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static bool exported_dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);

	MUST(dm);
	errno = 0;
	MUST_EQ(v_dm_export_dmabuf_fd(dm), -1);
	MUST_EQ(errno, EOPNOTSUPP);
	MUST_EQ(ibv_free_dm(dm), 0);
	return true;
}

/* The child's copies: nothing new, and its buffer is its own. */
static bool child_body(void *arg)
{
	struct pair *p = arg;
	struct dmah_attr hints = HINTS;
	struct mr_attr attr = { .length = 4096, .comp_mask = WITH_ADDR, .addr = p->buf[0] };
	struct ibv_buf *buf;
	uint64_t speed;

	MUST_FAIL(v_alloc_dmah(ctx, &hints), EIO);
	MUST_FAIL(v_alloc_buf(p->pd, 4096, &buf), EIO);
	MUST_FAIL(v_reg_mr_ex(p->pd, &attr), EIO);
	MUST_EQ(v_query_port_speed(ctx, 1, &speed), EIO);
	return true;
}

static bool in_child_body(struct pair *p)
{
	return in_a_child(child_body, p);
}
ON_PAIR(in_child, in_child_body)

/* ---- ibv_query_port_speed(3) ---- */

/* The speed of the device's interface in Mbit/s as its driver has it, or 0. */
static unsigned int driver_mbps(void)
{
	struct ethtool_cmd cmd = { .cmd = ETHTOOL_GSET };
	struct ifreq request = { .ifr_data = (char *)&cmd };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s",
		 ibv_get_device_name(ctx->device) + strlen("xroce_"));
	err = ioctl(fd, SIOCETHTOOL, &request);
	close(fd);
	return err ? 0 : ethtool_cmd_speed(&cmd);
}

/* "in 100Mb/s granularity" */
static bool port_speed(void)
{
	const unsigned int mbps = driver_mbps();
	uint64_t speed = 0;

	MUST(mbps >= 1000 && mbps < INT32_MAX);
	MUST_EQ(v_query_port_speed(ctx, 1, &speed), 0);
	MUST_EQ(speed, mbps / 100);
	speed = 7;
	MUST_EQ(v_query_port_speed(ctx, 0, &speed), EINVAL);
	MUST_EQ(v_query_port_speed(ctx, 2, &speed), EINVAL);
	MUST_EQ(v_query_port_speed(ctx, 257, &speed), EINVAL); /* more than 8 bits count */
	MUST_EQ(speed, 7);
	return true;
}

const struct test_case man_cases[] = {
	CASE(symbols),
	CASE(context_table),
	CASE(by_address),
	CASE(rights),
	CASE(combinations),
	CASE(handles),
	CASE(region_with_handle),
	CASE(buffers),
	CASE(buffer_bounds),
	CASE(unprotected_domain),
	CASE(exported_dm),
	CASE(in_child),
	CASE(port_speed),
	{ 0 },
};
