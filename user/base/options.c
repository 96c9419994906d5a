/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the environment says of the transport: XROCE_OFF=reorder,selective,rto,window,credits turns parts of it off, XROCE_ECN=1 sends
 * ECN-capable packets, XROCE_TX=auto|xsk|tap|live|gso says which way frames leave,
 * XROCE_XDP=auto|native|generic how XDP is attached. A word that is not known is named once and ignored: a program must not fail over a tuning variable.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

static const struct {
	const char *name;
	u32 bit;
} parts[] = {
	{ "reorder", ENGINE_NO_REORDER },  { "selective", ENGINE_NO_SELECTIVE },
	{ "rto", ENGINE_NO_ADAPTIVE_RTO }, { "window", ENGINE_NO_CWND },
	{ "credits", ENGINE_NO_CREDITS },  { "flow", ENGINE_NO_FLOW },
};

static u32 part_of(const char *word, size_t len)
{
	for (u32 i = 0; i < ARRAY_SIZE(parts); i++)
		if (strlen(parts[i].name) == len && memcmp(parts[i].name, word, len) == 0)
			return parts[i].bit;
	fprintf(stderr,
		"xroce: XROCE_OFF: no part of the transport is called \"%.*s\"; there are reorder, "
		"selective, rto, window, credits, flow\n",
		(int)len, word);
	return 0;
}

static u32 parts_off(void)
{
	const char *word = getenv("XROCE_OFF");
	u32 bits = 0;

	while (word && *word) {
		size_t len = strcspn(word, ",");

		if (len)
			bits |= part_of(word, len);
		word += len + (word[len] == ',');
	}
	return bits;
}

/* One of n words, of which the first is what an unset variable means; one that is not among them is named once, for it is asked for time and again. */
static u32 choice_of(const char *variable, const char *const *words, u32 n, _Atomic bool *said)
{
	const char *want = getenv(variable);

	for (u32 i = 0; want && *want && i < n; i++)
		if (!strcmp(want, words[i]))
			return i;
	if (want && *want && !atomic_exchange(said, true)) {
		fprintf(stderr, "xroce: %s=%s: there are %s", variable, want, words[0]);
		for (u32 i = 1; i < n; i++)
			fprintf(stderr, ", %s", words[i]);
		fprintf(stderr, "; using %s\n", words[0]);
	}
	return 0;
}

enum tx_choice options_tx(void)
{
	static const char *const words[] = { [TX_AUTO] = "auto", [TX_XSK] = "xsk", [TX_TAP] = "tap", [TX_LIVE] = "live", [TX_GSO] = "gso" };
	static _Atomic bool said;

	return (enum tx_choice)choice_of("XROCE_TX", words, ARRAY_SIZE(words), &said);
}

enum xdp_choice options_xdp(void)
{
	static const char *const words[] = { [XDP_CHOICE_AUTO] = "auto", [XDP_CHOICE_NATIVE] = "native", [XDP_CHOICE_GENERIC] = "generic" };
	static _Atomic bool said;

	return (enum xdp_choice)choice_of("XROCE_XDP", words, ARRAY_SIZE(words), &said);
}

u32 options_shards(void)
{
	const char *text = getenv("XROCE_SHARDS");
	char *end;
	unsigned long n;

	if (!text || !*text)
		return XROCE_MAX_SHARD;
	n = strtoul(text, &end, 10);
	if (*end || *text == '-' || n < 1 || n > XROCE_MAX_SHARD) {
		fprintf(stderr, "xroce: XROCE_SHARDS=%s is not a number from 1 to %d; using %d\n", text, XROCE_MAX_SHARD, XROCE_MAX_SHARD);
		n = XROCE_MAX_SHARD;
	}
	return (u32)n;
}

void options_engine(struct engine_config *config)
{
	const char *ecn = getenv("XROCE_ECN");

	config->disable = parts_off();
	config->ecn = ecn && strcmp(ecn, "1") == 0;
}
