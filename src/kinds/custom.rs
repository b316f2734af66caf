//! A provider of the operator's own: a template for the list, a command that loads it, and one that
//! checks it. Both commands read the list from standard input, as every kind's do.

mod asked;
mod names;
mod template;
mod wants;

pub use names::{BindingType, EntryName, Extension, NameError, Variable, WantName};
pub(super) use template::is_quotable;
pub use template::{Inline, quoted};
pub use wants::{CustomWants, WantValue};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Wants;
use super::kind::{
    Account, Binding, Endpoint, Entry, GrantList, KindError, Owner, ProviderKind, Script,
    Templates, Value,
};
use super::missing::Missing;
use super::template_error::TemplateError;
use crate::words::{Command, Digest, ReleasePath};

/// The kind's name in the declaration.
const NAME: &str = "custom";

/// The settings of a custom provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Custom {
    /// The template of the grant list, a file beside the declaration. It sees `mesh`, `provider`, `mark` and
    /// `accounts`, in order; of each account `username`, `consumer`, `generation`, `password`, `sha256`
    /// (of the password, in hexadecimal), `salt` (in hexadecimal), `salted_sha256` (of salt and
    /// password) and `wants`. An account stands there twice while its consumer still uses what it
    /// wanted before.
    pub template: ReleasePath,
    /// The list is the file `grants.EXTENSION`; absent: `txt`.
    #[serde(default)]
    pub extension: Extension,
    /// Makes the provider admit exactly the list, which it reads from standard input: adds, changes and
    /// revokes. Runs on the provider's machine.
    pub load: Command,
    /// Exits 0 only if the provider admits exactly the list, which it reads from standard input. Changes
    /// nothing.
    pub check: Command,
    /// The `type` of the binding; absent: `custom`.
    #[serde(default, rename = "type")]
    pub binding_type: BindingType,
    /// A template of the binding's `uri`; absent: it has none. It sees `mesh`, `provider`, `consumer`,
    /// `generation`, `host`, `port`, `authority` (host and port as a URI has them), `username`,
    /// `password` and `wants`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<Inline>,
    /// Further entries of the binding, each a template as `uri` is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub entries: BTreeMap<EntryName, Inline>,
    /// Variables of the consumer's environment file, each a template as `uri` is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<Variable, Inline>,
}

/// What the templates of a binding see; the values are put together in [`Custom::binding`].
pub const BINDING_NAMES: [&str; 10] = [
    "authority",
    "consumer",
    "generation",
    "host",
    "mesh",
    "password",
    "port",
    "provider",
    "username",
    "wants",
];

/// What the template of a list sees; the values are put together in [`Custom::list`].
const LIST_NAMES: [&str; 4] = ["mesh", "provider", "mark", "accounts"];

impl Custom {
    /// The names that the template of the list, whose text is `source`, asks for and that nothing fills in: a rendering fails that
    /// comes to one of them, and there may be none that does. In the order of the text.
    #[must_use]
    pub fn unknown_in_list(&self, source: &str) -> Vec<TemplateError> {
        let unknown = template::unknown(source, &LIST_NAMES).into_iter();
        let (mut line, mut counted) = (1_usize, 0);
        let unknown = unknown.map(|unknown| {
            let between = source.get(counted..unknown.at.start).unwrap_or("");
            line = line.saturating_add(between.matches('\n').count());
            counted = unknown.at.start;
            let missing = Missing {
                of: None,
                name: unknown.name,
                there: LIST_NAMES.map(str::to_owned).to_vec(),
                at: unknown.at,
            };
            TemplateError {
                missing: Some(Box::new(missing.clone())),
                ..TemplateError::new(self.template.as_str(), Some(line), missing.to_string())
            }
        });
        unknown.collect()
    }

    /// The names in its templates of a binding that nothing fills in, each with the key of its template.
    #[must_use]
    pub fn unknown_names(&self) -> Vec<(String, String)> {
        let uri = self.uri.iter().map(|uri| ("uri".to_owned(), uri));
        let entries = self.entries.iter();
        let entries = entries.map(|(name, entry)| (format!("entries.{}", name.as_str()), entry));
        let env = self.env.iter();
        let env = env.map(|(name, entry)| (format!("env.{}", name.as_str()), entry));
        let all = uri.chain(entries).chain(env);
        all.flat_map(|(key, template)| {
            let unknown = template.unknown(&BINDING_NAMES).into_iter();
            unknown.map(move |unknown| (key.clone(), unknown.name))
        })
        .collect()
    }
}

fn wants<'a>(account: &Account<'a>) -> Result<&'a CustomWants, KindError> {
    match account.wants {
        Wants::Custom(wants) => Ok(wants),
        _ => Err(KindError::Wants {
            consumer: account.consumer.clone(),
            kind: NAME,
        }),
    }
}

fn wants_value(wants: &CustomWants) -> minijinja::Value {
    let pairs = wants
        .0
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_template()));
    minijinja::Value::from_pairs(pairs)
}

