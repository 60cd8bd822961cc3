"""The answer to ``plan`` as a page of text.

In: an `Answer` and a `Style`. Out: lines in the order a reader needs them: what was asked, the stages whose parts sum
to their peak, the cards with what makes each verdict true, the picks, the catch, the next commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cardfit.messages import say
from cardfit.plan.answer import Answer, CardRow, Pick, StageRow
from cardfit.report import bill, words
from cardfit.report.grid import Cell, Column, grid, hanging, wrapped
from cardfit.report.selected import HOLDS, SHOWN_WHOLE, Shown, selected
from cardfit.report.style import Style
from cardfit.request import Dtype
from cardfit.units import GIB_NAME, gib, gib_text, human_seconds

BAR = 10
MOST_TIGHT = 3
CATCH = "plan-catch"  # notes of the plan that belong under "The catch"
_RANGE = ".."


def lines(
    answer: Answer,
    style: Style,
    *,
    every: bool = False,
    command: Sequence[str] | None = None,
    recommended: Mapping[str, Dtype] | None = None,
) -> list[str]:
    """The page.

    ``every`` shows all cards; ``command`` is the command that was typed, to build on; ``recommended`` are the
    model's own dtypes by component, which hold where the settings say nothing.
    """
    shown = selected(answer, every=every)
    return [
        *_header(answer, style, recommended),
        "",
        *stages(answer.stages, against(answer) if style.bars else None, style),
        *_sums(answer, style),
        "",
        *_cards(answer, shown, style),
        "",
        *_whys(answer, style),
        *bill.lines(answer, style),
        *_picks(answer, style),
        *_catch(answer, style),
        *_next(answer, len(shown) < len(answer.cards), command, style),
    ]


def notes(answer: Answer, style: Style) -> list[str]:
    """The cautions of the answer, for the error stream."""
    return [line for text in remarks(answer) for line in hanging(say("note"), text, style.width)]


def remarks(answer: Answer) -> list[str]:
    """The notes of the answer that do not belong under "The catch"."""
    return [note.text for note in answer.notes if not note.code.startswith(CATCH)]


def _header(answer: Answer, style: Style, recommended: Mapping[str, Dtype] | None) -> list[str]:
    return [*_fold(title(answer, recommended), style), *_fold(below(answer), style)]


def title(answer: Answer, recommended: Mapping[str, Dtype] | None) -> list[str]:
    """What was asked: model, size, frames, steps, dtypes, and the knobs that were set."""
    dtypes = words.dtypes(answer.settings, recommended)
    found = [answer.model.title, *words.what(answer.request), dtypes]
    if (knobs := words.settings_words(answer.settings)) != say("set-nothing"):
        found.append(knobs)
    return found


def below(answer: Answer) -> list[str]:
    """What the figures rest on: runtime, versions, bases, licence."""
    runtime = answer.request.runtime
    bases = ", ".join(sorted({stage.basis for stage in answer.stages}))
    if all(stage.basis != "measured" for stage in answer.stages):
        bases = say("basis-not-measured", {"basis": bases})
    order = sorted(answer.versions, key=lambda name: (name != "diffusers", name != "torch", name))
    found = [", ".join(f"{name} {answer.versions[name]}" for name in order), bases]
    if runtime not in answer.versions:
        found.insert(0, runtime)
    found.append(say("license", {"license": answer.model.license}))
    if not answer.model.verified:
        found.append(say("not-verified"))
    return found


def _fold(parts: list[str], style: Style, indent: str = "") -> list[str]:
    """The parts in one line with dots between, or in more where one would be too wide."""
    found, line = [], indent
    for part in parts:
        joined = part if line == indent else style.dot + part
        if line != indent and len(line) + len(joined) > style.width:
            found.append(line)
            line, joined = indent + "  ", part
        line += joined
    after = indent + "    "
    return [
        narrow
        for wide in [*found, line]
        for narrow in wrapped(wide, style.width, rest=after, hyphens=True)
    ]


def stages(found: Iterable[StageRow], card: CardRow | None, style: Style) -> list[str]:
    """The stages whose parts sum to their peaks, with a bar each where they are measured against ``card``."""
    columns = [
        Column(say("col-stage")),
        Column(say("col-weights"), right=True),
        Column(say("col-working"), right=True),
        Column(say("col-allocator"), right=True),
        Column(say("col-peak"), right=True),
        Column(say("col-band"), right=True),
    ]
    if card is not None:
        columns.append(Column(say("col-bar", {"card": words.card_name(card.name)})))
    columns.append(Column(say("col-at"), least=14, cut=True))
    rows = [_stage(stage, card, style) for stage in found]
    return grid(columns, rows, style)


def _stage(stage: StageRow, against: CardRow | None, style: Style) -> list[Cell | str]:
    row: list[Cell | str] = [
        stage.name,
        gib(stage.weights_bytes),
        gib(stage.activation_bytes),
        gib(stage.reserved_bytes - stage.allocated_bytes),
        gib_text(stage.reserved_bytes),
        f"{gib(stage.low_bytes)}{_RANGE}{gib(stage.high_bytes)}",
    ]
    if against is not None and against.usable_bytes:
        colour = "green" if stage.high_bytes <= against.usable_bytes else "red"
        row.append(Cell(style.bar(stage.reserved_bytes, against.usable_bytes, BAR), colour))
    where = f"{stage.component}, {stage.site}" if stage.site else stage.component
    return [*row, Cell(where, "dim")]


def against(answer: Answer) -> CardRow | None:
    """The card that the bars measure against: the cheapest pick, else the first with known room."""
    pick = words.best(answer)
    rows = [row for row in answer.cards if row.usable_bytes]
    chosen = [row for row in rows if pick is not None and row.card == pick.card]
    return next(iter([*chosen, *rows]), None)


def _sums(answer: Answer, style: Style) -> list[str]:
    parts, rule = sums(answer)
    return [*_fold(parts, style, "  "), *_fold(rule, style, "  ")]


def sums(answer: Answer) -> tuple[list[str], list[str]]:
    """The peak with everything resident and one component at a time; then the rules of thumb."""
    offloads = answer.settings.offload not in (None, "none")
    label = "as-set" if offloads else "all-resident"
    if answer.request.runtime == "comfyui":
        label = "one-model-at-a-time"
    parts = [say(label, {"resident": gib_text(answer.peak.reserved_bytes)})]
    if answer.one_at_a_time is not None:
        peak = gib_text(answer.one_at_a_time.reserved_bytes)
        if answer.one_at_a_time_host_bytes is None:
            parts.append(say("one-at-a-time-open", {"peak": peak}))
        else:
            host = gib_text(answer.one_at_a_time_host_bytes)
            parts.append(say("one-at-a-time", {"peak": peak, "host": host}))
    rule = [
        say("rule-of-thumb", {"all": gib_text(answer.rule_bytes)}),
        say("rule-of-denoiser", {"denoiser": gib_text(answer.denoiser_rule_bytes)}),
    ]
    return parts, rule


def _cards(answer: Answer, shown: list[Shown], style: Style) -> list[str]:
    columns = [
        Column(say("col-card"), least=14, cut=True),
        Column(say("col-memory"), right=True),
        Column(say("col-verdict"), least=14),
        Column(say("col-settings"), least=29),
    ]
    rows = [each.row for each in shown]
    timed = any(row.seconds is not None for row in rows)
    costed = any(row.cost_per_output is not None for row in rows)
    if timed:
        columns.append(Column(say("col-time"), right=True))
    limit, cost = (
        Column(say("col-limit", {"unit": GIB_NAME}), right=True),
        Column(say("col-cost"), right=True),
    )
    last = [limit, cost] if costed else [limit]
    billed = any(bill.stated(row) for row in rows)
    if billed:
        last.reverse()  # what a narrow page leaves out is what was not asked
    columns += [Column(say("col-price")), *last]
    found = grid(columns, [_card(each, timed, costed, billed, style) for each in shown], style)
    if any(each.alike for each in shown):
        found += wrapped(say("alike-legend"), style.width, "  ", "  ", hyphens=True)
    if hidden := len(answer.cards) - len(shown):
        found.append("  " + say("more-rows", {"count": hidden}))
    return found


def _card(each: Shown, timed: bool, costed: bool, billed: bool, style: Style) -> list[Cell | str]:
    row = each.row
    name = words.card_name(row.name)
    if each.alike:
        name = say("alike", {"card": name, "count": each.alike})
    memory = "" if row.memory_bytes is None else gib_text(row.memory_bytes, 0)
    holds = row.verdict in HOLDS
    cells: list[Cell | str] = [name, memory, words.verdict(row, style)]
    cells.append(words.short_settings(row) if holds else words.short_why(row))
    if timed:
        cells.append("" if row.seconds is None else human_seconds(row.seconds.likely))
    limit = ""
    if row.peak_reserved_bytes is not None and row.usable_bytes is not None:
        limit = f"{gib(row.peak_reserved_bytes)}/{gib(row.usable_bytes)}"
    cost = "" if row.cost_per_output is None else words.money(row.cost_per_output)
    last = [limit, cost] if costed else [limit]
    if billed:
        last.reverse()
    return [*cells, words.price(row.offer), *last]


def _whys(answer: Answer, style: Style) -> list[str]:
    """For a handful of cards the whole sentence behind each verdict and what would cure a red one."""
    if len(answer.cards) > SHOWN_WHOLE:
        return []
    found = []
    for row in answer.cards:
        why = row.why.text
        if row.near_miss is not None:
            why = say("reason", {"why": why, "cure": row.near_miss.text})
        found += [
            f"  {each}" for each in hanging(words.card_name(row.name), why, style.width - 2, 20)
        ]
    return [say("whys"), *found, ""] if found else []


def _picks(answer: Answer, style: Style) -> list[str]:
    found = []
    picks = answer.recommended
    for label, pick in (
        (say("pick-cheapest"), picks.cheapest),
        (say("pick-fastest"), picks.fastest),
        (say("pick-safest"), picks.safest),
    ):
        text = _pick(answer, pick)
        found += hanging(label, text, style.width)
    return found


def _pick(answer: Answer, pick: Pick | None) -> str:
    if pick is None:
        return say("pick-none")
    rows = [row for row in answer.cards if row.card == pick.card]
    name = words.card_name(rows[0].name) if rows else pick.card
    same = [row.settings_text for row in rows if row.settings == pick.settings]
    settings = (same[0] if same else "") or words.settings_words(pick.settings)
    return say("pick-line", {"card": name, "settings": settings, "why": pick.why.text})


def _catch(answer: Answer, style: Style) -> list[str]:
    text = catch(answer)
    return hanging(say("the-catch"), text, style.width) if text else []


def catch(answer: Answer) -> str:
    """The cheapest way to be wrong: what the plan warns of for its pick, and the tight cards by name."""
    said = [note.text for note in answer.notes if note.code.startswith(CATCH)]
    if not any(row.verdict in HOLDS for row in answer.cards):
        said.append(say("catch-nothing-fits"))
    tight = [row for row in answer.cards if row.verdict == "tight"]
    if tight:
        names = [_tight(row, answer) for row in tight[:MOST_TIGHT]]
        if more := len(tight) - len(names):
            names.append(say("catch-more", {"count": more}))
        said.append(say("catch-tight", {"cards": ", ".join(names)}))
    return " ".join(said)


def _tight(row: CardRow, answer: Answer) -> str:
    args = {
        "card": words.card_name(row.name),
        "memory": gib_text(row.memory_bytes or 0, 0),
        "stage": row.limiting_stage or answer.peak.stage,
        "peak": gib(row.peak_reserved_bytes or 0),
        "usable": gib_text(row.usable_bytes or 0),
    }
    return say("catch-tight-card", args)


def _next(answer: Answer, hidden: bool, command: Sequence[str] | None, style: Style) -> list[str]:
    found = []
    for words_, code in steps(answer, hidden, command):
        remark = wrapped(f"  # {say(code)}", style.width, rest="  # ", hyphens=True)
        found += [style.paint(line, "dim") for line in remark]
        found += [f"  {line}" for line in words.command_lines(words_, style.width - 2)]
    return [say("do-this"), *found] if found else []


def steps(
    answer: Answer, hidden: bool, command: Sequence[str] | None = None
) -> list[tuple[list[str], str]]:
    """The commands to go on with, each with the code of its remark; ``hidden`` where cards are left out."""
    asked = list(command) if command else words.command(answer.request)
    found: list[tuple[list[str], str]] = []
    pick = words.best(answer)
    if pick is not None and answer.request.runtime == "diffusers":
        found.append(([*_without_cards(asked), "--card", pick.card, "--as", "code"], "do-code"))
        found.append(([*asked, "--save", "plan.yaml"], "do-save"))
    if hidden or pick is None:
        found.append(([*asked, "--all"], "do-all"))
    return found


def _without_cards(command: list[str]) -> list[str]:
    found, skip = [], False
    for word in command:
        if not skip and word != "--card" and not word.startswith("--card="):
            found.append(word)
        skip = word == "--card" and not skip
    return found
