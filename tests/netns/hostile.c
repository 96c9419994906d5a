/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client of a broker that misuses all its resources (hostile.sh):
 *
 *	hostile SOCKET bpf		every command of bpf(2), with every descriptor
 *	hostile SOCKET ioctl		every request of a TAP device
 *	hostile SOCKET mmap		every descriptor, readable, writable and executable
 *	hostile SOCKET words SECONDS	words that are shared with XDP, rewritten by a thread of
 *					their own while packets come for a QP of this client
 *	hostile SOCKET numbers QPN...	others' and unowned QP numbers: claimed, drawn, released
 *	hostile SOCKET reports N SEED	reports to observers of random length and content
 *	hostile SOCKET messages N SEED	connections with messages of random length and content
 *	hostile SOCKET crowd N		N connections at once, most of which send nothing or half of
 *					something; stay until the program is ended
 *
 * What the kernel or the broker allows has a line `did ...` on standard output; the caller judges.
 * The last line is `done`.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xroce/abi.h>
#include <xroce/trace.h>

#include "lib/asked.h"
#include "lib/ctl.h"

#define COMMANDS 64 /* of bpf(2): more than any kernel has yet */
#define FDS	 32

static int fds[FDS];
static u32 num_fds;
static u64 state = 1;

static u32 draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (u32)(state >> 16);
}

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* ---- bpf(2) ---- */

/* each large enough for a value: some commands take one for the other */
static u8 key[1 << 16], next_key[1 << 16], value[1 << 16];

/* As many shapes of each command's attributes as it has places for a descriptor. */
static void shape(union bpf_attr *a, int fd, u32 which)
{
	memset(a, 0, sizeof(*a));
	switch (which) {
	case 0: /* an element of a map */
		a->map_fd = (u32)fd;
		a->key = (u64)(uintptr_t)key;
		a->value = (u64)(uintptr_t)value;
		break;
	case 1: /* the next one */
		a->map_fd = (u32)fd;
		a->key = (u64)(uintptr_t)key;
		a->next_key = (u64)(uintptr_t)next_key;
		break;
	case 2: /* several */
		a->batch.map_fd = (u32)fd;
		a->batch.out_batch = (u64)(uintptr_t)next_key;
		a->batch.keys = (u64)(uintptr_t)key;
		a->batch.values = (u64)(uintptr_t)value;
		a->batch.count = 1;
		break;
	case 3: /* a program is run */
		a->test.prog_fd = (u32)fd;
		a->test.data_in = (u64)(uintptr_t)value;
		a->test.data_size_in = 64;
		a->test.repeat = 1;
		break;
	case 4: /* a link is made */
		a->link_create.prog_fd = (u32)fd;
		a->link_create.target_ifindex = 1;
		a->link_create.attach_type = BPF_XDP;
		break;
	case 5: /* or changed */
		a->link_update.link_fd = (u32)fd;
		a->link_update.new_prog_fd = (u32)fd;
		break;
	case 6:
		a->attach_bpf_fd = (u32)fd;
		a->target_fd = (u32)fd;
		a->attach_type = BPF_XDP;
		break;
	case 7:
		a->pathname = (u64)(uintptr_t) "/sys/fs/bpf/xroce-hostile";
		a->bpf_fd = (u32)fd;
		break;
	case 8: /* by number: 0 begins, as GET_NEXT_ID has it */
		a->start_id = (u32)fd;
		break;
	case 9: /* a map in a map of this one */
		a->map_type = BPF_MAP_TYPE_ARRAY_OF_MAPS;
		a->key_size = 4;
		a->value_size = 4;
		a->max_entries = 4;
		a->inner_map_fd = (u32)fd;
		break;
	case 10:
		a->raw_tracepoint.prog_fd = (u32)fd;
		a->raw_tracepoint.name = (u64)(uintptr_t) "sys_enter";
		break;
	}
}
#define SHAPES 11

