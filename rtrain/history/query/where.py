"""The language of ``--where``: comparisons of fields, joined by ``and``, ``or`` and ``not``. It never runs code.

    either      = both {"or" both}
    both        = condition {"and" condition}
    condition   = "not" condition | "(" either ")" | comparison
    comparison  = FIELD [operator value | ["not"] "in" "[" value {"," value} "]"] | value operator FIELD
                  | value ["not"] "in" FIELD
    operator    = "==" | "=" | "!=" | "<" | "<=" | ">" | ">=" | "~" (a pattern with * and ?, else a part)
    value       = number [unit] | "text" | word

The first word of a comparison is a field; a word after the operator is a text.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from rtrain.config.did_you_mean import nearest_or_all
from rtrain.errors import ConfigError
from rtrain.history.query.fields import DURATIONS, SIZES, TIMES, Fields
from rtrain.history.query.quantities import read_duration, read_size, read_time
from rtrain.history.rows import Row
from rtrain.runs.status import Status

Test = Callable[[Row], bool]
WORDS = {"true": True, "false": False, "null": None, "none": None}
CLOSED = {
    "status": tuple(one for one in Status if one not in (Status.PLANNED, Status.PAUSED)),
    "kind": ("run", "trial", "sweep"),
}
"""Fields of which all values are known."""
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>"[^"]*"|'[^']*')
      | (?P<date>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?)
      | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?P<unit>[A-Za-z]\w*|%)?
      | (?P<op>==|!=|<=|>=|[<>=~()\[\],])
      | (?P<word>[A-Za-z_][\w./@+-]*)
    )""",
    re.VERBOSE,
)
NUM_NESTED = 50
"""How deeply parentheses and ``not`` may be nested."""


@dataclass(frozen=True)
class Token:
    """A word of the expression: its kind, how it is spelled, and where it begins."""

    kind: str
    text: str
    at: int

    @property
    def value(self) -> Any:
        """What it stands for as a value."""
        if self.kind == "text":
            return self.text[1:-1]
        if self.kind == "number":
            number = float(self.text)
            return int(number) if re.fullmatch(r"[+-]?\d+", self.text) else number
        return WORDS.get(self.text.lower(), self.text) if self.kind == "word" else self.text


def matching(rows: Sequence[Row], where: str | None) -> list[Row]:
    """Return the rows that fulfil an expression, in their order; all if there is none.

    Raises:
        ConfigError: The expression is wrong; names the place in it, and the fields that there are.
    """
    if where is None or not where.strip():
        return list(rows)
    test = _Parser(where, Fields(rows)).parse()
    return [row for row in rows if test(row)]


