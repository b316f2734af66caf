//! Names on a line of metrics, and of who is measured.
//!
//! A name is written without quotes or escapes, on a line and into a manifest: it holds nothing but the characters that
//! its rule allows.

use super::ServiceName;
use super::name::name;

/// The longest name of a metric or a label, in bytes.
pub const LONGEST_NAME: usize = 256;

/// The longest DNS-1123 subdomain, in bytes.
pub(super) const LONGEST_SUBDOMAIN: usize = 253;

/// Why a text is not a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MetricNameError {
    /// More than this many bytes.
    #[error("a name has at most {0} characters")]
    TooLong(usize),
    /// No metric.
    #[error("the name of a metric is letters, digits, underscores and colons, and no digit first")]
    Metric,
    /// No label.
    #[error("the name of a label is letters, digits and underscores, and no digit first")]
    Label,
    /// No subdomain.
    #[error(
        "a name is lowercase letters, digits, hyphens and dots, and each part starts and ends with a letter or a digit"
    )]
    Subdomain,
}

/// Whether a byte may stand in a metric's name after its first one.
pub const fn is_metric_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':'
}

/// Whether a byte may stand in a label's name after its first one.
pub const fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn check(
    text: &str,
    allowed: fn(u8) -> bool,
    otherwise: MetricNameError,
) -> Result<(), MetricNameError> {
    if text.len() > LONGEST_NAME {
        return Err(MetricNameError::TooLong(LONGEST_NAME));
    }
    match text.as_bytes() {
        [first, ..] if !first.is_ascii_digit() && text.bytes().all(allowed) => Ok(()),
        _ => Err(otherwise),
    }
}

fn check_metric(text: &str) -> Result<(), MetricNameError> {
    check(text, is_metric_byte, MetricNameError::Metric)
}

fn check_label(text: &str) -> Result<(), MetricNameError> {
    check(text, is_label_byte, MetricNameError::Label)
}

pub(super) fn check_subdomain(text: &str) -> Result<(), MetricNameError> {
    if text.len() > LONGEST_SUBDOMAIN {
        return Err(MetricNameError::TooLong(LONGEST_SUBDOMAIN));
    }
    let is_part = |part: &str| {
        let edge =
            |byte: Option<u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        edge(part.bytes().next())
            && edge(part.bytes().last())
            && part
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    if text.split('.').all(is_part) {
        Ok(())
    } else {
        Err(MetricNameError::Subdomain)
    }
}

name!(
    /// The name of a metric: `[a-zA-Z_:][a-zA-Z0-9_:]*`, at most 256 bytes.
    MetricName,
    check_metric,
    MetricNameError,
    "^[a-zA-Z_:][a-zA-Z0-9_:]*$",
    LONGEST_NAME
);
name!(
    /// The name of a label: `[a-zA-Z_][a-zA-Z0-9_]*`, at most 256 bytes.
    LabelName,
    check_label,
    MetricNameError,
    "^[a-zA-Z_][a-zA-Z0-9_]*$",
    LONGEST_NAME
);
name!(
    /// The name of a provider as a site observes it: a DNS-1123 subdomain, at most 253 bytes. Ours are services; those of
    /// a Kubernetes site may hold dots.
    ProviderName,
    check_subdomain,
    MetricNameError,
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    LONGEST_SUBDOMAIN
);
impl From<&ServiceName> for ProviderName {
    fn from(service: &ServiceName) -> Self {
        Self(service.as_str().into()) // a label is a subdomain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_metric_may_hold_colons_and_that_of_a_label_may_not() {
        for good in ["a", "_", ":", "vllm:num_requests_waiting", "A9_:"] {
            assert_eq!(MetricName::new(good).unwrap().as_str(), good);
        }
        for wrong in ["", "9a", "a-b", "a b", "é", "a\n"] {
            assert_eq!(
                MetricName::new(wrong),
                Err(MetricNameError::Metric),
                "{wrong:?}"
            );
        }
        assert!(LabelName::new("model_name").is_ok());
        assert_eq!(LabelName::new("a:b"), Err(MetricNameError::Label));
        assert_eq!(LabelName::new("0"), Err(MetricNameError::Label));
        assert!(MetricName::new(&"a".repeat(256)).is_ok());
        assert_eq!(
            MetricName::new(&"a".repeat(257)),
            Err(MetricNameError::TooLong(256))
        );
    }

    #[test]
    fn a_provider_is_a_subdomain() {
        for good in ["broker", "0", "pool.team-a", "a-b.c"] {
            assert!(ProviderName::new(good).is_ok(), "{good}");
        }
        for wrong in [
            "", ".", "a.", ".a", "a..b", "-a", "a-", "a-.b", "A", "a_b", "a/b",
        ] {
            assert_eq!(
                ProviderName::new(wrong),
                Err(MetricNameError::Subdomain),
                "{wrong:?}"
            );
        }
        assert_eq!(
            ProviderName::new(&"a".repeat(254)),
            Err(MetricNameError::TooLong(253))
        );
    }
}
