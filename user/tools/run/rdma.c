/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command rdma(8) of programs under `xroce run`. Programs ask it for the interface of a device
 * (pyverbs does), and the kernel does not know ours. A link to this command with the name `rdma` is
 * in a directory that `xroce run` puts in front of PATH. `rdma link [show [DEVICE[/PORT]]]` lists
 * our devices after the kernel's; the next rdma(8) of PATH executes everything else.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <json-c/json.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../os/netdev.h"
#include "../cli.h"
#include "../memory.h"

/* The shell's exit codes of a command that is not found, or cannot be executed. */
enum { EXIT_NO_RDMA = 127, EXIT_NOT_EXECUTED = 126 };

/* ---- rdma(8) ---- */

/* Finds the rdma(8) of PATH that is another program than this one. Returns false without one. */
static bool rdma_find(char *file, size_t n)
{
	static const char *const usual = "/usr/sbin:/sbin";
	const char *path = getenv("PATH");
	struct stat self, st;
	char *all, *at, *dir;
	bool found = false;

	if (stat("/proc/self/exe", &self) ||
	    asprintf(&all, "%s:%s", path ? path : "", usual) < 0)
		return false;
	for (at = all; !found && (dir = strsep(&at, ":"));) {
		snprintf(file, n, "%s/" RDMA_NAME, *dir ? dir : ".");
		found = !access(file, X_OK) && !stat(file, &st) &&
			(st.st_dev != self.st_dev || st.st_ino != self.st_ino);
	}
	free(all);
	return found;
}

static int rdma_hand_on(char **argv)
{
	char file[PATH_MAX];

	if (!rdma_find(file, sizeof(file))) {
		fprintf(stderr, "rdma: command not found; `xroce run` answers `rdma link` alone "
				"(install the package iproute2)\n");
		return EXIT_NO_RDMA;
	}
	execv(file, argv);
	fprintf(stderr, "rdma: cannot run '%s': %s\n", file, strerror(errno));
	return EXIT_NOT_EXECUTED;
}

/* In the child: without the messages of a kernel that has no RDMA devices. */
static void rdma_hand_on_to(int out, char **argv)
{
	char file[PATH_MAX];

	if (!freopen("/dev/null", "w", stderr) || dup2(out, STDOUT_FILENO) < 0 ||
	    !rdma_find(file, sizeof(file)))
		_exit(EXIT_NO_RDMA);
	execv(file, argv);
	_exit(EXIT_NOT_EXECUTED);
}

static char *rdma_read_all(int fd)
{
	size_t len = 0, room = 4096;
	char *text = memory_need(malloc(room));
	ssize_t n;

	while ((n = read(fd, text + len, room - len - 1)) > 0) {
		len += (size_t)n;
		if (room - len < 2)
			text = memory_need(realloc(text, room *= 2));
	}
	text[len] = 0;
	return text;
}