static void try_bpf(void)
{
	union bpf_attr a;

	for (int command = 0; command < COMMANDS; command++) {
		for (u32 i = 0; i < num_fds; i++) {
			for (u32 which = 0; which < SHAPES; which++) {
				long got;

				/* asks about it, which reveals nothing new */
				if (command == BPF_OBJ_GET_INFO_BY_FD)
					continue;
				shape(&a, fds[i], which);
				got = bpf(command, &a);
				if (got < 0)
					continue;
				printf("did bpf %d fd %u\n", command, i);
				if (command != BPF_MAP_LOOKUP_ELEM && got > 2)
					close((int)got);
			}
		}
	}
	/* objects of others, by their numbers */
	for (u32 id = 1; id < 4096; id++) {
		static const int by_id[] = { BPF_PROG_GET_FD_BY_ID, BPF_MAP_GET_FD_BY_ID,
					     BPF_BTF_GET_FD_BY_ID, BPF_LINK_GET_FD_BY_ID };

		for (u32 k = 0; k < 4; k++) {
			memset(&a, 0, sizeof(a));
			a.prog_id = id;
			if (bpf(by_id[k], &a) >= 0)
				printf("did bpf %d by number\n", by_id[k]);
		}
	}
}

/* All that a program of this user may put into its own maps, over all of their keys. */
static void fill_maps(void)
{
	union bpf_attr a;

	for (u32 i = 0; i < num_fds; i++) {
		for (u32 k = 0; k < 20000; k++) {
			memcpy(key, &k, sizeof(k));
			for (u32 j = 0; j < 256; j++)
				value[j] = (u8)draw();
			shape(&a, fds[i], 0);
			if (bpf(BPF_MAP_UPDATE_ELEM, &a) &&
			    (errno == E2BIG || errno == EINVAL || errno == EBADF || errno == EPERM))
				break;
		}
	}
}

/* ---- the TAP device ---- */

static bool is_tap(int fd)
{
	struct ifreq r = { 0 };

	return ioctl(fd, TUNGETIFF, &r) == 0;
}

