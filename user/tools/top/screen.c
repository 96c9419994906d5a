/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE /* ppoll() */
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

/* macros of term.h */
#undef columns
#undef lines

#include "../../os/clock.h"
#include "../output.h"
#include "screen.h"

int screen_resize(struct screen *s, u32 width, u32 height)
{
	struct screen_cell *cells;

	width = width < SCREEN_WIDTH_MAX ? width : SCREEN_WIDTH_MAX;
	height = height < SCREEN_HEIGHT_MAX ? height : SCREEN_HEIGHT_MAX;
	cells = calloc((size_t)width * height + 1, sizeof(*cells));
	free(s->cells);
	s->cells = cells;
	s->width = cells ? width : 0;
	s->height = cells ? height : 0;
	screen_clear(s);
	return cells ? 0 : -ENOMEM;
}

void screen_end(struct screen *s)
{
	free(s->cells);
	*s = (struct screen){ 0 };
}

void screen_clear(struct screen *s)
{
	for (size_t i = 0; i < (size_t)s->width * s->height; i++)
		s->cells[i] = (struct screen_cell){ .glyph = ' ' };
}

static bool glyph_is_shown(u16 glyph)
{
	return (glyph >= ' ' && glyph <= '~') ||
	       (glyph >= SCREEN_BLOCK(1) && glyph <= SCREEN_BLOCK(8));
}

u32 screen_glyph(struct screen *s, u32 line, u32 column, enum screen_style style, u16 glyph)
{
	if (line >= s->height || column >= s->width)
		return column;
	s->cells[(size_t)line * s->width + column] =
		(struct screen_cell){ .glyph = glyph_is_shown(glyph) ? glyph : '?',
				      .style = (u8)style };
	return column + 1;
}

u32 screen_put(struct screen *s, u32 line, u32 column, enum screen_style style, const char *text)
{
	for (; *text; text++)
		column = screen_glyph(s, line, column, style, (u8)*text);
	return column;
}

void screen_style_rest(struct screen *s, u32 line, u32 column, enum screen_style style)
{
	for (; line < s->height && column < s->width; column++)
		s->cells[(size_t)line * s->width + column].style = (u8)style;
}

static char *glyph_put(char *at, u16 glyph)
{
	if (glyph < 0x80) {
		*at++ = (char)glyph;
		return at;
	}
	*at++ = (char)(0xe0 | glyph >> 12);
	*at++ = (char)(0x80 | (glyph >> 6 & 0x3f));
	*at++ = (char)(0x80 | (glyph & 0x3f));
	return at;
}

void screen_line(const struct screen *s, u32 line, char *text)
{
	u32 n = line < s->height ? s->width : 0;

	while (n && s->cells[(size_t)line * s->width + n - 1].glyph == ' ')
		n--;
	for (u32 i = 0; i < n; i++)
		text = glyph_put(text, s->cells[(size_t)line * s->width + i].glyph);
	*text = 0;
}

/* ---- spark lines ---- */

#define SPARK_LEVELS 8 /* the first is for 0 only */

const char *spark_number(double value, char text[SPARK_TEXT])
{
	static const char prefixes[] = " kMGTPEZY";
	u32 prefix = 0;

	if (!(value >= 0)) {
		snprintf(text, SPARK_TEXT, "-");
		return text;
	}
	/* printf() rounds 999.5 to 1.00k */
	while (value >= 999.5 && prefix < sizeof(prefixes) - 2) {
		value /= 1000;
		prefix++;
	}
	if (value >= 999.5)
		snprintf(text, SPARK_TEXT, ">999Y");
	else if (!prefix && (value >= 9.95 || value == (u32)value))
		snprintf(text, SPARK_TEXT, "%.0f", value);
	else if (!prefix)
		snprintf(text, SPARK_TEXT, "%.1f", value);
	else
		snprintf(text, SPARK_TEXT, "%.*f%c", value < 9.995 ? 2 : value < 99.95 ? 1 : 0,
			 value, prefixes[prefix]);
	return text;
}

void spark_line(const float *values, u32 n, bool is_blocks, u16 *glyphs)
{
	static const char ascii[SPARK_LEVELS + 1] = "_.-:=+*#";
	float most = 0;

	for (u32 i = 0; i < n; i++)
		most = values[i] > most ? values[i] : most;
	for (u32 i = 0; i < n; i++) {
		u32 level = 0;

		if (!(values[i] >= 0)) {
			glyphs[i] = ' ';
			continue;
		}
		if (values[i] > 0) {
			/* infinity divided by itself is NaN, which is no level */
			const float part = values[i] / most * (SPARK_LEVELS - 1);

			level = part >= 0 && part < SPARK_LEVELS - 1 ? (u32)part + 1 :
								       SPARK_LEVELS - 1;
			level = level < SPARK_LEVELS ? level : SPARK_LEVELS - 1;
		}
		glyphs[i] = is_blocks ? SCREEN_BLOCK(level + 1) : (u16)ascii[level];
	}
}

/* ---- the terminal, by ncurses ---- */

/*
 * A terminal that accepts no output (^S, a stalled connection) blocks ncurses in write(2), so a
 * signal that ends the command does so in its handler. The others are blocked except in ppoll():
 * their handlers, of which ncurses has two, call functions that must not interrupt themselves.
 */
#define LEAVE_MS 500 /* for a terminal that does not accept the last bytes */
#define ESCAPE_MS 25 /* from the Escape of a key's sequence to its next byte */

static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
static const int blocked[] = { SIGTSTP, SIGCONT, SIGWINCH };

