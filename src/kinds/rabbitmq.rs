//! RabbitMQ: a vhost and a user for each consumer. (Being built.)

use serde::{Deserialize, Serialize};

use super::kind::{
    Account, Binding, Endpoint, GrantList, KindError, Owner, ProviderKind, Script, Templates,
};

/// The settings of a RabbitMQ provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rabbitmq {}

/// What a consumer wants of a RabbitMQ provider.
#[derive(
    Debug,
    Clone,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct RabbitmqWants {
    /// The vhost; absent: the consumer's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vhost: Option<String>,
}

impl ProviderKind for Rabbitmq {
    fn default_port(&self) -> Option<u16> {
        Some(5672)
    }
    fn list(
        &self,
        _: Owner<'_>,
        accounts: &[Account<'_>],
        _: Templates<'_>,
    ) -> Result<GrantList, KindError> {
        let names: Vec<String> = accounts.iter().map(Account::username).collect();
        Ok(GrantList {
            extension: "json",
            content: crate::words::Secret::new(names.join("\n")),
        })
    }
    fn load(&self, _: Owner<'_>) -> Script {
        Script(String::new())
    }
    fn check(&self, _: Owner<'_>) -> Script {
        Script(String::new())
    }
    fn binding(&self, _: &Endpoint, _: &Account<'_>) -> Result<Binding, KindError> {
        Ok(Binding {
            entries: vec![],
            env: vec![],
        })
    }
}
