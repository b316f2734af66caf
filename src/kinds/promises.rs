//! What [`ProviderKind`] promises, asked of every kind. A new kind gets a sample in [`sample`].

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::words::{Era, Generation, MeshName, Salt, Secret, ServiceName};

/// Settings, as the rest of a `provides` table; wants that differ, as the rest of `consumes` tables.
struct Sample {
    provider: Provider,
    wants: Vec<Wants>,
}

fn sample(name: &str) -> Sample {
    let (settings, wants) = match name {
        "rabbitmq" => (
            "rabbitmqctl = ['docker', 'exec', '-i', \"it's\", 'rabbitmqctl']",
            [
                "",
                "vhost = 'shared'\nread = '^a'",
                "vhost = '/'\nexisting = true\nwrite = ''",
            ],
        ),
        "custom" => (
            "template = 'keys.j2'\nload = ['keys', 'load']\ncheck = ['keys', 'check']
             type = 'keys'\nuri = 'keys://{{ username }}:{{ password }}@{{ authority }}'
             entries = { scope = '{{ wants.scope|default(\"all\") }}' }
             env = { KEYS_URL = 'http://{{ host }}:{{ port }}/{{ password }}' }",
            [
                "",
                "scope = 'read'",
                "scope = 'write'\nrate = 5\nadmin = true",
            ],
        ),
        other => panic!("give the kind {other} a sample here"),
    };
    let toml = |text| toml::de::Deserializer::parse(text).unwrap();
    let provider = Provider::read(name, toml(settings)).unwrap().unwrap();
    let wants = wants
        .iter()
        .map(|text| provider.read_wants(toml(text)).unwrap())
        .collect();
    Sample { provider, wants }
}

fn samples() -> Vec<Sample> {
    NAMES.iter().map(|name| sample(name)).collect()
}

fn template(path: &str) -> Result<String, KindError> {
    assert_eq!(path, "keys.j2");
    Ok(
        "{% for a in accounts %}{{ a.username }} {{ a.salt }} {{ a.salted_sha256 }} \
        {{ a.wants|tojson }}\n{% endfor %}"
            .to_owned(),
    )
}

struct Desk {
    mesh: MeshName,
    provider: ServiceName,
    consumers: Vec<ServiceName>,
    secrets: Vec<Secret>,
}

const CONSUMERS: usize = 3;
const GENERATIONS: usize = 4;
const WANTS: usize = 3;

impl Desk {
    fn new() -> Self {
        Self {
            mesh: MeshName::new("prod").unwrap(),
            provider: ServiceName::new("broker").unwrap(),
            consumers: (0..CONSUMERS)
                .map(|n| ServiceName::new(&format!("consumer-{n}")).unwrap())
                .collect(),
            secrets: (0..CONSUMERS * GENERATIONS)
                .map(|n| Secret::new(format!("planted-secret-{n:02}-of-a-consumer")))
                .collect(),
        }
    }

    fn owner(&self) -> Owner<'_> {
        Owner {
            mesh: &self.mesh,
            provider: &self.provider,
        }
    }

    fn account<'a>(&'a self, consumer: usize, generation: usize, wants: &'a Wants) -> Account<'a> {
        Account {
            owner: self.owner(),
            consumer: &self.consumers[consumer],
            generation: Generation {
                number: u32::try_from(generation + 1).unwrap(),
                era: Era(1),
            },
            secret: &self.secrets[consumer * GENERATIONS + generation],
            salt: Salt([u8::try_from(consumer * GENERATIONS + generation).unwrap(); 16]),
            wants,
        }
    }

    fn list(&self, sample: &Sample, accounts: &[(usize, usize, usize)]) -> String {
        let accounts: Vec<Account<'_>> = accounts
            .iter()
            .map(|&(consumer, generation, wants)| {
                self.account(consumer, generation, &sample.wants[wants])
            })
            .collect();
        let list = sample
            .provider
            .kind()
            .list(self.owner(), &accounts, &template)
            .unwrap();
        assert!(!format!("{list:?}").contains("prod"), "its Debug shows it");
        assert!(
            (1..=16).contains(&list.extension.len())
                && list
                    .extension
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        );
        list.content.expose().to_owned()
    }

    fn binding(&self, sample: &Sample, generation: usize, wants: usize) -> Binding {
        let endpoint = Endpoint {
            host: "2001:db8::1".into(),
            port: 5672,
        };
        sample
            .provider
            .kind()
            .binding(
                &endpoint,
                &self.account(0, generation, &sample.wants[wants]),
            )
            .unwrap()
    }
}

proptest! {
    #[test]
    fn the_same_accounts_in_any_order_give_the_same_bytes(
        (accounts, shuffled) in prop::collection::vec(
            (0..CONSUMERS, 0..GENERATIONS, 0..WANTS), 0..20
        ).prop_flat_map(|accounts| (Just(accounts.clone()), Just(accounts).prop_shuffle()))
    ) {
        let desk = Desk::new();
        let once: Vec<_> = accounts.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        for sample in samples() {
            let list = desk.list(&sample, &accounts);
            prop_assert_eq!(&desk.list(&sample, &shuffled), &list);
            prop_assert_eq!(&desk.list(&sample, &once), &list);
        }
    }
}

#[test]
fn an_empty_list_renders() {
    for sample in samples() {
        assert!(!names_an_account(&Desk::new().list(&sample, &[])));
    }
}