/// What the template of a list sees of an account.
fn account_value(account: &Account<'_>) -> Result<minijinja::Value, KindError> {
    let password = account.secret.expose();
    let salted = Sha256::new()
        .chain_update(account.salt.0)
        .chain_update(password.as_bytes())
        .finalize();
    let salt: String = account.salt.0.iter().map(|b| format!("{b:02x}")).collect();
    Ok(minijinja::context! {
        username => account.username(),
        consumer => account.consumer.as_str(),
        generation => account.generation.number,
        password => password,
        sha256 => Digest::of(password.as_bytes()).to_string(),
        salt => salt,
        salted_sha256 => Digest::from_bytes(salted.into()).to_string(),
        wants => wants_value(wants(account)?),
    })
}

impl ProviderKind for Custom {
    fn default_port(&self) -> Option<u16> {
        None
    }

    fn sources(&self) -> Vec<&ReleasePath> {
        vec![&self.template]
    }

    fn list(
        &self,
        owner: Owner<'_>,
        accounts: &[Account<'_>],
        templates: Templates<'_>,
    ) -> Result<GrantList, KindError> {
        let mut sorted: Vec<&Account<'_>> = accounts.iter().collect();
        sorted.sort_by_key(|a| (a.consumer, a.generation, a.wants));
        sorted.dedup_by_key(|a| (a.consumer, a.generation, a.wants));
        let source = templates(self.template.as_str())?;
        let accounts = sorted
            .into_iter()
            .map(account_value)
            .collect::<Result<Vec<_>, _>>()?;
        let list = minijinja::context! {
            mesh => owner.mesh.as_str(),
            provider => owner.provider.as_str(),
            mark => owner.mark(),
            accounts => accounts,
        };
        Ok(GrantList {
            extension: self.extension.as_str().to_owned(),
            content: template::render(self.template.as_str(), &source, list)
                .map_err(|wrong| KindError::Template(Box::new(wrong)))?,
        })
    }

    fn load(&self, _: Owner<'_>) -> Script {
        Script(format!("{}\n", self.load.to_shell()))
    }

    fn check(&self, _: Owner<'_>) -> Script {
        Script(format!("{}\n", self.check.to_shell()))
    }

    fn binding(&self, endpoint: &Endpoint, account: &Account<'_>) -> Result<Binding, KindError> {
        let username = account.username();
        let values = minijinja::context! {
            mesh => account.owner.mesh.as_str(),
            provider => account.owner.provider.as_str(),
            consumer => account.consumer.as_str(),
            generation => account.generation.number,
            host => endpoint.host.as_str(),
            port => endpoint.port,
            authority => endpoint.authority(),
            username => username.as_str(),
            password => account.secret.expose(),
            wants => wants_value(wants(account)?),
        };
        let provider = account.owner.provider;
        let setting = |key: &str| format!("`{key}` of `[services.{provider}.provides]`");
        let mut entries = vec![
            Entry::plain("type", self.binding_type.as_str()),
            Entry::plain("provider", NAME),
            Entry::plain("host", endpoint.host.as_str()),
            Entry::plain("port", endpoint.port.to_string()),
            Entry::plain("username", username.as_str()),
            Entry::secret("password", account.secret.expose()),
        ];
        let mut wrong = Vec::new();
        // Whether what a template says holds the password cannot be known, so all of it is secret.
        let mut entry = |name: &str, key: String, inline: &Inline| {
            let rendered = inline.render(&setting(&key), values.clone());
            let value = rendered.map_err(|error| wrong.push(error)).ok()?;
            Some(Entry {
                name: name.to_owned(),
                value: Value::Secret(value),
            })
        };
        if let Some(uri) = &self.uri {
            entries.extend(entry("uri", "uri".to_owned(), uri));
        }
        for (name, inline) in &self.entries {
            let name = name.as_str();
            entries.extend(entry(name, format!("entries.{name}"), inline));
        }
        let env = self.env.iter().filter_map(|(name, inline)| {
            let name = name.as_str();
            entry(name, format!("env.{name}"), inline)
        });
        let env = env.collect();
        match TemplateError::together(wrong) {
            None => Ok(Binding { entries, env }),
            Some(wrong) => Err(KindError::Template(Box::new(wrong))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::{Era, Generation, MeshName, Salt, Secret, ServiceName};

    #[test]
    fn every_name_that_a_binding_sees_is_known_and_no_other_is() {
        let all: Vec<String> = BINDING_NAMES
            .iter()
            .map(|name| format!("{{{{ {name} }}}}"))
            .collect();
        let custom = |uri: &str| -> Custom {
            let text = format!(
                "template = \"t\"\nload = [\"l\"]\ncheck = [\"c\"]\nuri = {uri:?}\nentries = {{ a = \"{{{{ hots }}}}\", b = \"{{% if host %}}{{% set x = 1 %}}{{% endif %}}{{{{ x }}}}{{{{ y|default(host) }}}}\" }}\n\
                 env = {{ A = \"{{% for i in range(3) %}}{{{{ i }}}}{{% endfor %}}{{{{ usernme|upper }}}}\" }}\n"
            );
            toml::from_str(&text).unwrap()
        };
        let unknown = custom(&all.concat()).unknown_names();
        let unknown: Vec<String> = unknown
            .iter()
            .map(|(key, name)| format!("{key} {name}"))
            .collect();
        assert_eq!(unknown, ["entries.a hots", "env.A usernme"]);
    }

    #[test]
    fn a_list_and_a_binding_say_what_the_operators_templates_say() {
        let mesh = MeshName::new("prod").unwrap();
        let provider = ServiceName::new("keys").unwrap();
        let consumer = ServiceName::new("billing").unwrap();
        let custom: Custom = toml::from_str(
            r#"
            template = "templates/keys.j2"
            extension = "acl"
            load = ["keys", "load"]
            check = ["keys", "check"]
            type = "keys"
            uri = "https://{{ username|urlencode }}:{{ password }}@{{ authority }}/{{ wants.scope }}"
            entries = { scope = "{{ wants.scope }}" }
            env = { KEYS_TOKEN = "{{ password }}" }
            "#,
        )
        .unwrap();
        let wants = Wants::Custom(toml::from_str("scope = \"read\"\nrate = 5").unwrap());
        let owner = Owner {
            mesh: &mesh,
            provider: &provider,
        };
        let account = Account {
            owner,
            consumer: &consumer,
            generation: Generation {
                number: 2,
                era: Era(1),
            },
            secret: &Secret::new("hunter2".into()),
            salt: Salt([0xab; 16]),
            wants: &wants,
        };
        let template = |path: &str| {
            assert_eq!(path, "templates/keys.j2");
            Ok("# {{ mesh }} {{ provider }} {{ mark }}\n{% for a in accounts %}\
                {{ a.username }} {{ a.consumer }} {{ a.generation }} {{ a.password }} {{ a.wants.rate + 1 }}\n\
                {{ a.sha256 }}\n{{ a.salt }} {{ a.salted_sha256 }}\n{% endfor %}"
                .to_owned())
        };
        let list = custom
            .list(owner, std::slice::from_ref(&account), &template)
            .unwrap();
        assert_eq!(list.extension, "acl");
        // The hashes are those of python3's hashlib.
        insta::assert_snapshot!(list.content.expose(), @"
# prod keys grid.prod.keys
prod.billing.2 billing 2 hunter2 6
f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7
abababababababababababababababab 2f12179e753204041bc04bdae31639d55307176406ed291806edfd2e441b30e2
");

        let endpoint = Endpoint {
            host: "::1".into(),
            port: 443,
        };
        let binding = custom.binding(&endpoint, &account).unwrap();
        let lines: Vec<String> = binding
            .entries
            .iter()
            .chain(&binding.env)
            .map(|entry| format!("{}={}", entry.name, entry.value.expose()))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @"
type=keys
provider=custom
host=::1
port=443
username=prod.billing.2
password=hunter2
uri=https://prod.billing.2:hunter2@[::1]:443/read
scope=read
KEYS_TOKEN=hunter2
");

        let wants = Wants::Custom(CustomWants::default());
        let error = custom.binding(
            &endpoint,
            &Account {
                wants: &wants,
                ..account
            },
        );
        insta::assert_snapshot!(error.unwrap_err(), @"`uri` of `[services.keys.provides]`: undefined value: `wants` has no `scope`; it is empty; and `entries.scope` of `[services.keys.provides]`: undefined value: `wants` has no `scope`; it is empty");
    }

    #[test]
    fn wrong_settings_are_refused_where_they_stand() {
        let errors: Vec<String> = [
            "uri = \"{{ host }\"",
            "extension = \"../x\"",
            "env = { api = \"x\" }",
            "entries = { password = \"x\" }",
            "template = \"/etc/x\"",
            "load = []",
        ]
        .into_iter()
        .map(|text| toml::from_str::<Custom>(text).unwrap_err().to_string())
        .collect();
        insta::assert_snapshot!(errors.join("\n"), @r#"
TOML parse error at line 1, column 7
  |
1 | uri = "{{ host }"
  |       ^^^^^^^^^^^
unexpected `}`, expected end of variable block

TOML parse error at line 1, column 13
  |
1 | extension = "../x"
  |             ^^^^^^
an extension is 1 to 16 lowercase letters and digits

TOML parse error at line 1, column 9
  |
1 | env = { api = "x" }
  |         ^^^
a variable is 1 to 63 uppercase letters, digits and underscores, no digit first

TOML parse error at line 1, column 13
  |
1 | entries = { password = "x" }
  |             ^^^^^^^^
a binding's entry is 1 to 253 lowercase letters, digits, dots and hyphens, no dot first, and not one of type, provider, host, port, username, password, uri

TOML parse error at line 1, column 12
  |
1 | template = "/etc/x"
  |            ^^^^^^^^
a path in a release is relative

TOML parse error at line 1, column 8
  |
1 | load = []
  |        ^^
a command names at least a program
"#);
    }
}
