/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "../cli.h"
#include "lab_endpoint.h"
#include "lab_keep.h"

/* The time that programs get to end by themselves after the last host's, and then after SIGTERM. */
#define END_NS	   (2 * (u64)NSEC_PER_SEC)
#define TERM_NS	   (2 * (u64)NSEC_PER_SEC)
#define EXPLAIN_NS (5 * (u64)NSEC_PER_SEC) /* longest wait for an explanation */
#define LOOK_MS	   20			   /* between two looks whether a program listens */

const int lab_signals[LAB_SIGNALS] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };

int lab_exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- actions ---- */

static void signal_host(const struct lab *lab, u32 host, int sig)
{
	const pid_t pid = lab->programs[host - 1].pid;

	/* its process group */
	if (pid)
		kill(-pid, sig);
}

static void act(struct lab *lab, const struct lab_action *a, bool begin)
{
	switch (a->act) {
	case LAB_KILL:
		if (begin)
			signal_host(lab, a->host, SIGKILL);
		break;
	case LAB_STOP:
		signal_host(lab, a->host, begin ? SIGSTOP : SIGCONT);
		break;
	case LAB_LINK:
		lab_net_set_link(&lab->hosts[a->host - 1], !begin);
		break;
	case LAB_ADDRESS:
		lab_net_set_addresses(&lab->hosts[a->host - 1], !begin);
		break;
	case LAB_PATH_MTU:
		atomic_store_explicit(&lab->cable->path_mtu, begin ? a->bytes : 0,
				      memory_order_relaxed);
		break;
	case LAB_PARTITION:
		atomic_store_explicit(&lab->cable->partitioned, begin, memory_order_relaxed);
		break;
	}
}

/* Begins and ends the actions that are due. Returns when the next one is due. */
static u64 actions_due(struct lab *lab, u64 began_ns)
{
	const u64 now_ns = clock_now_ns();
	u64 next_ns = NSEC_NEVER;

	for (u32 i = 0; i < lab->num_actions; i++) {
		struct lab_action *a = &lab->actions[i];
		const u64 at_ns = began_ns + a->at_ns;

		if (!a->is_begun && at_ns <= now_ns) {
			act(lab, a, true);
			lab->shown->has_acted[i] = true;
			a->is_begun = true;
			a->is_over = !a->for_ns;
		}
		if (a->is_begun && !a->is_over && at_ns + a->for_ns <= now_ns) {
			act(lab, a, false);
			a->is_over = true;
		}
		if (!a->is_over)
			next_ns = min_u64(next_ns, a->is_begun ? at_ns + a->for_ns : at_ns);
	}
	return next_ns;
}

/* ---- the cable ---- */

static int start_cable(struct lab *lab, struct cable_process *c)
{
	const struct cable_plan plan = { .num = lab->num_hosts,
					 .hosts = lab->hosts,
					 .mtu = lab->mtu,
					 .delay_ns = lab->delay_ns,
					 .bits_per_second = lab->bits_per_second,
					 .capture_fd = lab->capture_fd };
	int ready[2], control[2], err;
	char byte;

	if (pipe2(ready, O_CLOEXEC) || pipe2(control, O_CLOEXEC))
		return lab_failed("make a pipe", -errno);
	c->pid = fork();
	if (c->pid < 0)
		return lab_failed("start a process", -errno);
	if (!c->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(control[1]);
		err = cable_run(lab->cable, &plan, ready[1], control[0]);
		_exit(err ? lab_failed("forward packets", err) : EXIT_OK);
	}
	close(ready[1]);
	close(control[0]);
	c->control_fd = control[1];
	err = read(ready[0], &byte, 1) == 1 ? EXIT_OK : EXIT_FAILED;
	close(ready[0]);
	return err;
}

