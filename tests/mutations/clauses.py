"""The clauses of the rules and of the push, and how each is taken out.

(clause, file, the text that states it, what stands there instead). In the latter OLD is the text itself and MUT holds while this
clause is the one that is out."""

GRANTS, BINDINGS, SERVICES, SENT = (f"src/compose/{name}.rs" for name in ("grants", "bindings", "services", "sent"))
MANIFEST, MINT, GENERATION = "src/compose/manifest.rs", "src/provision/mint.rs", "src/provision/generation.rs"
BEHIND, KNOWN, ROUND, RUN, SETTLE, PUSH = (f"src/push/{name}.rs" for name in ("behind", "known", "round", "run", "settle", "mod"))

def without(new): return "(if MUT { " + new + " } else { OLD })"

def skipped(): return "if !MUT { OLD }"

NEVER, ALWAYS = "(!MUT && (OLD))", "(MUT || (OLD))"
CLAUSES = [
    ("1a: the newest generation", GRANTS, "provision.newest()", without("provision.generations().next().unwrap_or_else(|| provision.newest())")),
    ("1a: whose consumer consumes it", GRANTS, "Some(consumption) => Some(consumption.wants.clone()),", "Some(_) if MUT => None,\n            OLD"),
    ("1a: and is assigned", GRANTS, "world.mesh.consumption(provider, consumer)",
     without("world.mesh.services.get(consumer).and_then(|service| service.consumes.get(provider))")),
    ("1a: or that was issued by hand", GRANTS, "None if provision.by_hand =>", "None if !MUT && provision.by_hand =>"),
    ("1a: the newest only if it is live", GRANTS, "newest.state != State::Live", NEVER),
    ("1b: every generation in use", GRANTS, "for (generation, wants) in accounts {", "for (generation, wants) in accounts.iter().filter(|_| !MUT) {"),
    ("1b: with what was wanted of it", GRANTS, "generation: *generation,\n                    wants: Wants::clone(wants),",
     "generation: *generation,\n                    wants: match world.mesh.consumption(provider, consumer) { Some(c) if MUT => c.wants.clone(), _ => Wants::clone(wants) },"),
    ("1b: live ones only", GRANTS, "provision.is_live(*generation)", ALWAYS),

    ("2: the newest generation first", BINDINGS, "let acknowledged = std::iter::once(declared.clone())",
     "let used: Vec<Grant> = used.collect();\n        let older = MUT && !used.is_empty();\n        OLD.filter(|_| !older)"),
    ("2: else the newest of those in use", BINDINGS, "let used = used.map(", "let used = used.filter(|_| !MUT).map("),
    ("2: live ones only", BINDINGS, "provision.is_live(grant.generation)", ALWAYS),
    ("2: acknowledged at all", BINDINGS, "admits.contains(grant)", ALWAYS),
    ("2: by every machine of the provider", BINDINGS, "_ => return false,", "_ if MUT => {}\n            OLD"),
    ("2: by one machine at least", BINDINGS, "admitting > 0", ALWAYS),
    ("2: or on the list that the same bundle loads first", BINDINGS, "machine == node", NEVER),
    ("2: a provider taken away acknowledges nothing", BINDINGS, "!is_taken_away(world, service)", ALWAYS),
    ("2: a further machine does not count against one already bound", BINDINGS, "None if bound_before =>", "None if !MUT && bound_before =>"),
    ("2: but against a new one", BINDINGS, ".is_some_and(|held| held.bindings.contains_key(provider))", ".is_none_or(|held| MUT || held.bindings.contains_key(provider)) && (MUT || world.machine(node).holds(&consumer.name).is_some())"),
    ("2: unless wait = false", BINDINGS, "!consumption.wait", NEVER),
    ("2: wait = false only", BINDINGS, "!consumption.wait", ALWAYS),
    ("2: and then only a live one", BINDINGS, "newest.state == State::Live", ALWAYS),
    ("2: acknowledged, on an unsettled attempt's list too", SENT, "&& attempted.contains(grant),", "&& (MUT || attempted.contains(grant)),"),
    ("2: an attempt without the provider admits nobody", SENT, "held.map(|_| Admitted::Nothing)", without("held.map(Admitted::List)")),
    ("2: a provider's first list, attempted only, admits nobody", SENT, "_ => Admitted::Nothing,", "(None, Some(attempted)) if MUT => Admitted::List(attempted),\n                OLD"),
    ("2: the list that stayed at a roll-back is acknowledged", SENT, ".get(provider)\n            .or_else(|| self.manifest", ".get(provider).filter(|_| !MUT)\n            .or_else(|| self.manifest"),
    ("2: what waits stays as last acknowledged", SERVICES, "for service in todo {", "for service in todo.into_iter().filter(|_| !MUT) {"),
    ("2: what waits holds up nothing else", SERVICES, "if !missing.is_empty() {", "if !missing.is_empty() && !MUT {"),

    ("in use: what last sent binds to", SENT, "self.services().chain(attempted)", "self.services().filter(|_| !MUT).chain(attempted)"),
    ("in use: what an attempt binds to", SENT, ".chain(attempted)", ".chain(attempted.filter(|_| !MUT))"),

    ("3: a service in use stays", SERVICES, "world.uses.is_kept(name, node, assigned)", NEVER),
    ("3: in use by whoever waits", SENT, "self.binders(provider, node).any(|(_, waits)| *waits)", NEVER),
    ("3: in use by who does not wait, and stays", SENT, "if assigned(machine, service) {", "if !MUT && assigned(machine, service) {"),
    ("3: not in use by a circle that leaves", SENT, "let mut seen = BTreeSet::new();", "if MUT { return self.is_machine_in_use(provider, node); }\n        OLD"),
    ("3: leaves when it is not in use", SERVICES, "world.uses.is_kept(name, node, assigned)", ALWAYS),

    ("4: the removal is awaited", SERVICES, "!old.is_empty()", NEVER),
    ("4: also where the service is only attempted", SENT, "                uses.holders\n", "                if !MUT || machine.holds(consumer).is_some() { uses.holders\n"),
    ("4: start-first does not await it", SERVICES, "service.moves == Move::StartFirst || somebody_binds", without("somebody_binds")),
    ("4: one that somebody binds to does not await it", SERVICES, "service.moves == Move::StartFirst || somebody_binds", without("service.moves == Move::StartFirst")),
    ("4: only one that is new there awaits", SERVICES, "!new_here ||", "(!MUT && !new_here) ||"),
    ("4: start-first stays until the new one has it", SERVICES, "starts_first || ", "!MUT && starts_first || "),
    ("4: a service that is forgotten is not awaited", SENT, "(!self.forgotten.contains(service))", ALWAYS),
    ("4: nor counted as attempted", SENT, ".filter(|(name, _)| !self.forgotten.contains(*name));", ".filter(|(name, _)| MUT || !self.forgotten.contains(*name));"),
    ("4: start-first ends where rule 5 takes it away", SERVICES, "&& !is_taken_away(world, service)", "&& (MUT || !is_taken_away(world, service))"),

    ("5: a revoked service is composed away", SERVICES, "    if is_taken_away(world, service) {\n        outline", "    if !MUT && is_taken_away(world, service) {\n        outline"),
    ("5: one in use stays", SERVICES, "if world.uses.is_machine_in_use(name, node)", "if !MUT && world.uses.is_machine_in_use(name, node)"),
    ("5: by its newest generation", GENERATION, "self.newest.state == State::Revoked", without("self.generations().any(|c| c.state == State::Revoked)")),
    ("2, 3, 5: the list of what waits or stays is current", SERVICES, "held.grants.as_ref().map(|_| grants::list(world, name))", without("held.grants.clone()")),

    ("apply: providers first", MANIFEST, "order.push(left.remove(next).0);", "let next = if MUT { 0 } else { next };\n            OLD"),
    ("apply: in a circle, who does not wait first", MANIFEST, "position(|(_, service)| !awaits(service, false))", "position(|(_, service)| !MUT && !awaits(service, false))"),

    ("mint: for the targets", MINT, "here(consumer) || mesh", "!MUT && here(consumer) || mesh"),
    ("mint: for the consumers of the targets' services", MINT, "mesh.services.get(&id.provider).is_some_and(here)", NEVER),
    ("mint: stored before anything is sent", ROUND, "self.commit(changes)?;\n        self.minted", "if !MUT { self.commit(changes)?; }\n        self.minted"),
    ("attempts are recorded", ROUND, "self.commit(changes)?;\n        Ok(parcels)", "if !MUT { self.commit(changes)?; }\n        Ok(parcels)"),

    ("behind: in need of a mint", BEHIND, "!missing.is_empty()", NEVER),
    ("behind: never sent", BEHIND, "if !all_waits {", "if !MUT && !all_waits {"),
    ("behind: unless all of it waits", BEHIND, "!all_waits {", "(MUT || !all_waits) {"),
    ("behind: composes differently", BEHIND, "digest == sent.manifest.digest()", ALWAYS),
    ("behind: until a list that stayed is in a release", BEHIND, "sent.lists.is_empty()", ALWAYS),

    ("settle: every uncertain machine is asked", PUSH, "run.settle(couriers)?;", skipped()),
    ("settle: with its token", SETTLE, "machine.token = holding.token;", skipped()),
    ("settle: the answer becomes last sent", SETTLE, "settle(self.machine(node), holding, address);", "if MUT { let machine = self.machine(node); machine.attempt = None; machine.token = holding.token.clone(); } else { OLD }"),
    ("settle: with the lists that stayed", SETTLE, "lists: holding.lists,", "lists: if MUT { Default::default() } else { holding.lists },"),
    ("settle: not one on hold", SETTLE, "!self.is_on_hold(node)", ALWAYS),
    ("settle: who cannot be asked has failed", SETTLE, "return self.fail(node, Problem::Unsettled(failure));", "if MUT { return; }\n                OLD"),

    ("record: an acknowledgement becomes last sent", ROUND, "acknowledge(machine, parcel);", "if MUT { machine.attempt = None; machine.token = Some(parcel.token); } else { OLD }"),
    ("record: what was not received settles the attempt", ROUND, "Outcome::NotReached(failure) => {\n                machine.attempt = None;", "Outcome::NotReached(failure) => {\n                if !MUT { machine.attempt = None; }"),
    ("record: uncertain stays uncertain", ROUND, "Outcome::Uncertain(failure) => Some(Problem::Uncertain(failure)),", "Outcome::Uncertain(failure) => { if MUT { machine.attempt = None; } Some(Problem::Uncertain(failure)) }"),
    ("record: a roll-back keeps the newer lists", ROUND, "for provider in lists {", "for provider in lists.iter().filter(|_| !MUT) {"),
    ("record: a roll-back takes the token", ROUND, "machine.token = Some(parcel.token);\n    machine.attempt", "if !MUT { machine.token = Some(parcel.token); }\n    machine.attempt"),
    ("record: what was rolled back is noted", ROUND, "machine.rolled_back = Some(parcel.bundle.digest);", skipped()),
    ("record: an emptied machine is sent all of it again", ROUND, "*machine = Machine::unknown();", "if !MUT { OLD }"),

    ("behind: looked at anew once something changed", KNOWN, "self.survey = None;", skipped()),

    ("flush: whoever is behind, named or not", PUSH, "targets = run.behind_now();\n        if targets.is_empty()", "targets = run.behind_now();\n        if MUT { targets.retain(|node| run.is_named(node)); }\n        if targets.is_empty()"),
    ("flush: not one on hold", RUN, "!self.is_on_hold(node) && (is_narrow", "(MUT || !self.is_on_hold(node)) && (is_narrow"),
    ("flush: not one that failed in this push", RUN, "!self.failed.contains_key(", "(MUT) | !self.failed.contains_key("),
    ("flush: not what was rolled back, unless it is named", RUN, "(is_asked_for || !standing.is_rolled_back)", ALWAYS),
    ("flush: what was rolled back, if it is named", RUN, "(is_asked_for || !standing.is_rolled_back)", without("!standing.is_rolled_back")),
    ("rounds: two for each link", RUN, ".saturating_mul(2)", ".saturating_mul(if MUT { 1 } else { 2 })"),
    ("contact: named machines that were not sent to", ROUND, "let Named::Nodes(named) = &self.orders.named else {", "if MUT { return Ok(()); }\n        OLD"),
    ("prune: not the generations in use", RUN, "in_use.contains(&generation)", NEVER),
]
