/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tries to attach a program to whatever the kernel attaches programs to, by its descriptor alone
 * (hostile.sh):
 *
 *	attacher client SOCKET	the program that a client of a broker gets (ASK_FD_TRACE)
 *	attacher xdp|cls	a private one of that type: shows which attempts can succeed
 *
 * First with its own privileges and this namespace's lo, then as root of a new user and network
 * namespace, where it may change interfaces. Prints a line `did WHAT` for each attempt that the
 * kernel allowed, `ran` if the program could be run, `done` at last. All attachments end with the
 * process.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/perf_event.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <xroce/trace.h>

#include "lib/asked.h"
#include "lib/ctl.h"

#define TYPES	 80 /* of attachments and programs: more than any kernel has yet */
#define LOOPBACK 1

static const char *as; /* user or root */

static void did(const char *what, u32 type)
{
	printf("did %s %u as %s\n", what, type, as);
}

/* A descriptor that came of it is closed at once. */
static void said(const char *what, u32 type, int got)
{
	if (got < 0)
		return;
	did(what, type);
	if (got > 2)
		close(got);
}

/* Links of each type, to an interface, a cgroup, a network namespace, the program itself. */
static void try_links(int prog, int cgroup, int netns)
{
	const int target[] = { LOOPBACK, cgroup, netns, prog, 0 };

	for (u32 type = 0; type < TYPES; type++) {
		for (u32 i = 0; i < sizeof(target) / sizeof(target[0]); i++) {
			LIBBPF_OPTS(bpf_link_create_opts, plain);
			LIBBPF_OPTS(bpf_link_create_opts, generic, .flags = XDP_FLAGS_SKB_MODE);
			LIBBPF_OPTS(bpf_link_create_opts, to, .target_btf_id = 1);

			said("link", type, bpf_link_create(prog, target[i], type, &plain));
			said("link", type, bpf_link_create(prog, target[i], type, &generic));
			said("link", type, bpf_link_create(prog, target[i], type, &to));
		}
	}
}

static void try_attach(int prog, int cgroup, int netns)
{
	const int target[] = { LOOPBACK, cgroup, netns, prog, 0 };
	const u32 flags[] = { 0, BPF_F_ALLOW_MULTI, BPF_F_ALLOW_OVERRIDE };

	for (u32 type = 0; type < TYPES; type++)
		for (u32 i = 0; i < sizeof(target) / sizeof(target[0]); i++)
			for (u32 k = 0; k < 3; k++)
				if (!bpf_prog_attach(prog, target[i], type, flags[k])) {
					did("attach", type);
					bpf_prog_detach2(prog, target[i], type);
				}
}

static void try_interface(int prog)
{
	static const u32 modes[] = { XDP_FLAGS_SKB_MODE, XDP_FLAGS_DRV_MODE, 0 };
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = LOOPBACK, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, tc, .prog_fd = prog);

	for (u32 i = 0; i < 3; i++)
		if (!bpf_xdp_attach(LOOPBACK, prog, modes[i], NULL)) {
			did("netlink_xdp", modes[i]);
			bpf_xdp_detach(LOOPBACK, modes[i], NULL);
		}
	bpf_tc_hook_create(&hook);
	if (!bpf_tc_attach(&hook, &tc))
		did("netlink_tc", 0);
	hook.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS;
	bpf_tc_hook_destroy(&hook);
}

static void try_sockets(int prog)
{
	const int s = socket(AF_INET, SOCK_DGRAM, 0), one = 1;

	setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	if (!setsockopt(s, SOL_SOCKET, SO_ATTACH_BPF, &prog, sizeof(prog)))
		did("socket", SO_ATTACH_BPF);
	if (!setsockopt(s, SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF, &prog, sizeof(prog)))
		did("socket", SO_ATTACH_REUSEPORT_EBPF);
	close(s);
}

static void try_events(int prog)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = 1000000,
					.exclude_kernel = 1 };
	const int event = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	said("raw_tracepoint", 0, bpf_raw_tracepoint_open("sys_enter", prog));
	said("raw_tracepoint", 1, bpf_raw_tracepoint_open(NULL, prog));
	if (event >= 0 && !ioctl(event, PERF_EVENT_IOC_SET_BPF, prog))
		did("perf_event", 0);
	if (event >= 0)
		close(event);
}

/* A program that replaces one of its functions, or traces one; maps that hold the program. */
static void try_others(int prog)
{
	const struct bpf_insn end[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K },
					{ .code = BPF_JMP | BPF_EXIT } };
	static const u32 types[] = { BPF_PROG_TYPE_EXT, BPF_PROG_TYPE_TRACING, BPF_PROG_TYPE_LSM,
				     BPF_PROG_TYPE_SYSCALL, BPF_PROG_TYPE_XDP };

	for (u32 i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		LIBBPF_OPTS(bpf_prog_load_opts, opts, .attach_prog_fd = (u32)prog,
			    .attach_btf_id = 1);

		said("load", types[i], bpf_prog_load(types[i], "x", "GPL", end, 2, &opts));
	}
	for (u32 type = 1; type < TYPES; type++) {
		LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (u32)prog);
		const int map = bpf_map_create(type, "x", 4, 4, 4, &opts);
		u32 key = 0;

		if (map < 0)
			continue;
		did("map", type);
		if (!bpf_map_update_elem(map, &key, &prog, BPF_ANY))
			did("map_of", type);
		close(map);
	}
	said("iterator", 0, bpf_iter_create(prog));
	said("pin", 0, bpf_obj_pin(prog, "/sys/fs/bpf/xroce-attacher"));
	unlink("/sys/fs/bpf/xroce-attacher");
}

static void try_all(int prog)
{
	const int cgroup = open("/sys/fs/cgroup", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	const int netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	try_links(prog, cgroup, netns);
	try_attach(prog, cgroup, netns);
	try_interface(prog);
	try_sockets(prog);
	try_events(prog);
	try_others(prog);
	close(cgroup);
	close(netns);
}

static int own_program(const char *type)
{
	const struct bpf_insn end[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 2 }, { .code = BPF_JMP | BPF_EXIT }
	};
	const bool xdp = !strcmp(type, "xdp");

	return bpf_prog_load(xdp ? BPF_PROG_TYPE_XDP : BPF_PROG_TYPE_SCHED_CLS, "attacher",
			     "Dual BSD/GPL", end, 2, NULL);
}

static int given_program(const char *socket)
{
	int fds[32], sock = asked_reach(socket);

	must(sock >= 0, "%s: %s", socket, strerror(-sock));
	must(asked_port(sock, 0, fds) == ASK_FDS, "no whole port");
	return fds[ASK_FD_TRACE];
}

int main(int argc, char **argv)
{
	static struct xroce_trace_report report;
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &report, .ctx_size_in = sizeof(report));
	int prog;

	must(argc >= 2 && (argc == 3) == !strcmp(argv[1], "client"),
	     "attacher client SOCKET|xdp|cls");
	setvbuf(stdout, NULL, _IOLBF, 0);
	libbpf_set_print(NULL);
	prog = argc == 3 ? given_program(argv[2]) : own_program(argv[1]);
	must(prog >= 0, "no program: %s", strerror(errno));
	if (!bpf_prog_test_run_opts(prog, &run))
		printf("ran\n");
	as = "user";
	try_all(prog);
	must(!unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET), "unshare: %s",
	     strerror(errno));
	as = "root";
	try_all(prog);
	printf("done\n");
	return 0;
}
