/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../os/close_fd.h"
#include "../os/privilege.h"
#include "../os/bpf_room.h"
#include "../os/options.h"
#include "../os/netdev.h"
#include "../client/attach_error.h"
#include "dispatcher.h"
#include "hook.h"
#include "xroce.skel.h"

#define HOOK_BUSY_MS 200

struct xroce_bpf *hook_open_program(void)
{
	struct xroce_bpf *bpf = xroce_bpf__open();

	if (bpf && !netdev_kernel_syscall_context())
		bpf_program__set_autoload(bpf->progs.xroce_trace_tx, false);
	return bpf;
}

/* A program that is opened once more for each attempt to attach it. */
struct hook_program {
	hook_open_fn *open;
	void *arg;
	struct xroce_bpf **bpf;
};

/* Frees the program of a failed attempt. */
static int hook_open(const struct hook_program *p)
{
	xroce_bpf__destroy(*p->bpf);
	*p->bpf = p->open(p->arg);
	return *p->bpf ? 0 : -errno;
}

/* Gets the number and the name ("?": unknown) of the program on the hook. 0: none. */
static u32 hook_program_on(const struct netdev *dev, char name[BPF_OBJ_NAME_LEN])
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_prog_info info = { 0 };
	u32 id = 0, len = sizeof(info);
	int fd;

	snprintf(name, BPF_OBJ_NAME_LEN, "?");
	if (bpf_xdp_query((int)dev->ifindex, 0, &query) == 0)
		id = query.prog_id ? query.prog_id :
		     query.attach_mode == XDP_ATTACHED_MULTI && query.drv_prog_id ?
				     query.drv_prog_id :
				     query.skb_prog_id;
	fd = id ? bpf_prog_get_fd_by_id(id) : -ENOENT;
	if (fd < 0)
		return id;
	if (!bpf_obj_get_info_by_fd(fd, &info, &len) && info.name[0])
		snprintf(name, BPF_OBJ_NAME_LEN, "%s", info.name);
	close(fd);
	return id;
}

bool hook_has_ours(const struct netdev *dev)
{
	static const char ours[] = "xroce_";
	char name[BPF_OBJ_NAME_LEN];

	return hook_program_on(dev, name) && !strncmp(name, ours, sizeof(ours) - 1);
}

/*
 * Prints why the kernel refused a program with EBUSY or EEXIST. No program on this interface's hook
 * means that an upper device (macvlan, bridge, VLAN, bond) has one.
 */
static void hook_complain_busy(const struct netdev *dev)
{
	char comm[32] = "?", name[BPF_OBJ_NAME_LEN];
	const u32 id = hook_program_on(dev, name);
	pid_t pid = 0;

	if (!id)
		attach_complain(dev,
				"cannot attach the XDP program: an interface stacked on this one "
				"already has an XDP program; end the owner of that program, then "
				"start this process first");
	else if (netdev_holder(dev->ifindex, &pid, comm, sizeof(comm)) == -EPERM && pid > 0)
		attach_complain(
			dev,
			"cannot attach the XDP program: program %u (%s) is attached, and "
			"process %d (%s) of another user claims to own the interface; end it, "
			"or use another interface",
			id, name, (int)pid, comm);
	else
		attach_complain(
			dev,
			"cannot attach the XDP program: program %u (%s) is attached; detach it "
			"(`ip link set dev %s xdp off`) or end its owner",
			id, name, dev->name);
}

/* ---- two ways to attach: a descriptor that keeps the program attached, or -errno ---- */

typedef int hook_way(void *arg, u32 ifindex, bool native);

/* Retries, as the link of a process that has just ended may persist for a moment. */
static int hook_alone(void *arg, u32 ifindex, bool native)
{
	const int *prog_fd = arg;
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);
	const struct timespec nap = { .tv_nsec = 1000000 };
	int fd;

	for (u32 ms = 0;; ms++) {
		fd = bpf_link_create(*prog_fd, (int)ifindex, BPF_XDP, &opts);
		if ((fd != -EBUSY && fd != -EEXIST) || ms == HOOK_BUSY_MS)
			return fd;
		nanosleep(&nap, NULL);
	}
}

static int hook_beside(void *arg, u32 ifindex, bool native)
{
	const struct hook_program *p = arg;
	int err = hook_open(p);

	if (err)
		return err;
	(*p->bpf)->rodata->xroce_in_dispatcher = true;
	return dispatcher_join((*p->bpf)->obj, ifindex, native);
}

static int hook_in_mode(const struct netdev *dev, hook_way *way, void *arg, bool *native)
{
	const enum xdp_mode mode = xdp_mode(dev);
	int fd;

	*native = false;
	if (mode == XDP_MODE_GENERIC)
		return way(arg, dev->ifindex, false);
	fd = way(arg, dev->ifindex, true);
	*native = fd >= 0;
	/*
	 * EOPNOTSUPP: no native XDP. The others: a driver that has it, but not with this MTU or
	 * number of queues.
	 */
	if (mode == XDP_MODE_NATIVE ||
	    (fd != -EOPNOTSUPP && fd != -EINVAL && fd != -ERANGE && fd != -ENOSPC))
		return fd;
	if (!options_is_set(OPTION_QUIET))
		attach_complain(dev, "no native XDP (%s): using generic mode, which is slower",
				strerror(-fd));
	return way(arg, dev->ifindex, false);
}

