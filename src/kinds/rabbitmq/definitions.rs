//! The grant list of a RabbitMQ provider: a definitions document of the broker's own
//! (`rabbitmqctl import_definitions` takes it as it is).
//!
//! Invariants:
//! - Each object stands on a line of its own and each collection is sorted, so that equal accounts
//!   give equal bytes and a difference is one of lines.
//! - A vhost of ours carries the mark as a tag and stands under `vhosts`. One that was made by hand stands
//!   nowhere but in permissions: importing it would mark it.
//! - Users have no `limits`: what an operator limited by hand stays.
//! - No plain secret: the broker gets `base64(salt ‖ sha256(salt ‖ password))`, which is its own format
//!   (`rabbit_password_hashing_sha256`).

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::super::kind::{Account, KindError, Owner};
use super::names::Permission;
use super::wants::RabbitmqWants;
use crate::words::{Salt, Secret};

/// What the broker calls the hash below.
const ALGORITHM: &str = "rabbit_password_hashing_sha256";
/// How many bytes of salt its hash has.
const SALT: usize = 4;

#[derive(Serialize)]
struct User<'a> {
    name: &'a str,
    password_hash: &'a str,
    hashing_algorithm: &'static str,
    tags: [&'a str; 1],
}

#[derive(Serialize)]
struct OwnVhost<'a> {
    name: &'a str,
    metadata: Metadata<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    description: &'a str,
    tags: [&'a str; 1],
}

#[derive(Serialize)]
struct Grant<'a> {
    user: &'a str,
    vhost: &'a str,
    configure: String,
    write: String,
    read: String,
}

/// What one user may do on one vhost: all that any of its entries on the list says.
#[derive(Default)]
struct Permissions<'a> {
    configure: BTreeSet<&'a Permission>,
    write: BTreeSet<&'a Permission>,
    read: BTreeSet<&'a Permission>,
}

/// The hash by which the broker knows a password.
pub(super) fn password_hash(salt: Salt, password: &Secret) -> String {
    let salt = salt.0.iter().take(SALT).copied().collect::<Vec<u8>>();
    let mut bytes = salt.clone();
    bytes.extend(
        Sha256::new()
            .chain_update(&salt)
            .chain_update(password.expose().as_bytes())
            .finalize(),
    );
    STANDARD.encode(bytes)
}

/// One expression that admits what any of `permissions` admits. The broker holds one for each user,
/// vhost and verb, while a generation may stand twice on a list, with what its consumer wants now and
/// with what it wanted before.
fn any_of(permissions: &BTreeSet<&Permission>) -> String {
    let mut texts = permissions.iter().map(|permission| permission.as_str());
    match (texts.next(), permissions.len()) {
        (Some(only), 1) => only.to_owned(),
        _ if permissions.contains(&Permission::all()) => Permission::all().as_str().to_owned(),
        _ => {
            let parts: Vec<String> = permissions
                .iter()
                .map(|permission| match permission.as_str() {
                    "" => "(?:^$)".to_owned(), // what the broker reads the empty permission as
                    text => format!("(?:{text})"),
                })
                .collect();
            // `(?|` numbers the groups of each branch from the start, so that `\1` keeps its meaning.
            format!("(?|{})", parts.join("|"))
        }
    }
}

