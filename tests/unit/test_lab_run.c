/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Programs of a lab, actions and explanations, without namespaces and with a cable that forwards
 * nothing. This program is the command `xroce` of the lab as well.
 */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/tools/lab/lab_keep.h"
#include "../../user/tools/lab/lab_options.h"
#include "../../user/tools/lab/lab_report.h"

const struct command command_lab = { .name = "lab", .help = "", .options = lab_options };

/* What the stubs note, in memory that processes share. */
static struct noted {
	u32 links, addresses, enters;
} * noted;
static char text[1 << 16];

int netdev_find(const char *iface, struct netdev *dev)
{
	return -ENODEV;
}

int lab_failed(const char *what, int err)
{
	fprintf(stderr, "xroce lab: cannot %s: %s\n", what, strerror(-err));
	return EXIT_FAILED;
}

int lab_keep(struct lab *lab, const struct cable_process *cable, int signal_fd)
{
	return EXIT_FAILED;
}

int cable_run(struct cable *c, const struct cable_plan *plan, int ready_fd, int control_fd)
{
	char byte;

	if (write(ready_fd, "", 1) != 1)
		return -EPIPE;
	return read(control_fd, &byte, 1) ? -EPROTO : 0;
}

int lab_net_make(struct lab_host *hosts, u32 num, u32 mtu, const char **step)
{
	for (u32 i = 0; i < num; i++) {
		snprintf(hosts[i].ipv4, sizeof(hosts[i].ipv4), "4-%u", i + 1);
		snprintf(hosts[i].ipv6, sizeof(hosts[i].ipv6), "6-%u", i + 1);
	}
	return 0;
}

int lab_net_enter(const struct lab_host *host)
{
	noted->enters++;
	return 0;
}

int lab_net_set_link(const struct lab_host *host, bool up)
{
	noted->links += up ? 100 : 1;
	return 0;
}

int lab_net_set_addresses(const struct lab_host *host, bool present)
{
	noted->addresses += present ? 100 : 1;
	return 0;
}

/* ---- runs ---- */

/* The lab's programs would mount /sys in a namespace of their own: this process must not. */
static void drop_sys_admin(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		_exit(99);
	data[0].effective &= ~(1u << CAP_SYS_ADMIN);
	data[0].permitted &= ~(1u << CAP_SYS_ADMIN);
	data[0].inheritable &= ~(1u << CAP_SYS_ADMIN);
	if (syscall(SYS_capset, &header, data))
		_exit(99);
}

