//! What to do about what a broker's load or check printed (`admit.sh`): something there has the name of a vhost or user, and
//! is not this mesh's; a vhost that was made by hand is not there; or `rabbitmqctl` does not reach the broker. What that
//! prints then was seen on 3.10; of what other versions say in other words, the words that are the same are looked for.

use crate::words::ServiceName;

/// What is told of something that was made by somebody else, between its name and this mesh's mark.
const FOREIGN: &str = " exists, but without the mark ";
/// What is told of a vhost that was to be there.
const NOT_THERE: &str = " is wanted as an existing one, but is not there";
/// What is told once a broker answers that did not before: what was said earlier is settled.
const ANSWERS: &str = "the broker answers now";
/// How it begins that `rabbitmqctl` takes longer than a broker that answers.
const SILENT: &str = "rabbitmqctl has not answered for ";
/// How the packages' `rabbitmqctl` refuses a login ("should run rabbitmqctl", "can run …").
const LOGIN: &str = "Only root or rabbitmq ";
/// How `rabbitmqctl` begins when it did not reach a node, before the node's name in single quotes.
const UNREACHED: &str = "unable to perform an operation on node '";

/// What to do, if one of these lines is such a finding.
#[must_use]
pub fn remedy(provider: &ServiceName, output: &[String]) -> Option<String> {
    let settled = output.iter().rposition(|line| line == ANSWERS);
    let output = output.get(settled.map_or(0, |at| at + 1)..)?;
    of_names(provider, output).or_else(|| of_reach(provider, output))
}

fn of_names(provider: &ServiceName, output: &[String]) -> Option<String> {
    if output.iter().any(|line| is_foreign(line, "vhost ")) {
        return Some(format!(
            "a vhost is called after its consumer, where `vhost` says nothing else. If it was made by hand: `consumes = {{ {provider} = \
             {{ existing = true }} }}` of the consumer takes it as it is; if another mesh made it: `consumes = {{ {provider} = {{ \
             vhost = \"…\" }} }}` gives this one another name"
        ));
    }
    let is_missing = |line: &String| line.starts_with("vhost ") && line.ends_with(NOT_THERE);
    if output.iter().any(is_missing) {
        return Some(format!(
            "`existing = true` in `consumes = {{ {provider} = … }}` of the consumer, in the declaration, says that it was made by hand: make \
             it there, or put `vhost` right; without `existing`, grid makes it"
        ));
    }
    let is_foreign = output.iter().any(|line| is_foreign(line, "user "));
    is_foreign.then(|| {
        "a user is called after this mesh and its consumer: it was made by hand, or by another mesh of this name. One of the two has to go"
            .to_owned()
    })
}

/// What to do where `rabbitmqctl` did not run, or did not reach the broker.
fn of_reach(provider: &ServiceName, output: &[String]) -> Option<String> {
    if output.iter().any(|line| line.starts_with(LOGIN)) {
        return Some(
            "`as = \"rabbitmq\"` of the service's `provides`, in the declaration, has that user load and check the list (a login that is not \
             root needs `sudo` without a password for it); or `become = \"sudo\"` of the machine makes its login root"
                .to_owned(),
        );
    }
    if output.iter().any(|line| is_of_the_cookie(line)) {
        return Some(
            "the node runs, and takes no Erlang cookie but its own: `as = \"rabbitmq\"` of the service's `provides`, in the declaration, \
             runs rabbitmqctl as the user who has it (a login that is not root needs `sudo` without a password for it)"
                .to_owned(),
        );
    }
    const ANOTHER: &str = "`via = [\"env\", \"RABBITMQ_NODENAME=rabbit@HOST\"]` of the service's `provides`, in the declaration, names another \
                           one, where HOST is a name that this machine itself resolves, whatever the machine is called in the declaration";
    if let Some(node) = output.iter().find_map(|line| unreached(line)) {
        return Some(format!(
            "RabbitMQ must run on that machine, as the node {node}: {ANOTHER}"
        ));
    }
    // Told before there was an answer: nothing came after it.
    output.last()?.starts_with(SILENT).then(|| {
        format!(
            "a node whose host is not resolved holds rabbitmqctl up: {ANOTHER}. If it only takes longer: `limits = {{ load = \"…\" }}` of \
             [services.{provider}] gives it more time"
        )
    })
}

/// The node that was not reached, if the line says so.
fn unreached(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(UNREACHED)?;
    let (node, _) = rest.split_once('\'')?;
    Some(node)
}

