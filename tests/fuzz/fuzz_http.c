/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_FUZZ_SECONDS=1 */
/* tier: long long XROCE_FUZZ_SECONDS=60 */
/*
 * libFuzzer target: bytes of a client of the exporter, in pieces, up to the bytes that it gets.
 * Each answer is counted once under its code, has the length in its header, and no connection is
 * left. A well-formed request gets the answer for its method, path and Accept header. Neither case,
 * nor a foreign media type, nor the refusal of all other types changes the chosen format.
 *
 * scripts/fuzz.sh BUILD http SECONDS runs it. An input is struct shape, then bytes: a whole
 * request, or the value of an Accept header.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <microhttpd.h>

#include "../../user/tools/export/http.h"
#include "../../user/tools/export/text.h"
#include "fuzz.h"

#define ANSWER_MAX (1u << 20)
#define IDLE_RUNS  8u	/* calls of http_run() in a row without an effect */
#define HEADER_MAX 8000u

struct shape {
	u8 is_well_formed;
	u8 piece; /* bytes that are sent at once, less 1 */
	u8 method, path;
};

static const char *const methods[] = { "GET", "HEAD", "POST", "PUT", "DELETE", "GETS", "get" };
static const char *const paths[] = { "/metrics", "/", "/metrics/", "//", "/favicon.ico",
				     "/metrics?a=b" };

static struct http http;
static char answer[ANSWER_MAX + 1];

static int write_page(void *arg, struct text *t)
{
	text_family(t, TEXT_GAUGE, "fuzz", NULL, "Help.");
	text_sample(t, NULL, 0, 7);
	return 0;
}

/* ---- one connection ---- */

/* Appends received bytes to the answer. Returns false if the connection is closed. */
static bool take_answer(int fd, size_t *got)
{
	ssize_t n;

	while ((n = recv(fd, answer + *got, ANSWER_MAX - *got, 0)) > 0) {
		*got += (size_t)n;
		REQUIRE(*got < ANSWER_MAX);
	}
	return n < 0 && errno == EAGAIN;
}

/* Sends all of a request and returns the answer's length. */
static size_t converse(const char *request, size_t size, size_t piece)
{
	const struct sockaddr_un from = { .sun_family = AF_UNIX };
	size_t got = 0, before, sent = 0;
	u32 idle = 0;
	int pair[2];

	REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
	REQUIRE(MHD_add_connection(http.daemon, pair[1], (const struct sockaddr *)&from,
				   sizeof(from)) == MHD_YES);
	while (idle < IDLE_RUNS) {
		const size_t n = size - sent < piece ? size - sent : piece;
		const ssize_t put = n ? send(pair[0], request + sent, n, MSG_NOSIGNAL) : 0;

		if (put > 0)
			sent += (size_t)put;
		if (sent == size)
			shutdown(pair[0], SHUT_WR);
		REQUIRE(!http_run(&http));
		before = got;
		if (!take_answer(pair[0], &got))
			break;
		idle = put > 0 || got > before ? 0 : idle + 1;
	}
	close(pair[0]);
	for (idle = 0; http.counts.connections && idle < IDLE_RUNS; idle++)
		REQUIRE(!http_run(&http));
	REQUIRE(!http.counts.connections && !http.first && !http.counts.cut);
	answer[got] = 0;
	return got;
}

/* ---- answers ---- */

static u32 code_at(const char *at)
{
	REQUIRE(isdigit(at[9]) && isdigit(at[10]) && isdigit(at[11]) && at[12] == ' ');
	return (u32)atoi(at + 9);
}

/* Requires a count for each answer, by its code. No body has the word that begins an answer. */
static void check_counts(const struct http_counts *before, size_t got)
{
	u64 num[HTTP_CODES] = { 0 };

	for (const char *at = answer; (at = memmem(at, (size_t)(answer + got - at), "HTTP/1.", 7));
	     at += 7)
		for (u32 i = 0; i < HTTP_CODES; i++)
			num[i] += http_codes[i] == code_at(at);
	for (u32 i = 0; i < HTTP_CODES; i++)
		REQUIRE(http.counts.requests[i] - before->requests[i] == num[i]);
}

/* Returns the value of a header and its length in *len. NULL: there is no such header. */
static const char *header(const char *name, size_t *len)
{
	const char *end = strstr(answer, "\r\n\r\n"), *at = strcasestr(answer, name);

	REQUIRE(end);
	if (!at || at > end)
		return NULL;
	at += strlen(name);
	*len = strcspn(at, "\r");
	return at;
}

static void check_answer(u32 code, bool is_head, size_t got)
{
	const char *length, *body;
	size_t len = 0;

	REQUIRE(!strncmp(answer, "HTTP/1.1 ", 9) && code_at(answer) == code);
	length = header("\r\nContent-Length: ", &len);
	REQUIRE(length && len);
	body = strstr(answer, "\r\n\r\n") + 4;
	REQUIRE((size_t)(answer + got - body) == (is_head ? 0 : (size_t)atoi(length)));
	REQUIRE(code != 405 || header("\r\nAllow: GET, HEAD\r\n", &len));
}

static void check_format(enum text_format format)
{
	const char *want = text_content_type(format), *type;
	size_t len = 0;

	type = header("\r\nContent-Type: ", &len);
	REQUIRE(type && len == strlen(want) && !memcmp(type, want, len));
}

