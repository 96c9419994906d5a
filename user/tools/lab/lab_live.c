/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The commands of labs that stay: xroce lab up, exec, fault, down, list. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "lab_endpoint.h"
#include "lab_keep.h"
#include "lab_options.h"

enum { EXIT_NOT_RUN = 127, DOWN_MS = 10000, LOOK_MS = 10 };

/* ---- requests ---- */

/* Connects to a lab. Returns a socket, or -1 after a message unless `quiet`. */
static int connect_to(const char *name, bool quiet)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	const socklen_t len = lab_address(name, &address);
	socklen_t peer_len = sizeof(struct ucred);
	struct ucred peer;

	if (fd < 0) {
		lab_failed("make a socket", -errno);
		return -1;
	}
	/* another user may have taken the address */
	if (!connect(fd, (const struct sockaddr *)&address, len) &&
	    !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) && peer.uid == geteuid())
		return fd;
	if (!quiet)
		fprintf(stderr, "xroce lab: there is no lab '%s' ('xroce lab up %s' makes one)\n",
			name, name);
	close(fd);
	return -1;
}

static bool ask(int fd, u32 op, u32 host, const char *text)
{
	struct lab_request q = { .op = op, .host = host };

	snprintf(q.text, sizeof(q.text), "%s", text);
	return send(fd, &q, sizeof(q), MSG_NOSIGNAL) == sizeof(q);
}

/* Prints an answer's text. Returns its exit code. */
static int print_answer(int fd, FILE *out)
{
	struct lab_answer a;
	int status = EXIT_FAILED;

	while (recv(fd, &a, sizeof(a), 0) == sizeof(a)) {
		a.text[sizeof(a.text) - 1] = 0;
		status = a.status;
		if (!a.text[0])
			return status;
		if (status)
			fprintf(stderr, "xroce lab: %s\n", a.text);
		else
			fputs(a.text, out);
	}
	fprintf(stderr, "xroce lab: the lab does not answer\n");
	return EXIT_FAILED;
}

static int request(const char *name, u32 op, const char *text)
{
	const int fd = connect_to(name, false);
	int ret;

	if (fd < 0)
		return EXIT_FAILED;
	ret = ask(fd, op, 0, text) ? print_answer(fd, stdout) : EXIT_FAILED;
	close(fd);
	return ret;
}

/* ---- up, down, list, fault ---- */

static int up(const char *name, int argc, char **argv)
{
	static struct lab lab;
	int ret;

	if (!lab_begin(&lab))
		return lab_failed("allocate memory", -ENOMEM);
	ret = cli_parse(&command_lab, &argc, &argv, lab_option, &lab);
	if (ret)
		return ret;
	for (u32 i = 0; i < LAB_HOSTS; i++)
		argc += lab.programs[i].shell != NULL;
	if (argc)
		return usage_error(&command_lab, "up runs no program; exec does");
	if (lab.num_actions || lab.record || lab.replay || lab.cases || lab.is_each ||
	    lab.one_case || lab.junit || lab.json || lab.timeout_ns || lab.may_miss)
		return usage_error(&command_lab, "up takes no options of runs: --at, --cases, "
						 "--deadline, --allow-miss, --record, --report");
	ret = lab_prepare(&lab);
	if (!ret)
		ret = lab_check(&lab);
	if (!ret && lab_endpoint_any(&lab))
		return usage_error(&command_lab, "up has rules of the cable; run programs with "
						 "XROCE_FAULT for those of an endpoint");
	if (!ret)
		ret = lab_capture_open(&lab, lab.capture);
	return ret ? ret : lab_keep_start(&lab, name);
}

static int down(const char *name)
{
	const u64 until_ns = clock_now_ns() + DOWN_MS * (u64)NSEC_PER_MSEC;
	const int ret = request(name, LAB_OP_DOWN, "");
	int fd;

	/* the keeper is the last to end */
	while (!ret && (fd = connect_to(name, true)) >= 0) {
		close(fd);
		if (clock_now_ns() >= until_ns)
			return lab_failed("end the lab", -ETIMEDOUT);
		poll(NULL, 0, LOOK_MS);
	}
	return ret;
}

