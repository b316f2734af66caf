//! Provider kinds, one file each (DESIGN.md, section 3, "A provider kind").
//!
//! A new kind is one file here and one line in [`kinds!`]'s list at the end of this file. No kind does
//! I/O: it says what a provider's machine is told, the shell that loads and reads it back, and what a
//! consumer is given.

mod custom;
mod engine;
mod kind;
mod missing;
mod percent;
mod printed;
#[cfg(test)]
mod promises;
pub mod rabbitmq;
mod runs;
mod template_error;

pub use custom::{
    BINDING_NAMES, BindingType, Custom, CustomWants, EntryName, Extension, Inline, NameError,
    Variable, WantName, WantValue, quoted,
};
pub use engine::engine;
pub use kind::{
    Account, Binding, Endpoint, Entry, GrantList, KindError, Owner, ProviderKind, Script,
    Templates, Value,
};
pub use missing::{Found, Missing, innermost, missing};
pub use printed::{Names, no_text};
pub use rabbitmq::{Permission, Rabbitmq, RabbitmqWants, Vhost, WantError};
pub use runs::{Runs, UserName};
pub use template_error::TemplateError;

use serde::{Deserialize, Serialize};

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:literal => $variant:ident, $wants:ident;)*) => {
        /// The kind and settings of a provider, as in its `provides` table.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(tag = "kind")]
        pub enum Provider {
            $($(#[$doc])* #[serde(rename = $name)] $variant($variant),)*
        }

        /// What one consumer wants of a provider, as in its `consumes` table: the kind's own words.
        #[derive(
            Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
        )]
        #[serde(tag = "kind")]
        pub enum Wants {
            $($(#[$doc])* #[serde(rename = $name)] $variant($wants),)*
        }

        /// The names of all kinds, as the declaration writes them.
        pub const NAMES: &[&str] = &[$($name),*];

        impl Provider {
            /// The kind's name, as the declaration writes it.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }

            /// What the kind does.
            #[must_use]
            pub fn kind(&self) -> &dyn ProviderKind {
                match self { $(Self::$variant(settings) => settings,)* }
            }

            /// Reads the settings of the kind `name` from the rest of a `provides` table (without
            /// `kind`, and without the keys that all kinds share). `None`: no such kind.
            pub fn read<'de, D: serde::Deserializer<'de>>(name: &str, rest: D) -> Option<Result<Self, D::Error>> {
                match name {
                    $($name => Some($variant::deserialize(rest).map(Self::$variant)),)*
                    _ => None,
                }
            }

            /// Reads what a consumer wants from the rest of a `consumes` table (without `wait`).
            ///
            /// # Errors
            /// When a key is unknown to this kind, or a value is wrong.
            pub fn read_wants<'de, D: serde::Deserializer<'de>>(&self, rest: D) -> Result<Wants, D::Error> {
                match self { $(Self::$variant(_) => $wants::deserialize(rest).map(Wants::$variant),)* }
            }

            /// What a consumer wants that says nothing about it.
            #[must_use]
            pub fn default_wants(&self) -> Wants {
                match self { $(Self::$variant(_) => Wants::$variant($wants::default()),)* }
            }
        }

        impl Wants {
            /// The name of the kind in whose words it is, as the declaration writes it.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }
        }

        /// The schemas of the kinds, for the declaration's: name, settings, wants.
        #[must_use]
        pub fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema, schemars::Schema)> {
            vec![$(($name, generator.subschema_for::<$variant>(), generator.subschema_for::<$wants>()),)*]
        }
    };
}

kinds! {
    /// A RabbitMQ broker: a vhost, and a user on it.
    "rabbitmq" => Rabbitmq, RabbitmqWants;
    /// A provider of the operator's own: a template, a load and a check.
    "custom" => Custom, CustomWants;
}