static void stop_cable(struct cable_process *c)
{
	close(c->control_fd);
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* ---- programs ---- */

void lab_run_environment(const struct lab *lab, u32 number)
{
	char name[32], value[LAB_HOSTS * 4] = "";

	for (u32 i = 0; i < lab->num_hosts; i++) {
		snprintf(name, sizeof(name), "LAB_IP%u", i + 1);
		setenv(name, lab->hosts[i].ipv4, 1);
		snprintf(name, sizeof(name), "LAB_IPV6_%u", i + 1);
		setenv(name, lab->hosts[i].ipv6, 1);
		snprintf(value + strlen(value), sizeof(value) - strlen(value), "%sh%u",
			 i ? " " : "", i + 1);
	}
	setenv("LAB_HOSTS", value, 1);
	snprintf(name, sizeof(name), "h%u", number);
	setenv("LAB_HOST", name, 1);
	lab_endpoint_environment(lab, number);
	if (lab->is_shared)
		setenv("XROCE_SHARE", "always", 1);
}

void lab_run_program(const struct lab *lab, u32 i)
{
	const struct lab_program *p = &lab->programs[i];
	char *const shell[] = { "/bin/sh", "-c", p->shell, NULL };
	char *const *command = p->shell ? shell : p->argv;
	char *words[256] = { "xroce", "run", "--dev", LAB_IFACE, "--" };
	u32 n = 5;

	for (; !lab->is_plain && *command; command++) {
		if (n == ARRAY_SIZE(words) - 1) {
			lab_failed("run the command", -E2BIG);
			return;
		}
		words[n++] = *command;
	}
	if (lab->is_plain)
		execvp(command[0], command);
	else
		execv(lab->self, words);
	lab_failed("run the command", -errno);
}

void lab_run_mount_sys(void)
{
	if (!unshare(CLONE_NEWNS))
		mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

static int start_program(struct lab *lab, u32 i)
{
	struct lab_program *p = &lab->programs[i];
	sigset_t none;
	int fd, err;

	p->pid = fork();
	if (p->pid < 0)
		return lab_failed("start a process", -errno);
	if (p->pid) {
		p->was_started = true;
		setpgid(p->pid, p->pid);
		return EXIT_OK;
	}
	setpgid(0, 0);
	err = lab_net_enter(&lab->hosts[i]);
	if (err)
		_exit(lab_failed("enter a network namespace", err));
	lab_run_mount_sys();
	lab_run_environment(lab, i + 1);
	if (!lab->is_alone) {
		fd = open("/dev/null", O_RDONLY);
		if (fd >= 0)
			dup2(fd, STDIN_FILENO);
	} else if (isatty(STDIN_FILENO)) {
		/* the foreground, of which SIGTTOU would stop a background process */
		signal(SIGTTOU, SIG_IGN);
		tcsetpgrp(STDIN_FILENO, getpid());
		signal(SIGTTOU, SIG_DFL);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (u32 k = 0; k < LAB_SIGNALS; k++)
		signal(lab_signals[k], SIG_DFL);
	lab_run_program(lab, i);
	_exit(127);
}

/* Returns whether a socket of the process's network namespace listens. */
static bool listens(pid_t pid, const char *protocol)
{
	char path[64], line[256];
	bool found = false;
	unsigned int state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", pid, protocol);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, " %*d: %*s %*s %x", &state) == 1 && state == 0x0a;
	if (file)
		fclose(file);
	return found;
}

/* ---- the lab ---- */

struct runner {
	struct lab *lab;
	int signal_fd;
	u64 began_ns;
	u64 end_ns, kill_ns; /* when programs that are left get SIGTERM, and SIGKILL */
	bool is_stopped, is_late, has_failed, is_explained;
};

static u32 running(const struct lab *lab)
{
	u32 n = 0;

	for (u32 i = 0; i < lab->num_hosts; i++)
		n += lab->programs[i].pid != 0;
	return n;
}

/* Returns whether the host with the highest number that has a program has ended. */
static bool last_has_ended(const struct lab *lab)
{
	for (u32 i = lab->num_hosts; i--;)
		if (lab->programs[i].shell || lab->programs[i].argv)
			return lab->programs[i].was_started && !lab->programs[i].pid;
	return true;
}

static void reap(struct runner *r)
{
	struct lab *lab = r->lab;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (u32 i = 0; i < lab->num_hosts; i++)
			if (lab->programs[i].pid == pid) {
				lab->programs[i].pid = 0;
				lab->shown->status[i] = lab_exit_status(status);
				/* not one that a signal has ended, as kill does */
				r->has_failed |= WIFEXITED(status) && status;
			}
}

static void end_programs(struct runner *r, int sig)
{
	struct lab *lab = r->lab;

	for (u32 i = 0; i < lab->num_hosts; i++)
		if (lab->programs[i].pid) {
			lab->shown->was_ended[i] = true;
			signal_host(lab, i + 1, SIGCONT);
			signal_host(lab, i + 1, sig);
		}
}

/* ---- explanations ---- */

/* `xroce explain` in a host. Returns its PID, or 0. */
static pid_t start_explain(const struct lab *lab, u32 i)
{
	const pid_t pid = fork();

	if (pid)
		return pid > 0 ? pid : 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!lab_net_enter(&lab->hosts[i]) && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
		execl(lab->self, "xroce", "explain", "--interval", "0.5", (char *)NULL);
	_exit(127);
}

/*
 * Once, when a program fails or does not end while others run: prints for each of those what is
 * wrong with its queue pairs, which are gone when it has ended.
 */
static void explain(struct runner *r)
{
	struct lab *lab = r->lab;

	if (r->is_explained || lab->is_plain || r->is_stopped)
		return;
	r->is_explained = true;
	for (u32 i = 0; i < lab->num_hosts; i++) {
		const u64 until_ns = clock_now_ns() + EXPLAIN_NS;
		pid_t pid;

		if (!lab->programs[i].pid)
			continue;
		fprintf(stderr, "xroce lab: explain in h%u:\n", i + 1);
		pid = start_explain(lab, i);
		while (pid && !waitpid(pid, NULL, WNOHANG)) {
			if (clock_now_ns() >= until_ns)
				kill(pid, SIGKILL);
			poll(NULL, 0, LOOK_MS);
		}
	}
}

/* ---- the programs' begin and end ---- */

/* Ends the remaining programs in time. Returns when it will look again. */
static u64 runner_end(struct runner *r, u64 now_ns)
{
	if (r->lab->timeout_ns && now_ns >= r->began_ns + r->lab->timeout_ns && !r->end_ns) {
		r->is_late = true;
		explain(r);
		r->end_ns = now_ns;
	}
	if (!r->end_ns && last_has_ended(r->lab))
		r->end_ns = now_ns + END_NS;
	if (r->end_ns && r->end_ns <= now_ns && !r->kill_ns) {
		end_programs(r, SIGTERM);
		r->kill_ns = now_ns + TERM_NS;
	}
	if (r->kill_ns && r->kill_ns <= now_ns)
		end_programs(r, SIGKILL);
	if (r->kill_ns || r->end_ns)
		return r->kill_ns ? r->kill_ns : r->end_ns;
	return r->lab->timeout_ns ? r->began_ns + r->lab->timeout_ns : NSEC_NEVER;
}

/* Waits up to most_ms for a signal and handles it, and the actions that are due. */
static void runner_turn(struct runner *r, u64 most_ms)
{
	const u64 now_ns = clock_now_ns();
	const u64 due_ns = min_u64(actions_due(r->lab, r->began_ns), runner_end(r, now_ns));
	const u64 ms = due_ns == NSEC_NEVER ?
			       most_ms :
			       min_u64(most_ms,
				       due_ns > now_ns ? (due_ns - now_ns) / NSEC_PER_MSEC + 1 : 0);
	struct pollfd p = { .fd = r->signal_fd, .events = POLLIN };
	struct signalfd_siginfo info;

	/* a killed program ends at once: look again soon */
	if (poll(&p, 1, (int)min_u64(r->kill_ns ? min_u64(ms, LOOK_MS) : ms, INT_MAX)) <= 0 ||
	    read(r->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD) {
		reap(r);
		if (r->has_failed && !r->end_ns)
			explain(r);
		return;
	}
	r->is_stopped = true;
	for (u32 i = 0; i < r->lab->num_hosts; i++)
		signal_host(r->lab, i + 1, (int)info.ssi_signo);
	if (!r->end_ns)
		r->end_ns = clock_now_ns() + END_NS;
}

/* Starts a host's program, and waits until it listens, at most wait_ns. */
static int runner_start(struct runner *r, u32 i, bool waits)
{
	const u64 until_ns = clock_now_ns() + r->lab->wait_ns;
	const struct lab_program *p = &r->lab->programs[i];
	const int ret = start_program(r->lab, i);

	while (!ret && waits && p->pid && !r->is_stopped && clock_now_ns() < until_ns &&
	       !listens(p->pid, "tcp") && !listens(p->pid, "tcp6"))
		runner_turn(r, LOOK_MS);
	return ret;
}

static int runner_status(const struct runner *r)
{
	int status = r->is_late ? LAB_TIMEOUT : r->is_stopped ? EXIT_FAILED : EXIT_OK;

	for (u32 i = 0; i < r->lab->num_hosts; i++)
		if (!r->lab->shown->was_ended[i] && r->lab->shown->status[i] > status)
			status = r->lab->shown->status[i];
	return status;
}

static int run_programs(struct runner *r)
{
	struct lab *lab = r->lab;
	u32 last = 0;
	int ret = EXIT_OK;

	for (u32 i = 0; i < lab->num_hosts; i++)
		if (lab->programs[i].shell || lab->programs[i].argv)
			last = i;
	r->began_ns = clock_now_ns();
	lab->shown->began = true;
	for (u32 i = 0; !ret && i <= last && !r->is_stopped; i++)
		if (lab->programs[i].shell || lab->programs[i].argv)
			ret = runner_start(r, i, i < last);
	while (running(lab))
		runner_turn(r, INT_MAX);
	return ret ? ret : runner_status(r);
}

/* Without a PID namespace: ends processes that the programs have left, as brokers, in time. */
static void end_orphans(void)
{
	const u64 until_ns = clock_now_ns() + END_NS;
	char path[64];
	FILE *file;
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0 && clock_now_ns() < until_ns)
		if (!pid)
			poll(NULL, 0, LOOK_MS);
	if (pid < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	file = fopen(path, "re");
	while (file && fscanf(file, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	if (file)
		fclose(file);
}

int lab_prepare(struct lab *lab)
{
	const ssize_t len = readlink("/proc/self/exe", lab->self, sizeof(lab->self) - 1);

	if (len < 0)
		return lab_failed("find this command (/proc/self/exe)", -errno);
	lab->self[len] = 0;
	return EXIT_OK;
}

int lab_run(struct lab *lab)
{
	struct runner r = { .lab = lab };
	struct cable_process cable = { .control_fd = -1 };
	const char *step;
	sigset_t set;
	int ret;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (u32 i = 0; i < LAB_SIGNALS; i++)
		sigaddset(&set, lab_signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	r.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r.signal_fd < 0)
		return lab_failed("wait for signals", -errno);
	ret = lab_net_make(lab->hosts, lab->num_hosts, lab->mtu, &step);
	if (ret)
		return lab_failed(step, ret);
	ret = lab_endpoint_open(lab);
	if (!ret)
		ret = start_cable(lab, &cable);
	if (ret)
		return ret;
	ret = lab->is_kept ? lab_keep(lab, &cable, r.signal_fd) : run_programs(&r);
	stop_cable(&cable);
	lab_endpoint_collect(lab);
	if (getpid() != 1)
		end_orphans();
	return ret;
}
