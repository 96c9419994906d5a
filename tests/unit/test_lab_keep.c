/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* Labs that stay: their keeper and the commands, without namespaces and with a cable of threads. */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../user/tools/lab/lab_keep.h"
#include "../../user/tools/lab/lab_options.h"
#include "../../user/tools/lab/lab_space.h"

const struct command command_lab = { .name = "lab", .help = "", .options = lab_options };
const int lab_signals[LAB_SIGNALS] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
static char name[LAB_NAME], text[1 << 16];

/* For files that are not linked. */
int netdev_find(const char *iface, struct netdev *dev)
{
	return -ENODEV;
}

int lab_failed(const char *what, int err)
{
	fprintf(stderr, "xroce lab: cannot %s: %s\n", what, strerror(-err));
	return EXIT_FAILED;
}

int lab_exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int lab_prepare(struct lab *lab)
{
	return EXIT_OK;
}

void lab_run_environment(const struct lab *lab, u32 number)
{
}

void lab_run_mount_sys(void)
{
}

void lab_run_program(const struct lab *lab, u32 i)
{
}

void lab_net_name(struct lab_host *host, u32 number)
{
}

int lab_net_enter(const struct lab_host *host)
{
	return 0;
}

bool lab_space_interrupted(void)
{
	return false;
}

/* ---- the lab, in the keeper's process: its cable applies changes of rules ---- */

static bool is_refused;

static void cable(struct cable *c, int control_fd)
{
	char byte;

	while (read(control_fd, &byte, 1) == 1) {
		c->wire.rules[c->change_at] = c->change;
		c->wire.rules[c->change_at].hits = c->change_at + 1;
		c->wire.num_rules += c->change_at == c->wire.num_rules;
		atomic_fetch_add(&c->changes, 1);
	}
	_exit(0);
}

