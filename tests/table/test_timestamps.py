"""Points in time as users write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from delta_core.errors import InvalidArgumentError
from delta_core.kernel.log.timestamps import format_ms, parse_ms

INSTANT_MS = 1_517_005_809_000  # 2018-01-26T22:30:09Z


@pytest.mark.parametrize(
    "text",
    [
        "2018-01-26T22:30:09Z",
        "2018-01-26 22:30:09+00:00",
        "2018-01-26T14:30:09-08:00",
        "20180126T223009Z",
        " 2018-01-26T22:30:09Z ",
    ],
)
def test_every_spelling_of_an_instant_returns_its_milliseconds(text: str) -> None:
    assert parse_ms(text) == INSTANT_MS


def test_time_without_a_zone_is_read_in_the_zone_given() -> None:
    assert parse_ms("2018-01-26T22:30:09") == INSTANT_MS
    assert parse_ms("2018-01-26T23:30:09", "Europe/Berlin") == INSTANT_MS
    assert parse_ms(datetime(2018, 1, 26, 23, 30, 9), "Europe/Berlin") == INSTANT_MS


def test_zone_in_the_value_wins_over_the_zone_given() -> None:
    assert parse_ms(datetime(2018, 1, 27, 0, 30, 9, tzinfo=timezone(timedelta(hours=2))), "Asia/Tokyo") == INSTANT_MS


def test_date_alone_is_its_first_moment() -> None:
    assert parse_ms("2018-01-26") == parse_ms("2018-01-26T00:00:00Z")


def test_microseconds_round_down_before_the_epoch_too() -> None:
    assert parse_ms("2018-01-26T22:30:09.000999Z") == INSTANT_MS
    assert parse_ms("1969-12-31T23:59:59.999500Z") == -1


@pytest.mark.parametrize("text", ["", "1", "yesterday", "2018-13-01", "2018-01-26T25:00:00Z"])
def test_other_text_is_rejected_with_what_was_found(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="ISO 8601"):
        parse_ms(text)


def test_unknown_zone_is_rejected_by_name() -> None:
    with pytest.raises(InvalidArgumentError, match="Europe/Atlantis"):
        parse_ms("2018-01-26", "Europe/Atlantis")


@given(st.integers(-60_000_000_000_000, 250_000_000_000_000))
def test_formatting_and_parsing_are_inverse(ms: int) -> None:
    text = format_ms(ms)
    assert text is not None
    assert text.endswith("Z")
    assert parse_ms(text) == ms


def test_what_no_date_can_hold_stays_a_number() -> None:
    assert format_ms(10**18) == str(10**18)
    assert format_ms(None) is None
    assert format_ms(INSTANT_MS, "Europe/Berlin") == "2018-01-26T23:30:09.000+01:00"
    assert parse_ms(datetime.fromtimestamp(INSTANT_MS / 1000, UTC)) == INSTANT_MS
