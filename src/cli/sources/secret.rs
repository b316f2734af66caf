//! The value of an operator's secret: out of a file that age sealed, a variable, or what a command prints.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;

use super::FsSources;
use crate::cli::child;
use crate::compose::sources::SourceError;
use crate::mesh::SecretSource;
use crate::store::{Identity, IdentityError, open_age_file};
use crate::words::{Secret, SecretName};

/// The most bytes that a secret's command prints.
const SECRET_MOST: u64 = 64 * 1024;
/// The most bytes of an age file.
const AGE_FILE_MOST: u64 = 2 * 1024 * 1024;
/// What to do where an empty value is meant.
const WHERE_EMPTY_GOES: &str =
    "(a value that is to be empty is no secret, and stands in the template itself)";
/// The most keys that a command names.
const KEYS_MOST: usize = 5;
/// How the files begin that age writes: as bytes, and as text.
const AGE_BEGINS: [&[u8]; 2] = [b"age-encryption.org/", b"-----BEGIN AGE ENCRYPTED FILE"];
/// How long a secret's command may take.
const COMMAND_DEADLINE: Duration = Duration::from_secs(30);

impl FsSources {
    /// Seal a text with age for everybody who may open the store, as a clause: `lead` says who does, `opens` makes the text where it
    /// is not that of the file `plain`.
    fn to_seal(
        &self,
        lead: &str,
        opens: &str,
        plain: Option<&Utf8Path>,
        identity: &Identity,
    ) -> String {
        let own = identity.public();
        let mut keys: Vec<&str> = Vec::new();
        for key in self
            .sealed_for
            .iter()
            .map(String::as_str)
            .chain([own.as_str()])
        {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let (to, whose) = if keys.len() > KEYS_MOST {
            let whose = format!(
                " (KEYS is a file with a line for each of the {} keys that open the store: yours, {own}, those of `recipients` in \
                 mesh.toml, and that of whoever made the store)",
                keys.len()
            );
            ("-R KEYS".to_owned(), whose)
        } else {
            let to: Vec<String> = keys.iter().map(|key| format!("-r {key}")).collect();
            (to.join(" "), String::new())
        };
        let plain = plain.map_or_else(String::new, |plain| format!(" {plain}"));
        format!("{lead} `{opens}age {to} -o NEW{plain}`{whose} and put NEW in its place")
    }

    /// The value of a secret, from wherever the declaration has it.
    pub(super) fn read_secret(&self, name: &SecretName) -> Result<Secret, SourceError> {
        let failed = |why: String, remedy: String| SourceError {
            what: format!("secret {name}"),
            why,
            remedy: Some(remedy),
        };
        let table = format!("[secrets.{name}]");
        let Some(source) = self.secrets.get(name) else {
            let why = "the declaration has no such secret".to_owned();
            return Err(failed(why, format!("declare {table}")));
        };
        match source {
            SecretSource::AgeFile(path) => {
                let error = |why: String| failed(why, format!("mend {path}, or `file` of {table}"));
                let bytes = self
                    .read_at_most(path, AGE_FILE_MOST)
                    .map_err(|e| error(e.to_string()))?;
                let identity = (self.identity)().map_err(|why| {
                    failed(
                        why,
                        "put your identity in its place, or name it with $GRID_IDENTITY".to_owned(),
                    )
                })?;
                if !AGE_BEGINS.iter().any(|begin| bytes.starts_with(begin)) {
                    return Err(failed(
                        format!("{path} is no file that age sealed"),
                        self.to_seal("seal what is in it with", "", Some(path), &identity),
                    ));
                }
                let sealed_for_another = |wrong: IdentityError| {
                    let (lead, opens) = match &wrong {
                        IdentityError::NotForUs { .. } => (
                            "have somebody who can open it run",
                            format!("age -d -i THEIR_KEY {path} | "),
                        ),
                        IdentityError::Passphrase => ("run", format!("age -d {path} | ")),
                        _ => return error(format!("{path}: {wrong}")),
                    };
                    let remedy = self.to_seal(lead, &opens, None, &identity);
                    failed(format!("{path}: {wrong}"), remedy)
                };
                let secret = open_age_file(&bytes, &identity).map_err(sealed_for_another)?;
                if secret.expose().is_empty() {
                    return Err(failed(
                        format!("{path} holds an empty text"),
                        format!("seal the secret in {path} {WHERE_EMPTY_GOES}"),
                    ));
                }
                Ok(secret)
            }
            SecretSource::Environment(variable) => {
                let error =
                    |what: &str| failed(format!("${variable} {what}"), format!("set ${variable}"));
                match std::env::var(variable) {
                    Ok(value) if value.is_empty() => Err(failed(
                        format!("${variable} is empty"),
                        format!("set ${variable} {WHERE_EMPTY_GOES}"),
                    )),
                    Ok(value) => Ok(Secret::new(value)),
                    Err(std::env::VarError::NotPresent) => Err(error("is not set")),
                    Err(std::env::VarError::NotUnicode(_)) => Err(error("is not UTF-8 text")),
                }
            }
            SecretSource::Command(command) => {
                let mut words = command.words().iter();
                let program = words.next().map_or("", String::as_str);
                let error = |why: String| {
                    failed(
                        why,
                        format!("see what `{program}` says by hand, or mend `command` of {table}"),
                    )
                };
                let mut run = Command::new(program);
                run.args(words).current_dir(&self.folder);
                let (hear, secret) = (Arc::clone(&self.hear), name.clone());
                let hear = move |line: String| hear(&secret, &line);
                let mut bytes = child::output(&mut run, COMMAND_DEADLINE, SECRET_MOST, hear)
                    .map_err(|e| error(format!("`{program}` {e}")))?;
                if bytes.last() == Some(&b'\n') {
                    bytes.pop();
                }
                if bytes.is_empty() {
                    return Err(failed(
                        format!("`{program}` printed nothing"),
                        format!(
                            "see what `{program}` says by hand, or mend `command` of {table} {WHERE_EMPTY_GOES}"
                        ),
                    ));
                }
                match std::str::from_utf8(&bytes) {
                    Ok(text) => Ok(Secret::new(text.to_owned())),
                    Err(_) => Err(error(format!("`{program}` printed what is not UTF-8 text"))),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;
    use crate::cli::sources::tests::sources;
    use crate::compose::sources::Sources as _;

    #[test]
    fn a_command_prints_a_secret_without_its_last_newline_and_sees_no_identity() {
        let command = |words: &[&str]| {
            let words = words.iter().map(|&word| word.to_owned()).collect();
            SecretSource::Command(crate::words::Command::new(words).unwrap())
        };
        let dir = tempfile::tempdir().unwrap();
        let sources = sources(
            dir.path(),
            &[
                ("good", command(&["printf", "hunter2 \\n\\n"])),
                ("bad", command(&["sh", "-c", "echo hunter2; exit 9"])),
                (
                    "unset",
                    SecretSource::Environment("GRID_TEST_NOT_SET".to_owned()),
                ),
                ("silent", command(&["echo"])),
                ("no-file", SecretSource::AgeFile("secrets/none.age".into())),
                (
                    "identity",
                    command(&["sh", "-c", "echo ${GRID_IDENTITY-none}"]),
                ),
            ],
        );
        let secret = |name| sources.secret(&SecretName::new(name).unwrap());
        assert_eq!(secret("good").unwrap().expose(), "hunter2 \n");
        assert_eq!(secret("identity").unwrap().expose(), "none");
        let remedy = |name| secret(name).unwrap_err().remedy();
        insta::assert_snapshot!(remedy("bad"), @"see what `sh` says by hand, or mend `command` of [secrets.bad]");
        insta::assert_snapshot!(remedy("unset"), @"set $GRID_TEST_NOT_SET");
        insta::assert_snapshot!(remedy("no-file"), @"mend secrets/none.age, or `file` of [secrets.no-file]");
        insta::assert_snapshot!(remedy("absent"), @"declare [secrets.absent]");
        insta::assert_snapshot!(remedy("silent"), @"see what `echo` says by hand, or mend `command` of [secrets.silent] (a value that is to be empty is no secret, and stands in the template itself)");
        insta::assert_snapshot!(secret("silent").unwrap_err(), @"secret silent: `echo` printed nothing");
        insta::assert_snapshot!(secret("bad").unwrap_err(), @"secret bad: `sh` failed (exit status: 9)");
        insta::assert_snapshot!(secret("unset").unwrap_err(), @"secret unset: $GRID_TEST_NOT_SET is not set");
        insta::assert_snapshot!(secret("absent").unwrap_err(), @"secret absent: the declaration has no such secret");
    }

    #[test]
    fn a_file_is_sealed_and_not_empty() {
        let dir = tempfile::tempdir().unwrap();
        let identity = Identity::generate();
        let to: age::x25519::Recipient = identity.public().parse().unwrap();
        let file = identity.public();
        std::fs::write(
            dir.path().join("empty.age"),
            age::encrypt(&to, b"").unwrap(),
        )
        .unwrap();
        std::fs::write(
            dir.path().join("good.age"),
            age::encrypt(&to, b"7").unwrap(),
        )
        .unwrap();
        let armored = age::encrypt_and_armor(&to, b"8").unwrap();
        std::fs::write(dir.path().join("text.age"), armored).unwrap();
        std::fs::write(dir.path().join("plain.age"), "hunter2\n").unwrap();
        let key = dir.path().join("identity.txt");
        identity
            .write_new(&key, jiff::Timestamp::UNIX_EPOCH)
            .unwrap();
        let find = move || Identity::read(&key).map_err(|error| error.to_string());
        let names = ["empty", "good", "text", "plain"];
        let secrets = names.map(|name| {
            let source = SecretSource::AgeFile(format!("{name}.age").into());
            (SecretName::new(name).unwrap(), source)
        });
        let folder = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let sources = FsSources::new(folder, secrets.into(), Box::new(find));
        let said = |name: &str| match sources.secret(&SecretName::new(name).unwrap()) {
            Ok(secret) => secret.expose().to_owned(),
            Err(error) => format!("{error}; {}", error.remedy()).replace(&file, "age1…"),
        };
        let said = names.map(said).join("\n");
        assert!(!said.contains("hunter2"), "{said}");
        insta::assert_snapshot!(said, @"
        secret empty: empty.age holds an empty text; seal the secret in empty.age (a value that is to be empty is no secret, and stands in the template itself)
        7
        8
        secret plain: plain.age is no file that age sealed; seal what is in it with `age -r age1… -o NEW plain.age` and put NEW in its place
        ");
    }

    #[test]
    fn what_is_said_of_a_sealed_file_shuts_out_nobody_who_may_open_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let own = Identity::generate();
        let others: Vec<String> = (0..6).map(|_| Identity::generate().public()).collect();
        let to: age::x25519::Recipient = others[0].parse().unwrap();
        let other = age::encrypt(&to, b"hunter2").unwrap();
        std::fs::write(dir.path().join("other.age"), other).unwrap();
        let mut recipient = age::scrypt::Recipient::new("hunter2".to_owned().into());
        recipient.set_work_factor(2);
        let phrase = age::encrypt(&recipient, b"hunter2").unwrap();
        std::fs::write(dir.path().join("phrase.age"), phrase).unwrap();
        std::fs::write(dir.path().join("plain.age"), "hunter2\n").unwrap();
        let key = dir.path().join("identity.txt");
        own.write_new(&key, jiff::Timestamp::UNIX_EPOCH).unwrap();
        let said = |name: &str, keys: &[&str]| {
            let key = key.clone();
            let secret = SecretName::new("api").unwrap();
            let source = SecretSource::AgeFile(format!("{name}.age").into());
            let folder = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
            let find = Box::new(move || Identity::read(&key).map_err(|error| error.to_string()));
            let sources = FsSources::new(folder, [(secret.clone(), source)].into(), find)
                .sealed_for(keys.iter().map(|key| (*key).to_owned()).collect());
            let error = sources.secret(&secret).unwrap_err();
            let mut said = format!("{error}; {}", error.remedy());
            for (at, other) in others.iter().enumerate() {
                said = said.replace(other, &format!("age1other{at}"));
            }
            said.replace(&own.public(), "age1own")
        };
        let public = own.public();
        let few = [others[0].as_str(), public.as_str(), others[1].as_str()];
        let many: Vec<&str> = others.iter().map(String::as_str).collect();
        let said = [
            said("plain", &few),
            said("plain", &few[2..]),
            said("plain", &many),
            said("other", &few),
            said("phrase", &few),
        ]
        .join("\n");
        assert!(!said.contains("hunter2"), "{said}");
        insta::assert_snapshot!(said, @"
        secret api: plain.age is no file that age sealed; seal what is in it with `age -r age1other0 -r age1own -r age1other1 -o NEW plain.age` and put NEW in its place
        secret api: plain.age is no file that age sealed; seal what is in it with `age -r age1other1 -r age1own -o NEW plain.age` and put NEW in its place
        secret api: plain.age is no file that age sealed; seal what is in it with `age -R KEYS -o NEW plain.age` (KEYS is a file with a line for each of the 7 keys that open the store: yours, age1own, those of `recipients` in mesh.toml, and that of whoever made the store) and put NEW in its place
        secret api: other.age: it is encrypted for another key than age1own; have somebody who can open it run `age -d -i THEIR_KEY other.age | age -r age1other0 -r age1own -r age1other1 -o NEW` and put NEW in its place
        secret api: phrase.age: it is encrypted with a passphrase, which nobody could type in a push; run `age -d phrase.age | age -r age1other0 -r age1own -r age1other1 -o NEW` and put NEW in its place
        ");
    }
}
