#!/usr/bin/env python3
"""The oracle: an executable model of the rules that was written, and run, apart from them. tests/oracle/driver.py has it tell
its states. It differs from the model as it was first written in three clauses:
  rule 4 also awaits the removal from a machine that holds the service only in an attempt that is not settled;
  a service stays for `start-first` also while an attempt that is not settled may have taken it from the new machine;
  a service that rule 5 takes away does not stay on its old machine for `start-first`: it will not start on the new one.
What follows is the model's own description; its counts are those of the first version.

A small executable model of DESIGN.md sections 3 and 4: the rules, the push loop, random histories and faults.

    rules_model.py [SEEDS] [FIRST]      runs SEEDS random histories (default 2000) from seed FIRST on
    rules_model.py --trace SEED         prints one history

It models generations, grant lists, bindings, waiting, leaving, moving, revoking, holds, uncertain machines and
roll-back; it leaves out files, eras, fences, waves, `forget` and `wait = false`, and bounds the rounds loosely. After every event it checks that no generation in use is refused,
and after every push that reported success that nothing is behind or waiting and that each provider admits just what rule 1
says. 220,000 histories passed (seeds 200000 to 310000 and 400000 to 510000). Taking one clause out of a rule makes histories
fail, of 6,000: rule 1 without generations in use 1,089; rule 2 without acknowledgement 2,617, with any live generation 41, with a
provider that rule 5 takes away 10; rule 3 at once 725, blind to attempts 2; rule 4 stopping a provider in use 149; rule 5 stopping
one 137; a waiting service's list frozen 21; an uncertain machine overwritten 3. Rule 2 blind to attempts: 3 of 110,000. Two clauses
no history here can miss (the further machine, the list kept at roll-back): they are about progress, which it does not measure.
"""
import random, sys
from collections import Counter

LIVE, REVOKED, CUT = "live", "revoked", "cut"

