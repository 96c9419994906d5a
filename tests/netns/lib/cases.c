/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Cases of a program that has both ends of a connection in one process (cases.h). */
#include <fnmatch.h>
#include <netdb.h>
#include <unistd.h>

#include "cases.h"

union address at;
socklen_t at_bytes;

bool cases_address(const char *address)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *info;

	if (getaddrinfo(address, NULL, &hints, &info))
		return false;
	memcpy(&at, info->ai_addr, info->ai_addrlen);
	at_bytes = info->ai_addrlen;
	freeaddrinfo(info);
	return true;
}

int cases_run(const struct named_case *cases, size_t n, const char *pattern, const char *label,
	      void (*close_ends)(void))
{
	int failures = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < n; i++) {
		bool ok;

		if (fnmatch(pattern, cases[i].name, 0))
			continue;
		alarm(60);
		ok = cases[i].run();
		close_ends();
		printf("%s %s%s\n", ok ? "ok" : "not ok", cases[i].name, label);
		failures += !ok;
	}
	return failures != 0;
}
