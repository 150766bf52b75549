/*-------------------------------------------------------------------------
 *
 * grammar.h
 *		Steps of small grammars over a text that the kernel has written.
 *
 * A parser is a chain of steps over a Cursor.  A step moves on or says no;
 * nothing is converted that does not fit, and nothing is read behind the end
 * of the text, which may hold anything, zero bytes too.
 *
 * A grammar is read best if its steps have short names; they need no prefix,
 * since all of them are static, and only files of parsers include this one.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/grammar.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_GRAMMAR_H
#define PGADM_GRAMMAR_H

/* Text not yet read */
typedef struct Cursor
{
	const char *p;
	const char *end;
} Cursor;

/*
 * Called for every line of a text, without its newline.  Not whole: the line
 * has been cut.  Returns false to stop.
 */
typedef bool (*LineFn) (Cursor line, bool whole, void *state);

static inline bool
at_end(const Cursor *c)
{
	return c->p == c->end;
}

static inline bool
take_char(Cursor *c, char wanted)
{
	if (at_end(c) || *c->p != wanted)
		return false;
	c->p++;
	return true;
}

static inline bool
take_blanks(Cursor *c)
{
	const char *start = c->p;

	while (take_char(c, ' ') || take_char(c, '\t'))
		continue;
	return c->p > start;
}

static inline bool
take_string(Cursor *c, const char *wanted)
{
	size_t		len = strlen(wanted);

	if ((size_t) (c->end - c->p) < len || memcmp(c->p, wanted, len) != 0)
		return false;
	c->p += len;
	return true;
}

static inline bool
at_digit(const Cursor *c)
{
	return !at_end(c) && *c->p >= '0' && *c->p <= '9';
}

/* Skip digits; were there any? */
static inline bool
take_digits(Cursor *c)
{
	const char *start = c->p;

	while (at_digit(c))
		c->p++;
	return c->p > start;
}

/* A number without sign that fits */
static inline bool
take_int(Cursor *c, int64 *value)
{
	int64		result = 0;

	if (!at_digit(c))
		return false;
	for (; at_digit(c); c->p++)
	{
		int			digit = *c->p - '0';

		if (result > (PG_INT64_MAX - digit) / 10)
			return false;
		result = result * 10 + digit;
	}
	*value = result;
	return true;
}

/* A word up to the next blank */
static inline bool
take_word(Cursor *c, Cursor *word)
{
	word->p = c->p;
	while (!at_end(c) && *c->p != ' ')
		c->p++;
	word->end = c->p;
	return word->end > word->p;
}

/* A text that is one whole line */
static inline bool
one_line(const char *text, size_t len, Cursor *line)
{
	if (len == 0 || text[len - 1] != '\n' ||
		memchr(text, '\n', len - 1) != NULL)
		return false;
	line->p = text;
	line->end = text + len - 1;
	return true;
}

/* Call a function for all lines */
static inline void
scan_lines(const char *text, size_t len, LineFn fn, void *state)
{
	const char *end = text + len;
	bool		go_on = true;

	while (go_on && text < end)
	{
		const char *newline = memchr(text, '\n', end - text);
		Cursor		line = {text, newline ? newline : end};

		go_on = fn(line, newline != NULL, state);
		text = newline ? newline + 1 : end;
	}
}

/* Add up what is not negative; false if it does not fit */
static inline bool
add_int(int64 *sum, int64 value)
{
	if (value > PG_INT64_MAX - *sum)
		return false;
	*sum += value;
	return true;
}

#endif							/* PGADM_GRAMMAR_H */