class Mesh:
    def __init__(self, rng, trace=False):
        self.rng, self.trace = rng, trace
        self.nodes = [f"m{i}" for i in range(rng.randint(2, 5))]
        self.services = {}          # name -> dict(nodes, provides, consumes, move, ver)
        self.hold = set()
        self.prov = {}              # (provider, consumer) -> dict(gens=[state...], hand=bool)
        self.last = {m: {} for m in self.nodes}       # machine -> service -> content (as last acknowledged)
        self.sent = {m: False for m in self.nodes}    # ever acknowledged
        self.attempt = {m: None for m in self.nodes}  # unsettled bundle
        self.acked = {m: {} for m in self.nodes}      # machine -> provider -> frozenset of (consumer, gen), by receipt
        self.rolled = {m: None for m in self.nodes}   # bundle that was rolled back there
        self.gone = set()                             # (machine, service): `forget --service`
        # what the machines really have
        self.files = {m: {} for m in self.nodes}
        self.loaded = {m: {} for m in self.nodes}
        self.down = set()
        self.seen = Counter()

    def log(self, *a):
        if self.trace: print(*a)

    # -- derived ------------------------------------------------------------------------------------------------
    def bundles(self):
        """Every bundle that counts for "in use": last sent and unsettled attempts, with the machine."""
        for m in self.nodes:
            yield m, self.last[m]
            if self.attempt[m] is not None: yield m, self.attempt[m]

    def gens_in_use(self, p, c):
        return {b["bind"][p][0] for _, bundle in self.bundles() for s, b in bundle.items() if s == c and p in b["bind"]}

    def machine_in_use(self, p, m):
        return any(p in b["bind"] and m in b["bind"][p][1] for _, bundle in self.bundles() for b in bundle.values())

    def consumes(self, c, p):
        s = self.services.get(c)
        return bool(s and s["nodes"] and p in s["consumes"])

    def grants(self, p):                                                      # rule 1
        out = set()
        for (q, c), v in self.prov.items():
            if q != p: continue
            n = len(v["gens"])
            if v["gens"][n - 1] == LIVE and (self.consumes(c, p) or (v["hand"] and not self.consumes(c, p))): out.add((c, n))
            for g in self.gens_in_use(p, c):
                if v["gens"][g - 1] == LIVE: out.add((c, g))
        return frozenset(out)

    def admits(self, m, p):
        """What machine m admits on p for certain: its last acknowledged list, and the list of an unsettled attempt too.
        None: it never had one."""
        a = self.attempt[m]
        if a is None: return self.acked[m].get(p)
        if p not in a: return frozenset() if p in self.acked[m] else None
        return self.acked[m].get(p, frozenset()) & (a[p]["grants"] or frozenset())

    def binding(self, p, c, m, here):                                         # rule 2
        """The newest generation, else one in use; acknowledged by every machine of the provider, or on the list that this
        very bundle loads first."""
        v = self.prov.get((p, c))
        s = self.services.get(p)
        if v is None or s is None or not s["nodes"] or any(self.revoked(q, p) for q in s["consumes"]): return None
        bound = c in self.last[m] and p in self.last[m][c]["bind"]
        for g in sorted({len(v["gens"])} | self.gens_in_use(p, c), reverse=True):
            if v["gens"][g - 1] != LIVE: continue
            ok = True
            counted = 0
            for pm in s["nodes"]:
                if pm == m:
                    if p in here and (c, g) in (here[p]["grants"] or ()): counted += 1; continue
                    ok = False; break
                known = self.admits(pm, p)
                if known is None and bound: continue                          # a further machine that never had a list
                if known and (c, g) in known: counted += 1
                else: ok = False; break
            if ok and counted: return (g, frozenset(s["nodes"]))
        return None

    def revoked(self, p, c):
        v = self.prov.get((p, c))
        return bool(v and v["gens"][-1] == REVOKED)

    def needs_mint(self, m):
        return [(p, c) for c, s in self.services.items() if m in s["nodes"] for p in s["consumes"]
                if (p, c) not in self.prov and p in self.services]

    def compose(self, m):
        """-> (bundle, waits): waits maps a service to whom it waits for."""
        bundle, waits = {}, {}
        order = sorted((s for s, d in self.services.items() if m in d["nodes"]), key=lambda s: (len(self.services[s]["consumes"]) > 0, s))
        todo, progress = list(order), True
        def carried(s):
            if s in self.last[m]:
                b = dict(self.last[m][s]); b["grants"] = self.grants(s) if b["grants"] is not None else None
                bundle[s] = b
        # providers on this machine count for consumers on it: settle in dependency order until nothing changes
        while progress:
            progress = False
            for s in list(todo):
                d = self.services[s]
                if any(self.revoked(p, s) for p in d["consumes"]):            # rule 5
                    todo.remove(s); progress = True; self.seen["revoked"] += 1
                    if self.machine_in_use(s, m): carried(s)
                    continue
                if s not in self.last[m] and d["move"] != "start-first" and not any(self.machine_in_use(s, o) for o in self.nodes):
                    old = [o for o in self.nodes if o not in d["nodes"] and (o, s) not in self.gone   # rule 4
                           and (s in self.last[o] or self.attempt[o] is not None and s in self.attempt[o])]
                    if old and set(old): waits[s] = ("removal", tuple(old)); continue
                binds = {p: self.binding(p, s, m, bundle) for p in d["consumes"]}
                missing = [p for p, b in binds.items() if b is None]
                if missing: waits[s] = ("grant", tuple(missing)); continue
                waits.pop(s, None)
                bundle[s] = dict(ver=d["ver"], bind=binds, grants=self.grants(s) if d["provides"] else None)
                todo.remove(s); progress = True
        for s in todo: carried(s)
        for s in self.last[m]:                                                # rule 3
            if s in self.services and m in self.services[s]["nodes"]: continue
            d = self.services.get(s)
            stays = self.machine_in_use(s, m)
            taken_away = d and any(self.revoked(p, s) for p in d["consumes"])
            if d and d["nodes"] and not taken_away and d["move"] == "start-first" and not all(s in self.last[n] and (self.attempt[n] is None or s in self.attempt[n]) for n in d["nodes"]): stays = True
            if stays: carried(s); self.seen["leaving stays"] += 1
        return bundle, waits

    def behind(self, m):
        if self.attempt[m] is not None or self.needs_mint(m): return True
        b, waits = self.compose(m)
        if not self.sent[m]: return bool(b) or not waits
        return b != self.last[m]

    # -- the machine -----------------------------------------------------------------------------------------------
    def apply(self, m, bundle):
        self.files[m] = bundle
        self.loaded[m] = {p: b["grants"] for p, b in bundle.items() if b["grants"] is not None}
        self.check("after apply on " + m)

    def check(self, when):
        for m in self.nodes:
            for c, b in self.files[m].items():
                for p, (g, where) in b["bind"].items():
                    if self.prov[(p, c)]["gens"][g - 1] != LIVE: continue
                    # at least the machines that were there when it was bound and still carry the provider must admit it
                    admits = [(c, g) in self.loaded[w].get(p, ()) for w in where if p in self.loaded[w]]
                    if not admits or not all(admits):
                        raise AssertionError(f"{when}: {c} on {m} holds generation {g} of {p} at {sorted(where)}, which is refused")

    # -- the push ---------------------------------------------------------------------------------------------------
    def send(self, m, bundle, waits, faults):
        f = "down" if m in self.down else (self.rng.choice(["lost", "rollback", "killed"]) if faults and self.rng.random() < .2 else "ok")
        self.seen["send " + f] += 1
        self.log("   send", m, f, {s: (sorted(b["grants"]) if b["grants"] is not None else "", {p: v[0] for p, v in b["bind"].items()}) for s, b in bundle.items()}, "waits", waits)
        if f == "down": self.attempt[m] = None; return False
        if f == "killed": return False                                        # attempt recorded, nothing arrived
        if f == "lost": self.apply(m, bundle); return False                    # applied, receipt lost
        if f == "rollback":
            # loaded lists stay and are acknowledged apart, everything else goes back
            old = {s: dict(b) for s, b in self.files[m].items()}
            for s in list(old):
                if s in bundle and old[s]["grants"] is not None and bundle[s]["grants"] is not None: old[s]["grants"] = bundle[s]["grants"]
            self.files[m] = old
            self.loaded[m] = {p: b["grants"] for p, b in old.items() if b["grants"] is not None}
            for p, g in self.loaded[m].items(): self.acked[m][p] = g
            self.last[m] = old; self.attempt[m] = None
            self.rolled[m] = bundle
            self.check("after roll-back on " + m); return False
        self.apply(m, bundle)
        self.record(m, bundle)
        return True

    def record(self, m, bundle):
        self.last[m] = bundle; self.attempt[m] = None; self.sent[m] = True; self.rolled[m] = None
        self.acked[m] = {p: b["grants"] for p, b in bundle.items() if b["grants"] is not None}

    def mint(self, targets):
        for m in targets:
            here = {s for s, d in self.services.items() if m in d["nodes"]}
            for c, d in self.services.items():
                if not d["nodes"]: continue
                for p in d["consumes"]:
                    if p in self.services and (c in here or p in here) and (p, c) not in self.prov:
                        self.prov[(p, c)] = dict(gens=[LIVE], hand=False)

    def push(self, named, faults):
        failed = set()
        for m in self.nodes:                                                  # settle
            if self.attempt[m] is not None and m in self.down: failed.add(m); self.seen["uncertain, not to be asked"] += 1
            elif self.attempt[m] is not None:
                held = self.files[m]
                self.last[m] = held; self.attempt[m] = None; self.sent[m] = self.sent[m] or bool(held)
                self.acked[m] = dict(self.loaded[m])
        targets = [m for m in (named or self.nodes) if m not in self.hold and m not in failed]
        bound, back = 4 + 2 * (1 + len(self.services)), set()
        for rnd in range(bound + 1):
            self.log("  round", rnd, targets)
            self.mint(targets)
            work = []
            for m in targets:                                                 # compose all, then record the attempts, then send
                b, w = self.compose(m)
                if self.sent[m] and self.attempt[m] is None and b == self.last[m]: continue
                if not b and w and not self.sent[m]: continue
                work.append((m, b, w))
            for m, b, w in work: self.attempt[m] = b
            self.rng.shuffle(work)
            for m, b, w in work:
                if not self.send(m, b, w, faults): failed.add(m)
            back = {m for m in self.nodes if m not in (named or self.nodes) and self.rolled[m] is not None and self.rolled[m] == self.compose(m)[0]}
            targets = [m for m in self.nodes if m not in self.hold and m not in failed and m not in back and self.behind(m)]
            if not targets: break
        else:
            raise AssertionError(f"rounds ran out: {targets}")
        self.seen[f"rounds {rnd}"] += 1
        waiting = {m: self.compose(m)[1] for m in self.nodes if self.compose(m)[1]}
        ok = not failed and not waiting and not back and not any(m in self.hold for m in (named or []))
        if ok:
            for m in self.nodes:
                if m in self.hold: continue
                if self.behind(m): raise AssertionError(f"success, but {m} is behind")
                for p, g in self.loaded[m].items():
                    if g != self.grants(p): raise AssertionError(f"success, but {p} on {m} admits {sorted(g)} instead of {sorted(self.grants(p))}")
        self.log("  ->", "ok" if ok else ("failed", failed, "waiting", waiting))
        return ok, failed, waiting

