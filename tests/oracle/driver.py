#!/usr/bin/env python3
"""Runs histories of rules_model.py and prints, at each round and at the end of each push, the state as the rules see it, and what the
model composes of it: one JSON object a line.

    driver.py HISTORIES [FIRST]

Generations are numbers from 1. A content is [version, {provider: [generation, [machines]]}, grants or null]; grants are
[[consumer, generation], ...]. `base` and `lists` are what a receipt tells apart: the release, and the lists that are newer than it."""
import json, sys
import rules_model as model


def content(c):
    grants = None if c["grants"] is None else sorted(map(list, c["grants"]))
    return [c["ver"], {p: [g, sorted(where)] for p, (g, where) in sorted(c["bind"].items())}, grants]


def bundle(b):
    return {s: content(c) for s, c in sorted(b.items())}


class Told(model.Mesh):
    """The model, with the release and the newer lists of each machine kept apart, and told."""

    def __init__(self, rng, trace=False):
        super().__init__(rng, trace)
        # as the machine has them, and as they were acknowledged
        self.has = {m: (None, {}) for m in self.nodes}
        self.base = {m: (None, {}) for m in self.nodes}

    def apply(self, m, b):
        self.has[m] = (b, {})
        super().apply(m, b)

    def record(self, m, b):
        super().record(m, b)
        self.base[m] = (b, {})

    def send(self, m, b, waits, faults):
        before = self.rolled[m]
        self.rolled[m] = None
        done = super().send(m, b, waits, faults)
        if self.rolled[m] is not None:  # rolled back
            release, lists = self.has[m]
            newer = {p: g for p, g in self.loaded[m].items() if release and g != release[p]["grants"]}
            self.has[m] = self.base[m] = (release, newer)
        elif not done:
            self.rolled[m] = before
        return done

    def mint(self, targets):
        for m in self.nodes:  # the first round comes after settling: what was settled is what the machine has
            if self.attempt[m] is None: self.base[m] = self.has[m] if self.last[m] == self.files[m] else self.base[m]
        super().mint(targets)
        self.tell()

    def push(self, named, faults):
        result = super().push(named, faults)
        self.tell()
        return result

    def tell(self):
        if TELL is None: return
        machines = {}
        for m in self.nodes:
            composed, waits = self.compose(m)
            release, lists = self.base[m]
            sent = self.sent[m]
            machines[m] = dict(
                base=bundle(release) if sent and release is not None else None,
                lists={p: sorted(map(list, g)) for p, g in sorted(lists.items())} if sent else {},
                attempt=None if self.attempt[m] is None else bundle(self.attempt[m]),
                hold=m in self.hold,
                composed=bundle(composed),
                waits={s: [kind, sorted(whom)] for s, (kind, whom) in sorted(waits.items())},
                behind=self.behind(m),
            )
            merged = {s: dict(c) for s, c in (release or {}).items()}
            for p, g in lists.items(): merged[p]["grants"] = g
            assert not sent or merged == self.last[m], (merged, self.last[m])
        TELL(json.dumps(dict(
            services={s: dict(nodes=sorted(d["nodes"]), provides=d["provides"], consumes=sorted(d["consumes"]), move=d["move"], ver=d["ver"])
                      for s, d in sorted(self.services.items())},
            provisions=[[p, c, v["hand"], v["gens"]] for (p, c), v in sorted(self.prov.items())],
            gone=sorted(map(list, self.gone)),
            machines=machines,
        )))


TELL = None
model.Mesh = Told

if __name__ == "__main__":
    count = int(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    seen = None
    def tell(line):
        global seen
        if line != seen: print(line)
        seen = line
    TELL = tell
    for seed in range(first, first + count): model.history(seed)
