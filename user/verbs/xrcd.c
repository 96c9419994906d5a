/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * XRC domains (ibv_open_xrcd(3)): numbers that the engine compares. All users in this process that
 * open the same inode on the same device share one domain. It exists while any of them has it open,
 * and keeps the inode open.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "objects.h"

struct xrc_domain {
	u32 number;
	u32 refs;		/* number of handles, under lists_lock */
	/* our descriptor, so that the inode number is not reused; -1 for a private domain */
	int fd;
	dev_t dev;
	ino_t ino;
	const struct vdevice *device; /* NULL in a forked child: the parent's domain */
	struct xrc_domain *next;
};

static struct xrc_domain *domains; /* domains with a file */

u32 xrcd_number(const struct vxrcd *vxrcd)
{
	return vxrcd->domain->number;
}

/* Caller holds lists_lock. */
static struct xrc_domain *domain_find(const struct vdevice *device, const struct stat *st)
{
	for (struct xrc_domain *d = domains; d; d = d->next)
		if (d->device == device && d->dev == st->st_dev && d->ino == st->st_ino)
			return d;
	return NULL;
}

/* fd is -1, or the descriptor to duplicate. Returns 0 or a positive errno. */
static int domain_new(const struct vdevice *device, int fd, const struct stat *st,
		      struct xrc_domain **out)
{
	struct xrc_domain *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return ENOMEM;
	d->number = new_handle();
	d->refs = 1;
	d->device = device;
	d->fd = -1;
	if (fd >= 0) {
		d->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (d->fd < 0) {
			err = errno;
			free(d);
			return err;
		}
		d->dev = st->st_dev;
		d->ino = st->st_ino;
		d->next = domains;
		domains = d;
	}
	*out = d;
	return 0;
}

/*
 * Finds the file's domain and takes a reference. Returns 0 or a positive errno, like the kernel if
 * the domain is missing, or exists despite O_EXCL.
 */
static int domain_of_file(const struct vdevice *device, int fd, int oflags, struct xrc_domain **out)
{
	struct stat st;
	int err = 0;

	if (fstat(fd, &st))
		return errno;
	pthread_mutex_lock(&lists_lock);
	*out = domain_find(device, &st);
	if (!*out)
		err = oflags & O_CREAT ? domain_new(device, fd, &st, out) : EAGAIN;
	else if ((oflags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		err = EINVAL;
	else
		(*out)->refs++;
	pthread_mutex_unlock(&lists_lock);
	return err;
}

static void domain_put(struct xrc_domain *d)
{
	struct xrc_domain **at = &domains;

	pthread_mutex_lock(&lists_lock);
	if (--d->refs) {
		pthread_mutex_unlock(&lists_lock);
		return;
	}
	while (*at && *at != d)
		at = &(*at)->next;
	if (*at)
		*at = d->next;
	pthread_mutex_unlock(&lists_lock);
	if (d->fd >= 0)
		close(d->fd);
	free(d);
}

/* A child that opens the file gets a new domain. */
static void xrcd_in_child(struct fork_entry *entry)
{
	container_of(entry, struct vxrcd, forks)->domain->device = NULL;
}

struct ibv_xrcd *open_xrcd_op(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	const u32 required = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct vcontext *ctx = to_vcontext(context);
	struct vxrcd *vxrcd;
	int err;

	if (attr->comp_mask != required || attr->fd < -1 || attr->oflags & ~(O_CREAT | O_EXCL))
		return verb_fail(EINVAL);
	if (context_gone(context))
		return verb_fail(EIO);
	vxrcd = calloc(1, sizeof(*vxrcd));
	if (!vxrcd)
		return verb_fail(ENOMEM);
	err = attr->fd >= 0 ? domain_of_file(ctx->dev, attr->fd, attr->oflags, &vxrcd->domain) :
			      domain_new(ctx->dev, -1, NULL, &vxrcd->domain);
	if (err) {
		free(vxrcd);
		return verb_fail(err);
	}
	vxrcd->ibv.context = context;
	fork_add(&vxrcd->forks, xrcd_in_child);
	context_get(ctx);
	return &vxrcd->ibv;
}

/* Only handles used by SRQs and QPs are busy, not the domain: other handles may remain in use. */
int close_xrcd_op(struct ibv_xrcd *xrcd)
{
	struct vxrcd *vxrcd = to_vxrcd(xrcd);
	struct vcontext *ctx = to_vcontext(xrcd->context);

	if (users_left(&vxrcd->users))
		return verb_report(EBUSY);
	fork_remove(&vxrcd->forks);
	domain_put(vxrcd->domain);
	free(vxrcd);
	context_put(ctx);
	return 0;
}