/* Prints a lab with the PID of its keeper. */
static void list_one(const char *name)
{
	const int fd = lab_name_is_good(name) ? connect_to(name, true) : -1;
	socklen_t len = sizeof(struct ucred);
	struct ucred peer;

	if (fd < 0)
		return;
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		printf("%-*s pid %d\n", LAB_NAME / 2, name, peer.pid);
	close(fd);
}

static int list(void)
{
	char line[512], prefix[64];
	FILE *file = fopen("/proc/net/unix", "re");
	int n;

	if (!file)
		return lab_failed("read /proc/net/unix", -errno);
	n = snprintf(prefix, sizeof(prefix), " @xroce-lab/%u/", geteuid());
	while (fgets(line, sizeof(line), file)) {
		char *name = strstr(line, prefix);

		/* the one that listens: its flags have __SO_ACCEPTCON */
		if (!name || !strstr(line, " 00010000 "))
			continue;
		name += n;
		name[strcspn(name, "\n")] = 0;
		list_one(name);
	}
	fclose(file);
	return output_end(EXIT_OK);
}

static int fault(const char *name, int argc, char **argv)
{
	const char *word = argc ? argv[0] : "", *rule = argc > 1 ? argv[1] : "";

	if (argc > 2)
		return usage_error(&command_lab, "a rule is one word: quote it");
	if (strlen(rule) >= LAB_RULE_TEXT)
		return usage_error(&command_lab, "a rule has at most %d characters",
				   LAB_RULE_TEXT - 1);
	if (!strcmp(word, "add") && *rule)
		return request(name, LAB_OP_ADD, rule);
	if (!strcmp(word, "clear"))
		return request(name, LAB_OP_CLEAR, rule);
	if (!strcmp(word, "list") && argc == 1)
		return output_end(request(name, LAB_OP_LIST, ""));
	return usage_error(&command_lab, "fault NAME takes: add RULE, list, clear [RULE]");
}

/* ---- exec ---- */

/* Takes the answer to LAB_OP_ENTER. Returns EXIT_OK with fds open, or an exit code. */
static int take_namespaces(int fd, struct lab_answer *a, int fds[LAB_NS_COUNT])
{
	char control[CMSG_SPACE(LAB_NS_COUNT * sizeof(int))] __attribute__((aligned(8)));
	struct iovec part = { a, sizeof(*a) };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *head;

	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != sizeof(*a)) {
		fprintf(stderr, "xroce lab: the lab does not answer\n");
		return EXIT_FAILED;
	}
	a->text[sizeof(a->text) - 1] = 0;
	if (a->status) {
		fprintf(stderr, "xroce lab: %s\n", a->text);
		return a->status;
	}
	head = CMSG_FIRSTHDR(&msg);
	if (!head || head->cmsg_type != SCM_RIGHTS || a->num_hosts > LAB_HOSTS ||
	    head->cmsg_len != CMSG_LEN(LAB_NS_COUNT * sizeof(int)))
		return lab_failed("open the lab's namespaces", -EMFILE);
	memcpy(fds, CMSG_DATA(head), LAB_NS_COUNT * sizeof(int));
	return EXIT_OK;
}

/* Enters the namespaces, and returns to the working directory. Returns 0 or -errno. */
static int enter(const int fds[LAB_NS_COUNT])
{
	static const int types[] = { [LAB_NS_USER] = CLONE_NEWUSER,
				     [LAB_NS_NET] = CLONE_NEWNET,
				     [LAB_NS_MOUNT] = CLONE_NEWNS,
				     [LAB_NS_PID] = CLONE_NEWPID };
	char cwd[PATH_MAX];
	struct stat own, its;

	if (!getcwd(cwd, sizeof(cwd)))
		strcpy(cwd, "/");
	for (u32 i = 0; i < LAB_NS_COUNT; i++) {
		if (i == LAB_NS_USER && !stat("/proc/self/ns/user", &own) && !fstat(fds[i], &its) &&
		    own.st_ino == its.st_ino && own.st_dev == its.st_dev)
			continue;
		if (setns(fds[i], types[i]))
			return -errno;
	}
	/* one that the mount namespace does not have */
	if (chdir(cwd) && chdir("/"))
		return -errno;
	return 0;
}