class _Parser:
    """Makes one function of an expression.

    Args:
        source: The expression.
        fields: Of the rows that it will be asked of.
    """

    def __init__(self, source: str, fields: Fields) -> None:
        self._source, self._fields = source, fields
        self._tokens = list(self._split())
        self._next, self._depth = 0, 0

    def parse(self) -> Test:
        """Return whether a row fulfils the expression, as a function."""
        test = self._either()
        if self._token.kind != "end":
            raise self._wrong(f"'{self._token.text}' is not expected here", "Join conditions with and, or.")
        return test

    def _split(self) -> Iterable[Token]:
        at = 0
        while self._source[at:].strip():
            match = _TOKEN.match(self._source, at)
            if match is None:
                start = at + len(self._source[at:]) - len(self._source[at:].lstrip())
                bad = Token("bad", self._source[start], start)
                hint = "Close the quotation mark." if bad.text in "\"'" else None
                raise self._wrong(f"{bad.text} is not expected here", hint, bad)
            kind = str(match.lastgroup if match["unit"] is None else "quantity")
            text = match[0].strip()
            yield Token(kind, text, match.end() - len(text))
            at = match.end()
        yield Token("end", "", len(self._source.rstrip()))

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self, *texts: str) -> Token | None:
        """Return the next word, and go beyond it, if it is one of these."""
        token = self._token
        if token.kind in ("word", "op") and token.text.lower() in texts:
            self._next += 1
            return token
        return None

    def _either(self) -> Test:
        tests = [self._both()]
        while self._take("or", "||"):
            tests.append(self._both())
        return tests[0] if len(tests) == 1 else lambda row: any(test(row) for test in tests)

    def _both(self) -> Test:
        tests = [self._condition()]
        while self._take("and", "&&"):
            tests.append(self._condition())
        return tests[0] if len(tests) == 1 else lambda row: all(test(row) for test in tests)

    def _condition(self) -> Test:
        self._depth += 1
        if self._depth > NUM_NESTED:
            raise self._wrong("this is nested too deeply")
        if self._take("not"):
            negated = self._condition()
            test: Test = lambda row: not negated(row)  # noqa: E731
        elif self._take("("):
            test = self._either()
            if not self._take(")"):
                raise self._wrong("a ) is missing here")
        else:
            test = self._comparison()
        self._depth -= 1
        return test

    def _comparison(self) -> Test:
        first = self._token
        if first.kind in ("end", "op") or first.text.lower() in ("and", "or", "in"):
            raise self._wrong("a condition is missing here", 'For example: status == failed and started > "3 days ago"')
        self._next += 1
        if first.kind == "word":
            return self._of_field(first)
        if (test := self._membership(first)) is not None:
            return test
        sign = self._take("==", "=", "!=", *ORDERS)
        if sign is None or self._token.kind != "word":
            raise self._wrong("a field is missing here", f"For example: best < {first.text}", first)
        field = self._token
        self._next += 1
        return self._compared(field, MIRRORED.get(sign.text, sign.text), first)

    def _of_field(self, field: Token) -> Test:
        sign = self._take("==", "=", "!=", "~", *ORDERS)
        if sign is not None:
            value = self._value()
            return self._compared(field, sign.text, value)
        negated = self._take("not")
        if self._take("in"):
            if self._token.kind == "word":  # of two words, the first one is a text
                return self._contains(field, negated is not None)
            tests = [self._compared(field, "==", one) for one in self._list()]
            return lambda row: any(test(row) for test in tests) == (negated is None)
        if negated:
            raise self._wrong("'in' is missing here")
        name = self._field(field)
        return lambda row: bool(row.get(name))

    def _membership(self, value: Token) -> Test | None:
        at = self._next
        negated = self._take("not")
        if self._take("in"):
            return self._contains(value, negated is not None)
        self._next = at
        return None

    def _contains(self, value: Token, negated: bool) -> Test:
        if self._token.kind != "word":
            raise self._wrong("a field is missing here", "For example: baseline in tags")
        name, wanted = self._field(self._token), value.value
        self._next += 1

        def test(row: Row) -> bool:
            there = row.get(name)
            found = any(_equal(one, wanted) for one in there) if isinstance(there, list) else str(wanted) in str(there)
            return found != negated

        return test

    def _list(self) -> list[Token]:
        opening = self._take("[", "(")
        if opening is None:
            raise self._wrong("a list is missing here", "For example: status in [failed, killed]")
        values = [self._value()]
        while self._take(","):
            values.append(self._value())
        if not self._take("]" if opening.text == "[" else ")"):
            raise self._wrong("the list is not closed here")
        return values

    def _value(self) -> Token:
        token = self._token
        if token.kind in ("end", "op"):
            raise self._wrong("a value is missing here")
        self._next += 1
        return token

    def _field(self, token: Token) -> str:
        try:
            return self._fields.find(token.text)
        except ConfigError as error:
            raise self._wrong(error.message.rstrip("."), error.hint, token) from None

    def _compared(self, field: Token, sign: str, value: Token) -> Test:
        """Return the comparison of a field with a value; what a run lacks is not equal, and neither less nor more."""
        name = self._field(field)
        wanted = self._read(name, value)
        if sign in ("==", "=", "!=") and name in CLOSED and wanted not in CLOSED[name]:
            raise self._wrong(f"no {name} is '{wanted}'", nearest_or_all(str(wanted), CLOSED[name]), value)
        if sign == "~":
            text = str(wanted)
            fits = fnmatchcase if re.search(r"[*?[]", text) else operator.contains
            return lambda row: _any_of(row.get(name), lambda one: fits(str(one), text))
        if sign in ORDERS:
            compare = ORDERS[sign]
            return lambda row: _any_of(row.get(name), lambda one: _ordered(one, wanted, compare))
        if wanted is None:
            return lambda row: (row.get(name) is None) == (sign != "!=")
        return lambda row: _any_of(row.get(name), lambda one: _equal(one, wanted)) == (sign != "!=")

    def _read(self, name: str, token: Token) -> Any:
        """Return what a value stands for next to a field: a time, seconds, bytes, or what it is."""
        text = token.value if token.kind == "text" else token.text
        for names, read, example in (
            (TIMES, read_time, 'a time: "3 days ago", yesterday, 2026-11-01'),
            (DURATIONS, read_duration, "a duration: 90s, 2h, 3d"),
            (SIZES, read_size, "a size: 500MB, 1.5GB"),
        ):
            if name in names:
                number = token.value if token.kind == "number" and names != TIMES else read(text)
                if number is None and token.value is not None:
                    raise self._wrong(f"compare {name} with {example}", None, token)
                return number
        if token.kind == "quantity":
            plain = text.endswith("%")
            number = float(text[:-1]) / 100 if plain else read_duration(text) or read_size(text)
            if number is None:
                raise self._wrong(f"{text} is not a number", "Put text in quotation marks.", token)
            return number
        return token.value

    def _wrong(self, problem: str, hint: str | None = None, token: Token | None = None) -> ConfigError:
        """Return the error with the expression and a caret below its place."""
        at = token or self._token
        lines = [f"--where: {problem}", f"    {self._source}", f"    {' ' * at.at}{'^' * max(1, len(at.text))}"]
        return ConfigError(
            "\n".join(lines), None if hint is None else "\n".join(f"  {one}" for one in hint.split("\n"))
        )


def _any_of(value: Any, test: Callable[[Any], bool]) -> bool:
    """Return whether a value passes a test; of a list, whether any of its values does."""
    return any(map(test, value)) if isinstance(value, list) else value is not None and test(value)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other or str(one).lower() == str(other).lower()
    return one == other or str(one) == str(other)


def _ordered(one: Any, other: Any, compare: Callable[[Any, Any], bool]) -> bool:
    alike = isinstance(one, str) == isinstance(other, str) and not isinstance(one, bool | dict)
    return alike and other is not None and compare(one, other)