/* ---- well-formed requests ---- */

static void ask(const struct shape *shape, const char *accept)
{
	const char *method = methods[shape->method % ARRAY_SIZE(methods)];
	const char *path = paths[shape->path % ARRAY_SIZE(paths)];
	const bool is_head = !strcmp(method, "HEAD");
	const bool is_metrics = !strncmp(path, "/metrics", 8) && (!path[8] || path[8] == '?');
	const struct http_counts before = http.counts;
	static char request[HEADER_MAX + 200];
	enum text_format format;
	bool is_acceptable;
	u32 code = 404;
	size_t got;

	snprintf(request, sizeof(request),
		 "%s %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAccept: %s\r\n\r\n", method,
		 path, accept);
	is_acceptable = text_accept(accept, &format);
	if (strcmp(method, "GET") && !is_head)
		code = 405;
	else if (is_metrics)
		code = is_acceptable ? 200 : 406;
	else if (!strcmp(path, "/"))
		code = 200;
	got = converse(request, strlen(request), (size_t)shape->piece * 16 + 1);
	check_answer(code, is_head, got);
	check_counts(&before, got);
	if (is_metrics && code == 200)
		check_format(format);
}

/* ---- Accept headers ---- */

static void check_accept(const char *value)
{
	static const char *const no_others = "other/type,*/*;q=0";
	const size_t len = strlen(value), bytes = len + strlen(no_others) + 2;
	enum text_format format, again;
	const bool is_acceptable = text_accept(value, &format);
	char *other = malloc(bytes);

	REQUIRE(other);
	REQUIRE(format == TEXT_OPENMETRICS || format == TEXT_PROMETHEUS);
	for (size_t i = 0; i <= len; i++)
		other[i] = (char)toupper((unsigned char)value[i]);
	REQUIRE(text_accept(other, &again) == is_acceptable && again == format);
	if (strspn(value, " \t") < len) {
		snprintf(other, bytes, "%s,%s", no_others, value);
		REQUIRE(text_accept(other, &again) == is_acceptable && again == format);
	}
	if (strspn(value, " \t") < len && !strchr(value, '"')) {
		snprintf(other, bytes, "%s,%s", value, no_others);
		REQUIRE(text_accept(other, &again) == is_acceptable && again == format);
	}
	free(other);
}

/* ---- a run ---- */

static void seed_all(void)
{
	static const char *const accepts[] = {
		"", "*/*", "text/plain;q=0.5, application/openmetrics-text;version=1.0.0",
		"application/openmetrics-text;version=\"0.0.1\";q=0.9,text/plain;version=0.0.4;q=1",
		"text/*;q=0.3,application/*;q=1.000,*/*;q=0", "text/plain;a=\"q=0,\\\";\";q=0.001",
	};
	static const char *const requests[] = {
		"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"HEAD /metrics HTTP/1.0\r\nAccept: */*\r\nAccept: text/plain\r\n\r\n",
		"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
		"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"
		"\r\n",
		"GET /%6detrics?a=%00&b HTTP/1.1\r\nHost: a\r\nCookie: a=b; c\r\nExpect: "
		"100-continue\r\nConnection: keep-alive\r\n\r\n",
		"GET / HTTP/2.0\r\n\r\n", "\r\n\r\nGET\r\n folded\r\n",
	};
	struct shape shape = { .piece = 3 };

	for (u32 i = 0; i < ARRAY_SIZE(requests); i++)
		fuzz_seed("request", i, &shape, sizeof(shape), requests[i], strlen(requests[i]));
	shape.is_well_formed = 1;
	for (u32 i = 0; i < ARRAY_SIZE(methods) * ARRAY_SIZE(paths); i++) {
		const char *accept = accepts[i % ARRAY_SIZE(accepts)];

		shape.method = (u8)(i / ARRAY_SIZE(paths));
		shape.path = (u8)(i % ARRAY_SIZE(paths));
		fuzz_seed("ask", i, &shape, sizeof(shape), accept, strlen(accept));
	}
	exit(0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	/* the kernel chooses a name; no client connects to it */
	const struct sockaddr_un own = { .sun_family = AF_UNIX };
	int fd;

	if (fuzz_seed_dir())
		seed_all();
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	REQUIRE(fd >= 0);
	REQUIRE(!bind(fd, (const struct sockaddr *)&own, sizeof(own.sun_family)));
	REQUIRE(!listen(fd, 1));
	REQUIRE(!http_open(&http, fd, write_page, NULL));
	return 0;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct http_counts before;
	struct shape shape;
	char *text;
	size_t len;

	if (size < sizeof(shape))
		return 0;
	memcpy(&shape, data, sizeof(shape));
	len = size - sizeof(shape);
	text = malloc(len + 1);
	REQUIRE(text);
	memcpy(text, data + sizeof(shape), len);
	text[len] = 0;
	if (shape.is_well_formed & 1) {
		check_accept(text);
		for (size_t i = 0; i < len; i++)
			if (text[i] < ' ' || text[i] > '~')
				text[i] = '\t';
		if (len <= HEADER_MAX)
			ask(&shape, text);
	} else {
		before = http.counts;
		check_counts(&before, converse(text, len, (size_t)shape.piece * 16 + 1));
	}
	free(text);
	return 0;
}