/* ---- the choice ---- */

static int hook_attach_link(const struct netdev *dev, struct hook *h, int prog_fd)
{
	const int fd = hook_in_mode(dev, hook_alone, &prog_fd, &h->native);

	if (fd == -EBUSY || fd == -EEXIST) {
		hook_complain_busy(dev);
		return -EBUSY;
	}
	if (fd < 0)
		return attach_failed(dev, "attach the XDP program", fd);
	h->link_fd = fd;
	return 0;
}

int hook_put(const struct netdev *dev, struct hook *h, int prog_fd)
{
	int err;

	if (hook_is_in_dispatcher(h))
		return -EBUSY;
	if (h->link_fd < 0)
		return hook_attach_link(dev, h, prog_fd);
	err = bpf_link_update(h->link_fd, prog_fd, NULL);
	return err ? attach_failed(dev, "replace the XDP program", err) : 0;
}

static int hook_attach_alone(const struct netdev *dev, struct hook *h,
			     const struct hook_program *p)
{
	libbpf_print_fn_t before = privilege_hush_libbpf();
	int err = hook_open(p);

	if (!err)
		err = bpf_load((*p->bpf)->skeleton);
	libbpf_set_print(before);
	/* the caller has a smaller one */
	if (err == -E2BIG)
		return err;
	return err ? attach_failed(dev, "load the XDP program", err) :
		     hook_put(dev, h, bpf_program__fd((*p->bpf)->progs.xroce_xdp));
}

/* Keeps the link of a slot, and the program, by which the slot is found again. */
static int hook_keep_slot(struct hook *h, const struct hook_program *p, int link_fd)
{
	h->prog_fd = fcntl(bpf_program__fd((*p->bpf)->progs.xroce_xdp), F_DUPFD_CLOEXEC, 0);
	if (h->prog_fd < 0) {
		close(link_fd);
		return -errno;
	}
	h->link_fd = link_fd;
	return 0;
}

/* Attaches into an existing dispatcher, whose mode becomes ours. */
static int hook_attach_into(const struct netdev *dev, struct hook *h, struct hook_program *p,
			    bool native)
{
	const enum xdp_mode mode = xdp_mode(dev);
	int fd;

	if (native ? dev->is_stacked || options_xdp() == XDP_CHOICE_GENERIC :
		     mode == XDP_MODE_NATIVE) {
		attach_complain(dev,
				"the dispatcher on the XDP hook runs in %s mode, but this "
				"interface needs the other mode; attach its programs in the "
				"other mode, or detach them (`xdp-loader unload %s --all`)",
				native ? "native" : "generic", dev->name);
		return -EBUSY;
	}
	fd = hook_beside(p, dev->ifindex, native);
	if (fd >= 0)
		fd = hook_keep_slot(h, p, fd);
	h->native = native;
	return fd < 0 ? attach_failed(dev, "add the XDP program to the dispatcher", fd) : 0;
}

/* Makes a dispatcher, which others can join. If that fails, returns false after a line. */
static bool hook_attach_first(const struct netdev *dev, struct hook *h, struct hook_program *p)
{
	const char *step;
	int fd = dispatcher_try(&step);

	if (!fd) {
		step = "attaching the program";
		fd = hook_in_mode(dev, hook_beside, p, &h->native);
		if (fd >= 0)
			fd = hook_keep_slot(h, p, fd);
	}
	if (fd >= 0)
		return true;
	if (!options_is_set(OPTION_QUIET))
		attach_complain(dev,
				"cannot use an XDP dispatcher: %s: %s; attaching exclusively: "
				"other XDP programs cannot join",
				step, strerror(-fd));
	return false;
}

int hook_attach(const struct netdev *dev, struct hook *h, hook_open_fn *open, void *arg,
		struct xroce_bpf **bpf)
{
	struct hook_program p = { open, arg, bpf };
	const enum attach_choice choice = options_attach();
	bool native;

	*bpf = NULL;
	if (h->link_fd >= 0)
		return hook_attach_alone(dev, h, &p);
	/* our programs in a dispatcher are of killed processes */
	dispatcher_sweep(dev->ifindex);
	if (choice == ATTACH_EXCLUSIVE)
		return hook_attach_alone(dev, h, &p);
	if (dispatcher_is_there(dev->ifindex, &native))
		return hook_attach_into(dev, h, &p, native);
	if (choice == ATTACH_DISPATCHER && hook_attach_first(dev, h, &p))
		return 0;
	return hook_attach_alone(dev, h, &p);
}

void hook_follow(const struct netdev *dev, struct hook *h)
{
	int fd = hook_is_in_dispatcher(h) ? dispatcher_follow(dev->ifindex, h->prog_fd) : -ENOENT;

	if (fd < 0)
		return;
	close_fd(&h->link_fd);
	h->link_fd = fd;
}

void hook_detach(const struct netdev *dev, struct hook *h)
{
	close_fd(&h->link_fd);
	if (hook_is_in_dispatcher(h))
		dispatcher_leave(dev->ifindex, h->prog_fd);
	close_fd(&h->prog_fd);
}
