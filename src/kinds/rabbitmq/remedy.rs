//! What to do about what a broker's load printed (`admit.sh`): something there has the name of a vhost or user, and is not
//! this mesh's; or a vhost that was made by hand is not there.

use crate::words::ServiceName;

/// What is told of something that was made by somebody else, between its name and this mesh's mark.
const FOREIGN: &str = " exists, but without the mark ";
/// What is told of a vhost that was to be there.
const NOT_THERE: &str = " is wanted as an existing one, but is not there";

/// What to do, if one of these lines is such a finding.
#[must_use]
pub fn remedy(provider: &ServiceName, output: &[String]) -> Option<String> {
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
    fn the_script_says_it_in_these_words() {
        let script = include_str!("admit.sh");
        for words in [FOREIGN, NOT_THERE] {
            assert!(script.contains(words.trim()), "{words}");
        }
    }
}
