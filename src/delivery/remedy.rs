//! What to do about a failure that the machine side told.

use super::receipt::{FailedStep, NOT_DONE};
use crate::kinds::rabbitmq;
use crate::mesh::SITE_SERVICE;
use crate::words::ServiceName;

/// What to do where nothing more can be written.
const NO_SPACE: &str = "is there space left below `root` of the machine?";

/// How the machine side begins the cause where a list was loaded and then not found.
const READING_BACK: &str = "reading it back: ";

/// Whether the system said so, or a shell that writes: some say only that it could not be done, and one says nothing at all.
fn is_of_a_full_disk(cause: &str) -> bool {
    const TOLD: [&str; 5] = [
        "No space left",
        "Disk quota exceeded",
        "I/O error",
        "write error",
        "it is not said why",
    ];
    TOLD.iter().any(|told| cause.contains(told))
}

/// What to do about a failure that the machine side told: which key of the declaration says otherwise.
pub(super) fn hint_of(
    step: FailedStep,
    service: Option<&ServiceName>,
    cause: &str,
    output: &[String],
) -> Option<String> {
    let of_broker = match (step, service) {
        (FailedStep::Load, Some(provider)) => rabbitmq::remedy(provider, output),
        // The list is read back by what loads it; a check of the service's own is run otherwise.
        (FailedStep::Check, Some(provider)) if cause.contains(READING_BACK) => {
            rabbitmq::remedy(provider, output)
        }
        _ => None,
    };
    if of_broker.is_some() {
        return of_broker;
    }
    let is_told = |what: &str| cause.contains(what);
    let hint = match step {
        _ if output
            .iter()
            .any(|line| line.starts_with("this machine has no user ")) =>
        {
            "`as` of the service's `provides`, in the declaration, names that user"
        }
        FailedStep::Load | FailedStep::Check
            if output.iter().any(|line| line.starts_with("sudo: ")) =>
        {
            "a command of the service runs `sudo`, as `as` of `provides` does where the login is not root: the login needs `NOPASSWD` in sudoers \
             for that user, or to be root (`become = \"sudo\"` of the machine, or another `user`)"
        }
        _ if is_told("it exited with 127")
            && service.is_some_and(|service| service.as_str() == SITE_SERVICE) =>
        {
            "127: `grid` is not there, which the site's commands run: install it on the machine, or have the push do it (`binary` \
             of `[signals]` names a file beside mesh.toml); `check` and `apply` of `[signals]` may name other commands"
        }
        _ if is_told("it exited with 127") => {
            "127: a command that was to be run is not there; the service's commands in the declaration say which are run"
        }
        _ if [
            " cannot be used: ",
            " cannot be written",
            "cannot be put in place",
        ]
        .iter()
        .any(|told| is_told(told))
            && is_of_a_full_disk(cause) =>
        {
            NO_SPACE
        }
        FailedStep::Start | FailedStep::Lock | FailedStep::Switch
            if is_told(" cannot be used: ") || is_told(" cannot be written") =>
        {
            "`root` of the machine, in the declaration, names that folder; its login must be able to write there, or be made root by \
             `become = \"sudo\"`"
        }
        _ if is_told("files cannot be given to ") => {
            "`owner` of the service or of one of its files, in the declaration, names that user: it must be there, and only root can give \
             files away (`become = \"sudo\"`)"
        }
        FailedStep::Lock => "another send is under way there; it ends by its own time limits",
        FailedStep::Switch if is_told("/current is not a ") || is_told("/current points to ") => {
            "move it away on the machine; `grid push` of the machine then puts in force again what was sent"
        }
        FailedStep::Install
            if is_told(" is a folder") || is_told("File exists") || is_told("Not a directory") =>
        {
            "something that grid did not put there stands in the way: move it away on the machine, or give the file another path"
        }
        FailedStep::Install if is_told("Permission denied") => {
            "a file with an absolute path is installed by the machine's login, which may not write there: `become = \"sudo\"` of the machine \
             makes it root"
        }
        // A list is read back in the time of its load.
        FailedStep::Check if is_told(NOT_DONE) && is_told(READING_BACK) => {
            return limit_of(FailedStep::Load, service?);
        }
        step if is_told(NOT_DONE) => return limit_of(step, service?),
        FailedStep::Remove => {
            let service = service.map_or("the service", ServiceName::as_str);
            return Some(format!(
                "this `remove` came with an earlier push: give {service} its machine back with one that works, push, and take it away again; \
                 or, once {service} is gone from there, `grid forget NODE --service {service}` has it go whatever its `remove` says"
            ));
        }
        FailedStep::Unpack => NO_SPACE,
        step if output.is_empty() && is_told("it exited with ") => {
            return told_nothing(step, service?, is_told(READING_BACK));
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// That a command failed and did not say why. What loads a list and what reads it back are keys of `provides`, and only of kind `custom`:
/// a script of grid's own ends with an exit code only after it said why.
fn told_nothing(step: FailedStep, service: &ServiceName, is_read_back: bool) -> Option<String> {
    let (key, of) = match step {
        FailedStep::Test => ("test", ""),
        FailedStep::Load => ("load", "the `provides` of "),
        FailedStep::Apply => ("apply", ""),
        FailedStep::Check if is_read_back => ("check", "the `provides` of "),
        FailedStep::Check => ("check", ""),
        _ => return None,
    };
    Some(format!(
        "`{key}` of {of}{} printed nothing: have it say why it fails",
        table_of(service)
    ))
}

/// The table of the declaration where the commands of a service stand.
fn table_of(service: &ServiceName) -> String {
    match service.as_str() {
        SITE_SERVICE => "[signals]".to_owned(),
        name => format!("[services.{name}]"),
    }
}

/// Which limit of the declaration gives a step more time.
fn limit_of(step: FailedStep, service: &ServiceName) -> Option<String> {
    let (key, asked) = match step {
        FailedStep::Test => ("test", ""),
        FailedStep::Load => (
            "load",
            "does the provider run on that machine, and answer? ",
        ),
        FailedStep::Apply => ("apply", ""),
        FailedStep::Check => ("check", ""),
        FailedStep::Remove => ("remove", ""),
        _ => return None,
    };
    let table = table_of(service);
    let only = if asked.is_empty() { "if" } else { "If" };
    Some(format!(
        "{asked}{only} it only takes longer: `limits = {{ {key} = \"…\" }}` of {table} gives it more time"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_was_not_done_in_time_has_its_limit_named() {
        let hint = |step: FailedStep, service: &str| {
            let service = ServiceName::new(service).unwrap();
            let cause = "it did not hold within 30 s; it was not done within 1 s";
            hint_of(step, Some(&service), cause, &[]).unwrap()
        };
        insta::assert_snapshot!(hint(FailedStep::Apply, "billing"), @r#"if it only takes longer: `limits = { apply = "…" }` of [services.billing] gives it more time"#);
        insta::assert_snapshot!(hint(FailedStep::Load, "broker"), @r#"does the provider run on that machine, and answer? If it only takes longer: `limits = { load = "…" }` of [services.broker] gives it more time"#);
        insta::assert_snapshot!(hint(FailedStep::Check, "site"), @r#"if it only takes longer: `limits = { check = "…" }` of [signals] gives it more time"#);
        let broker = ServiceName::new("broker").unwrap();
        let reading = format!("the list was loaded, but {READING_BACK}it was not done within 5 s");
        assert!(include_str!("receive.sh").contains(READING_BACK));
        assert_eq!(
            hint_of(FailedStep::Check, Some(&broker), &reading, &[]),
            Some(hint(FailedStep::Load, "broker"))
        );
        let steps = [FailedStep::Test, FailedStep::Check, FailedStep::Remove];
        let all = steps.map(|step| hint(step, "billing"));
        for (key, hint) in ["test", "check", "remove"].iter().zip(all) {
            assert!(hint.contains(&format!("`limits = {{ {key} = ")), "{hint}");
        }
    }

    #[test]
    fn a_command_that_fails_without_a_word_is_named_and_one_that_says_why_is_not() {
        let service = ServiceName::new("billing").unwrap();
        let hint = |step, output: &[&str]| {
            let output: Vec<String> = output.iter().map(|&line| line.to_owned()).collect();
            let cause = "it did not hold within 30 s; it exited with 1";
            hint_of(step, Some(&service), cause, &output)
        };
        insta::assert_snapshot!(hint(FailedStep::Check, &[]).unwrap(), @"`check` of [services.billing] printed nothing: have it say why it fails");
        insta::assert_snapshot!(hint(FailedStep::Test, &[]).unwrap(), @"`test` of [services.billing] printed nothing: have it say why it fails");
        insta::assert_snapshot!(hint(FailedStep::Apply, &[]).unwrap(), @"`apply` of [services.billing] printed nothing: have it say why it fails");
        assert_eq!(hint(FailedStep::Check, &["no route to host"]), None);
        let sudo = hint(FailedStep::Load, &["sudo: a password is required"]);
        insta::assert_snapshot!(sudo.unwrap(), @"a command of the service runs `sudo`, as `as` of `provides` does where the login is not root: the login needs `NOPASSWD` in sudoers for that user, or to be root (`become = \"sudo\"` of the machine, or another `user`)");
    }

    #[test]
    fn what_loads_a_list_or_reads_it_back_without_a_word_is_named_where_it_stands() {
        let hint = |step, service: &str, cause: &str, output: &[&str]| {
            let output: Vec<String> = output.iter().map(|&line| line.to_owned()).collect();
            hint_of(
                step,
                ServiceName::new(service).ok().as_ref(),
                cause,
                &output,
            )
        };
        let exited = "it exited with 1";
        let reading = format!(
            "the list was loaded, but {READING_BACK}it did not hold within 5 s; it exited with 1"
        );
        let load = hint(FailedStep::Load, "accounts", exited, &[]);
        insta::assert_snapshot!(load.unwrap(), @"`load` of the `provides` of [services.accounts] printed nothing: have it say why it fails");
        let check = hint(FailedStep::Check, "accounts", &reading, &[]);
        insta::assert_snapshot!(check.unwrap(), @"`check` of the `provides` of [services.accounts] printed nothing: have it say why it fails");
        let site = hint(FailedStep::Check, "site", exited, &[]);
        insta::assert_snapshot!(site.unwrap(), @"`check` of [signals] printed nothing: have it say why it fails");
        let apply = hint(FailedStep::Apply, "site", exited, &[]);
        insta::assert_snapshot!(apply.unwrap(), @"`apply` of [signals] printed nothing: have it say why it fails");
        // The script of a RabbitMQ always says something.
        let said = ["rabbitmqctl failed (exit 2); nothing was changed"];
        assert_eq!(hint(FailedStep::Load, "broker", exited, &said), None);
        assert_eq!(hint(FailedStep::Check, "broker", &reading, &said), None);
        // Only what ended by itself could have said why.
        let cause = "no fifo can be made in /var/lib/grid/run";
        assert_eq!(hint(FailedStep::Load, "accounts", cause, &[]), None);
    }

    #[test]
    fn a_command_that_is_not_there_is_told_apart_for_the_site_which_needs_grid() {
        let hint = |service: &str| {
            let service = ServiceName::new(service).unwrap();
            hint_of(FailedStep::Check, Some(&service), "it exited with 127", &[]).unwrap()
        };
        insta::assert_snapshot!(hint("site"), @"127: `grid` is not there, which the site's commands run: install it on the machine, or have the push do it (`binary` of `[signals]` names a file beside mesh.toml); `check` and `apply` of `[signals]` may name other commands");
        insta::assert_snapshot!(hint("broker"), @"127: a command that was to be run is not there; the service's commands in the declaration say which are run");
    }
}
