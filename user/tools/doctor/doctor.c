/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce doctor: prints each problem and its remedy on one line. Changes nothing. */
#include <stdarg.h>
#include <stdlib.h>

#include "../../io/tx.h"
#include "doctor.h"
#include "../terminal.h"

/* The interface is a separate member, so its name is stripped from what. */
static void finding_json(struct doctor *d, const char *level, const char *what, const char *remedy,
			 const char *fmt, va_list ap)
{
	const size_t n = d->iface ? strlen(d->iface) : 0;
	struct json *j = d->json;
	char text[1024];

	vsnprintf(text, sizeof(text), fmt, ap);
	json_object(j, NULL);
	json_text(j, "level", level);
	if (d->iface)
		json_text(j, "interface", d->iface);
	else
		json_null(j, "interface");
	json_text(j, "what", n && !strncmp(what, d->iface, n) && what[n] == ' ' ? what + n + 1 :
										what);
	json_text(j, "finding", text);
	if (remedy)
		json_text(j, "remedy", remedy);
	else
		json_null(j, "remedy");
	json_close(j);
	/* the probes fork, and a child would write the buffer again */
	fflush(j->out);
}

/* Prints a finding; output_clean() cleans it, as names in it are foreign input. */
static void finding_print(const char *level, const char *what, const char *remedy, const char *fmt,
			  va_list ap)
{
	char line[2048];
	size_t n;

	snprintf(line, sizeof(line), "%s: ", what);
	n = strlen(line);
	vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	n = strlen(line);
	if (remedy)
		snprintf(line + n, sizeof(line) - n, " -> %s", remedy);
	output_clean(line);
	printf("%-4s  %s\n", level, line);
}

void finding(struct doctor *d, enum level level, const char *what, const char *remedy,
	     const char *fmt, ...)
{
	static const char *const word[] = {
		[LEVEL_OK] = "ok", [LEVEL_WARN] = "warn", [LEVEL_FAIL] = "FAIL"
	};
	va_list ap;

	d->failures += level == LEVEL_FAIL;
	va_start(ap, fmt);
	if (d->json)
		finding_json(d, level == LEVEL_FAIL ? "fail" : word[level], what, remedy, fmt, ap);
	else
		finding_print(word[level], what, remedy, fmt, ap);
	va_end(ap);
}

/* Sets *list to the *n interfaces to check, for free(). Returns an exit code. */
static int doctor_interfaces(const char *name, struct netdev **list, int *n)
{
	if (name) {
		*n = 1;
		*list = calloc(1, sizeof(**list));
		return *list ? find_device(&command_doctor, name, *list) : EXIT_FAILED;
	}
	*n = netdev_list(list);
	if (*n >= 0)
		return EXIT_OK;
	fprintf(stderr, "xroce doctor: cannot read the network interfaces: %s\n", strerror(-*n));
	return EXIT_FAILED;
}

/* Without a name, checks interfaces that a program could use: up, with an address, not lo. */
static bool doctor_looks_at(const char *name, const struct netdev *dev)
{
	return name || (!dev->is_loopback && dev->is_up && dev->num_gids);
}

static void doctor_look(struct doctor *d, const char *name, const struct netdev *list, int n)
{
	u32 usable = 0;

	for (int i = 0; i < n; i++)
		d->brokered |= doctor_looks_at(name, &list[i]) && doctor_has_broker(&list[i]);
	doctor_host(d);
	for (int i = 0; i < n; i++) {
		if (!doctor_looks_at(name, &list[i]))
			continue;
		d->iface = list[i].name;
		if (d->json)
			terminal_say("xroce doctor: checking %s", d->iface);
		doctor_iface(d, &list[i]);
		d->iface = NULL;
		usable++;
	}
	if (!usable)
		finding(d, LEVEL_FAIL, "interfaces",
			"`ip link set IFACE up`, `ip address add ADDRESS/PREFIX dev IFACE`",
			"no interface except lo is up and has an address");
}

static void doctor_json(struct doctor *d, const char *name, const struct netdev *list, int n)
{
	struct json j;

	d->json = &j;
	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_array(&j, "findings");
	fflush(stdout);
	doctor_look(d, name, list, n);
	json_close(&j);
	json_number(&j, "failures", d->failures);
	json_close(&j);
	json_end(&j);
	terminal_say(NULL);
}

static int doctor_main(int argc, char **argv)
{
	struct netdev *list = NULL;
	struct doctor d = { 0 };
	const char *name;
	bool is_json;
	int ret = iface_arguments(&command_doctor, argc, argv, &name, &is_json), n;

	if (ret)
		return ret;
	ret = doctor_interfaces(name, &list, &n);
	if (!ret) {
		/* The probes fork, and a child would write buffered output again. */
		setvbuf(stdout, NULL, _IOLBF, 0);
		if (is_json)
			doctor_json(&d, name, list, n);
		else
			doctor_look(&d, name, list, n);
		ret = d.failures ? EXIT_FAILED : EXIT_OK;
	}
	free(list);
	return ret;
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "check the requirements of xroce and suggest fixes",
	.main = doctor_main,
	.help = "usage: xroce doctor [OPTION] [IFACE]\n"
		"\n"
		"Checks the privileges of this process, the kernel, and IFACE, or every interface\n"
		"that is up and has an address, and prints a line for each check:\n"
		"\n"
		"  ok    SUBJECT: FINDING\n"
		"  warn  SUBJECT: FINDING -> REMEDY    works, but slower or with limits\n"
		"  FAIL  SUBJECT: FINDING -> REMEDY    does not work\n"
		"\n"
		"The checks: capabilities; locked memory; kernel release and type information\n"
		"(BTF); BPF map and program types; whether the XDP program loads, bpf_link\n"
		"attaches it, and AF_XDP sockets bind, with frames in several buffers; whether\n"
		"a TAP device can be created, which the fastest way to send needs\n"
		"(" TX_TUN_DEVICE ", CAP_SYS_ADMIN); the library; and for each interface its "
		"link,\n"
		"addresses, MTU and path MTU, receive queues, XDP mode, broker, the program on\n"
		"its XDP hook, and RDMA devices of the kernel that use it.\n"
		"\n"
		"It changes nothing: probes run in a network namespace of their own; a port is\n"
		"requested from a broker and returned. Run it as the user and in the network\n"
		"namespace of the programs: other users may get other results.\n"
		"\n"
		"  -j, --json  print JSON: level, interface, what, finding, remedy\n"
		"  -h, --help  print this help\n"
		"\n"
		"Exit status: 0 if no check failed, 1 if one did, 2 for wrong usage or no such\n"
		"interface.\n",
};