/* Returns the output of rdma(8), which the caller frees; empty if it fails or does not exist. */
static char *rdma_output(char **argv)
{
	int ends[2], status;
	char *text;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return memory_need(strdup(""));
	pid = fork();
	if (!pid)
		rdma_hand_on_to(ends[1], argv);
	close(ends[1]);
	text = rdma_read_all(ends[0]);
	close(ends[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		*text = 0;
	return text;
}

/* ---- the links of our devices ---- */

struct rdma_query {
	bool is_json, is_pretty;
	const char *link; /* DEVICE or DEVICE/PORT; NULL: all */
};

/* rdma(8) accepts the first letters of a word. */
static bool rdma_is_word(const char *typed, const char *word)
{
	return *typed && !strncmp(typed, word, strlen(typed));
}

/* Returns false if the command line is no query of links. Reorders argv. */
static bool rdma_parse(int argc, char **argv, struct rdma_query *q)
{
	static const struct option names[] = { { "json", no_argument, NULL, 'j' },
					       { "pretty", no_argument, NULL, 'p' },
					       { "details", no_argument, NULL, 'd' },
					       { NULL, 0, NULL, 0 } };
	int letter;

	opterr = 0;
	while ((letter = getopt_long(argc, argv, "jpd", names, NULL)) >= 0) {
		if (letter == '?')
			return false;
		q->is_json |= letter == 'j';
		q->is_pretty |= letter == 'p';
	}
	argv += optind;
	if (!*argv || !rdma_is_word(*argv, "link"))
		return false;
	if (*++argv && (rdma_is_word(*argv, "show") || rdma_is_word(*argv, "list")))
		q->link = *++argv;
	else if (*argv)
		return false;
	return !q->link || !argv[1];
}

static bool rdma_is_asked(const struct rdma_query *q, const struct netdev *dev)
{
	char name[IF_NAMESIZE + 16], link[IF_NAMESIZE + 18];

	snprintf(name, sizeof(name), NETDEV_DEVICE_PREFIX "%s", dev->name);
	snprintf(link, sizeof(link), "%s/1", name);
	return !q->link || !strcmp(q->link, name) || !strcmp(q->link, link);
}

static const char *rdma_physical_state(const struct netdev *dev)
{
	switch (netdev_phys_state(dev)) {
	case PHYS_LINK_UP:
		return "LINK_UP";
	case PHYS_POLLING:
		return "POLLING";
	default:
		return "DISABLED";
	}
}

static const char *rdma_state(const struct netdev *dev)
{
	return dev->is_up ? "ACTIVE" : "DOWN";
}

static void rdma_print_link(const struct netdev *dev)
{
	printf("link " NETDEV_DEVICE_PREFIX "%s/1 state %s physical_state %s netdev %s \n",
	       dev->name, rdma_state(dev), rdma_physical_state(dev), dev->name);
}

static void rdma_add(struct json_object *in, const char *name, struct json_object *value)
{
	if (json_object_object_add(in, name, memory_need(value)))
		memory_need(NULL);
}

static struct json_object *rdma_json_link(const struct netdev *dev)
{
	struct json_object *link = memory_need(json_object_new_object());
	char name[IF_NAMESIZE + 16];

	snprintf(name, sizeof(name), NETDEV_DEVICE_PREFIX "%s", dev->name);
	rdma_add(link, "ifindex", json_object_new_int64(dev->ifindex));
	rdma_add(link, "ifname", json_object_new_string(name));
	rdma_add(link, "port", json_object_new_int(1));
	rdma_add(link, "state", json_object_new_string(rdma_state(dev)));
	rdma_add(link, "physical_state", json_object_new_string(rdma_physical_state(dev)));
	rdma_add(link, "netdev", json_object_new_string(dev->name));
	rdma_add(link, "netdev_ifindex", json_object_new_int64(dev->ifindex));
	return link;
}

/* others: the links of the kernel's devices, as rdma(8) prints them. */
static void rdma_print_json(const struct rdma_query *q, const char *others,
			    const struct netdev *devs, int n)
{
	struct json_object *all = json_tokener_parse(others);

	if (!json_object_is_type(all, json_type_array)) {
		json_object_put(all);
		all = memory_need(json_object_new_array());
	}
	for (int i = 0; i < n; i++)
		if (rdma_is_asked(q, &devs[i]) &&
		    json_object_array_add(all, rdma_json_link(&devs[i])))
			memory_need(NULL);
	puts(memory_need((void *)json_object_to_json_string_ext(
		all, (q->is_pretty ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED :
				     JSON_C_TO_STRING_PLAIN) |
			     JSON_C_TO_STRING_NOSLASHESCAPE)));
	json_object_put(all);
}

int rdma_main(int argc, char **argv)
{
	char **words = memory_need(calloc((size_t)argc + 1, sizeof(*words))), *others;
	struct rdma_query q = { 0 };
	struct netdev *devs = NULL;
	bool found;
	int n;

	memcpy(words, argv, (size_t)argc * sizeof(*words));
	found = rdma_parse(argc, words, &q);
	free(words);
	if (!found)
		return rdma_hand_on(argv);
	n = netdev_list(&devs);
	found = false;
	for (int i = 0; !found && i < n; i++)
		found = rdma_is_asked(&q, &devs[i]);
	if (!found)
		return rdma_hand_on(argv);
	others = q.link ? memory_need(strdup("")) : rdma_output(argv);
	if (q.is_json) {
		rdma_print_json(&q, others, devs, n);
	} else {
		fputs(others, stdout);
		for (int i = 0; i < n; i++)
			if (rdma_is_asked(&q, &devs[i]))
				rdma_print_link(&devs[i]);
	}
	free(others);
	free(devs);
	return EXIT_OK;
}
