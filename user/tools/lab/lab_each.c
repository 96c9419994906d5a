/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "lab_each.h"
#include "lab_report.h"
#include "lab_space.h"

enum {
	OUTPUT_KEPT = 1 << 16, /* bytes of a run's output, its last ones */
	OUTPUT_SHOWN = 4096,   /* of them after a failure on the terminal */
	DRAIN_MS = 2000,       /* wait for the end of the output after a run */
};
#define DEADLINE "60"

/* ---- output of a run ---- */

/* In shared memory: a ring of the bytes that a run's processes write. */
struct drained {
	u64 bytes;
	char ring[OUTPUT_KEPT];
};

struct drain {
	struct drained *shared;
	pid_t pid;
	int kept[2]; /* standard output and error outside of runs */
};

/* Reads, in a process of its own, until all writers have closed. */
static void drain_read(int fd, struct drained *d)
{
	static char piece[1 << 14];
	ssize_t n;

	for (u32 i = 0; i < LAB_SIGNALS; i++)
		signal(lab_signals[i], SIG_IGN);
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		for (ssize_t i = 0; i < n; i++)
			d->ring[d->bytes++ % OUTPUT_KEPT] = piece[i];
	_exit(0);
}

/* Leads standard output and error to a process of its own. Returns 0 or -errno. */
static int drain_begin(struct drain *d)
{
	int ends[2];

	fflush(stdout);
	d->shared->bytes = 0;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	d->pid = fork();
	if (d->pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return -errno;
	}
	if (!d->pid) {
		close(ends[1]);
		drain_read(ends[0], d->shared);
	}
	close(ends[0]);
	for (int i = 0; i < 2; i++) {
		d->kept[i] = fcntl(STDOUT_FILENO + i, F_DUPFD_CLOEXEC, 3);
		dup2(ends[1], STDOUT_FILENO + i);
	}
	close(ends[1]);
	return 0;
}

static void drain_end(struct drain *d)
{
	u64 until_ns;

	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		dup2(d->kept[i], STDOUT_FILENO + i);
		close(d->kept[i]);
	}
	/* without a PID namespace a process in the background may keep the pipe open */
	until_ns = clock_now_ns() + DRAIN_MS * (u64)NSEC_PER_MSEC;
	while (!waitpid(d->pid, NULL, WNOHANG)) {
		if (clock_now_ns() >= until_ns) {
			kill(d->pid, SIGKILL);
			waitpid(d->pid, NULL, 0);
			return;
		}
		poll(NULL, 0, 1);
	}
}

/* Returns the last bytes, at most `most`, in memory of their own, or NULL. */
static char *drain_text(const struct drain *d, u64 most)
{
	const u64 kept = min_u64(min_u64(d->shared->bytes, OUTPUT_KEPT), most);
	char *text = malloc(kept + 1);

	for (u64 i = 0; text && i < kept; i++)
		text[i] = d->shared->ring[(d->shared->bytes - kept + i) % OUTPUT_KEPT];
	if (text)
		text[kept] = 0;
	return text;
}

/* ---- a run ---- */

/* Prints the end of a failed run's output, each line after a bar. text may be NULL. */
static void show_output(const char *text)
{
	const size_t len = text ? strlen(text) : 0;

	text += len > OUTPUT_SHOWN ? len - OUTPUT_SHOWN : 0;
	while (len && *text) {
		const int n = (int)strcspn(text, "\n");
		char line[OUTPUT_SHOWN + 1];

		snprintf(line, sizeof(line), "%.*s", n, text);
		output_clean(line);
		printf("    | %s\n", line);
		text += n + (text[n] == '\n');
	}
}

static void show_last(const struct drain *d)
{
	char *text = drain_text(d, OUTPUT_SHOWN);

	show_output(text);
	free(text);
}

static char *command_line(const struct lab *lab)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	lab_print_command(lab, out);
	fclose(out);
	return text;
}

/* Makes the lab of a case. c NULL: of none. Returns EXIT_OK or EXIT_USAGE after a message. */
static int make_lab(struct lab *run, const struct lab *base, const struct lab_case *c)
{
	int ret;

	*run = *base;
	run->json = NULL;
	run->is_alone = false; /* no standard input */
	for (u32 i = 0; c && i < c->num_settings; i++)
		if (!lab_set_option(run, c->settings[i].id, c->settings[i].value)) {
			fprintf(stderr, "xroce lab: case %s has too many rules or actions\n",
				c->name);
			return EXIT_USAGE;
		}
	if (!run->timeout_ns)
		lab_set_option(run, lab_case_option("deadline")->id, DEADLINE);
	ret = lab_check(run);
	if (ret && c)
		fprintf(stderr, "xroce lab: case %s is refused\n", c->name);
	return ret;
}

/* Runs the lab. Returns EXIT_OK with *status that of its programs, or an exit code. */
static int run_once(struct lab *run, struct drain *drain, int *status)
{
	const int err = drain_begin(drain);

	if (err)
		return lab_failed("make a pipe", err);
	*status = lab_space_run(run);
	if (run->shown->began)
		lab_report(run, *status);
	drain_end(drain);
	if (run->shown->began)
		return EXIT_OK;
	show_last(drain);
	return EXIT_FAILED;
}

