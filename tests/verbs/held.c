/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <dirent.h>
#include <linux/bpf.h>
#include <linux/rtnetlink.h>
#include <malloc.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "held.h"

static bool held_lines(const char *path, long *lines)
{
	FILE *f = fopen(path, "re");
	int c;

	MUST(f);
	*lines = 0;
	while ((c = getc(f)) != EOF)
		*lines += c == '\n';
	fclose(f);
	return true;
}

static bool held_pages(long *pages)
{
	FILE *f = fopen("/proc/self/statm", "re");

	MUST(f);
	MUST_EQ(fscanf(f, "%*d %ld", pages), 1);
	fclose(f);
	return true;
}

/* The keys of a hash map, counted. */
static long map_entries(int fd, unsigned int key_size)
{
	char key[2][256];
	union bpf_attr attr;
	long n = 0;

	if (key_size > sizeof(key[0]))
		return 0;
	for (;; n++) {
		memset(&attr, 0, sizeof(attr));
		attr.map_fd = (__u32)fd;
		attr.key = n ? (uintptr_t)key[n % 2] : 0;
		attr.next_key = (uintptr_t)key[!(n % 2)];
		if (syscall(SYS_bpf, BPF_MAP_GET_NEXT_KEY, &attr, sizeof(attr)))
			return n;
	}
}

/* Of a BPF map: its type, key size and memory. False if the descriptor is none. */
static bool map_info(const char *fd, unsigned int *type, unsigned int *key_size, long *bytes)
{
	char path[300], line[200];
	bool is_map = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", fd);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		is_map |= sscanf(line, "map_type: %u", type) == 1;
		sscanf(line, "key_size: %u", key_size);
		sscanf(line, "memlock: %ld", bytes);
	}
	fclose(f);
	return is_map;
}

static bool held_descriptors(struct held *h)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int type, key_size = 0;
	struct dirent *e;
	long bytes = 0;

	MUST(d);
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		h->descriptors++;
		if (!map_info(e->d_name, &type, &key_size, &bytes))
			continue;
		h->kernel += bytes;
		if (type == BPF_MAP_TYPE_HASH)
			h->entries += map_entries(atoi(e->d_name), key_size);
	}
	closedir(d);
	return true;
}

/* Adds up the promiscuity of one answer's interfaces; false: it was the last. */
static bool links_add(const char *answer, long bytes, long *times)
{
	const struct nlmsghdr *h = (const void *)answer;

	for (; NLMSG_OK(h, bytes) && h->nlmsg_type == RTM_NEWLINK; h = NLMSG_NEXT(h, bytes)) {
		const struct rtattr *a = IFLA_RTA(NLMSG_DATA(h));
		int left = (int)IFLA_PAYLOAD(h);

		for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
			*times += a->rta_type == IFLA_PROMISCUITY ? *(__u32 *)RTA_DATA(a) : 0;
	}
	return bytes <= 0;
}

/* Also for a MAC that is not its own, as it has no filter of such. */
static bool held_promiscuity(long *times)
{
	struct {
		struct nlmsghdr h;
		struct ifinfomsg link;
	} ask = { { sizeof(ask), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 0, 0 }, { 0 } };
	_Alignas(NLMSG_ALIGNTO) static char answer[64 * 1024];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	long n;

	MUST(fd >= 0);
	MUST_EQ(send(fd, &ask, sizeof(ask), 0), sizeof(ask));
	*times = 0;
	do {
		n = recv(fd, answer, sizeof(answer), 0);
		MUST(n > 0);
	} while (links_add(answer, n, times));
	close(fd);
	return true;
}

static bool held_threads(long *threads)
{
	DIR *d = opendir("/proc/self/task");

	MUST(d);
	for (*threads = 0; readdir(d);)
		++*threads;
	closedir(d);
	return true;
}

bool held_now(struct held *h)
{
	/* pages that malloc(3) keeps after a free(3), up to 2.5 MB, do not count */
	malloc_trim(0);
	*h = (struct held){ .heap = (long)mallinfo2().uordblks };
	return held_descriptors(h) && held_threads(&h->threads) &&
	       held_lines("/proc/self/net/igmp", &h->groups) &&
	       held_promiscuity(&h->promiscuity) &&
	       held_lines("/proc/self/maps", &h->mappings) && held_pages(&h->pages);
}

int cycles_wanted(void)
{
	const char *s = getenv("XROCE_CYCLES");

	return s ? atoi(s) : 10000;
}

bool held_same(const struct held *before, const struct held *after, int cycles)
{
	MUST_EQ(after->descriptors, before->descriptors);
	MUST(after->threads <= before->threads);
	MUST_EQ(after->entries, before->entries);
	MUST_EQ(after->kernel, before->kernel);
	MUST_EQ(after->groups, before->groups);
	MUST_EQ(after->promiscuity, before->promiscuity);
#ifndef __SANITIZE_ADDRESS__
	MUST(after->mappings <= before->mappings + 2);
	if (after->heap > before->heap + 16384 + cycles * 4l)
		printf("# %ld bytes of the heap, then %ld\n", before->heap, after->heap);
	MUST(after->heap <= before->heap + 16384 + cycles * 4l);
#ifndef __SANITIZE_THREAD__ /* whose own memory grows */
	if (after->pages >= before->pages + 32 + cycles * 48l / sysconf(_SC_PAGESIZE))
		printf("# %ld pages, then %ld\n", before->pages, after->pages);
	MUST(after->pages < before->pages + 32 + cycles * 48l / sysconf(_SC_PAGESIZE));
#endif
#endif
	return true;
}

/* The release may be under way: the watch thread reads of links whose flags have changed. */
static bool held_is_back(const struct held *before, const struct held *after, int cycles)
{
	return after->threads <= before->threads && after->descriptors == before->descriptors &&
	       after->heap <= before->heap + 16384 + cycles * 4l;
}

/* As it is when nothing is under way: three times the same. */
static bool held_at_rest(struct held *h)
{
	struct held next;

	MUST(held_now(h));
	for (int i = 0, same = 1; same < 3 && i < 1000; i++) {
		usleep(10000);
		MUST(held_now(&next));
		same = next.descriptors == h->descriptors && next.heap == h->heap ? same + 1 : 1;
		*h = next;
	}
	return true;
}

bool leaves_nothing(bool (*cycle)(int i), int cycles)
{
	struct held before, after;
	long promiscuity;

	/* a lasting one counts once, however often it is requested: the baseline is without any */
	MUST(held_promiscuity(&promiscuity));
	for (int i = 0; i < 600; i++)
		MUST(i >= cycles || cycle(i));
	MUST(held_at_rest(&before));
	before.promiscuity = promiscuity;
	for (int i = 0; i < cycles; i++)
		MUST(cycle(i));
	/* librdmacm's workers end when they have had nothing to do for a while */
	for (int i = 0; i < 100; i++) {
		MUST(held_now(&after));
		if (held_is_back(&before, &after, cycles))
			break;
		usleep(100000);
	}
	return held_same(&before, &after, cycles);
}