static const struct {
	attr_t attributes;
	short foreground; /* -1: the terminal's own */
} styles[SCREEN_STYLES] = {
	[STYLE_PLAIN] = { A_NORMAL, -1 },
	[STYLE_TITLE] = { A_REVERSE, -1 },
	[STYLE_SORTED] = { A_REVERSE | A_BOLD, -1 },
	[STYLE_STRONG] = { A_BOLD, -1 },
	[STYLE_GOOD] = { A_NORMAL, COLOR_CYAN },
	[STYLE_WARN] = { A_NORMAL, COLOR_YELLOW },
	[STYLE_BAD] = { A_NORMAL, COLOR_RED },
};

static struct {
	struct termios before;
	char leave[128]; /* ends the full screen; empty while there is none */
	sigset_t mask;	 /* in ppoll() */
	bool is_coloured;
} terminal;

static _Atomic bool has_continued;

static void leave_add(const char *capability)
{
	const char *text = tigetstr(capability);
	const size_t at = strlen(terminal.leave);

	/* without the delays of old terminals, as in $<2> */
	if (text && text != (const char *)-1)
		snprintf(terminal.leave + at, sizeof(terminal.leave) - at, "%.*s",
			 (int)strcspn(text, "$"), text);
}

/* Restores the terminal unless this is a background job. Async-signal-safe. */
static void screen_leave(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

	if (tcgetpgrp(STDOUT_FILENO) != getpgrp())
		return;
	if (poll(&out, 1, LEAVE_MS) > 0)
		(void)!write(STDOUT_FILENO, terminal.leave, strlen(terminal.leave));
	tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
}

static void screen_ended(int sig)
{
	screen_leave();
	_exit(0);
}

/* Has SA_RESETHAND. */
static void screen_crash(int sig)
{
	screen_leave();
	raise(sig);
}

static void screen_continued(int sig)
{
	atomic_store_explicit(&has_continued, true, memory_order_relaxed);
}

bool full_screen_can(void)
{
	return isatty(STDIN_FILENO) && terminal_is_known(stdout) && tigetstr("cup");
}

bool full_screen_has_blocks(void)
{
	setlocale(LC_CTYPE, "");
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

static void screen_catch(const int *signals, size_t n, void (*handler)(int), int flags)
{
	const struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	for (size_t i = 0; i < n; i++)
		sigaction(signals[i], &action, NULL);
}

/* ncurses leaves alone the signals that have a handler, and catches SIGTSTP and SIGWINCH. */
static void screen_catch_all(void)
{
	static const int continued[] = { SIGCONT };
	sigset_t set;

	screen_catch(ending, ARRAY_SIZE(ending), screen_ended, 0);
	screen_catch(fatal, ARRAY_SIZE(fatal), screen_crash, SA_RESETHAND);
	screen_catch(continued, 1, screen_continued, 0);
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(blocked); i++)
		sigaddset(&set, blocked[i]);
	sigprocmask(SIG_BLOCK, &set, &terminal.mask);
	for (size_t i = 0; i < ARRAY_SIZE(blocked); i++)
		sigdelset(&terminal.mask, blocked[i]);
	/* also if they were blocked before */
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
		sigaddset(&set, ending[i]);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int full_screen_begin(bool is_coloured)
{
	static const char *const leave[] = { "rmkx", "sgr0", "cnorm", "rmcup" };

	if (tcgetattr(STDIN_FILENO, &terminal.before))
		return -errno;
	screen_catch_all();
	use_tioctl(true);
	if (!newterm(NULL, stdout, stdin))
		return -ENODEV;
	for (size_t i = 0; i < ARRAY_SIZE(leave); i++)
		leave_add(leave[i]);
	/* a background job stops here until it is in the foreground */
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, true);
	nodelay(stdscr, true);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	terminal.is_coloured = is_coloured;
	if (is_coloured && has_colors()) {
		start_color();
		use_default_colors();
		for (short i = 0; i < SCREEN_STYLES; i++)
			if (styles[i].foreground >= 0)
				init_pair(i, styles[i].foreground, -1);
	}
	return 0;
}

void full_screen_end(void)
{
	terminal.leave[0] = 0;
	endwin();
}

void full_screen_show(const struct screen *s)
{
	if (is_term_resized((int)s->height, (int)s->width))
		resizeterm((int)s->height, (int)s->width);
	for (u32 i = 0; i < s->width * s->height; i++) {
		const struct screen_cell *cell = &s->cells[i];
		const u8 style = terminal.is_coloured ? cell->style : STYLE_PLAIN;
		const wchar_t glyph[] = { cell->glyph, 0 };
		cchar_t shown;

		setcchar(&shown, glyph, styles[style].attributes,
			 styles[style].foreground < 0 ? 0 : style, NULL);
		mvadd_wch((int)(i / s->width), (int)(i % s->width), &shown);
	}
	refresh();
}

enum full_screen_event full_screen_wait(u64 until_ns)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	const u64 now_ns = clock_now_ns(), left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	const struct timespec time = { .tv_sec = (time_t)(left_ns / NSEC_PER_SEC),
				       .tv_nsec = (long)(left_ns % NSEC_PER_SEC) };
	const int n = ppoll(&in, 1, &time, &terminal.mask);

	/* the shell may have changed the modes: the next frame takes the terminal again */
	if (atomic_exchange_explicit(&has_continued, false, memory_order_relaxed))
		endwin();
	if (n > 0 && in.revents & (POLLHUP | POLLERR | POLLNVAL))
		return FULL_SCREEN_ENDED;
	return n ? FULL_SCREEN_KEYS : FULL_SCREEN_TIME;
}

u32 full_screen_key(void)
{
	const int key = getch();

	return key == ERR ? 0 : (u32)key;
}
