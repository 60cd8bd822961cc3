"""Shots over the machines of a farm: which may run where, in which settings, and when each is done.

In: shots, machines, and how a request is asked for (`ask`: the loading half of `cardfit.plan`). Out: an `Assignment`
(schema ``cardfit.assign/1``). A shot goes only where the verdict is `fits`, or `tight` where that is allowed; every
distinct request is planned once. Left out: what the disk of a machine holds of several models at once, copying files
between machines, and runs of one shot on several cards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cardfit.errors import Note
from cardfit.fleet.farm import Kind, Machine
from cardfit.fleet.options import Options, options_on
from cardfit.fleet.rented import Wanted, rented_for
from cardfit.fleet.result import (
    Assignment,
    Option,
    Place,
    Planned,
    Rented,
    Requirement,
    ShotRow,
    SlotRow,
    Stretch,
)
from cardfit.fleet.schedule import Floor, Placed, Schedule, Slot, Task, Work, late_s, schedule
from cardfit.fleet.shots import Shot, ShotsFile
from cardfit.fleet.times import time_text
from cardfit.messages.said import Said
from cardfit.plan.again import flags
from cardfit.plan.answer import CardRow, Money, Seconds
from cardfit.plan.bill import ASSUMED_BYTES_PER_S
from cardfit.plan.offers import money_text
from cardfit.plan.target import short_name
from cardfit.request import Request, Settings
from cardfit.units import human_rate

Ask = Callable[..., Options]
_HOUR = 3600
_NAMED = 6  # machines or shots that a sentence names


@dataclass(frozen=True, slots=True)
class Rules:
    """What an assignment may do: ``tight`` verdicts, settings that cost the picture something."""

    allow_tight: bool = False
    lossless: bool = False


@dataclass(slots=True)
class _Work:
    """What is known while the answer is put together."""

    asked: ShotsFile
    machines: Sequence[Machine]
    start: datetime
    rules: Rules
    kinds: list[Kind] = field(default_factory=list)
    slots: list[tuple[int, int, int]] = field(default_factory=list)  # machine, card of it, kind
    number: dict[str, int] = field(default_factory=dict)  # id of a shot -> its request
    options: list[Options] = field(default_factory=list)
    settings: list[Settings] = field(default_factory=list)
    planned: list[Planned] = field(default_factory=list)


def make_assignment(
    asked: ShotsFile,
    machines: Sequence[Machine],
    rentable: Sequence[Kind],
    ask: Ask,
    *,
    start: datetime,
    rules: Rules = Rules(),
    versions: Mapping[str, str],
) -> Assignment:
    """The assignment. ``rentable`` are cards with hourly offers, for what the farm cannot do in time.

    ``ask(maker, request, settings)`` loads what a plan of the request takes and hands it to the maker. Raises as
    `cardfit.plan` does, with the first shot that asked.
    """
    work = _Work(asked, machines, start, rules)
    _number_kinds(work)
    _plan(work, ask)
    tasks = [_task(work, shot) for shot in asked.shots]
    slots = tuple(_slot(work, *each) for each in work.slots)
    ram = {at: m.ram_bytes for at, m in enumerate(machines) if m.ram_bytes is not None}
    found = schedule(tasks, Floor(slots, ram))
    rows = [_row(work, at, shot, tasks[at], found) for at, shot in enumerate(asked.shots)]
    rented = _rented(work, rows, rentable, ask)
    ends = [row.place.done for row in rows if row.place is not None]
    worst = [row.place.done_at_worst for row in rows if row.place is not None]
    sure = [each for each in worst if each is not None]
    return Assignment(
        versions=dict(versions) | dict(work.options[0].versions),
        start=start,
        done=max(ends, default=None),
        done_at_worst=max(sure) if sure and len(sure) == len(worst) else None,
        shots=tuple(rows),
        planned=tuple(work.planned),
        slots=tuple(_slot_rows(work, found, max(ends, default=start))),
        rented=rented,
        costs=_costs(rows),
        requirements=tuple(each for row in rows for each in _requirements(work, row)),
        said=tuple(_said(rows, rented)),
        notes=tuple(_notes(work, rows, rented, found.short_of_ram)),
    )


def _number_kinds(work: _Work) -> None:
    for at, machine in enumerate(work.machines):
        for card, kind in enumerate(machine.kinds):
            if kind not in work.kinds:
                work.kinds.append(kind)
            work.slots.append((at, card, work.kinds.index(kind)))


def _plan(work: _Work, ask: Ask) -> None:
    """Every distinct request, once."""
    seen: dict[str, int] = {}
    distinct: list[tuple[Request, Settings]] = []
    for shot in work.asked.shots:
        settings = work.asked.settings_of(shot)
        request = shot.request.model_copy(update={"seed": 0})  # a seed changes the picture alone
        key = request.model_dump_json() + settings.model_dump_json()
        if key not in seen:
            seen[key] = len(distinct)
            distinct.append((request, settings))
        work.number[shot.id] = seen[key]
    maker = options_on(work.kinds)
    names = [
        tuple(dict.fromkeys(work.machines[at].name for at, _, own in work.slots if own == kind))
        for kind in range(len(work.kinds))
    ]
    for number, (request, settings) in enumerate(distinct):
        found = ask(maker, request, settings, at=number + 1, count=len(distinct))
        work.options.append(found)
        work.settings.append(settings)
        options = tuple(
            _option(row, names[kind], work.rules) for kind, row in enumerate(found.rows)
        )
        work.planned.append(
            Planned(number=number, request=found.request, settings=settings, options=options)
        )


def allowed(row: CardRow, rules: Rules) -> bool:
    """Whether a shot may run as ``row`` says."""
    holds = row.verdict == "fits" or (row.verdict == "tight" and rules.allow_tight)
    return holds and not (rules.lossless and "lossy" in row.price_of_it)


def _option(row: CardRow, machines: tuple[str, ...], rules: Rules) -> Option:
    may = allowed(row, rules)
    why = row.why
    if not may and row.verdict == "tight" and not rules.allow_tight:
        why = Said.of("assign-tight-refused", why=row.why.text)
    elif not may and row.verdict in ("fits", "tight"):
        why = Said.of("assign-lossy-refused", settings=row.settings_text)
    return Option(
        card=row.card,
        name=row.name,
        machines=machines,
        verdict=row.verdict,
        allowed=may,
        price_of_it=row.price_of_it,
        settings=row.settings,
        settings_text=row.settings_text,
        device_bytes=row.device_bytes,
        usable_bytes=row.usable_bytes,
        host_bytes=row.host_bytes,
        seconds=run_seconds(row),
        load_seconds=row.load_seconds,
        why=why,
        near_miss=row.near_miss,
    )


def run_seconds(row: CardRow) -> Seconds | None:
    """Seconds of one run with its export."""
    one, export = row.seconds, row.export_seconds
    if one is None or export is None:
        return one
    return Seconds(
        low=one.low + export.low, likely=one.likely + export.likely, high=one.high + export.high
    )


def _slot(work: _Work, machine: int, card: int, kind: int) -> Slot:
    target = work.kinds[kind].target
    return Slot(machine, target.card, float(target.memory_bytes or 0), work.machines[machine].spans)


def _task(work: _Work, shot: Shot) -> Task:
    planned = work.planned[work.number[shot.id]]
    works = {}
    for at, (_, _, kind) in enumerate(work.slots):
        option = planned.options[kind]
        if option.allowed and option.seconds is not None:
            works[at] = _work(planned.request.model, option, option.seconds)
    due = work.asked.deadline_of(shot)
    return Task(
        runs=shot.runs,
        works=works,
        priority=shot.priority,
        deadline_s=None if due is None else (due - work.start).total_seconds(),
        group=work.asked.kept(shot),
    )


def _work(model: str, option: Option, each: Seconds) -> Work:
    load = option.load_seconds
    settings = "" if option.settings is None else option.settings.model_dump_json()
    return Work(
        load_s=0.0 if load is None else load.likely,
        each_s=each.likely,
        load_high_s=0.0 if load is None else load.high,
        each_high_s=each.high,
        host_bytes=option.host_bytes or 0,
        weights=f"{model} {settings}",
    )


def _row(work: _Work, at: int, shot: Shot, task: Task, found: Schedule) -> ShotRow:
    placed = found.placed.get(at)
    due = work.asked.deadline_of(shot)
    return ShotRow(
        id=shot.id,
        sequence=shot.sequence,
        planned=work.number[shot.id],
        count=shot.count,
        runs=shot.runs,
        seed=shot.seed,
        priority=shot.priority,
        deadline=due,
        place=None if placed is None else _place(work, shot, task, placed),
        why_not=None if placed is not None else _why_not(work, at, shot, task, found),
    )


def _place(work: _Work, shot: Shot, task: Task, placed: Placed) -> Place:
    machine, card, kind = work.slots[placed.slot]
    option = work.planned[work.number[shot.id]].options[kind]
    assert option.settings is not None
    worst = placed.done_high_s
    busy = sum(each.ends_s - each.begins_s for each in placed.segments)
    price = work.machines[machine].price_per_hour
    return Place(
        machine=work.machines[machine].name,
        slot=card,
        option=kind,
        card=option.card,
        settings=option.settings,
        settings_text=option.settings_text,
        verdict=option.verdict,
        stretches=tuple(
            Stretch(begins=_at(work, e.begins_s), ends=_at(work, e.ends_s), runs=e.runs)
            for e in placed.segments
        ),
        begins=_at(work, placed.segments[0].begins_s),
        done=_at(work, placed.done_s),
        done_at_worst=None if worst is None else _at(work, worst),
        late_seconds=late_s(task, placed.done_s),
        may_be_late=task.deadline_s is not None and (worst is None or late_s(task, worst) > 0),
        cost=None
        if price is None
        else Money(amount=price.amount * busy / _HOUR, currency=price.currency),
    )


def _at(work: _Work, seconds: float) -> datetime:
    return work.start + timedelta(seconds=round(seconds))


def _why_not(work: _Work, at: int, shot: Shot, task: Task, found: Schedule) -> Said:
    options = work.planned[work.number[shot.id]].options
    if task.works:
        if at in found.no_kind:
            return Said.of("assign-no-one-kind", sequence=shot.sequence)
        cards = ", ".join(dict.fromkeys(short_name(o.name) for o in options if o.allowed))
        return Said.of("assign-no-hours", cards=cards)
    untimed = [short_name(each.name) for each in options if each.allowed]
    if untimed:
        return Said.of("assign-no-time", cards=", ".join(dict.fromkeys(untimed)))
    nearest = max(options, key=_nearness)
    why = (
        nearest.why.text
        if nearest.near_miss is None
        else f"{nearest.why.text} {nearest.near_miss.text}"
    )
    return Said.of("assign-nowhere", card=short_name(nearest.name), why=why)


def _nearness(option: Option) -> tuple[bool, int]:
    """What a sentence names: a verdict that was refused, else the card that lacks least."""
    if option.usable_bytes is None or option.device_bytes is None:
        return (False, -(2**62))
    return (option.verdict in ("fits", "tight"), option.usable_bytes - option.device_bytes)


def _slot_rows(work: _Work, found: Schedule, done: datetime) -> list[SlotRow]:
    end_s = (done - work.start).total_seconds()
    rows = []
    for at, (machine, card, kind) in enumerate(work.slots):
        own = [(number, each) for number, each in found.placed.items() if each.slot == at]
        own.sort(key=lambda each: each[1].segments[0].begins_s)
        busy = sum(s.ends_s - s.begins_s for _, each in own for s in each.segments)
        free = sum(max(0.0, min(b, end_s) - a) for a, b in work.machines[machine].spans)
        target = work.kinds[kind].target
        rows.append(
            SlotRow(
                machine=work.machines[machine].name,
                slot=card,
                card=target.card,
                name=target.name,
                shots=tuple(work.asked.shots[number].id for number, _ in own),
                busy_seconds=busy,
                idle_seconds=max(0.0, free - busy),
            )
        )
    return rows


def _costs(rows: Sequence[ShotRow]) -> tuple[Money, ...]:
    sums: dict[str, float] = {}
    for row in rows:
        cost = None if row.place is None else row.place.cost
        if cost is not None:
            sums[cost.currency] = sums.get(cost.currency, 0.0) + cost.amount
    return tuple(Money(amount=amount, currency=name) for name, amount in sorted(sums.items()))


def _requirements(work: _Work, row: ShotRow) -> list[Requirement]:
    """One for each kind of card that a shot may use, with its place where it is there."""
    planned, place = work.planned[row.planned], row.place
    request, found = planned.request, []
    for number, option in enumerate(planned.options):
        if not option.allowed or option.settings is None:
            continue
        here = place if place is not None and place.option == number else None
        found.append(
            Requirement(
                shot=row.id,
                sequence=row.sequence,
                priority=row.priority,
                deadline=row.deadline,
                model=request.model,
                width=request.width,
                height=request.height,
                num_frames=request.num_frames,
                runs=row.runs,
                card=option.card,
                machines=" ".join(option.machines),
                verdict=option.verdict,
                min_vram_bytes=option.device_bytes,
                host_bytes=option.host_bytes,
                settings=" ".join(flags(option.settings)),
                seconds_per_run=None if option.seconds is None else option.seconds.likely,
                load_seconds=None if option.load_seconds is None else option.load_seconds.likely,
                machine=None if here is None else here.machine,
                begins=None if here is None else here.begins,
                done=None if here is None else here.done,
            )
        )
    return found


def _rented(
    work: _Work, rows: Sequence[ShotRow], rentable: Sequence[Kind], ask: Ask
) -> Rented | None:
    """The one card to rent for what has no place or comes late, with the rest of its sequence where that is kept."""
    out = {row.id for row in rows if row.place is None or row.place.late_seconds}
    held = {shot.id: work.asked.kept(shot) for shot in work.asked.shots}
    kept = {held[name] for name in out} - {None}
    short = [row for row in rows if row.id in out or held[row.id] in kept]
    if not short or not rentable:
        return None
    maker, found = options_on(rentable), dict[int, Options]()
    numbers = list(dict.fromkeys(row.planned for row in short))
    for at, number in enumerate(numbers):
        request = Request(
            **work.planned[number].request.model_dump(include=set(Request.model_fields))
        )
        found[number] = ask(maker, request, work.settings[number], at=at + 1, count=len(numbers))
    return rented_for([_wanted(row, found[row.planned], work.rules) for row in short], work.start)


def _wanted(row: ShotRow, options: Options, rules: Rules) -> Wanted:
    rows = {}
    for each in options.rows:
        seconds = run_seconds(each)
        if allowed(each, rules) and seconds is not None:
            rows[each.card] = (each, seconds.likely)
    return Wanted(
        id=row.id,
        runs=row.runs,
        deadline=row.deadline,
        model=options.request.model,
        download=options.download,
        rows=rows,
    )


def _said(rows: Sequence[ShotRow], rented: Rented | None) -> list[Said]:
    """The sum in sentences: what is placed, what comes late, what has no place, what a rented card would do."""
    late = [row.id for row in rows if row.place is not None and row.place.late_seconds]
    nowhere = [row.id for row in rows if row.place is None]
    maybe = [
        row.id
        for row in rows
        if row.place is not None and row.place.may_be_late and row.id not in late
    ]
    placed = len(rows) - len(nowhere)
    said = [Said.of("assign-placed", placed=placed, count=len(rows))]
    if late:
        said.append(Said.of("assign-late", count=len(late), shots=named(late)))
    if maybe:
        said.append(Said.of("assign-may-be-late", count=len(maybe), shots=named(maybe)))
    if nowhere:
        said.append(Said.of("assign-no-place", count=len(nowhere), shots=named(nowhere)))
    if rented is not None:
        args = {
            "shots": named(rented.shots),
            "card": short_name(rented.name),
            "hours": f"{rented.hours:.1f}",
            "provider": rented.offer.provider,
            "cost": money_text(rented.cost.amount, rented.cost.currency),
            "done": time_text(rented.done),
        }
        code = "assign-rent-late" if rented.late else "assign-rent"
        said.append(Said.of(code, **args, late=named(rented.late)))
    elif late or nowhere:
        said.append(Said.of("assign-rent-none"))
    return said


def named(names: Sequence[str]) -> str:
    """A few of ``names``, and how many more."""
    more = f" +{len(names) - _NAMED}" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _notes(
    work: _Work, rows: Sequence[ShotRow], rented: Rented | None, waited: Collection[int]
) -> list[Said]:
    notes = list[Note]()
    for each in work.options:
        notes += [note for note in each.notes if note not in notes]
    for machine in work.machines:
        notes += [note for note in machine.notes if note not in notes]
    silent = [each.name for each in work.machines if each.ram_bytes is None]
    if silent:
        notes.append(Note("assign-ram-unknown", {"machines": named(silent)}))
    short = [each.name for at, each in enumerate(work.machines) if at in waited]
    if short:
        notes.append(Note("assign-ram-shared", {"machines": named(short)}))
    never = [each.name for each in work.machines if not each.spans]
    if never:
        notes.append(Note("assign-never-free", {"machines": named(never)}))
    used = {(row.planned, row.place.option) for row in rows if row.place is not None}
    if any(work.planned[n].options[o].load_seconds is None for n, o in used):
        notes.append(Note("assign-load-unknown"))
    if rented is not None and rented.download_assumed:
        notes.append(Note("assign-download-assumed", {"rate": human_rate(ASSUMED_BYTES_PER_S)}))
    notes.append(Note("assign-heuristic"))
    return [Said.of(note.code, **note.args) for note in notes]