int lab_space_run(struct lab *lab)
{
	struct cable_process process;
	int control[2], ret;
	sigset_t set;

	if (is_refused)
		return lab_failed("make namespaces", -EPERM);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (pipe2(control, O_CLOEXEC))
		return EXIT_FAILED;
	process.control_fd = control[1];
	process.pid = fork();
	if (!process.pid) {
		close(control[1]);
		cable(lab->cable, control[0]);
	}
	ret = lab_keep(lab, &process, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
	close(control[1]);
	waitpid(process.pid, NULL, 0);
	return ret;
}

/* ---- the commands ---- */

/* Runs `xroce lab WORD...` in a process. Returns its status; its output is in `text`. */
static int lab(const char *word, ...)
{
	char *argv[16] = { (char *)"lab", (char *)word };
	int argc = 2, ends[2], status;
	size_t n = 0;
	va_list args;
	ssize_t got;
	pid_t pid;

	va_start(args, word);
	while ((argv[argc] = va_arg(args, char *)))
		argc++;
	va_end(args);
	fflush(stdout);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		dup2(ends[1], 1);
		dup2(ends[1], 2);
		status = lab_live(argc, argv);
		fflush(stdout);
		_exit(status);
	}
	close(ends[1]);
	while (n < sizeof(text) - 1 && (got = read(ends[0], text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = 0;
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return lab_exit_status(status);
}
#define LAB(...) lab(__VA_ARGS__, NULL)

/* Returns the PID of the keeper, or 0. */
static pid_t keeper(void)
{
	const char *at;

	assert_int_equal(LAB("list"), 0);
	at = strstr(text, name);
	return at && (at = strstr(at, " pid ")) ? (pid_t)atoi(at + 5) : 0;
}

static void is_gone(void)
{
	for (u32 i = 0; i < 500 && keeper(); i++)
		usleep(10000);
	assert_int_equal(keeper(), 0);
}

static void wrong_words_are_refused(void **state)
{
	static const struct {
		const char *words[5], *why;
	} wrong[] = {
		{ { "up" }, "needs the name" },
		{ { "up", "a/b" }, "'a/b'" },
		{ { "up", "" }, "''" },
		{ { "up", "a b" }, "'a b'" },
		{ { "up", "abcdefghijklmnopqrstuvwxyz012345" }, "31 letters" },
		{ { "up", "a", "true" }, "runs no program" },
		{ { "up", "a", "--h1", "true" }, "runs no program" },
		{ { "up", "a", "--at", "1s kill h1" }, "no options of runs" },
		{ { "up", "a", "--deadline", "1" }, "no options of runs" },
		{ { "up", "a", "--cases", "wire" }, "no options of runs" },
		{ { "up", "a", "--record", "x" }, "no options of runs" },
		{ { "up", "a", "--report", "x" }, "no options of runs" },
		{ { "up", "a", "--allow-miss" }, "no options of runs" },
		{ { "up", "a", "--lose", "1%" }, "--lose" },
		{ { "up", "a", "--loss", "x" }, "'x'" },
		{ { "up", "a", "--fault", "drop h1>h3" }, "h1>h3" },
		{ { "exec" }, "needs the name" },
		{ { "exec", "a" }, "takes a host" },
		{ { "exec", "a", "true" }, "takes a host" },
		{ { "exec", "a", "h0", "true" }, "takes a host" },
		{ { "exec", "a", "h9", "true" }, "takes a host" },
		{ { "exec", "a", "h1" }, "no command" },
		{ { "exec", "a", "h1", "--" }, "no command" },
		{ { "fault", "a" }, "add RULE" },
		{ { "fault", "a", "add" }, "add RULE" },
		{ { "fault", "a", "add", "" }, "add RULE" },
		{ { "fault", "a", "ad", "drop" }, "add RULE" },
		{ { "fault", "a", "list", "x" }, "add RULE" },
		{ { "fault", "a", "add", "drop", "rc" }, "quote it" },
		{ { "down" }, "needs the name" },
		{ { "down", "a", "b" }, "one name" },
		{ { "list", "a" }, "no argument" },
	};

	for (u32 i = 0; i < ARRAY_SIZE(wrong); i++) {
		const char *const *w = wrong[i].words;
		const int status = lab(w[0], w[1], w[1] ? w[2] : NULL, w[1] && w[2] ? w[3] : NULL,
				       w[1] && w[2] && w[3] ? w[4] : NULL, NULL);

		if (status != 2 || !strstr(text, wrong[i].why))
			fail_msg("%s %s: status %d: %s", w[0], w[1] ? w[1] : "", status, text);
	}
}

static void labs_stay_until_they_are_ended(void **state)
{
	assert_int_equal(LAB("down", name), 1);
	assert_non_null(strstr(text, "there is no lab '"));
	assert_int_equal(LAB("up", name, "--hosts", "3", "--fault", "drop h1>h3"), 0);
	assert_string_equal(text, "");
	assert_true(keeper() > 0);
	assert_int_equal(LAB("up", name), 1);
	assert_non_null(strstr(text, "there is a lab '"));
	assert_int_equal(LAB("exec", name, "h4", "true"), 2);
	assert_non_null(strstr(text, "there is no such host"));
	assert_int_equal(LAB("down", name), 0);
	assert_string_equal(text, "xroce lab: NEVER HIT, 0 of 0: drop h1>h3\n");
	is_gone();
}

static void rules_change(void **state)
{
	char rule[32];

	assert_int_equal(LAB("up", name), 0);
	assert_int_equal(LAB("fault", name, "list"), 0);
	assert_string_equal(text, "");
	assert_int_equal(LAB("fault", name, "add", "drop rc.ack nth=1"), 0);
	assert_int_equal(LAB("fault", name, "add", "swap nth=2"), 0);
	assert_int_equal(LAB("fault", name, "add", "drop rc.sned"), 2);
	assert_non_null(strstr(text, "'rc.sned' in the rule: neither a kind"));
	assert_int_equal(LAB("fault", name, "add", "drop h1>h3"), 2);
	assert_int_equal(LAB("fault", name, "list"), 0);
	assert_string_equal(text, "xroce lab: hit 1 of 0: drop rc.ack nth=1\n"
				  "xroce lab: hit 2 of 0: swap nth=2\n");
	assert_int_equal(LAB("fault", name, "clear", "drop rc.ack nth=1"), 0);
	assert_int_equal(LAB("fault", name, "clear", "drop rc.ack nth=1"), 1);
	assert_non_null(strstr(text, "there is no such rule"));
	assert_int_equal(LAB("fault", name, "list"), 0);
	assert_string_equal(text, "xroce lab: hit 2 of 0: swap nth=2\n");
	/* in the place that is free */
	assert_int_equal(LAB("fault", name, "add", "mark"), 0);
	assert_int_equal(LAB("fault", name, "list"), 0);
	assert_string_equal(text, "xroce lab: hit 1 of 0: mark\n"
				  "xroce lab: hit 2 of 0: swap nth=2\n");
	assert_int_equal(LAB("fault", name, "clear"), 0);
	assert_int_equal(LAB("fault", name, "list"), 0);
	assert_string_equal(text, "");
	for (u32 i = 0; i < LAB_RULES; i++) {
		snprintf(rule, sizeof(rule), "drop rc.send.middle nth=%u", i + 1);
		assert_int_equal(LAB("fault", name, "add", rule), 0);
	}
	assert_int_equal(LAB("fault", name, "add", "drop"), 2);
	assert_non_null(strstr(text, "more than 64 rules"));
	/* a text of several pieces */
	assert_int_equal(LAB("fault", name, "list"), 0);
	assert_true(strlen(text) > LAB_PIECE);
	assert_non_null(strstr(text, "drop rc.send.middle nth=64\n"));
	assert_int_equal(LAB("down", name), 0);
	is_gone();
}

/* A client that asks for nothing, or for nonsense, delays others by a second at most. */
static void bad_clients_do_no_harm(void **state)
{
	struct sockaddr_un address;
	socklen_t len;
	struct lab_request q;
	int fds[3];

	assert_int_equal(LAB("up", name), 0);
	len = lab_address(name, &address);
	memset(&q, 0xff, sizeof(q));
	for (u32 i = 0; i < 3; i++) {
		fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fds[i], (struct sockaddr *)&address, len), 0);
	}
	assert_int_equal(send(fds[1], &q, sizeof(q), MSG_NOSIGNAL), sizeof(q));
	assert_int_equal(send(fds[2], &q, 3, MSG_NOSIGNAL), 3);
	assert_int_equal(LAB("fault", name, "add", "drop"), 0);
	for (u32 i = 0; i < 3; i++)
		close(fds[i]);
	assert_int_equal(LAB("down", name), 0);
	is_gone();
}

static void a_signal_ends_the_keeper(void **state)
{
	pid_t pid;

	for (u32 i = 0; i < 2; i++) {
		assert_int_equal(LAB("up", name), 0);
		pid = keeper();
		assert_true(pid > 0);
		kill(pid, i ? SIGKILL : SIGTERM);
		is_gone();
	}
	/* its address is free at once */
	assert_int_equal(LAB("up", name), 0);
	assert_int_equal(LAB("down", name), 0);
	is_gone();
}

/* What the keeper says before it is ready is this command's message. */
static void failures_are_reported(void **state)
{
	is_refused = true;
	assert_int_equal(LAB("up", name), 1);
	is_refused = false;
	assert_string_equal(text, "xroce lab: cannot make namespaces: Operation not permitted\n");
	assert_int_equal(keeper(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_words_are_refused),
		cmocka_unit_test(labs_stay_until_they_are_ended),
		cmocka_unit_test(rules_change),
		cmocka_unit_test(bad_clients_do_no_harm),
		cmocka_unit_test(a_signal_ends_the_keeper),
		cmocka_unit_test(failures_are_reported),
	};

	snprintf(name, sizeof(name), "test-%d", getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
