//! Where a provider shows its metrics.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest URL, in bytes.
const LONGEST: usize = 2048;

/// Why a text is no such URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Another scheme.
    #[error(
        "a site scrapes http:// only: it scrapes its own machine's providers, on the loopback or a private network"
    )]
    Scheme,
    /// Anything else.
    #[error(
        "a URL of metrics is http://HOST[:PORT]/PATH, at most {LONGEST} bytes, without a user, a blank or a fragment"
    )]
    Form,
}

/// An `http://` URL with its host, port and path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ScrapeUrl {
    host: Box<str>,
    port: u16,
    path: Box<str>,
}

impl ScrapeUrl {
    /// Parses a URL.
    ///
    /// # Errors
    /// When it is no `http://` URL.
    pub fn new(text: &str) -> Result<Self, UrlError> {
        let is_plain =
            |b: u8| (b'!'..=b'~').contains(&b) && !matches!(b, b'#' | b'"' | b'\\' | b'<' | b'>');
        let rest = text.strip_prefix("http://").ok_or(UrlError::Scheme)?;
        if text.len() > LONGEST || !rest.bytes().all(is_plain) {
            return Err(UrlError::Form);
        }
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let path = if path.starts_with('?') {
            format!("/{path}")
        } else {
            path.to_owned()
        };
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, port) = bracketed.split_once(']').ok_or(UrlError::Form)?;
                host.parse::<std::net::Ipv6Addr>()
                    .map_err(|_| UrlError::Form)?;
                (host, port)
            }
            None => {
                let (host, port) =
                    authority.split_at(authority.find(':').unwrap_or(authority.len()));
                super::PeerHost::new(host).map_err(|_| UrlError::Form)?;
                (host, port)
            }
        };
        let port = match port.strip_prefix(':') {
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse().map_err(|_| UrlError::Form)?
            }
            Some(_) => return Err(UrlError::Form),
            None if port.is_empty() => 80,
            None => return Err(UrlError::Form),
        };
        if port == 0 {
            return Err(UrlError::Form);
        }
        Ok(Self {
            host: host.into(),
            port,
            path: path.into(),
        })
    }

    /// The host: a name, or an address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path, and the query if there is one.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of the header `Host`.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for ScrapeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.path)
    }
}

impl TryFrom<String> for ScrapeUrl {
    type Error = UrlError;
    fn try_from(text: String) -> Result<Self, UrlError> {
        Self::new(&text)
    }
}

impl From<ScrapeUrl> for String {
    fn from(url: ScrapeUrl) -> Self {
        url.to_string()
    }
}