/* Runs a lab with options and their values. Returns its status; its output is in `text`. */
static int run(const char *option, ...)
{
	int ends[2], status, ret;
	static struct lab lab;
	size_t n = 0;
	va_list args;
	ssize_t got;
	pid_t pid;

	assert_true(lab_begin(&lab));
	lab.wait_ns = 0;
	va_start(args, option);
	for (; option; option = va_arg(args, const char *)) {
		const struct cli_option *o = lab_run_option(option);

		assert_non_null(o);
		assert_true(lab_set_option(&lab, o->id, o->argument ? va_arg(args, char *) : NULL));
	}
	va_end(args);
	assert_int_equal(lab_take_command(&lab, 0, NULL), 0);
	assert_int_equal(lab_check(&lab), 0);
	memset(noted, 0, sizeof(*noted));
	fflush(stdout);
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		drop_sys_admin();
		dup2(ends[1], 1);
		dup2(ends[1], 2);
		close(ends[0]);
		close(ends[1]);
		ret = lab_prepare(&lab);
		ret = ret ? ret : lab_run(&lab);
		_exit(lab_report(&lab, ret));
	}
	close(ends[1]);
	while (n < sizeof(text) - 1 && (got = read(ends[0], text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = 0;
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}
#define RUN(...) run(__VA_ARGS__, NULL)

static u32 count(const char *word)
{
	u32 n = 0;

	for (const char *at = text; (at = strstr(at, word)); at++)
		n++;
	return n;
}

static void programs_get_their_environment(void **state)
{
	assert_int_equal(RUN("hosts", "3", "h3",
			     "echo $LAB_HOST of $LAB_HOSTS: $LAB_IP1 "
			     "$LAB_IPV6_2"),
			 0);
	assert_string_equal(text, "h3 of h1 h2 h3: 4-1 6-2\n");
}

static void the_highest_status_counts(void **state)
{
	assert_int_equal(RUN("h1", "exit 3", "h2", "exit 7"), 7);
	assert_int_equal(RUN("h1", "exit 7", "h2", "exit 3"), 7);
	assert_int_equal(RUN("h1", "kill -9 $$", "h2", "true"), 137);
	/* not that of a server, which the lab ends */
	assert_int_equal(RUN("h1", "sleep 100", "h2", "true"), 0);
	assert_int_equal(count("explain"), 0);
}

/* Those that still run are explained, once. */
static void failures_are_explained(void **state)
{
	assert_int_equal(
		RUN("hosts", "3", "h1", "sleep 1", "h2", "sleep 1", "h3", "sleep 0.1; exit 4"), 4);
	assert_int_equal(count("xroce lab: explain in h1:\nexplained\n"), 1);
	assert_int_equal(count("xroce lab: explain in h2:\nexplained\n"), 1);
	assert_int_equal(count("explain in"), 2);
	assert_int_equal(RUN("deadline", "0.3", "h1", "sleep 100", "h2", "sleep 100"), LAB_TIMEOUT);
	assert_int_equal(count("explained\n"), 2);
	/* not of a program that an action kills, nor if nothing runs, nor plain */
	assert_int_equal(RUN("at", "200ms kill h2", "h1", "sleep 0.5", "h2", "sleep 100"), 137);
	assert_int_equal(count("explain"), 0);
	assert_int_equal(RUN("h1", "exit 4"), 4);
	assert_int_equal(count("explain"), 0);
	assert_int_equal(RUN("plain", "h1", "sleep 0.5", "h2", "sleep 0.1; exit 4"), 4);
	assert_int_equal(count("explain"), 0);
}

static void actions_begin_and_end(void **state)
{
	assert_int_equal(RUN("at", "100ms link h1 100ms", "at", "100ms address h2 200ms", "at",
			     "50ms mtu 600 100ms", "at", "50ms partition 100ms", "h1", "sleep 0.6"),
			 0);
	assert_int_equal(noted->links, 101);
	assert_int_equal(noted->addresses, 101);
	/* a program that is stopped does not end */
	assert_int_equal(
		RUN("at", "100ms stop h1 300ms", "deadline", "5", "h1", "sleep 0.2; echo ended"),
		0);
	assert_string_equal(text, "ended\n");
	assert_int_equal(RUN("at", "30s kill h1", "h1", "true"), 1);
	assert_string_equal(text, "xroce lab: NEVER BEGAN, the programs ended before: 30s kill h1\n"
				  "xroce lab: a rule never hit; --allow-miss permits that\n");
	assert_int_equal(RUN("at", "30s kill h1", "allow-miss", "h1", "true"), 0);
}

/* A process that ignores SIGTERM is killed. */
static void deaf_programs_end(void **state)
{
	assert_int_equal(
		RUN("plain", "deadline", "0.1", "h1", "trap '' TERM; while :; do sleep 0.1; done"),
		LAB_TIMEOUT);
}

/* The command, as the lab calls it. */
static int be_xroce(int argc, char **argv)
{
	if (argc > 5 && !strcmp(argv[1], "run"))
		execvp(argv[5], argv + 5);
	if (argc > 1 && !strcmp(argv[1], "explain"))
		puts("explained");
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_get_their_environment),
		cmocka_unit_test(the_highest_status_counts),
		cmocka_unit_test(failures_are_explained),
		cmocka_unit_test(actions_begin_and_end),
		cmocka_unit_test(deaf_programs_end),
	};

	if (!strcmp(argv[0], "xroce"))
		return be_xroce(argc, argv);
	noted = mmap(NULL, sizeof(*noted), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (noted == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
