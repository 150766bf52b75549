/*-------------------------------------------------------------------------
 *
 * texts.h
 *		What tests of parsers share: tables of texts, and trees of files.
 *
 * A parser is tested with each text of a table as it is, cut at every place,
 * and spoiled at random.  Include this last, in place of tap.h.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  test/unit/texts.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_TEXTS_H
#define PGADM_TEXTS_H

#include <stdlib.h>

#include "clock.h"
#include "textfile.h"
#include "tap.h"

/* the tables leave out what is zero */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define UNKNOWN		PGADM_UNKNOWN

#define BIG		"9223372036854775807"	/* the largest int64 */
#define TOO_BIG "9223372036854775808"
#define HUGE_	"99999999999999999999999999999999999999999999"

/* a text, which may have NULs in it */
#define T(s)		s, sizeof(s) - 1

typedef struct Text
{
	const char *text;
	size_t		len;
} Text;

/* Up to three numbers out of a text; false: unknown */
typedef bool (*Parser) (const char *text, size_t len, double *numbers);

/* What a parser must get out of a text */
typedef struct TextCase
{
	Parser		parse;
	const char *name;
	Text		text;
	bool		known;
	double		numbers[3];
} TextCase;

/* ---- tables of texts -------------------------------------------------- */

static inline void
show_numbers(const char *what, bool known, const double *numbers)
{
	if (known)
		diag("%s %.17g, %.17g, %.17g", what, numbers[0], numbers[1], numbers[2]);
	else
		diag("%s unknown", what);
}

static inline bool
same_numbers(const double *a, const double *b)
{
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

static inline void
test_texts(const TextCase *texts, size_t ntexts)
{
	for (size_t i = 0; i < ntexts; i++)
	{
		double		got[3] = {0, 0, 0};
		bool		known = texts[i].parse(texts[i].text.text,
										   texts[i].text.len, got);

		if (!ok(known == texts[i].known &&
				(!known || same_numbers(got, texts[i].numbers)),
				"%s", texts[i].name))
		{
			show_numbers("got", known, got);
			show_numbers("expected", texts[i].known, texts[i].numbers);
		}
	}
}

/*
 * A text that has been cut, wherever, gives the numbers that the whole one
 * gives, fewer of them, or none.
 */
static inline bool
cut_texts_are_right(Parser parse, Text text, const double *numbers)
{
	for (size_t len = 0; len < text.len; len++)
	{
		double		got[3] = {0, 0, 0};
		char	   *copy = malloc(len + 1);
		bool		right;

		/* so that a look behind the end is seen by a sanitizer */
		memcpy(copy + 1, text.text, len);
		right = !parse(copy + 1, len, got);
		for (int i = 0; !right && i < 3; i++)
		{
			if (got[i] != numbers[i] && got[i] != UNKNOWN)
				break;
			right = (i == 2);
		}
		free(copy);
		if (!right)
		{
			diag("cut after %zu bytes", len);
			show_numbers("got", true, got);
			return false;
		}
	}
	return true;
}

static inline void
test_cut_texts(const TextCase *texts, size_t ntexts)
{
	for (size_t i = 0; i < ntexts; i++)
	{
		if (texts[i].known)
			ok(cut_texts_are_right(texts[i].parse, texts[i].text,
								   texts[i].numbers),
			   "%s: cut anywhere", texts[i].name);
	}
}

/* ---- random texts ----------------------------------------------------- */

static inline uint32
random_below(uint32 bound)
{
	static uint64 state = 42;

	state = state * UINT64CONST(6364136223846793005) + 1;
	return (uint32) (state >> 33) % bound;
}

/* Change some bytes of a text, or put pieces of it elsewhere, or cut it */
static inline size_t
spoil(char *text, size_t len, size_t size)
{
	static const char bytes[] = "0123456789 -.\n\0\t:()=max/\377\\";

	for (int changes = 1 + random_below(4); changes > 0 && len > 0; changes--)
	{
		size_t		at = random_below(len);
		size_t		from = random_below(len);
		size_t		n = 1 + random_below(20);

		n = Min(n, Min(len - at, len - from));
		switch (random_below(5))
		{
			case 0:
				text[at] = bytes[random_below(sizeof(bytes) - 1)];
				break;
			case 1:
				memmove(text + at, text + from, n);
				break;
			case 2:
				memmove(text + at, text + at + n, len - at - n);
				len -= n;
				break;
			case 3:
				n = Min(n, size - len);
				memmove(text + at + n, text + at, len - at);
				memset(text + at, bytes[random_below(10)], n);
				len += n;
				break;
			default:
				len = at;
		}
	}
	return len;
}

/* What a parser gives is a number, and not negative unless it is unknown */
static inline bool
spoiled_texts_are_sane(Parser parse, Text text, int count)
{
	char		buffer[1024];

	while (count-- > 0)
	{
		double		got[3] = {0, 0, 0};
		size_t		len;
		char	   *copy;
		bool		known;

		memcpy(buffer, text.text, text.len);
		len = spoil(buffer, text.len, sizeof(buffer));
		copy = malloc(len + 1);
		memcpy(copy + 1, buffer, len);
		known = parse(copy + 1, len, got);
		free(copy);
		for (int i = 0; known && i < 3; i++)
		{
			if (!(got[i] >= 0 || got[i] == UNKNOWN))
			{
				show_numbers("got", known, got);
				return false;
			}
		}
	}
	return true;
}

static inline void
test_spoiled_texts(const TextCase *texts, size_t ntexts, int count)
{
	for (size_t i = 0; i < ntexts; i++)
	{
		if (texts[i].known)
			ok(spoiled_texts_are_sane(texts[i].parse, texts[i].text, count),
			   "%s: spoiled %d times", texts[i].name, count);
	}
}

/* ---- trees, time ------------------------------------------------------ */

/* where the recorded trees are */
static const char *data_folder = "test/data";

/* The root of a recorded tree */
static inline void
tree_root(char root[MAXPGPATH], const char *name)
{
	snprintf(root, MAXPGPATH, "%s/%s", data_folder, name);
}

static inline void
spin(int64 microseconds)
{
	int64		end = pgadm_clock_us() + microseconds;

	while (pgadm_clock_us() < end)
		continue;
}

#endif							/* PGADM_TEXTS_H */
