"""The clauses of the rules and of the push, and how each is taken out.

(clause, file, the text that states it, what stands there instead). In the latter OLD is the text itself and MUT holds while this
clause is the one that is out."""

GRANTS, BINDINGS, SERVICES, SENT, USES, LOCATION, WORLD, GOES_ON = (f"src/compose/{name}.rs" for name in ("grants", "bindings", "services", "sent", "uses", "location", "world", "goes_on"))
ADMITTED = "src/compose/sent/admitted.rs"
MANIFEST, MINT, GENERATION = "src/compose/manifest.rs", "src/provision/mint.rs", "src/provision/generation.rs"
BEHIND, CONTACT, KNOWN, ROUND, RUN, SETTLE, REPORT, PUSH = (f"src/push/{name}.rs" for name in ("behind", "contact", "known", "round", "run", "settle", "report", "mod"))

def without(new): return "(if MUT { " + new + " } else { OLD })"

def skipped(): return "if !MUT { OLD }"

NEVER, ALWAYS = "(!MUT && (OLD))", "(MUT || (OLD))"
CLAUSES = [
    ("1a: the newest generation", GRANTS, "provision.newest()", without("provision.generations().next().unwrap_or_else(|| provision.newest())")),
    ("1a: whose consumer consumes it", GRANTS, "Some(consumption) => Some(consumption.wants.clone()),", "Some(_) if MUT => None,\n            OLD"),
    ("1a: and is assigned", GRANTS, "mesh.consumption(provider, consumer)",
     without("mesh.services.get(consumer).and_then(|service| service.consumes.get(provider))")),
    ("1a: or that was issued by hand", GRANTS, "None if by_hand =>", "None if !MUT && by_hand =>"),
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
    ("2: a provider on no machine is waited for, also by who need not wait", BINDINGS, "service.nodes.is_empty()", NEVER),
    ("2: a machine whose address nobody has asked admits nobody", BINDINGS, "world.is_elsewhere(machine)", NEVER),
    ("2: acknowledged, on an unsettled attempt's list too", ADMITTED, "&& attempted.contains(grant),", "&& (MUT || attempted.contains(grant)),"),
    ("2: an attempt without the provider admits nobody", SENT, "held.map(|_| Admitted::Nothing)", without("held.map(Admitted::List)")),
    ("2: a provider's first list, attempted only, admits nobody", SENT, "_ => Admitted::Nothing,", "(None, Some(attempted)) if MUT => Admitted::List(attempted),\n                OLD"),
    ("2: the list that stayed at a roll-back is acknowledged", SENT, ".get(provider)\n            .or_else(|| self.manifest", ".get(provider).filter(|_| !MUT)\n            .or_else(|| self.manifest"),
    ("2: what waits stays as last acknowledged", SERVICES, "for service in todo {", "for service in todo.into_iter().filter(|_| !MUT) {"),
    ("2: what waits holds up nothing else", SERVICES, "if !missing.is_empty() {", "if !missing.is_empty() && !MUT {"),
    ("2: services are taken until none further can start", SERVICES, "todo.len() == before", ALWAYS),
    ("2: what starts after all does not wait", SERVICES, "outline.waits.remove(name);", skipped()),

    ("in use: what last sent binds to", SENT, "self.services().chain(attempted)", "self.services().filter(|_| !MUT).chain(attempted)"),
    ("in use: what an attempt binds to", SENT, ".chain(attempted)", ".chain(attempted.filter(|_| !MUT))"),
    ("in use: nothing that a service binds to which is said to be gone", SENT, ".filter(|(name, _)| !self.forgotten.contains(*name))\n    }", ".filter(|(name, _)| MUT || !self.forgotten.contains(*name))\n    }"),

    ("3: a service in use stays", SERVICES, "world.uses.is_kept(name, node, assigned)", NEVER),
    ("3: in use by whoever waits", USES, "self.binders(provider, node).any(|(_, waits)| *waits)", NEVER),
    ("3: in use by who does not wait, and stays", USES, "if assigned(machine, service) {", "if !MUT && assigned(machine, service) {"),
    ("3: not in use by a circle that leaves", USES, "let mut seen = BTreeSet::new();", "if MUT { return self.is_machine_in_use(provider, node); }\n        OLD"),
    ("3: leaves when it is not in use", SERVICES, "world.uses.is_kept(name, node, assigned)", ALWAYS),

    ("3: only what the declaration took from the machine", SERVICES, "if !is_assigned(world, name, node)", "if (MUT || !is_assigned(world, name, node))"),

    ("3: one that provides no more closes its accounts first", SERVICES, "|| stops_providing(world, service, node)", "|| (!MUT && stops_providing(world, service, node))"),
    ("4: the removal is awaited", SERVICES, "!old.is_empty()", NEVER),
    ("4: also where the service is only attempted", USES, "uses.holders.entry(consumer).or_default().insert(node);", "if !MUT || machine.holds(consumer).is_some() { OLD }"),
    ("4: start-first does not await it", SERVICES, "service.moves == Move::StartFirst || somebody_binds", without("somebody_binds")),
    ("4: one that somebody binds to does not await it", SERVICES, "service.moves == Move::StartFirst || somebody_binds", without("service.moves == Move::StartFirst")),
    ("4: only one that is new there awaits", SERVICES, "!new_here ||", "(!MUT && !new_here) ||"),
    ("4: from the machines that it leaves only", SERVICES, "!service.nodes.contains(*other)", ALWAYS),
    ("4: start-first leaves once the new one has it", SERVICES, "!world.machine(new).surely_holds(name)", ALWAYS),
    ("4: and has it for certain", SENT, "attempt.is_none_or(|attempt| attempt.manifest.services.contains_key(service))", ALWAYS),
    ("4: start-first stays until the new one has it", SERVICES, "starts_first || ", "!MUT && starts_first || "),
    ("2, 4: a service that is said to be gone is not held", SENT, "(!self.forgotten.contains(service))", ALWAYS),
    ("4: nor counted as attempted", SENT, "&attempt.manifest.services)\n            .filter(|(name, _)| !self.forgotten.contains(*name));", "&attempt.manifest.services)\n            .filter(|(name, _)| MUT || !self.forgotten.contains(*name));"),
    ("4: start-first ends where rule 5 takes it away", SERVICES, "&& !is_taken_away(world, service)", "&& (MUT || !is_taken_away(world, service))"),

    ("5: a revoked service is composed away", SERVICES, "    if is_taken_away(world, service) {\n        outline", "    if !MUT && is_taken_away(world, service) {\n        outline"),
    ("5: one in use stays", SERVICES, "if world.uses.is_machine_in_use(name, node)", "if !MUT && world.uses.is_machine_in_use(name, node)"),
    ("5: by its newest generation", GENERATION, "self.newest.state == State::Revoked", without("self.generations().any(|c| c.state == State::Revoked)")),
    ("2, 3, 5: the list of what waits or stays is current", SERVICES, "held.grants.as_ref().map(|_| grants::list(world, name))", without("held.grants.clone()")),

    ("apply: providers first", MANIFEST, "order.push(left.remove(next).0);", "let next = if MUT { 0 } else { next };\n            OLD"),
    ("apply: in a circle, who does not wait first", MANIFEST, "position(|(_, service)| !awaits(service, false))", "position(|(_, service)| !MUT && !awaits(service, false))"),

    ("mint: for the targets", MINT, "here(consumer) || mesh", "!MUT && here(consumer) || mesh"),
    ("mint: for the consumers of the targets' services", MINT, "mesh.services.get(&id.provider).is_some_and(here)", NEVER),
    ("mint: not for a consumer on no machine", MINT, "!service.nodes.is_empty()", ALWAYS),
    ("mint: only what is lacking", MINT, ".map(|(_, id)| id)\n        .filter(|id| lacks(provisions, id))", ".map(|(_, id)| id)\n        .filter(|id| MUT || lacks(provisions, id))"),
    ("mint: stored before anything is sent", ROUND, "self.commit(changes)?;\n        self.minted", "if !MUT { self.commit(changes)?; }\n        self.minted"),
    ("attempts are recorded", ROUND, "self.commit(changes)?;\n        Ok(parcels)", "if !MUT { self.commit(changes)?; }\n        Ok(parcels)"),

    ("attempts: none for a machine that is not behind", ROUND, "if !is_behind =>", "if !MUT && !is_behind =>"),
    ("attempts: what they bring is gone no more", SENT, "self.forgotten = gone;", "self.forgotten = gone;\n        if MUT { self.forgotten.extend(again.iter().cloned()); }"),
    ("record: what was said to be gone still is, where nothing was received", ROUND, "machine.forgotten.extend(said_gone);", skipped()),
    ("attempts: the number of the push is stored with the first", RUN, "if !self.is_numbered {", "if !MUT && !self.is_numbered {"),

    ("attempts: or before any machine is contacted", ROUND, "self.number()?;\n        let by_node", "if !MUT { self.number()?; }\n        let by_node"),

    ("behind, and asked: uncertain", WORLD, "machine.attempt.is_some()\n", "(!MUT && machine.attempt.is_some())\n"),
    ("behind, and asked: uncertain at another address", WORLD, "|| self.is_elsewhere(node)", "|| (!MUT && self.is_elsewhere(node))"),
    ("behind, and asked: uncertain elsewhere than a first send was put back", WORLD, "put_back.is_some_and(|at| !at.is_at(node))", NEVER),
    ("behind: uncertain below another root", LOCATION, "self.root.as_ref().is_none_or(|root| *root == declared.root)", ALWAYS),
    ("behind: until what is said to be gone is made good", BEHIND, "machine.forgotten.is_empty()", ALWAYS),
    ("behind: in need of a mint", BEHIND, "!missing.is_empty()", NEVER),
    ("behind: never sent", BEHIND, "if !all_waits {", "if !MUT && !all_waits {"),
    ("behind: unless all of it waits", BEHIND, "!all_waits {", "(MUT || !all_waits) {"),
    ("behind: composes differently", BEHIND, "digest == sent.manifest.digest()", ALWAYS),
    ("behind: until a list that stayed is in a release", BEHIND, "sent.lists.is_empty()", ALWAYS),

    ("settle: every uncertain machine is asked", PUSH, "run.settle(couriers)?;", skipped()),
    ("settle: not what another store sent", SETTLE, "!ours &&", "!MUT && !ours &&"),
    ("settle: that only where it is to be taken over", SETTLE, "&& !self.may_take_over(node)", "&& (MUT || !self.may_take_over(node))"),
    ("settle: a machine that holds nothing is nobody's", SETTLE, "None => true,", "None => !MUT,"),
    ("settle: one that took the send in question holds its token", SENT, "self.attempt.as_ref().map(|attempt| &attempt.token)", "self.attempt.as_ref().filter(|_| !MUT).map(|attempt| &attempt.token)"),
    ("settle: what it was sent at another place is kept", SENT, "self.former.push(Former::of(place, token).with(sent));", skipped()),
    ("settle: and where a first send was put back", SENT, "self.former.push(Former::of(place, self.token.take()));", skipped()),
    ("settle: with its token", SETTLE, "machine.token = holding.token;", skipped()),
    ("settle: the answer becomes last sent", SETTLE, "settle(self.machine(node), holding, declared, is_foreign);", "if MUT { let machine = self.machine(node); machine.attempt = None; machine.token = holding.token.clone(); } else { OLD }"),
    ("settle: with the lists that stayed", SETTLE, "lists: holding.lists,", "lists: if MUT { Default::default() } else { holding.lists },"),
    ("settle: not one on hold", SETTLE, "!self.is_on_hold(node)", ALWAYS),
    ("settle: who cannot be asked has failed", SETTLE, "return self.fail(node, Problem::Unsettled(failure));", "if MUT { return; }\n                OLD"),

    ("record: an acknowledgement becomes last sent", ROUND, "acknowledge(machine, parcel);", "if MUT { machine.attempt = None; machine.token = Some(parcel.token); } else { OLD }"),
    ("record: an acknowledgement takes the token", ROUND, "token: Some(parcel.token),\n        sent", "token: if MUT { None } else { Some(parcel.token) },\n        sent"),
    ("record: an acknowledgement ends all that was said of the machine before", ROUND, "..Machine::unknown()", "..if MUT { Machine { attempt: None, ..machine.clone() } } else { Machine::unknown() }"),
    ("record: at the address where it was reached", ROUND, "at: Location::of(&parcel.target.node),\n            is_foreign", "at: if MUT { Location { address: String::new(), root: None } } else { Location::of(&parcel.target.node) },\n            is_foreign"),
    ("record: what was refused settles the attempt", ROUND, "Outcome::Refused(failure) => {\n                not_received(machine, said_gone);", "Outcome::Refused(failure) => {\n                if !MUT { not_received(machine, said_gone); }"),
    ("record: one that was taken over and goes back is uncertain", ROUND, "if !parcel.take_over {", "if MUT || !parcel.take_over {"),
    ("record: a contact of which nobody knows the end is uncertain", CONTACT, "self.doubt(node, parcel);\n                self.fail(node, Problem::Uncertain", "if !MUT { self.doubt(node, parcel); }\n                self.fail(node, Problem::Uncertain"),
    ("record: what a contact took over and was put back is not flushed again", CONTACT, "self.machine(node).rolled_back = Some(parcel.bundle.digest);", skipped()),
    ("record: a contact that was fenced too", CONTACT, "self.doubt(node, parcel);\n                let problem", "if !MUT { self.doubt(node, parcel); }\n                let problem"),
    ("record: what was not received settles the attempt", ROUND, "Outcome::NotReached(failure) => {\n                not_received(machine, said_gone);", "Outcome::NotReached(failure) => {\n                if !MUT { not_received(machine, said_gone); }"),
    ("record: uncertain stays uncertain", ROUND, "Outcome::Uncertain(failure) => Some(Problem::Uncertain(failure)),", "Outcome::Uncertain(failure) => { if MUT { machine.attempt = None; } Some(Problem::Uncertain(failure)) }"),
    ("record: a roll-back keeps the newer lists", ROUND, "for provider in lists {", "for provider in lists.iter().filter(|_| !MUT) {"),
    ("record: a roll-back takes the token", ROUND, "machine.token = Some(parcel.token);\n    machine.note_put_back", "if !MUT { machine.token = Some(parcel.token); }\n    machine.note_put_back"),
    ("record: a roll-back settles the attempt", ROUND, "        machine.attempt = None;\n    }\n    machine.rolled_back", "        if !MUT { machine.attempt = None; }\n    }\n    machine.rolled_back"),
    ("record: what was rolled back is noted", ROUND, "machine.rolled_back = Some(parcel.bundle.digest);", skipped()),
    ("record: an emptied machine is sent all of it again", ROUND, "*machine = made_anew(machine);", "if !MUT { OLD }"),

    ("record: a contact that finds nothing has all of it sent", CONTACT, "*machine = made_anew(machine);", skipped()),
    ("record: on disk, before the next round", RUN, "self.commit(changes)?;\n        self.unrecorded", "if !MUT { self.commit(changes)?; }\n        self.unrecorded"),

    ("fence: a send names the token that it means to replace", ROUND, ".and_then(|machine| machine.token)\n                .into_iter()", ".and_then(|machine| machine.token).filter(|_| !MUT)\n                .into_iter()"),
    ("fence: taking over, where it was asked for", RUN, "self.orders.take_over && (", "!MUT && self.orders.take_over && ("),
    ("fence: only where it was asked for", RUN, "self.orders.take_over && (", "(MUT | self.orders.take_over) && ("),
    ("fence: only a machine that was named, or all that are behind", RUN, "(self.is_named(node) || self.orders.named == Named::Behind)\n", "(MUT || self.is_named(node) || self.orders.named == Named::Behind)\n"),
    ("fence: each send has a token of its own", RUN, "Token::draw(self.state.id, self.state.era, self.state.push, self.chance)",
     "if MUT { Token { random: [1; 8], ..Token::draw(self.state.id, self.state.era, 1, self.chance) } } else { OLD }"),

    ("behind: looked at anew once something changed", KNOWN, "self.survey = None;", skipped()),

    ("flush: whoever is behind, named or not", PUSH, "targets = run.behind_now();\n        if targets.is_empty()", "targets = run.behind_now();\n        if MUT { targets.retain(|node| run.is_named(node)); }\n        if targets.is_empty()"),
    ("flush: not one on hold", RUN, "!self.is_on_hold(node) && (is_narrow", "(MUT || !self.is_on_hold(node)) && (is_narrow"),
    ("targets: not one on hold", RUN, "|node| !self.is_on_hold(node) &&", "|node| (MUT || !self.is_on_hold(node)) &&"),
    ("flush: only who is behind", RUN, "&& standing.is_behind()", "&& (MUT || standing.is_behind())"),
    ("flush: a push of whoever is behind names them all", RUN, "let is_asked_for = self.is_named(node) || self.orders.named == Named::Behind;", "let is_asked_for = self.is_named(node) || (!MUT && self.orders.named == Named::Behind);"),
    ("flush: not one that failed in this push", RUN, "!self.failed.contains_key(", "(MUT) | !self.failed.contains_key("),
    ("flush: not what was rolled back, unless it is named", RUN, "(is_asked_for || !standing.is_rolled_back)", ALWAYS),
    ("flush: what was rolled back, if it is named", RUN, "(is_asked_for || !standing.is_rolled_back)", without("!standing.is_rolled_back")),
    ("rounds: two for each link", RUN, ".saturating_mul(2)", ".saturating_mul(if MUT { 1 } else { 2 })"),
    ("rounds: and four more", RUN, "saturating_add(SPARE_ROUNDS)", "saturating_add(if MUT { 0 } else { SPARE_ROUNDS })"),
    ("contact: not one that holds no release", CONTACT, "            is_known\n", "            (MUT || is_known)\n"),
    ("contact: not who was sent to, where all was verified by that", CONTACT, "&& self.is_unverified(node)", "&& (MUT || self.is_unverified(node))"),
    ("contact: who was sent to, where something was left as it was", CONTACT, "left.is_none_or(|left| !left.is_empty())", "left.is_none_or(|left| !MUT && !left.is_empty())"),
    ("contact: what an earlier send has verified is verified", CONTACT, "before.retain(|service| left.contains(service))", "*before = if MUT { left } else { before.intersection(&left).cloned().collect() }"),
    ("contact: nobody twice", CONTACT, "&& !self.contacted.contains(*node)", "&& (MUT || !self.contacted.contains(*node))"),
    ("contact: not one on hold", CONTACT, "&& !self.is_on_hold(node)\n        });", "&& (MUT || !self.is_on_hold(node))\n        });"),
    ("contact: who turns out to hold nothing is behind", PUSH, "targets = run.behind_now(); // a", "if !MUT { targets = run.behind_now(); } // a"),
    ("contact: named machines", CONTACT, "let Named::Nodes(named) = &self.orders.named else {", "if MUT { return Ok(()); }\n        OLD"),
    ("prune: not the generations in use", RUN, "in_use.contains(&generation)", NEVER),
    ("prune: all others but the newest", RUN, "in_use.contains(&generation)", ALWAYS),

    ("goes on: where its host is declared for another machine", GOES_ON, "    is_declared(world, Some(node), name, endpoint)\n", "    (!MUT && is_declared(world, Some(node), name, endpoint))\n"),
    ("goes on: or another machine holds it with that host", GOES_ON, "any(|other| other != node && is_held(other))", "any(|other| !MUT && other != node && is_held(other))"),

    ("done: not while a machine failed", REPORT, "!self.failed.is_empty()\n", "(!MUT && !self.failed.is_empty())\n"),
    ("done: not while a machine is rolled back", REPORT, "!self.rolled_back.is_empty()\n", "(!MUT && !self.rolled_back.is_empty())\n"),
    ("done: not while a named machine is on hold", REPORT, "held.named ||", "(!MUT && held.named) ||"),
    ("done: not while a machine on hold owes somebody", REPORT, "|| !held.owes.is_empty()", "|| (!MUT && !held.owes.is_empty())"),
    ("done: not while a machine is behind", REPORT, "!self.out_of_rounds.is_empty() || !self.behind.is_empty()", NEVER),
    ("done: not while a service waits", REPORT, "!self.waiting.is_empty()", NEVER),
]