/// Whether it is a diagnosis that the cookie is another one: "check if the Erlang cookie is identical …", "please check the
/// Erlang cookie".
fn is_of_the_cookie(line: &str) -> bool {
    line.contains("Erlang cookie") && line.contains("check ")
}

fn is_foreign(line: &str, what: &str) -> bool {
    line.strip_prefix(what)
        .is_some_and(|rest| rest.contains(FOREIGN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_broker_has_that_is_not_ours_is_told_with_where_existing_goes() {
        let service = ServiceName::new("broker").unwrap();
        let hint = |line: &str| remedy(&service, &[line.to_owned()]);
        let line = "vhost billing exists, but without the mark grid.prod.broker; existing = true takes it as it is";
        insta::assert_snapshot!(hint(line).unwrap(), @r#"a vhost is called after its consumer, where `vhost` says nothing else. If it was made by hand: `consumes = { broker = { existing = true } }` of the consumer takes it as it is; if another mesh made it: `consumes = { broker = { vhost = "…" } }` gives this one another name"#);
        let line = "user prod.billing.1 exists, but without the mark grid.prod.broker";
        insta::assert_snapshot!(hint(line).unwrap(), @"a user is called after this mesh and its consumer: it was made by hand, or by another mesh of this name. One of the two has to go");
        let line = "vhost billing is wanted as an existing one, but is not there";
        insta::assert_snapshot!(hint(line).unwrap(), @"`existing = true` in `consumes = { broker = … }` of the consumer, in the declaration, says that it was made by hand: make it there, or put `vhost` right; without `existing`, grid makes it");
        assert_eq!(
            hint("queue a is wanted as an existing one, but is not there"),
            None
        );
    }

    #[test]
    fn a_rabbitmqctl_that_does_not_reach_the_broker_is_told_with_what_to_write() {
        let service = ServiceName::new("broker").unwrap();
        let hint = |lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
            remedy(&service, &lines)
        };
        let failed = "rabbitmqctl failed (exit 69); nothing was changed";
        let login = ["Only root or rabbitmq should run rabbitmqctl", failed];
        insta::assert_snapshot!(hint(&login).unwrap(), @r#"`as = "rabbitmq"` of the service's `provides`, in the declaration, has that user load and check the list (a login that is not root needs `sudo` without a password for it); or `become = "sudo"` of the machine makes its login root"#);
        let error = "Error: unable to perform an operation on node 'rabbit@atlas'.";
        let node = [error, "it is tried again", failed];
        insta::assert_snapshot!(hint(&node).unwrap(), @r#"RabbitMQ must run on that machine, as the node rabbit@atlas: `via = ["env", "RABBITMQ_NODENAME=rabbit@HOST"]` of the service's `provides`, in the declaration, names another one, where HOST is a name that this machine itself resolves, whatever the machine is called in the declaration"#);
        let cookies = [
            "  * suggestion: check if the Erlang cookie is identical for all server nodes and CLI tools",
            "  * suggestion: check if the Erlang cookie identical for all server nodes and CLI tools",
            "  * Authentication failed (rejected by the remote node), please check the Erlang cookie",
        ];
        for cookie in cookies {
            insta::allow_duplicates! {
                insta::assert_snapshot!(hint(&[error, cookie, failed]).unwrap(), @r#"the node runs, and takes no Erlang cookie but its own: `as = "rabbitmq"` of the service's `provides`, in the declaration, runs rabbitmqctl as the user who has it (a login that is not root needs `sudo` without a password for it)"#);
            }
        }
        let silent = "rabbitmqctl has not answered for 25 s";
        insta::assert_snapshot!(hint(&[silent]).unwrap(), @r#"a node whose host is not resolved holds rabbitmqctl up: `via = ["env", "RABBITMQ_NODENAME=rabbit@HOST"]` of the service's `provides`, in the declaration, names another one, where HOST is a name that this machine itself resolves, whatever the machine is called in the declaration. If it only takes longer: `limits = { load = "…" }` of [services.broker] gives it more time"#);
        // What was said before the broker answered, or before something else failed, is not what is wrong.
        let refused = "the broker refuses the list: []";
        assert_eq!(hint(&[error, ANSWERS, refused]), None);
        assert_eq!(hint(&[silent, refused]), None);
        assert_eq!(hint(&[error, ANSWERS, error]), hint(&[error]));
    }

    #[test]
    fn the_script_says_it_in_these_words() {
        let script = include_str!("admit.sh");
        for words in [FOREIGN, NOT_THERE, ANSWERS, SILENT] {
            assert!(script.contains(words.trim()), "{words}");
        }
    }
}
