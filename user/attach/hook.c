/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../os/privilege.h"
#include "../os/bpf_room.h"
#include "../os/options.h"
#include "../os/netdev.h"
#include "attach_error.h"
#include "dispatcher.h"
#include "hook.h"
#include "program.h"
#include "xroce.skel.h"

#define HOOK_BUSY_MS 200

/* Opens the program without loading it. Frees the program of a failed attempt. */
static int hook_open(struct attachment *m)
{
	if (m->bpf)
		xroce_bpf__destroy(m->bpf);
	m->bpf = program_open();
	return m->bpf ? 0 : -errno;
}

int hook_prog_fd(const struct attachment *m)
{
	return m->bpf ? bpf_program__fd(m->bpf->progs.xroce_xdp) : m->prog_fd;
}

/*
 * Prints why the kernel refused a program with EBUSY or EEXIST. No program on this interface's hook
 * means that an upper device (macvlan, bridge, VLAN, bond) has one.
 */
static void hook_complain_busy(const struct netdev *dev)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_prog_info info = { 0 };
	u32 id = 0, len = sizeof(info);
	char comm[32] = "?";
	pid_t pid = 0;
	int fd = -1;

	if (bpf_xdp_query((int)dev->ifindex, 0, &query) == 0)
		id = query.prog_id ? query.prog_id :
		     query.attach_mode == XDP_ATTACHED_MULTI && query.drv_prog_id ?
				     query.drv_prog_id :
				     query.skb_prog_id;
	if (!id) {
		attach_complain(dev,
				"cannot attach the XDP program: an interface stacked on this one "
				"already has an XDP program; end the owner of that program, then "
				"start this process first");
		return;
	}
	fd = bpf_prog_get_fd_by_id(id);
	if (fd >= 0)
		bpf_obj_get_info_by_fd(fd, &info, &len);
	if (fd >= 0)
		close(fd);
	if (netdev_holder(dev->ifindex, &pid, comm, sizeof(comm)) == -EPERM && pid > 0)
		attach_complain(dev,
			 "cannot attach the XDP program: program %u (%s) is attached, and "
			 "process %d (%s) of another user claims to own the interface; end it, "
			 "or use another interface",
			 id, info.name[0] ? info.name : "?", (int)pid, comm);
	else
		attach_complain(dev,
			 "cannot attach the XDP program: program %u (%s) is attached; detach it "
			 "(`ip link set dev %s xdp off`) or end its owner",
			 id, info.name[0] ? info.name : "?", dev->name);
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
	struct attachment *m = arg;
	int err = hook_open(m);

	if (err)
		return err;
	m->bpf->rodata->xroce_in_dispatcher = true;
	return dispatcher_join(m->bpf->obj, ifindex, native);
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

int hook_attach_link(const struct netdev *dev, int prog_fd, bool *native)
{
	const int fd = hook_in_mode(dev, hook_alone, &prog_fd, native);

	if (fd == -EBUSY || fd == -EEXIST) {
		hook_complain_busy(dev);
		return -EBUSY;
	}
	return fd < 0 ? attach_failed(dev, "attach the XDP program", fd) : fd;
}

static int hook_attach_alone(const struct netdev *dev, struct attachment *m)
{
	libbpf_print_fn_t before = privilege_hush_libbpf();
	int fd = hook_open(m);

	if (!fd) {
		m->bpf->rodata->xroce_ifindex = dev->ifindex;
		fd = bpf_load(m->bpf->skeleton);
	}
	libbpf_set_print(before);
	if (fd)
		return attach_failed(dev, "load the XDP program", fd);
	fd = hook_attach_link(dev, hook_prog_fd(m), &m->info.native);
	if (fd < 0)
		return fd;
	atomic_store_explicit(&m->link_fd, fd, memory_order_relaxed);
	return 0;
}

/* Attaches into an existing dispatcher, whose mode becomes ours. */
static int hook_attach_into(const struct netdev *dev, struct attachment *m, bool native)
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
	fd = hook_beside(m, dev->ifindex, native);
	if (fd < 0)
		return attach_failed(dev, "add the XDP program to the dispatcher", fd);
	m->info.native = native;
	atomic_store_explicit(&m->link_fd, fd, memory_order_relaxed);
	atomic_store_explicit(&m->in_dispatcher, true, memory_order_relaxed);
	return 0;
}

/* Makes a dispatcher, which others can join. If that fails, returns false after a line. */
static bool hook_attach_first(const struct netdev *dev, struct attachment *m)
{
	const char *step;
	int fd = dispatcher_try(&step);

	if (!fd) {
		step = "attaching the program";
		fd = hook_in_mode(dev, hook_beside, m, &m->info.native);
	}
	if (fd >= 0) {
		atomic_store_explicit(&m->link_fd, fd, memory_order_relaxed);
		atomic_store_explicit(&m->in_dispatcher, true, memory_order_relaxed);
		return true;
	}
	if (!options_is_set(OPTION_QUIET))
		attach_complain(dev,
				"cannot use an XDP dispatcher: %s: %s; attaching exclusively: "
				"other XDP programs cannot join",
				step, strerror(-fd));
	return false;
}

int hook_attach(const struct netdev *dev, struct attachment *m)
{
	const enum attach_choice choice = options_attach();
	bool native;

	/* we hold the interface's name: our programs in a dispatcher are of killed processes */
	if (m->holder_fd >= 0)
		dispatcher_sweep(dev->ifindex);
	if (choice == ATTACH_EXCLUSIVE)
		return hook_attach_alone(dev, m);
	if (dispatcher_is_there(dev->ifindex, &native))
		return hook_attach_into(dev, m, native);
	if (choice == ATTACH_DISPATCHER && hook_attach_first(dev, m))
		return 0;
	return hook_attach_alone(dev, m);
}

/* Sets link_fd. Another thread may do so too: each closes the descriptor that it replaced. */
static void hook_hold(struct attachment *m, int link_fd)
{
	const int before = atomic_exchange_explicit(&m->link_fd, link_fd, memory_order_relaxed);

	if (before >= 0)
		close(before);
}

void hook_follow(struct attachment *m)
{
	int fd = hook_is_in_dispatcher(m) ? dispatcher_follow(m->ifindex, hook_prog_fd(m)) :
					    -ENOENT;

	if (fd >= 0)
		hook_hold(m, fd);
}

void hook_detach(struct attachment *m)
{
	hook_hold(m, -1);
	if (atomic_exchange_explicit(&m->in_dispatcher, false, memory_order_relaxed))
		dispatcher_leave(m->ifindex, hook_prog_fd(m));
}

void hook_abandon(struct attachment *m)
{
	atomic_store_explicit(&m->in_dispatcher, false, memory_order_relaxed);
	hook_detach(m);
}