/* The program, in a process of the lab's PID namespace. */
static void run_in_host(const struct lab *lab, u32 number)
{
	/* the parent is in another PID namespace, where getppid(2) does not see it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	lab_run_mount_sys();
	lab_run_environment(lab, number);
	for (u32 i = 0; i < LAB_SIGNALS; i++)
		signal(lab_signals[i], SIG_DFL);
	lab_run_program(lab, 0);
	_exit(EXIT_NOT_RUN);
}

static int wait_for_program(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILED;
	return lab_exit_status(status);
}

static int exec(const char *name, u32 number, char **argv)
{
	static struct lab lab;
	struct lab_answer a;
	int fds[LAB_NS_COUNT], ret, fd;
	pid_t pid;

	if (!lab_begin(&lab))
		return lab_failed("allocate memory", -ENOMEM);
	ret = lab_prepare(&lab);
	if (ret)
		return ret;
	fd = connect_to(name, false);
	if (fd < 0)
		return EXIT_FAILED;
	ret = ask(fd, LAB_OP_ENTER, number, "") ? take_namespaces(fd, &a, fds) : EXIT_FAILED;
	close(fd);
	if (ret)
		return ret;
	lab.num_hosts = a.num_hosts;
	lab.is_shared = a.is_shared;
	lab.is_plain = a.is_plain;
	lab.programs[0].argv = argv;
	for (u32 i = 0; i < lab.num_hosts; i++)
		lab_net_name(&lab.hosts[i], i + 1);
	ret = enter(fds);
	if (ret)
		return lab_failed("enter the lab's namespaces", ret);
	/* a terminal sends these to the program as well */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	pid = fork();
	if (pid < 0)
		return lab_failed("start a process", -errno);
	if (!pid)
		run_in_host(&lab, number);
	return wait_for_program(pid);
}

/* Parses HOST [--] COMMAND... */
static int exec_words(const char *name, int argc, char **argv)
{
	const u32 number = argc ? lab_host_parse(argv[0]) : 0;

	if (!number)
		return usage_error(&command_lab, "exec %s takes a host, as h1, and a command",
				   name);
	argc--;
	argv++;
	if (argc && !strcmp(argv[0], "--")) {
		argc--;
		argv++;
	}
	if (!argc)
		return usage_error(&command_lab, "no command given");
	return exec(name, number, argv);
}

/* ---- words ---- */

static const char *const words[] = { "up", "exec", "fault", "down", "list" };

bool lab_live_is_command(const char *word)
{
	for (u32 i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(word, words[i]))
			return true;
	return false;
}

int lab_live(int argc, char **argv)
{
	const char *word = argv[1], *name = argc > 2 ? argv[2] : NULL;

	if (!strcmp(word, "list"))
		return argc == 2 ? list() : usage_error(&command_lab, "list takes no argument");
	if (!name)
		return usage_error(&command_lab, "%s needs the name of a lab", word);
	if (!lab_name_is_good(name))
		return usage_error(&command_lab,
				   "'%s': a lab's name has up to %d letters, digits, - and _", name,
				   LAB_NAME - 1);
	if (!strcmp(word, "up"))
		return up(name, argc - 2, argv + 2);
	if (!strcmp(word, "exec"))
		return exec_words(name, argc - 3, argv + 3);
	if (!strcmp(word, "fault"))
		return fault(name, argc - 3, argv + 3);
	return argc == 3 ? down(name) : usage_error(&command_lab, "down takes one name");
}
