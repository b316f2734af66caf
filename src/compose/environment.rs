//! `<consumer>.env`, for `EnvironmentFile=` and for `.` in a shell.

use std::collections::BTreeMap;

use zeroize::Zeroizing;

use crate::kinds::Binding;
use crate::words::ServiceName;

/// A variable that cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the variable {name} of the binding to {provider} holds a control character")]
pub struct EnvironmentError {
    /// Which.
    pub name: String,
    /// Of which binding.
    pub provider: ServiceName,
}

/// The text of the file; `None` where no binding has a variable. A name that two bindings share is
/// written with its provider before it, for each of them (`BROKER_AMQP_URL`), and not without.
///
/// # Errors
/// When a value holds a control character: neither reader has one meaning for it.
pub fn write(
    bindings: &BTreeMap<ServiceName, Binding>,
) -> Result<Option<Zeroizing<String>>, EnvironmentError> {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in bindings.values().flat_map(|binding| &binding.env) {
        *count.entry(entry.name.as_str()).or_default() += 1;
    }
    let mut lines: BTreeMap<String, Zeroizing<String>> = BTreeMap::new();
    for (provider, binding) in bindings {
        for entry in &binding.env {
            let shared = count.get(entry.name.as_str()).is_some_and(|n| *n > 1);
            let name = if shared {
                let prefix = provider.as_str().to_uppercase().replace('-', "_");
                format!("{prefix}_{}", entry.name)
            } else {
                entry.name.clone()
            };
            let value = entry.value.expose();
            if value.chars().any(char::is_control) {
                return Err(EnvironmentError {
                    name,
                    provider: provider.clone(),
                });
            }
            lines.insert(name, quote(value));
        }
    }
    if lines.is_empty() {
        return Ok(None);
    }
    let mut text = Zeroizing::new(String::new());
    for (name, value) in lines {
        text.push_str(&name);
        text.push('=');
        text.push_str(&value);
        text.push('\n');
    }
    Ok(Some(text))
}

/// As it is where no reader treats a character specially, else in double quotes, which a shell and systemd
/// read alike.
fn quote(value: &str) -> Zeroizing<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,=?&".contains(c);
    if !value.is_empty() && value.chars().all(|c| plain(c) && c != '&') {
        return Zeroizing::new(value.to_owned());
    }
    let mut quoted = Zeroizing::new(String::from("\""));
    for c in value.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Entry;

    fn binding(name: &str, value: &str) -> Binding {
        Binding {
            entries: vec![],
            env: vec![Entry::secret(name, value)],
        }
    }

    fn name(name: &str) -> ServiceName {
        ServiceName::new(name).unwrap()
    }

    #[test]
    fn a_variable_of_one_binding_keeps_its_name_and_a_shared_one_gets_its_providers() {
        let one = BTreeMap::from([(name("broker"), binding("AMQP_URL", "amqp://u:p@h:1/v"))]);
        assert_eq!(
            write(&one).unwrap().unwrap().as_str(),
            "AMQP_URL=amqp://u:p@h:1/v\n"
        );
        let two = BTreeMap::from([
            (name("broker"), binding("AMQP_URL", "a")),
            (name("east-broker"), binding("AMQP_URL", "b c$")),
        ]);
        assert_eq!(
            write(&two).unwrap().unwrap().as_str(),
            "BROKER_AMQP_URL=a\nEAST_BROKER_AMQP_URL=\"b c\\$\"\n"
        );
        assert!(write(&BTreeMap::new()).unwrap().is_none());
    }

    #[test]
    fn a_value_with_a_newline_is_refused_without_being_printed() {
        let wrong = BTreeMap::from([(name("broker"), binding("AMQP_URL", "hunter2\nX=1"))]);
        let error = write(&wrong).unwrap_err().to_string();
        assert!(error.contains("AMQP_URL") && !error.contains("hunter2"));
    }
}