/* Without faults the program has to succeed: else its cases say nothing. */
static int run_plain(struct lab *run, const struct lab *base, struct drain *drain)
{
	int status, ret = make_lab(run, base, NULL);

	if (!ret)
		ret = run_once(run, drain, &status);
	if (ret || !status)
		return ret;
	show_last(drain);
	fprintf(stderr, "xroce lab: the programs fail without a case, with status %d\n", status);
	return status;
}

static int run_case(struct lab *run, const struct lab *base, struct drain *drain,
		    struct lab_case *c)
{
	const u64 begin_ns = clock_now_ns();
	char capture[PATH_MAX];
	int ret = make_lab(run, base, c);

	if (!ret && base->capture) {
		snprintf(capture, sizeof(capture), "%s.%s", base->capture, c->name);
		ret = lab_capture_open(run, capture);
	}
	if (!ret)
		ret = run_once(run, drain, &c->status);
	lab_capture_open(run, NULL);
	if (ret)
		return ret;
	c->time_ns = clock_now_ns() - begin_ns;
	c->hits = lab_report_hits(run);
	c->result = lab_case_judge(c, c->status, lab_report_missed(run), run->may_miss, c->why,
				   sizeof(c->why));
	c->replay = command_line(run);
	if (base->capture && c->result != LAB_FAILED)
		unlink(capture);
	if (c->result == LAB_FAILED)
		c->output = drain_text(drain, OUTPUT_KEPT);
	return EXIT_OK;
}

static int run_all(const struct lab *base, struct lab_cases *cases, struct drain *drain)
{
	static struct lab run;
	int ret = run_plain(&run, base, drain);

	for (u32 i = 0; !ret && i < cases->num && !lab_space_interrupted(); i++) {
		ret = run_case(&run, base, drain, &cases->list[i]);
		if (ret || lab_space_interrupted())
			break;
		lab_results_say(cases, i, stdout);
		if (cases->list[i].output)
			show_output(cases->list[i].output);
		fflush(stdout);
	}
	return ret;
}

/* ---- all ---- */

static int write_results(const struct lab_cases *cases, const char *path,
			 void (*write)(const struct lab_cases *cases, FILE *out))
{
	FILE *out = path ? fopen(path, "we") : NULL;

	if (!path)
		return EXIT_OK;
	if (out)
		write(cases, out);
	if (out && !(ferror(out) | fclose(out)))
		return EXIT_OK;
	fprintf(stderr, "xroce lab: cannot write '%s': %s\n", path, strerror(errno));
	return EXIT_FAILED;
}

static void list_cases(const struct lab_cases *cases)
{
	for (u32 i = 0; i < cases->num; i++)
		printf("%-*s  %s\n", LAB_CASE_NAME / 2, cases->list[i].name,
		       cases->list[i].description ? cases->list[i].description : "");
}

/* Leaves the case of that name alone. Returns false if there is none. */
static bool choose_case(struct lab_cases *cases, const char *name)
{
	for (u32 i = 0; i < cases->num; i++)
		if (!strcmp(cases->list[i].name, name)) {
			cases->list[0] = cases->list[i];
			cases->num = 1;
			return true;
		}
	return false;
}

/* Checks all cases before the first run. */
static int check_cases(const struct lab *base, const struct lab_cases *cases)
{
	static struct lab run;
	int ret = EXIT_OK;

	for (u32 i = 0; !ret && i < cases->num; i++)
		ret = make_lab(&run, base, &cases->list[i]);
	return ret;
}

static bool has_program(const struct lab *lab)
{
	for (u32 i = 0; i < LAB_HOSTS; i++)
		if (lab->programs[i].shell || lab->programs[i].argv)
			return true;
	return false;
}

int lab_each(const struct lab *base)
{
	struct drain drain = { .pid = 0 };
	struct lab_cases cases = { .num = 0 };
	int written, ret = lab_cases_load(base->cases, base->self, &cases);

	if (ret)
		return ret;
	if (base->one_case && !choose_case(&cases, base->one_case))
		return usage_error(&command_lab, "no case '%s' in '%s'", base->one_case,
				   base->cases);
	if (!has_program(base)) {
		list_cases(&cases);
		return output_end(EXIT_OK);
	}
	if (!base->is_each && !base->one_case)
		return usage_error(&command_lab, "--cases needs --each or --case");
	ret = check_cases(base, &cases);
	if (ret)
		return ret;
	drain.shared = mmap(NULL, sizeof(*drain.shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (drain.shared == MAP_FAILED)
		return lab_failed("allocate memory", -ENOMEM);
	ret = run_all(base, &cases, &drain);
	if (ret)
		return ret;
	lab_results_print(&cases, stdout);
	written = write_results(&cases, base->json, lab_results_json);
	ret = write_results(&cases, base->junit, lab_results_junit);
	if (!ret)
		ret = written;
	return output_end(ret ? ret : lab_results_status(&cases));
}