/// The document that names exactly `accounts`.
///
/// # Errors
/// When one account's name stands for two passwords.
pub(super) fn document(
    owner: Owner<'_>,
    accounts: &[(&Account<'_>, &RabbitmqWants)],
) -> Result<String, KindError> {
    let mark = owner.mark();
    let description = format!(
        "Made by grid for the mesh {}, provider {}",
        owner.mesh, owner.provider
    );
    let mut users: BTreeMap<String, String> = BTreeMap::new();
    let mut by_hand: BTreeSet<&str> = BTreeSet::new();
    let mut vhosts: BTreeSet<&str> = BTreeSet::new();
    let mut grants: BTreeMap<(String, &str), Permissions<'_>> = BTreeMap::new();

    for (account, wants) in accounts {
        let name = account.username();
        let hash = password_hash(account.salt, account.secret);
        if users
            .insert(name.clone(), hash.clone())
            .is_some_and(|other| other != hash)
        {
            return Err(KindError::Value {
                consumer: account.consumer.clone(),
                what: "the account",
                why: format!("{name} stands on the list with two passwords"),
            });
        }
        let vhost = wants.vhost(account.consumer);
        if wants.existing() {
            by_hand.insert(vhost);
        } else {
            vhosts.insert(vhost);
        }
        let grant = grants.entry((name, vhost)).or_default();
        grant.configure.insert(wants.configure());
        grant.write.insert(wants.write());
        grant.read.insert(wants.read());
    }

    let users = lines(users.iter().map(|(name, password_hash)| User {
        name,
        password_hash,
        hashing_algorithm: ALGORITHM,
        tags: [&mark],
    }))?;
    let vhosts = lines(vhosts.difference(&by_hand).map(|name| OwnVhost {
        name,
        metadata: Metadata {
            description: &description,
            tags: [&mark],
        },
    }))?;
    let permissions = lines(grants.iter().map(|((user, vhost), grant)| Grant {
        user,
        vhost,
        configure: any_of(&grant.configure),
        write: any_of(&grant.write),
        read: any_of(&grant.read),
    }))?;
    Ok(format!(
        "{{\"users\":[{users}],\n\"vhosts\":[{vhosts}],\n\"permissions\":[{permissions}]}}\n"
    ))
}

/// The items of an array, each on a line of its own.
fn lines<T: Serialize>(items: impl Iterator<Item = T>) -> Result<String, KindError> {
    let mut lines = Vec::new();
    for item in items {
        // Plain texts and maps of them always serialize; the error is here so that nothing panics.
        let line = serde_json::to_string(&item).map_err(|error| KindError::Format {
            why: error.to_string(),
        })?;
        lines.push(format!("\n{line}"));
    }
    Ok(lines.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Wants;
    use crate::words::{Era, Generation, MeshName, ServiceName};

    struct Desk {
        mesh: MeshName,
        provider: ServiceName,
        consumers: Vec<ServiceName>,
        secret: Secret,
    }

    impl Desk {
        fn new() -> Self {
            Self {
                mesh: MeshName::new("prod").unwrap(),
                provider: ServiceName::new("broker").unwrap(),
                consumers: ["billing", "shop"]
                    .map(|n| ServiceName::new(n).unwrap())
                    .into(),
                secret: Secret::new("hunter2-hunter2".into()),
            }
        }

        fn owner(&self) -> Owner<'_> {
            Owner {
                mesh: &self.mesh,
                provider: &self.provider,
            }
        }

        /// (consumer, generation, wants): the salt is the generation's number.
        fn list(&self, accounts: &[(usize, u32, &str)]) -> Result<String, KindError> {
            let accounts: Vec<(usize, u32, Wants)> = accounts
                .iter()
                .map(|&(consumer, number, wants)| {
                    let wants: RabbitmqWants = toml::from_str(wants).unwrap();
                    (consumer, number, Wants::Rabbitmq(wants))
                })
                .collect();
            let accounts: Vec<Account<'_>> = accounts
                .iter()
                .map(|(consumer, number, wants)| Account {
                    owner: self.owner(),
                    consumer: &self.consumers[*consumer],
                    generation: Generation {
                        number: *number,
                        era: Era(1),
                    },
                    secret: &self.secret,
                    salt: Salt([u8::try_from(*number).unwrap(); 16]),
                    wants,
                })
                .collect();
            let accounts: Vec<(&Account<'_>, &RabbitmqWants)> = accounts
                .iter()
                .map(|account| match account.wants {
                    Wants::Rabbitmq(wants) => (account, wants),
                    other => panic!("{other:?}"),
                })
                .collect();
            document(self.owner(), &accounts)
        }
    }

    #[test]
    fn a_password_hash_is_what_the_broker_computes() {
        // python3: base64.b64encode(bytes([1,2,3,4]) + hashlib.sha256(bytes([1,2,3,4]) + b"hunter2").digest())
        assert_eq!(
            password_hash(
                Salt([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
                &Secret::new("hunter2".into())
            ),
            "AQIDBHiV8TIeEo9W0LCE9gcH2fR40TPrs4nTzGL5Pu7u6eDF"
        );
    }

    #[test]
    fn a_list_names_users_by_hash_and_marks_users_and_vhosts() {
        let list = Desk::new()
            .list(&[
                (1, 1, "vhost = \"/\"\nexisting = true\nwrite = \"\""),
                (0, 10, ""),
                (0, 9, "read = \"^a\\\\.\""),
            ])
            .unwrap();
        insta::assert_snapshot!(list, @r#"
{"users":[
{"name":"prod.billing.10","password_hash":"CgoKCvqeh6ht+i9ScPsX+AXAYj7mJA1FK/FgBsz07V0EAWBY","hashing_algorithm":"rabbit_password_hashing_sha256","tags":["grid.prod.broker"]},
{"name":"prod.billing.9","password_hash":"CQkJCdDRoSMbmsGghwWexXoKmqgW1jmHQ4Qav11QJIsQ0AlU","hashing_algorithm":"rabbit_password_hashing_sha256","tags":["grid.prod.broker"]},
{"name":"prod.shop.1","password_hash":"AQEBAZGS5AfmSalSwTY2itfMKtDyo3/njdCCtRLGdes3nKIp","hashing_algorithm":"rabbit_password_hashing_sha256","tags":["grid.prod.broker"]}],
"vhosts":[
{"name":"billing","metadata":{"description":"Made by grid for the mesh prod, provider broker","tags":["grid.prod.broker"]}}],
"permissions":[
{"user":"prod.billing.10","vhost":"billing","configure":".*","write":".*","read":".*"},
{"user":"prod.billing.9","vhost":"billing","configure":".*","write":".*","read":"^a\\."},
{"user":"prod.shop.1","vhost":"/","configure":".*","write":"","read":".*"}]}
"#);
        serde_json::from_str::<serde_json::Value>(&list).unwrap();
    }

    #[test]
    fn one_name_with_two_passwords_is_refused_by_name() {
        let desk = Desk::new();
        let wants = Wants::Rabbitmq(RabbitmqWants::default());
        let account = |salt| Account {
            owner: desk.owner(),
            consumer: &desk.consumers[0],
            generation: Generation {
                number: 1,
                era: Era(salt),
            },
            secret: &desk.secret,
            salt: Salt([u8::try_from(salt).unwrap(); 16]),
            wants: &wants,
        };
        let (old, new) = (account(1), account(2));
        let wants = RabbitmqWants::default();
        let error = document(desk.owner(), &[(&old, &wants), (&new, &wants)]).unwrap_err();
        insta::assert_snapshot!(error, @"the account of billing: prod.billing.1 stands on the list with two passwords");
    }

    #[test]
    fn an_empty_list_is_a_document_too() {
        assert_eq!(
            Desk::new().list(&[]).unwrap(),
            "{\"users\":[],\n\"vhosts\":[],\n\"permissions\":[]}\n"
        );
    }

    #[test]
    fn a_generation_that_stands_twice_may_do_what_either_entry_says() {
        let desk = Desk::new();
        let grants = |accounts: &[(usize, u32, &str)]| {
            let list: serde_json::Value =
                serde_json::from_str(&desk.list(accounts).unwrap()).unwrap();
            assert_eq!(list["users"].as_array().unwrap().len(), 1);
            list["permissions"].clone()
        };
        // On two vhosts: a permission on each.
        let two = grants(&[(0, 1, "vhost = \"old\""), (0, 1, "vhost = \"new\"")]);
        assert_eq!(two[0]["vhost"], "new");
        assert_eq!(two[1]["vhost"], "old");
        // On one vhost: the union, without the group numbers of one changing those of the other.
        let one = grants(&[
            (0, 1, "read = \"^(a)\\\\1$\"\nwrite = \"x\""),
            (0, 1, "read = \"\"\nwrite = \"x\""),
            (0, 1, "read = \"^(b)\\\\1$\"\nwrite = \"x\""),
        ]);
        assert_eq!(one.as_array().unwrap().len(), 1);
        assert_eq!(one[0]["read"], r"(?|(?:^$)|(?:^(a)\1$)|(?:^(b)\1$))");
        assert_eq!(one[0]["write"], "x");
        assert_eq!(one[0]["configure"], ".*");
        assert_eq!(
            grants(&[(0, 1, "read = \"a\""), (0, 1, "")])[0]["read"],
            ".*"
        );
    }

    #[test]
    fn a_vhost_that_somebody_takes_as_made_by_hand_is_marked_for_nobody() {
        let list = Desk::new()
            .list(&[
                (0, 1, "vhost = \"shared\"\nexisting = true"),
                (1, 1, "vhost = \"shared\""),
            ])
            .unwrap();
        let list: serde_json::Value = serde_json::from_str(&list).unwrap();
        assert_eq!(list["vhosts"], serde_json::json!([]));
        assert_eq!(list["permissions"].as_array().unwrap().len(), 2);
    }
}