static void try_tap(int fd, u32 i)
{
	struct sock_filter pass = BPF_STMT(BPF_RET | BPF_K, 65536);
	struct sock_fprog filter = { 1, &pass };
	struct {
		u16 flags, count;
		u8 addr[1][6];
	} only = { 0, 1, { { 2, 0, 0, 0, 0, 9 } } };
	struct ifreq r;
	const struct {
		const char *name;
		unsigned long request;
		void *arg;
	} by_value[] = {
		{ "TUNSETNOCSUM", TUNSETNOCSUM, (void *)1 },
		{ "TUNSETDEBUG", TUNSETDEBUG, (void *)1 },
		{ "TUNSETPERSIST", TUNSETPERSIST, (void *)1 },
		{ "TUNSETOWNER", TUNSETOWNER, (void *)(uintptr_t)getuid() },
		{ "TUNSETGROUP", TUNSETGROUP, (void *)(uintptr_t)getgid() },
		{ "TUNSETLINK", TUNSETLINK, (void *)ARPHRD_LOOPBACK },
		{ "TUNSETOFFLOAD", TUNSETOFFLOAD,
		  (void *)(TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_UFO) },
		{ "TUNSETTXFILTER", TUNSETTXFILTER, &only },
		{ "TUNATTACHFILTER", TUNATTACHFILTER, &filter },
		{ "TUNDETACHFILTER", TUNDETACHFILTER, NULL },
		{ "TUNGETDEVNETNS", TUNGETDEVNETNS, NULL },
		{ "SIOCGSKNS", SIOCGSKNS, NULL },
	};
	const int number[] = { 0, 1, 2, 10, 12, 64, 4096, 65535, -1, 0x7fffffff, fds[0], fds[1] };
	const struct {
		const char *name;
		unsigned long request;
	} by_pointer[] = {
		{ "TUNSETSNDBUF", TUNSETSNDBUF },
		{ "TUNSETVNETLE", TUNSETVNETLE },
		{ "TUNSETVNETBE", TUNSETVNETBE },
		{ "TUNSETVNETHDRSZ", TUNSETVNETHDRSZ },
		{ "TUNSETIFINDEX", TUNSETIFINDEX },
		{ "TUNSETSTEERINGEBPF", TUNSETSTEERINGEBPF },
		{ "TUNSETFILTEREBPF", TUNSETFILTEREBPF },
		{ "TUNSETCARRIER", TUNSETCARRIER },
		{ "FIONBIO", FIONBIO },
		{ "FIOASYNC", FIOASYNC },
	};
	static const short flags[] = { IFF_TAP,
				       IFF_TAP | IFF_NO_PI,
				       IFF_TUN,
				       IFF_TUN | IFF_NO_PI,
				       IFF_TAP | IFF_MULTI_QUEUE,
				       IFF_TAP | IFF_NAPI | IFF_NAPI_FRAGS,
				       IFF_ATTACH_QUEUE,
				       IFF_DETACH_QUEUE };
	static const char *const names[] = { "", "lo", "va", "xrt%d", "tap%d" };
	int carrier = 1;

	for (u32 k = 0; k < sizeof(by_value) / sizeof(by_value[0]); k++) {
		const int got = ioctl(fd, by_value[k].request, by_value[k].arg);

		if (got < 0)
			continue;
		printf("did %s fd %u\n", by_value[k].name, i);
		if (got > 2)
			close(got);
	}
	for (u32 k = 0; k < sizeof(by_pointer) / sizeof(by_pointer[0]); k++) {
		for (u32 n = 0; n < sizeof(number) / sizeof(number[0]); n++) {
			int v = number[n];

			if (ioctl(fd, by_pointer[k].request, &v) == 0)
				printf("did %s fd %u\n", by_pointer[k].name, i);
		}
	}
	ioctl(fd, TUNSETCARRIER, &carrier);
	for (u32 k = 0; k < sizeof(flags) / sizeof(flags[0]); k++) {
		for (u32 n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
			memset(&r, 0, sizeof(r));
			r.ifr_flags = flags[k];
			snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", names[n]);
			if (ioctl(fd, TUNSETIFF, &r) == 0)
				printf("did TUNSETIFF fd %u\n", i);
			if (ioctl(fd, TUNSETQUEUE, &r) == 0)
				printf("did TUNSETQUEUE fd %u\n", i);
		}
	}
	memset(&r, 0, sizeof(r));
	r.ifr_hwaddr.sa_family = ARPHRD_ETHER;
	memcpy(r.ifr_hwaddr.sa_data, "\2\0\0\0\0\7", 6);
	if (ioctl(fd, SIOCSIFHWADDR, &r) == 0)
		printf("did SIOCSIFHWADDR fd %u\n", i);
}

/* Devices of a name by a descriptor of /dev/net/tun that is not theirs. */
static void try_names(const char *like)
{
	static const short flags[] = { IFF_TAP | IFF_NO_PI, IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	struct ifreq r;

	for (u32 n = 0; n < 2048; n++) {
		const int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

		memset(&r, 0, sizeof(r));
		snprintf(r.ifr_name, sizeof(r.ifr_name), "%.9s.%u", like, n);
		r.ifr_flags = flags[n % 2];
		if (fd >= 0 && ioctl(fd, TUNSETIFF, &r) == 0)
			printf("did open %s\n", r.ifr_name);
		if (fd >= 0)
			close(fd);
	}
}

static void try_ioctls(void)
{
	struct ifreq r = { 0 };

	for (u32 i = 0; i < num_fds; i++) {
		if (is_tap(fds[i])) {
			ioctl(fds[i], TUNGETIFF, &r);
			*strchrnul(r.ifr_name, '.') = 0;
			try_tap(fds[i], i);
		} else {
			for (u32 k = 0; k < 256; k++)
				if (ioctl(fds[i], _IOW('T', k, int), &r) == 0)
					printf("did ioctl %u fd %u\n", k, i);
		}
	}
	try_names(r.ifr_name);
}

/* ---- memory ---- */

static struct {
	u32 *words;
	size_t bytes;
} shared[FDS * 4];
static u32 num_shared;

/* Maps each descriptor writable. `say`: prints the mapped ones, and overwrites later pages. */
static void map_all(bool say)
{
	static const size_t sizes[] = { 4096, 8192, 1 << 16, 1 << 20 };

	for (u32 i = 0; i < num_fds; i++) {
		size_t taken = 0;

		for (u32 k = 0; k < 4; k++) {
			void *at =
				mmap(NULL, sizes[k], PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], 0);

			if (at == MAP_FAILED)
				continue;
			if (taken)
				munmap(shared[--num_shared].words, taken);
			shared[num_shared].words = at;
			shared[num_shared++].bytes = taken = sizes[k];
		}
		if (say && taken)
			printf("did map fd %u\n", i);
		for (off_t page = 1; say && page < 2000; page++) {
			void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i],
					page * 4096);

			if (at == MAP_FAILED)
				continue;
			memset(at, 0xa5, 4096);
			munmap(at, 4096);
		}
	}
}

