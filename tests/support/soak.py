"""`make soak`: for each seed an adventure, and an encounter with an adversary between us and the servers; for every
fiftieth a month of the daemon. On all cores.

Each bad seed is told at once; 1 if there is any.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from multiprocessing import Pool

from tests.support.adventures import adventure
from tests.support.between.pictures import encounter
from tests.support.between.switches import switched
from tests.support.between.watches import watched
from tests.support.months.tally import Tally

TELL_EVERY_S = 10.0
#: Measured: a process that has played 300 switches holds 650 MiB.
SEEDS_A_PROCESS = 100
#: A month of the daemon has thirty virtual days, and takes as long as a hundred adventures.
DAYS, SEEDS_A_MONTH = 30, 50


def laws_broken(seed: int) -> tuple[int, list[str]]:
    """An error of the product's is as bad as a broken law."""
    try:
        return seed, adventure(seed).broken
    except Exception:
        return seed, [traceback.format_exc(limit=-4)]


def encounter_wrong(seed: int) -> tuple[int, list[str]]:
    """A list, pictures and a switch through an adversary: what is old unsaid, unlawful, or ended by an error."""
    try:
        return seed, watched(seed).wrong + encounter(seed).wrong + switched(seed).wrong
    except Exception:
        return seed, [traceback.format_exc(limit=-4)]


def month_of(seed: int) -> Tally:
    """A month of the daemon's life: outages, crashes, people and files, judged by the table of who wins."""
    tally = Tally()
    tally.play(seed, DAYS)
    return tally


CHECKS = {"adventures": laws_broken, "encounters": encounter_wrong}


def again(seed: int) -> str:
    return f"make soak SEEDS=1 FIRST={seed}"


def told(seed: int, broken: list[str]) -> str:
    return "\n".join([f"seed {seed}: {again(seed)}", *(f"  {law}" for law in broken)])


def soak(first: int, seeds: int) -> int:
    return max([*(_all_of(name, first, seeds) for name in CHECKS), months(first, -(-seeds // SEEDS_A_MONTH))])


def months(first: int, many: int) -> int:
    """Play months, print what they have really executed, and return 1 if one is bad or they did too little."""
    began_s, all_of_them = time.monotonic(), Tally()
    with Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        for tally in pool.imap_unordered(month_of, range(first, first + many)):
            for seed, broken in tally.bad.items():
                print(told(seed, broken), flush=True)
            all_of_them.add(tally)
    print(f"{many} months from seed {first} in {time.monotonic() - began_s:.0f} s: {len(all_of_them.bad)} bad")
    print(f"executed: {all_of_them}")
    missing = all_of_them.missing()
    for floor in missing:
        print(f"too little to show anything: {floor}")
    return 1 if all_of_them.bad or missing else 0


def _all_of(name: str, first: int, seeds: int) -> int:
    began_s = told_s = time.monotonic()
    bad = 0
    with Pool(os.cpu_count(), maxtasksperchild=SEEDS_A_PROCESS) as pool:
        for done, (seed, broken) in enumerate(pool.imap_unordered(CHECKS[name], range(first, first + seeds)), start=1):
            if broken:
                bad += 1
                print(told(seed, broken), flush=True)
            if time.monotonic() - told_s > TELL_EVERY_S:
                told_s = time.monotonic()
                print(f"{done} of {seeds} {name}, {bad} bad", flush=True)
    print(f"{seeds} {name} from seed {first} in {time.monotonic() - began_s:.0f} s: {bad} bad")
    return 1 if bad else 0


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.support.soak", description=__doc__)
    words.add_argument("--first", type=int, default=1)
    words.add_argument("--seeds", type=int, default=1000)
    given = words.parse_args()
    return soak(given.first, given.seeds)


if __name__ == "__main__":
    sys.exit(main())
