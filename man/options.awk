# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Fills in the option lists of a manual page from the help of the command, so that a text of an
# option stands once, in the source. In the page:
#
#	@OPTIONS SUBCOMMAND
#	--name
#	Sentences that the page has after the help's text for --name, in mdoc(7).
#	@END
#
# awk -v tool=COMMAND -f options.awk PAGE; exits with 1 if an option is unknown.

function fail(why) {
	print FILENAME ": " why >"/dev/stderr"
	failed = 1
	exit 1
}

# ---- text of the help as mdoc(7) ----

function flush_text() {
	if (text != "")
		print text
	text = ""
}

function put_text(word) {
	if (text != "" && length(text) + length(word) > 80)
		flush_text()
	if (text == "" && word ~ /^[.']/)
		word = "\\&" word
	text = text (text == "" ? "" : " ") word
}

# Prints a line such as ".Ev ( XROCE_DEV ) ,": macro and its arguments, between punctuation.
function put_macro(macro, arguments, before, after,    line) {
	flush_text()
	line = "." macro
	while (before != "") {
		line = line " " substr(before, 1, 1)
		before = substr(before, 2)
	}
	line = line " " arguments
	while (after != "") {
		line = line " " substr(after, 1, 1)
		after = substr(after, 2)
	}
	print line
}

function put_word(word,    before, after, own) {
	match(word, /^\(*/)
	before = substr(word, 1, RLENGTH)
	after = substr(word, RLENGTH + 1)
	match(after, /[),.;:]*$/)
	word = substr(after, 1, RSTART - 1)
	after = substr(after, RSTART)
	own = word
	sub(/'s$/, "", own)
	if (own in names)
		put_macro("Ar", own (own == word ? "" : " Ns 's"), before, after)
	else if (word ~ /^(XROCE|LD|RDMAV)_[A-Z_]+(=.*)?$/)
		put_macro("Ev", word, before, after)
	else if (word ~ /^--?[A-Za-z]/)
		put_macro("Fl", substr(word, 2), before, after)
	else if (word == "-" || word ~ /^'.*'$/)
		put_macro("Ql", word == "-" ? word : substr(word, 2, length(word) - 2), before, after)
	else if (word ~ /^\/[a-z]/)
		put_macro("Pa", word, before, after)
	else if (word ~ /^[a-z-]+\([1-8]$/ && sub(/^\)/, "", after))
		put_macro("Xr", substr(word, 1, length(word) - 2) " " substr(word, length(word)), before, after)
	else
		put_text(before word after)
}

function put_sentences(s,    n, i, words, quoted) {
	s = toupper(substr(s, 1, 1)) substr(s, 2) (s ~ /\.$/ ? "" : ".")
	n = split(s, words, " ")
	quoted = ""
	for (i = 1; i <= n; i++) {
		quoted = quoted (quoted == "" ? "" : " ") words[i]
		if (quoted ~ /^\(*'/ && quoted !~ /'[),.;:]*$/)
			continue
		put_word(quoted)
		if (quoted ~ /\.$/)
			flush_text()
		quoted = ""
	}
	if (quoted != "")
		fail("a quote without its end: " s)
	flush_text()
}

# ---- an option ----

# Prints ".It Fl c , Fl -count Ar N" for "-c, --count N".
function put_item(left,    line, argument) {
	line = ".It"
	if (left ~ /^-[^-]/)
		line = line " Fl " substr(left, 2, 1) (left ~ /,/ ? " ," : "")
	if (match(left, /--[a-z0-9-]+/)) {
		line = line " Fl " substr(left, RSTART + 1, RLENGTH - 1)
		argument = substr(left, RSTART + RLENGTH)
		if (argument ~ /^\[=/)
			line = line " Ns Op Cm = Ns Ar " substr(argument, 3, length(argument) - 3)
		else if (argument != "")
			line = line " Ar" argument
	}
	print line
}

# The name by which the page adds to the option: its long name, or its letter.
function option_name(left) {
	return match(left, /--[a-z0-9-]+/) ? substr(left, RSTART, RLENGTH) : substr(left, 1, 2)
}

function put_option(left, help,    name, argument, i, n, words, own) {
	name = option_name(left)
	put_item(left)
	argument = left
	sub(/^(-[^-])?(, )?(--[a-z0-9-]+)?/, "", argument)
	n = split(argument, words, /[^A-Z]+/)
	for (i = 1; i <= n; i++)
		if (words[i] != "" && !(words[i] in names)) {
			names[words[i]]
			own[words[i]]
		}
	put_sentences(help)
	for (i in own)
		delete names[i]
	printf "%s", more[name]
	delete more[name]
}

# ---- a list ----

function take_names(usage,    n, i, words) {
	n = split(usage, words, /[^A-Z]+/)
	for (i = 1; i <= n; i++)
		if (length(words[i]) > 1)
			names[words[i]]
}

function put_options(command,    run, line, left, help, num, at, is_usage, word) {
	split("", names)
	run = tool " " command " --help"
	is_usage = 1
	while ((run | getline line) > 0) {
		if (is_usage)
			take_names(line)
		if (line == "")
			is_usage = 0
		if (line ~ /^  (-[A-Za-z0-9]|--[a-z])/) {
			if (left != "")
				put_option(left, help)
			line = substr(line, 3)
			at = index(line, "  ")
			left = substr(line, 1, at - 1)
			help = substr(line, at)
			sub(/^ +/, "", help)
			num++
		} else if (left != "" && line ~ /^      /) {
			sub(/^ +/, "", line)
			word = line
			sub(/:.*/, "", word)
			help = help (word ~ /^[A-Z]+$/ ? ". " : " ") line
		} else if (left != "") {
			put_option(left, help)
			left = ""
		}
	}
	close(run)
	if (left != "")
		put_option(left, help)
	if (!num)
		fail("no options of '" run "'")
	for (left in more)
		fail(command " has no option " left)
}

# ---- the page ----

$1 == "@OPTIONS" {
	command = $2
	name = ""
	next
}
$1 == "@END" {
	put_options(command)
	command = ""
	next
}
command == "" { print; next }
/^--?[a-z0-9-]+$/ { name = $1; next }
name == "" { fail("line " NR ": text before the name of an option") }
{ more[name] = more[name] $0 "\n" }

END {
	if (!failed && command != "")
		fail("no @END for " command)
	exit failed
}
