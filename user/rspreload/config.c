/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rules of redirection: lines of four words in /etc/rdma/rsocket/preload_config, a program (a
 * prefix of its name), a domain, a type and a protocol; "*" matches any. Without rules all sockets
 * are redirected. XROCE_TCP_PORTS lists ports whose connections stay with the kernel, as
 * "19765,22".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload.h"

#define CONFIG_FILE "/etc/rdma/rsocket/preload_config"

struct rule {
	struct rule *next;
	char program[64]; /* "": any */
	int domain, type, protocol; /* 0: any */
};

struct word {
	const char *text;
	int value;
};

static const struct word domains[] = {
	{ "*", 0 }, { "INET", AF_INET }, { "INET6", AF_INET6 }, { "IB", 27 },
	{ NULL, 0 },
};
static const struct word types[] = {
	{ "*", 0 }, { "STREAM", SOCK_STREAM }, { "DGRAM", SOCK_DGRAM }, { NULL, 0 },
};
static const struct word protocols[] = {
	{ "*", 0 }, { "TCP", IPPROTO_TCP }, { "UDP", IPPROTO_UDP }, { NULL, 0 },
};

static struct rule *rules;
static int send_queue, receive_queue, inlined;
static bool forks;
static bool has_ports; /* XROCE_TCP_PORTS is valid */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Looks up a word, with or without one of its prefixes. */
static bool config_word(const struct word *words, const char *text, int *value)
{
	static const char *const prefixes[] = { "AF_", "PF_", "SOCK_", "IPPROTO_" };
	size_t i, n;

	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		n = strlen(prefixes[i]);
		if (!strncasecmp(text, prefixes[i], n)) {
			text += n;
			break;
		}
	}
	for (; words->text; words++) {
		if (!strcasecmp(words->text, text)) {
			*value = words->value;
			return true;
		}
	}
	return false;
}

static void config_line(const char *line)
{
	char program[64], domain[16], type[16], protocol[16];
	struct rule *rule;

	if (line[0] == '#' ||
	    sscanf(line, "%63s%15s%15s%15s", program, domain, type, protocol) != 4)
		return;
	rule = calloc(1, sizeof(*rule));
	if (!rule)
		return;
	if (!config_word(domains, domain, &rule->domain) ||
	    !config_word(types, type, &rule->type) ||
	    !config_word(protocols, protocol, &rule->protocol)) {
		free(rule);
		return;
	}
	if (strcmp(program, "*"))
		memcpy(rule->program, program, sizeof(program));
	rule->next = rules;
	rules = rule;
}

static int config_number(const char *variable)
{
	const char *text = secure_getenv(variable);

	return text ? atoi(text) : 0;
}

/*
 * Returns whether text is a list of ports, as "19765,22", and sets *found to whether port is among
 * them.
 */
static bool ports_find(const char *text, long port, bool *found)
{
	char *end;

	*found = false;
	for (;; text = end + 1) {
		const long n = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : 0;

		if (n < 1 || n > UINT16_MAX || (*end && *end != ','))
			return false;
		*found |= n == port;
		if (!*end)
			return true;
	}
}

/* Reads XROCE_TCP_PORTS, of which only a valid list is obeyed, as of all variables of xroce(7). */
static void ports_read(void)
{
	const char *text = secure_getenv("XROCE_TCP_PORTS");
	bool found;

	has_ports = text && *text && ports_find(text, 0, &found);
	if (text && *text && !has_ports)
		say_once(SAY_PORTS, "XROCE_TCP_PORTS=%s is ignored: it is not a list of ports, "
				    "such as 22,443", text);
}

static void config_read(void)
{
	FILE *f = fopen(CONFIG_FILE, "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		config_line(line);
	if (f)
		fclose(f);
	send_queue = config_number("RS_SQ_SIZE");
	receive_queue = config_number("RS_RQ_SIZE");
	inlined = config_number("RS_INLINE");
	forks = config_number("RDMAV_FORK_SAFE");
	ports_read();
}

bool config_wants(int domain, int type, int protocol)
{
	const struct rule *rule;

	pthread_once(&once, config_read);
	if (!protocol)
		protocol = type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
	for (rule = rules; rule; rule = rule->next)
		if (!strncasecmp(rule->program, program_invocation_short_name,
				 strlen(rule->program)) &&
		    (!rule->domain || rule->domain == domain) &&
		    (!rule->type || rule->type == type) &&
		    (!rule->protocol || rule->protocol == protocol))
			return true;
	return !rules;
}

bool config_is_tcp(const struct sockaddr *address, socklen_t n)
{
	const char *text = secure_getenv("XROCE_TCP_PORTS");
	bool found;
	long port;

	pthread_once(&once, config_read);
	if (!has_ports || !text || !address || n < sizeof(struct sockaddr_in) ||
	    (address->sa_family != AF_INET && address->sa_family != AF_INET6))
		return false;
	/* both families have it at the same offset */
	port = ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
	return ports_find(text, port, &found) && found;
}

bool config_forks(void)
{
	pthread_once(&once, config_read);
	return forks;
}

void config_apply(int rsocket)
{
	pthread_once(&once, config_read);
	if (send_queue)
		rsetsockopt(rsocket, SOL_RDMA, RDMA_SQSIZE, &send_queue, sizeof(send_queue));
	if (receive_queue)
		rsetsockopt(rsocket, SOL_RDMA, RDMA_RQSIZE, &receive_queue, sizeof(receive_queue));
	if (inlined)
		rsetsockopt(rsocket, SOL_RDMA, RDMA_INLINE, &inlined, sizeof(inlined));
}

/* ---- messages ---- */

/*
 * Messages about unsupported uses of rsockets, each printed once per process: the program's own
 * message would not show the cause.
 */

void say_once(enum said what, const char *format, ...)
{
	static atomic_uint said;
	int saved = errno;
	char line[256];
	va_list args;

	/* relaxed: nothing else depends on it */
	if (atomic_fetch_or_explicit(&said, 1u << what, memory_order_relaxed) & 1u << what)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	dprintf(2, "librspreload: %s\n", line);
	errno = saved;
}
