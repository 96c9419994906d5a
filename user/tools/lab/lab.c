/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce lab: hosts in network namespaces, joined by a cable with faults; the command line, the
 * namespaces of the whole lab, and the report.
 *
 *   this process -- guard: makes the namespaces -- lab: the first process of its PID namespace
 *                                                   |- cable
 *                                                   `- programs of the hosts
 *
 * Each process is killed with its parent, and the PID namespace with its first process, so that
 * nothing remains when this process is killed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "../cli.h"
#include "../json.h"
#include "lab_run.h"

enum { EXIT_NO_PROC = 77 }; /* of the lab's first process: /proc cannot be mounted */

#define MTU_LEAST 1280
#define MTU_MOST  9216
#define MTU	  1500
#define SEED	  1
#define TIME_MOST (3600 * (u64)NSEC_PER_SEC)

/* ---- the command line ---- */

enum {
	OPTION_HOSTS = CLI_LONG,
	OPTION_MTU,
	OPTION_SEED,
	OPTION_LOSS,
	OPTION_DELAY,
	OPTION_REORDER,
	OPTION_DUPLICATE,
	OPTION_CORRUPT,
	OPTION_MARK,
	OPTION_RATE,
	OPTION_AT,
	OPTION_SHARED,
	OPTION_PLAIN,
	OPTION_MISS,
	OPTION_REPORT,
	OPTION_WAIT,
	OPTION_DEADLINE,
	OPTION_HOST
};

/* Adds a rule, or prints where it is wrong. */
static int add_rule(struct lab *lab, const char *text)
{
	struct lab_wire *w = &lab->cable->wire;
	char shown[LAB_RULE_TEXT];
	struct lab_error error;

	if (w->num_rules == LAB_RULES) {
		fprintf(stderr, "xroce lab: more than %d rules\n", LAB_RULES);
		return EXIT_USAGE;
	}
	if (lab_rule_parse(text, lab->num_hosts, &w->rules[w->num_rules], &error)) {
		output_clean(w->rules[w->num_rules++].text);
		return EXIT_OK;
	}
	snprintf(shown, sizeof(shown), "%s", text);
	output_clean(shown);
	fprintf(stderr, "xroce lab: %s\n           %*s^ %s\n", shown,
		(int)min_u32(error.at, LAB_RULE_TEXT - 1), "", error.why);
	return EXIT_USAGE;
}

/* Notes a rule with a share of the packets, as of tc-netem(8). */
static bool add_share(struct lab *lab, const char *verb, const char *share)
{
	u64 chance;

	if (!lab_chance_parse(share, strlen(share), &chance) || lab->num_texts == LAB_RULES)
		return false;
	return asprintf(&lab->texts[lab->num_texts++], "%s p=%s", verb, share) > 0;
}

static bool add_text(struct lab *lab, char *text)
{
	if (lab->num_texts == LAB_RULES)
		return false;
	lab->texts[lab->num_texts++] = text;
	return true;
}

/* Parses a rate of tc(8): 10gbit, 500mbit, 64kbit. */
static bool parse_rate(const char *text, u64 *bits)
{
	static const struct {
		const char *unit;
		double bits;
	} units[] = { { "gbit", 1e9 }, { "mbit", 1e6 }, { "kbit", 1e3 } };
	char *end;
	const double value = strtod(text, &end);

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(end, units[i].unit) && value * units[i].bits >= 1000 &&
		    value * units[i].bits <= 1e12) {
			*bits = (u64)(value * units[i].bits);
			return true;
		}
	return false;
}

static bool lab_set(struct lab *lab, int id, char *value)
{
	switch (id) {
	case OPTION_HOSTS:
		return cli_number32(value, 2, LAB_HOSTS, &lab->num_hosts);
	case 'f':
		return add_text(lab, value);
	case OPTION_DEADLINE:
		return cli_seconds(value, NSEC_PER_MSEC, TIME_MOST, &lab->timeout_ns);
	case OPTION_MTU:
		return cli_number32(value, MTU_LEAST, MTU_MOST, &lab->mtu);
	case OPTION_SEED:
		return cli_number(value, 0, UINT64_MAX, &lab->cable->wire.seed);
	case OPTION_LOSS:
		return add_share(lab, "drop", value);
	case OPTION_REORDER:
		return add_share(lab, "swap", value);
	case OPTION_DUPLICATE:
		return add_share(lab, "duplicate", value);
	case OPTION_CORRUPT:
		return add_share(lab, "corrupt", value);
	case OPTION_MARK:
		return add_share(lab, "mark", value);
	case OPTION_DELAY:
		return lab_time_parse(value, strlen(value), &lab->delay_ns);
	case OPTION_RATE:
		return parse_rate(value, &lab->bits_per_second);
	case OPTION_AT:
		return lab->num_actions < LAB_ACTIONS &&
		       lab_action_parse(value, &lab->actions[lab->num_actions++]);
	case OPTION_WAIT:
		return cli_seconds(value, 0, TIME_MOST, &lab->wait_ns);
	case OPTION_REPORT:
		lab->json = value;
		return true;
	case OPTION_SHARED:
		lab->is_shared = true;
		return true;
	case OPTION_PLAIN:
		lab->is_plain = true;
		return true;
	case OPTION_MISS:
		lab->may_miss = true;
		return true;
	}
	lab->programs[id - OPTION_HOST].shell = value;
	return true;
}

static int lab_option(void *arg, int id, char *value)
{
	return lab_set(arg, id, value) ? EXIT_OK : CLI_REFUSED;
}

#define WANTS_SHARE "a share of packets above 0 and up to 1, as 0.01 or 1%"
#define HOST_OPTION(n, text)                                                                       \
	{                                                                                          \
		OPTION_HOST + (n)-1, "h" #n, "COMMAND", text, NULL                                 \
	}

static const struct cli_option lab_options[] = {
	{ OPTION_HOSTS, "hosts", "N", "make N hosts, 2 to 8; default 2", "2 to 8" },
	HOST_OPTION(1, "run COMMAND in host h1, by sh -c"),
	HOST_OPTION(2, "run COMMAND in host h2; so for --h3 to --h8"),
	HOST_OPTION(3, NULL),
	HOST_OPTION(4, NULL),
	HOST_OPTION(5, NULL),
	HOST_OPTION(6, NULL),
	HOST_OPTION(7, NULL),
	HOST_OPTION(8, NULL),
	{ 'f', "fault", "RULE", "do to packets what RULE says; can be repeated",
	  "at most 64 rules" },
	{ OPTION_LOSS, "loss", "P", "drop a share P of the packets, as 1%", WANTS_SHARE },
	{ OPTION_DUPLICATE, "duplicate", "P", "duplicate a share P", WANTS_SHARE },
	{ OPTION_REORDER, "reorder", "P", "swap a share P with the next packet", WANTS_SHARE },
	{ OPTION_CORRUPT, "corrupt", "P", "corrupt a share P", WANTS_SHARE },
	{ OPTION_MARK, "mark", "P", "mark a share P 'congestion experienced'", WANTS_SHARE },
	{ OPTION_DELAY, "delay", "T", "delay each frame by T, as 2ms", "a time, as 2ms" },
	{ OPTION_RATE, "rate", "R", "limit each link to R, as 1gbit",
	  "a rate, as 1gbit or 500mbit" },
	{ OPTION_SEED, "seed", "N", "choose other packets for shares; default 1", "a number" },
	{ OPTION_MTU, "mtu", "BYTES", "give links this MTU; default 1500", "1280 to 9216" },
	{ OPTION_AT, "at", "'T ACTION'",
	  "after T do ACTION: kill HOST, stop HOST T, link HOST T\n(down for T), partition T",
	  "a time and an action, as '2s stop h2 500ms'" },
	{ OPTION_SHARED, "shared", NULL, "let programs share their interface by a broker", NULL },
	{ OPTION_PLAIN, "plain", NULL, "run programs without 'xroce run'", NULL },
	{ OPTION_WAIT, "wait", "S",
	  "wait up to S seconds for a host's program to listen before\n"
	  "the next host's starts; default 1",
	  "seconds" },
	{ OPTION_DEADLINE, "deadline", "S", "end after S seconds with status 124", "seconds" },
	{ OPTION_MISS, "allow-miss", NULL, "a rule that no packet matched is no failure", NULL },
	{ OPTION_REPORT, "report", "FILE", "write the report to FILE as JSON as well", NULL },
	{ 0 }
};

/* Returns EXIT_OK or EXIT_USAGE after a message. */
static int check_programs(struct lab *lab, int argc, char **argv)
{
	u32 n = 0;

	if (argc)
		lab->programs[0].argv = argv;
	for (u32 i = 0; i < LAB_HOSTS; i++) {
		const struct lab_program *p = &lab->programs[i];

		if (p->shell && p->argv)
			return usage_error(&command_lab,
					   "--h1 and a command are for the same host");
		if ((p->shell || p->argv) && i >= lab->num_hosts)
			return usage_error(&command_lab, "there is no host h%u", i + 1);
		n += p->shell || p->argv;
	}
	if (!n)
		return usage_error(&command_lab, "no command given");
	for (u32 i = 0; i < lab->num_actions; i++)
		if (lab->actions[i].host > lab->num_hosts)
			return usage_error(&command_lab, "there is no host h%u",
					   lab->actions[i].host);
	lab->is_alone = n == 1;
	return EXIT_OK;
}

/* ---- namespaces ---- */

static int write_file(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -EIO;
}

/* This user becomes root of a user namespace. */
static int enter_user_namespace(void)
{
	char uids[32], gids[32];
	int err;

	snprintf(uids, sizeof(uids), "0 %u 1", geteuid());
	snprintf(gids, sizeof(gids), "0 %u 1", getegid());
	if (unshare(CLONE_NEWUSER))
		return -errno;
	err = write_file("/proc/self/uid_map", uids);
	if (!err)
		/* absent before Linux 3.19 */
		write_file("/proc/self/setgroups", "deny");
	return err ? err : write_file("/proc/self/gid_map", gids);
}

static int enter_namespaces(bool with_pids)
{
	int err = unshare(CLONE_NEWNET | CLONE_NEWNS) ? -errno : 0;

	if (err == -EPERM)
		err = enter_user_namespace();
	else if (!err)
		return with_pids && unshare(CLONE_NEWPID) ? -errno : 0;
	if (err)
		return err;
	return unshare(CLONE_NEWNET | CLONE_NEWNS | (with_pids ? CLONE_NEWPID : 0)) ? -errno : 0;
}

/* Mounts /proc of the PID namespace, and a private /run/xroce. Returns 0 or -errno. */
static int mount_own(bool with_pids)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -errno;
	if (with_pids && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		return -errno;
	/* without the directory brokers listen at an address of the network namespace */
	mount("xroce-lab", "/run/xroce", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755");
	return 0;
}

static void die_with_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILED);
}

/* The lab's first process. */
static int lab_first(struct lab *lab, bool with_pids)
{
	const int err = mount_own(with_pids);

	if (err)
		return with_pids ? EXIT_NO_PROC : lab_failed("make a mount namespace", err);
	if (!with_pids)
		prctl(PR_SET_CHILD_SUBREAPER, 1);
	return lab_run(lab);
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILED;
	return exit_status(status);
}

/* Makes the namespaces, and the first process in them. Returns its exit status. */
static int lab_guard(struct lab *lab, bool with_pids)
{
	const int err = enter_namespaces(with_pids);
	pid_t pid;

	if (err) {
		lab_failed("make namespaces", err);
		if (err == -EPERM || err == -ENOSPC || err == -EACCES)
			fprintf(stderr, "xroce lab: run it as root, or permit user namespaces "
					"(sysctl user.max_user_namespaces, "
					"kernel.unprivileged_userns_clone, "
					"kernel.apparmor_restrict_unprivileged_userns)\n");
		return EXIT_FAILED;
	}
	pid = fork();
	if (pid < 0)
		return lab_failed("start a process", -errno);
	if (!pid) {
		/* the first process of a PID namespace has no parent to compare */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(lab_first(lab, with_pids));
	}
	lab->child = pid;
	return wait_for(pid);
}

static struct lab *the_lab;

/* The guard and the process before it pass on signals; the lab's first process ends on them. */
static void pass_on(int sig)
{
	if (the_lab->child)
		kill(the_lab->child, sig);
}

static int lab_in_child(struct lab *lab, bool with_pids)
{
	const pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		return lab_failed("start a process", -errno);
	if (!pid) {
		lab->child = 0;
		die_with_parent(parent);
		_exit(lab_guard(lab, with_pids));
	}
	lab->child = pid;
	return wait_for(pid);
}

/* ---- the report ---- */

static void say_packet(const struct lab_hit *h)
{
	char name[LAB_KIND_NAME];

	lab_kind_name(h->id.kind, name);
	fprintf(stderr, "xroce lab:     h%u>h%u %s qp %u (0x%x) psn 0x%x (+%u) round %u\n", h->from,
		h->to, name, h->id.order, h->id.qpn, h->id.psn, h->id.step, h->id.round);
}

static u32 rule_matched(const struct lab_rule *r)
{
	u32 sum = 0;

	for (u32 i = 1; i <= LAB_HOSTS; i++)
		for (u32 j = 1; j <= LAB_HOSTS; j++)
			sum += r->matched[i][j];
	return sum;
}

/* Returns whether a rule has never hit. */
static bool say_rules(const struct lab *lab)
{
	bool missed = false;

	for (u32 i = 0; i < lab->cable->wire.num_rules; i++) {
		const struct lab_rule *r = &lab->cable->wire.rules[i];

		missed |= !r->hits;
		fprintf(stderr, "xroce lab: %s %u of %u: %s\n", r->hits ? "hit" : "NEVER HIT,",
			r->hits, rule_matched(r), r->text);
		for (u32 k = 0; k < r->num_shown; k++)
			say_packet(&r->shown[k]);
	}
	return missed;
}

static void say_cable(const struct cable *c)
{
	if (c->too_long)
		fprintf(stderr,
			"xroce lab: %llu frames longer than the MTU were dropped: a host has "
			"switched its offloads on\n",
			(unsigned long long)c->too_long);
	if (c->lost_ring)
		fprintf(stderr,
			"xroce lab: %llu frames were dropped because the cable was too slow\n",
			(unsigned long long)c->lost_ring);
	if (c->lost_queue)
		fprintf(stderr, "xroce lab: %llu frames were dropped because a queue was full\n",
			(unsigned long long)c->lost_queue);
	if (c->wire.untold)
		fprintf(stderr, "xroce lab: %llu packets of more than %d QPs were not told apart\n",
			(unsigned long long)c->wire.untold, LAB_FLOWS);
}

static void write_json(const struct lab *lab, int status, FILE *out)
{
	const struct cable *c = lab->cable;
	struct json j;

	json_begin(&j, out);
	json_open_object(&j, NULL);
	json_signed(&j, "status", status);
	json_number(&j, "seed", c->wire.seed);
	json_number(&j, "packets", c->wire.packets);
	json_number(&j, "frames_forwarded", c->forwarded);
	json_number(&j, "frames_lost_by_the_cable", c->lost_ring + c->lost_queue + c->too_long);
	json_open_array(&j, "programs");
	for (u32 i = 0; i < lab->num_hosts; i++) {
		const struct lab_program *p = &lab->programs[i];

		if (!p->shell && !p->argv)
			continue;
		json_open_object(&j, NULL);
		json_number(&j, "host", i + 1);
		json_text(&j, "command", p->shell ? p->shell : p->argv[0]);
		json_signed(&j, "status", lab->shown->status[i]);
		json_boolean(&j, "ended_by_the_lab", lab->shown->was_ended[i]);
		json_close(&j);
	}
	json_close(&j);
	json_open_array(&j, "rules");
	for (u32 i = 0; i < c->wire.num_rules; i++) {
		const struct lab_rule *r = &c->wire.rules[i];

		json_open_object(&j, NULL);
		json_text(&j, "rule", r->text);
		json_number(&j, "matched", rule_matched(r));
		json_number(&j, "hits", r->hits);
		json_close(&j);
	}
	json_close(&j);
	json_close(&j);
	json_end(&j);
}

static int report(const struct lab *lab, int status)
{
	bool missed = say_rules(lab);
	FILE *out;

	say_cable(lab->cable);
	if (missed && !lab->may_miss && !status) {
		fprintf(stderr, "xroce lab: a rule never hit; --allow-miss permits that\n");
		status = EXIT_FAILED;
	}
	if (!lab->json)
		return status;
	out = fopen(lab->json, "we");
	if (out)
		write_json(lab, status, out);
	if (!out || ferror(out) | fclose(out)) {
		fprintf(stderr, "xroce lab: cannot write '%s': %s\n", lab->json, strerror(errno));
		return status ? status : EXIT_FAILED;
	}
	return status;
}

/* ---- the command ---- */

int lab_failed(const char *what, int err)
{
	fprintf(stderr, "xroce lab: cannot %s: %s\n", what, strerror(-err));
	return EXIT_FAILED;
}

static void *shared_memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int lab_main(int argc, char **argv)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
	static struct lab lab = { .num_hosts = 2, .mtu = MTU, .wait_ns = NSEC_PER_SEC };
	int ret;

	lab.cable = shared_memory(sizeof(*lab.cable));
	lab.shown = shared_memory(sizeof(*lab.shown));
	if (!lab.cable || !lab.shown)
		return lab_failed("allocate memory", -ENOMEM);
	lab.cable->wire.seed = SEED;
	ret = cli_parse(&command_lab, &argc, &argv, lab_option, &lab);
	for (u32 i = 0; !ret && i < lab.num_texts; i++)
		ret = add_rule(&lab, lab.texts[i]);
	if (!ret)
		ret = check_programs(&lab, argc, argv);
	if (ret)
		return ret;
	ret = lab_prepare(&lab);
	if (ret)
		return ret;
	the_lab = &lab;
	for (u32 i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], pass_on);
	ret = lab_in_child(&lab, true);
	if (ret == EXIT_NO_PROC && !lab.shown->began)
		ret = lab_in_child(&lab, false);
	if (!lab.shown->began)
		return ret;
	return report(&lab, ret);
}

const struct command command_lab = {
	.name = "lab",
	.summary = "run programs on two hosts of its own, with faults on the wire",
	.main = lab_main,
	.help = "usage: xroce lab [OPTION...] [--] COMMAND [ARGUMENT...]\n"
		"       xroce lab [OPTION...] --h1 COMMAND --h2 COMMAND\n"
		"\n"
		"Makes hosts h1, h2, ... in network namespaces of its own, each with an interface\n"
		"eth0 and a device xroce_eth0, and runs programs in them: COMMAND in h1, or one\n"
		"for each host. On the way between the hosts it drops, delays, duplicates, swaps,\n"
		"corrupts or marks the RoCEv2 packets that rules select (xroce-lab(8)). The same\n"
		"rules and the same seed hit the same packets again. At the end it reports what\n"
		"each rule has hit, and nothing of the lab remains.\n"
		"\n",
	.options = lab_options,
	.is_wrapper = true,
	.help_end =
		"\n"
		"Programs find LAB_IP1, LAB_IP2, ... and LAB_IPV6_1, ... in their environment,\n"
		"LAB_HOSTS, the names of the hosts, and LAB_HOST, their own.\n"
		"\n"
		"Needs root, or user namespaces; then devices use UDP sockets.\n"
		"Exit status: the highest of the programs'; 1 if a rule never hit; 124 after the\n"
		"time limit; 2 for wrong usage.\n"
		"\n"
		"Examples:\n"
		"  xroce lab --h1 'ib_write_bw' --h2 'ib_write_bw $LAB_IP1'\n"
		"  xroce lab --fault 'drop h2>h1 rc.ack nth=3' -- ./test.sh\n",
};