static volatile bool stopped;

static void *rewrite(void *arg)
{
	u64 x = 88172645463325252ull;

	(void)arg;
	while (!stopped) {
		for (u32 i = 0; i < num_shared; i++) {
			for (u32 n = 0; n < 512; n++) {
				volatile u32 *at = shared[i].words;

				x ^= x << 13;
				x ^= x >> 7;
				x ^= x << 17;
				at[(x >> 8) % (shared[i].bytes / 4)] =
					x & 7 ? (u32)(x >> 32) % 70 : (u32)(x >> 32);
			}
		}
	}
	return NULL;
}

/* A frame to a QP of this client that comes back through the hairpin: see forger.c for others. */
static size_t own_frame(u8 *b, u32 own4, u32 qpn, u8 opcode)
{
	static const u8 head[42] = { 2,	   0, 0, 0, 0, 1, 2,	0, 0,	 0,    0, 2, 8, 0,
				     0x45, 0, 0, 0, 0, 0, 0x40, 0, 64,	 17,   0, 0, 0, 0,
				     0,	   0, 0, 0, 0, 0, 0xc0, 0, 0x12, 0xb7, 0, 0, 0, 0 };
	const u16 ip_len = 20 + 8 + 12 + 64 + 4;
	u32 sum = 0;

	memset(b, 0, 200);
	memcpy(b + 10, head, sizeof(head));
	b += 10; /* the virtio header of zeroes */
	b[16] = ip_len >> 8;
	b[17] = (u8)ip_len;
	memcpy(b + 26, &own4, 4);
	memcpy(b + 30, &own4, 4);
	for (u32 i = 14; i < 34; i += 2)
		sum += (u32)b[i] << 8 | b[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~(sum + (sum >> 16));
	b[24] = (u8)(sum >> 8);
	b[25] = (u8)sum;
	b[38] = (ip_len - 20) >> 8;
	b[39] = (u8)(ip_len - 20);
	b[42] = opcode;
	b[44] = b[45] = 0xff;
	b[47] = (u8)(qpn >> 16);
	b[48] = (u8)(qpn >> 8);
	b[49] = (u8)qpn;
	return 10 + 14 + ip_len;
}

static void words(int sock, u32 seconds, u32 own4)
{
	const u64 end = now_ms() + seconds * 1000ull;
	struct xroce_qp qp;
	union bpf_attr a;
	pthread_t thread;
	u8 frame[256];
	u64 sent = 0;
	u32 qpn, slot;

	must(!asked_draw(sock, &qpn), "no number");
	map_all(false);
	must(num_shared > 2, "only %u maps can be mapped", num_shared);
	must(!pthread_create(&thread, NULL, rewrite, NULL), "pthread_create");
	while (now_ms() < end) {
		for (u32 i = 0; i < sizeof(qp); i++)
			((u8 *)&qp)[i] = (u8)draw();
		if (draw() % 4) { /* a receiving one */
			qp.transport = (enum xroce_transport)(draw() % 5);
			qp.receiving = 1;
			qp.pkey = 0xffff;
			qp.send_cq = draw() % 8;
			qp.recv_cq = draw() % 8;
			qp.xsk_base = draw() % 4;
			memset(qp.local, 0, 16);
			qp.local[10] = qp.local[11] = 0xff;
			memcpy(qp.local + 12, &own4, 4);
			memcpy(qp.peer, qp.local, 16);
		}
		memset(&a, 0, sizeof(a));
		a.map_fd = (u32)fds[ASK_FD_QP];
		slot = XROCE_QP_SLOT(qpn);
		qp.qpn = qpn;
		a.key = (u64)(uintptr_t)&slot;
		a.value = (u64)(uintptr_t)&qp;
		bpf(BPF_MAP_UPDATE_ELEM, &a);
		for (u32 i = 0; i < 64; i++) {
			static const u8 opcodes[] = { 0x04, 0x00, 0x0a, 0x0c, 0x11, 0x24, 0x64 };
			const size_t n = own_frame(frame, own4, qpn, opcodes[draw() % 7]);

			sent += write(fds[ASK_FD_TAP], frame, n) > 0;
		}
	}
	stopped = true;
	pthread_join(thread, NULL);
	printf("sent %llu\n", (unsigned long long)sent);
}

/* ---- the broker's socket ---- */

static void numbers(int sock, char **qpns)
{
	for (; *qpns; qpns++) {
		const u32 qpn = (u32)strtoul(*qpns, NULL, 0);
		u32 other;

		/* the next one, too, and with bits above a QPN's: no answer tells them apart */
		for (u32 i = 0; i < 6; i++) {
			const u32 n = qpn + (i & 1) + ((i >> 1) << 24);
			const s32 err = asked(sock, ASK_CLAIM, n, NULL, 0, NULL);

			if (err != -EPERM)
				printf("did claim %#x: %d\n", n, err);
			if (asked(sock, ASK_RELEASE, n, NULL, 0, NULL) != -ENOENT)
				printf("did release %#x\n", n);
		}
		for (u32 i = 0; i < 1000; i++) {
			must(!asked_draw(sock, &other), "no number");
			if (other == qpn)
				printf("did draw %#x\n", qpn);
			must(!asked(sock, ASK_RELEASE, other, NULL, 0, NULL), "not released");
		}
	}
}

static void messages(const char *path, u32 n)
{
	u8 bytes[512];

	for (u32 i = 0; i < n; i++) {
		const int sock = asked_reach(path);
		const u32 count = draw() % 6;

		if (sock < 0)
			continue;
		for (u32 k = 0; k < count; k++) {
			u32 len = draw() % 4 ? sizeof(struct ask) : draw() % sizeof(bytes);
			struct ask ask = { .version = draw() % 8 ? ASK_VERSION : draw(),
					   .what = draw() % 8 ? draw() % (ASK_WHAT_MAX + 2) :
								draw(),
					   .number = draw() % 2 ? draw() % 64 : draw(),
					   .pad = draw() % 16 ? 0 : draw() };

			/* parts of a service or a trace, and forbidden ones */
			for (u32 j = 0; draw() % 2 && j < sizeof(ask.trace); j++)
				((u8 *)&ask.trace)[j] = draw() % 3 ? 0 : (u8)draw();
			for (u32 j = 0; j < len; j++)
				bytes[j] = (u8)draw();
			memcpy(bytes, &ask, sizeof(ask));
			send(sock, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
			if (draw() % 2)
				recv(sock, bytes, sizeof(bytes), MSG_DONTWAIT);
		}
		close(sock);
	}
}

/* ---- reports ---- */

/* Sends a report; with_fd: with a descriptor, which the broker must not take. */
static void report(const void *bytes, size_t n, bool with_fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .header = { .cmsg_len = CMSG_LEN(sizeof(int)),
				  .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { .iov_base = (void *)bytes, .iov_len = n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (with_fd) {
		memcpy(CMSG_DATA(&control.header), &fds[ASK_FD_QP], sizeof(int));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control.room);
	}
	if (sendmsg(fds[ASK_FD_TRACE], &msg, MSG_NOSIGNAL) == (ssize_t)n) {
		if (with_fd)
			printf("did send a descriptor\n");
		return;
	}
	/* SO_PASSRIGHTS, from Linux 6.16 */
	if (with_fd && errno == EPERM)
		return;
	printf("did not send: %s\n", strerror(errno));
	exit(1);
}

/* None of them is empty, which would end the reports. */
static void reports(u32 n)
{
	static struct {
		struct xroce_trace_record record;
		u8 entries[XROCE_TRACE_ENTRIES_BYTES + 64];
	} t;

	for (u32 i = 0; i < n; i++) {
		size_t len = sizeof(t.record) + draw() % sizeof(t.entries);

		for (u32 k = 0; k < 256; k++)
			t.entries[draw() % sizeof(t.entries)] = (u8)draw();
		t.record = (struct xroce_trace_record){
			.time_ns = (u64)draw() << 32 | draw(),
			.packets = draw() % 2 ? draw() : 1,
			.events = draw() % 2 ? draw() : 1,
			.lost_packets = draw(),
			.lost_events = draw(),
			.bytes = draw() % 4 ? (u32)(len - sizeof(t.record)) : draw()
		};
		if (draw() % 8 == 0)
			len = 1 + draw() % sizeof(t.record);
		report(&t, len, draw() % 8 == 0);
	}
}

static void crowd(const char *path, u32 n)
{
	const struct rlimit most = { n + 64, n + 64 };
	u32 got = 0;

	setrlimit(RLIMIT_NOFILE, &most);
	for (u32 i = 0; i < n; i++) {
		const int sock = asked_reach(path);
		u8 half[8] = { 1 };

		if (sock < 0)
			break;
		got++;
		if (i % 3 == 1)
			send(sock, half, sizeof(half), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	printf("crowd %u\n", got);
	fflush(stdout);
	poll(NULL, 0, -1);
}

int main(int argc, char **argv)
{
	int sock;

	must(argc >= 3, "usage: hostile SOCKET COMMAND...");
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(argv[2], "crowd")) {
		crowd(argv[1], (u32)atoi(argv[3]));
		return 0;
	}
	if (!strcmp(argv[2], "messages")) {
		state = strtoull(argv[4], NULL, 0) | 1;
		messages(argv[1], (u32)atoi(argv[3]));
		printf("done\n");
		return 0;
	}
	sock = asked_reach(argv[1]);
	must(sock >= 0, "%s: %s", argv[1], strerror(-sock));
	num_fds = asked_port(sock, strcmp(argv[2], "reports") ? 0 : ASK_REPORTS_BY_SOCKET, fds);
	if (!strcmp(argv[2], "bpf")) {
		try_bpf();
		fill_maps();
	} else if (!strcmp(argv[2], "ioctl")) {
		try_ioctls();
	} else if (!strcmp(argv[2], "mmap")) {
		map_all(true);
	} else if (!strcmp(argv[2], "words")) {
		u32 own4 = 0;

		must(argc == 5 && sscanf(argv[4], "%hhu.%hhu.%hhu.%hhu", (u8 *)&own4,
					 (u8 *)&own4 + 1, (u8 *)&own4 + 2, (u8 *)&own4 + 3) == 4,
		     "words SECONDS OWN-ADDRESS");
		words(sock, (u32)atoi(argv[3]), own4);
	} else if (!strcmp(argv[2], "reports")) {
		must(argc == 5, "reports N SEED");
		state = strtoull(argv[4], NULL, 0) | 1;
		reports((u32)atoi(argv[3]));
	} else if (!strcmp(argv[2], "numbers")) {
		numbers(sock, argv + 3);
	} else {
		die("no such command: %s", argv[2]);
	}
	printf("done\n");
	return 0;
}