fn names_an_account(list: &str) -> bool {
    list.contains("prod.consumer-")
}

#[test]
fn two_generations_stand_side_by_side_under_different_names() {
    let desk = Desk::new();
    for sample in samples() {
        let list = desk.list(&sample, &[(0, 0, 0), (0, 1, 0)]);
        assert!(list.contains("prod.consumer-0.1") && list.contains("prod.consumer-0.2"));
        let of = |generation, entry: &str| {
            let binding = desk.binding(&sample, generation, 0);
            let entry = binding.entries.iter().find(|e| e.name == entry).unwrap();
            entry.value.expose().to_owned()
        };
        assert_eq!(of(0, "username"), "prod.consumer-0.1");
        assert_eq!(of(1, "username"), "prod.consumer-0.2");
        assert_ne!(of(0, "password"), of(1, "password"));
    }
}

#[test]
fn a_binding_has_a_type_and_names_as_the_specification_has_them() {
    let desk = Desk::new();
    for sample in samples() {
        for wants in 0..WANTS {
            let binding = desk.binding(&sample, 0, wants);
            let mut names = BTreeSet::new();
            for entry in &binding.entries {
                let name = entry.name.as_str();
                assert!(
                    (1..=253).contains(&name.len())
                        && name
                            .bytes()
                            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.')),
                    "{name}"
                );
                assert!(names.insert(name), "{name} twice");
                assert!(!entry.value.expose().ends_with('\n'), "{name}");
            }
            for name in ["type", "provider", "host", "port", "username", "password"] {
                assert!(names.contains(name), "{name}");
            }
            for variable in &binding.env {
                let name = variable.name.as_str();
                assert!(
                    !name.starts_with(|c: char| c.is_ascii_digit())
                        && !name.is_empty()
                        && name
                            .bytes()
                            .all(|b| matches!(b, b'A'..=b'Z' | b'0'..=b'9' | b'_')),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn what_holds_the_secret_is_marked_as_secret() {
    let desk = Desk::new();
    for sample in samples() {
        let binding = desk.binding(&sample, 0, 1);
        assert!(!format!("{binding:?}").contains("planted-secret"));
        for entry in binding.entries.iter().chain(&binding.env) {
            if let Value::Plain(text) = &entry.value {
                assert!(!text.contains("planted-secret"), "{}", entry.name);
            }
        }
    }
}

#[test]
fn no_plain_secret_is_on_a_list_that_can_do_without_or_in_a_script() {
    let desk = Desk::new();
    for sample in samples() {
        let list = desk.list(&sample, &[(0, 0, 0), (1, 2, 1), (2, 3, 2)]);
        assert!(names_an_account(&list));
        assert!(!list.contains("planted-secret"));
        let kind = sample.provider.kind();
        for Script(text) in [kind.load(desk.owner()), kind.check(desk.owner())] {
            assert!(!text.contains("planted-secret") && !text.trim().is_empty());
        }
    }
}

#[test]
fn settings_and_wants_read_back_from_json() {
    for sample in samples() {
        let json = serde_json::to_string(&sample.provider).unwrap();
        assert_eq!(
            serde_json::from_str::<Provider>(&json).unwrap(),
            sample.provider
        );
        for wants in sample.wants {
            let json = serde_json::to_string(&wants).unwrap();
            assert_eq!(serde_json::from_str::<Wants>(&json).unwrap(), wants);
        }
    }
}

#[test]
fn an_unknown_setting_is_refused() {
    for name in NAMES {
        let mut json = serde_json::to_value(&sample(name).provider).unwrap();
        let settings = json.as_object_mut().unwrap();
        settings.remove("kind");
        settings.insert("prot".into(), 5672.into());
        let error = Provider::read(name, json).unwrap().unwrap_err().to_string();
        assert!(error.contains("unknown field `prot`, expected"), "{error}");
    }
}

#[test]
fn wants_in_the_words_of_another_kind_are_refused_by_name() {
    let desk = Desk::new();
    for sample in samples() {
        for other in samples()
            .iter()
            .filter(|s| s.provider.name() != sample.provider.name())
        {
            let account = desk.account(0, 0, &other.wants[1]);
            let kind = sample.provider.kind();
            let refused = Err(KindError::Wants {
                consumer: account.consumer.clone(),
                kind: sample.provider.name(),
            });
            let endpoint = Endpoint {
                host: "h".into(),
                port: 1,
            };
            let list = kind.list(desk.owner(), std::slice::from_ref(&account), &template);
            assert_eq!(list.map(|_| ()), refused);
            assert_eq!(kind.binding(&endpoint, &account).map(|_| ()), refused);
        }
    }
}

#[test]
fn a_want_that_is_wrong_as_a_whole_is_told_where_its_table_stands() {
    let wants = "[consumes]\nother = {}\nbroker = { vhost = \"/\", read = \"a\" }";
    let read = toml::from_str::<
        std::collections::BTreeMap<String, std::collections::BTreeMap<String, RabbitmqWants>>,
    >(wants);
    insta::assert_snapshot!(read.unwrap_err(), @r#"
TOML parse error at line 3, column 10
  |
3 | broker = { vhost = "/", read = "a" }
  |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^
the vhost "/" belongs to the broker: say existing = true beside it, or name another one
"#);
}