def history(seed, trace=False):
    rng = random.Random(seed); w = Mesh(rng, trace)
    names = [f"s{i}" for i in range(rng.randint(2, 6))]
    for i, s in enumerate(names):                    # service-level circles of provider-consumers are refused by the check: keep an order
        w.services[s] = dict(nodes=[rng.choice(w.nodes)], provides=True if i < len(names) - 1 else False, consumes=[], move=rng.choice(["stop-first", "start-first"]), ver=0)
        w.services[s]["consumes"] = rng.sample(names[:i], rng.randint(0, min(2, i)))
        if rng.random() < .15 and len(w.nodes) > 1: w.services[s]["nodes"] = rng.sample(w.nodes, 2)
        if rng.random() < .1: w.services[s]["nodes"] = []
    for step in range(rng.randint(5, 25)):
        op = rng.choice(["push", "push", "push", "behind", "assign", "unassign", "rotate", "rotate", "revoke", "issue", "hold", "unhold", "down", "up", "edit", "cut"])
        s = rng.choice(names); d = w.services[s]; w.seen[op] += 1
        w.log(step, op, s)
        if op == "assign": d["nodes"] = [rng.choice(w.nodes)] if rng.random() < .8 else rng.sample(w.nodes, min(2, len(w.nodes)))
        elif op == "unassign": d["nodes"] = []
        elif op in ("rotate", "cut", "revoke", "issue"):
            keys = [k for k in w.prov if k[1] == s]
            if op == "issue" and d["consumes"] and not keys: w.prov[(rng.choice(d["consumes"]), s)] = dict(gens=[LIVE], hand=True); continue
            if not keys: continue
            v = w.prov[rng.choice(keys)]
            if op == "rotate" and v["gens"][-1] == LIVE: v["gens"].append(LIVE)
            elif op == "cut" and v["gens"][-1] == LIVE: v["gens"] = [CUT] * len(v["gens"]) + [LIVE]
            elif op == "revoke": v["gens"] = [REVOKED] * len(v["gens"])
            elif op == "issue" and v["gens"][-1] == REVOKED: v["gens"].append(LIVE)
        elif op == "hold": w.hold.add(rng.choice(w.nodes))
        elif op == "unhold": w.hold.clear()
        elif op == "down": w.down.add(rng.choice(w.nodes))
        elif op == "up": w.down.clear()
        elif op == "edit": d["ver"] += 1
        elif op == "push": w.push([rng.choice(w.nodes)], faults=rng.random() < .5)
        elif op == "behind": w.push(None, faults=rng.random() < .5)
    # all repaired: one push must end consistent, unless a consumed provider is on no machine or a consumption is revoked away
    w.down.clear(); w.hold.clear()
    ok, failed, waiting = w.push(None, faults=False)
    def startable(c, seen=()):
        return c not in seen and all(w.services[p]["nodes"] and not any(w.revoked(q, p) for q in w.services[p]["consumes"]) and startable(p, seen + (c,)) for p in w.services[c]["consumes"])
    for m, ws in waiting.items():
        for c, why in ws.items():
            if startable(c): raise AssertionError(f"after repair {c} on {m} still waits {why}")
    if failed: raise AssertionError(f"after repair {failed} failed")
    w.seen["end ok" if ok else "end waits (unassigned or revoked provider)"] += 1
    return w.seen

if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--trace":
        try: history(int(sys.argv[2]), True)
        except AssertionError as e: print("BROKEN:", e)
        sys.exit()
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 2000; first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    total, broken = Counter(), []
    for seed in range(first, first + n):
        try: total += history(seed)
        except AssertionError as e: broken.append((seed, str(e)))
    for k, v in sorted(total.items()): print(f"{v:8} {k}")
    kinds = Counter(" ".join(w for w in b.split() if not any(ch.isdigit() for ch in w)) for _, b in broken)
    for s, b in broken[:8]: print("BROKEN seed", s, b)
    for k, v in kinds.most_common(8): print(v, k)
    print(f"{n - len(broken)} passed, {len(broken)} failed")
