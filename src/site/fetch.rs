//! One request over one connection, with a bound on what is read: what the scraper, the poller and a gateway's reports
//! share.

use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body as _, Bytes};
use hyper::header::{ACCEPT, CONNECTION, DATE, HOST, USER_AGENT};
use hyper::http::{request, response};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

/// What the site asks for.
const TEXT: &str = "text/plain;version=0.0.4";

/// The largest head of an answer, in bytes.
const HEAD: usize = 64 * 1024;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its `Date`, if there is exactly one.
    pub date: Option<String>,
    /// Its body, whole.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The body is larger than is read.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The request cannot be written.
    #[error("the request cannot be made: {0}")]
    Request(#[from] hyper::http::Error),
    /// The connection failed.
    #[error("{0}")]
    Transport(#[from] hyper::Error),
}

/// Gets `path` over `stream` and reads at most `most` bytes of body. The caller keeps the deadline; dropping this closes
/// the connection.
///
/// # Errors
/// When there is no whole answer within the bound.
pub async fn get<S>(
    stream: S,
    authority: &str,
    path: &str,
    most: usize,
) -> Result<Answer, FetchError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let request = asking(Method::GET, authority, path)
        .header(ACCEPT, TEXT)
        .body(Empty::new())?;
    let (head, body) = exchange(stream, request, most).await?;
    let mut dates = head.headers.get_all(DATE).iter();
    let date = match (dates.next(), dates.next()) {
        (Some(date), None) => date.to_str().ok().map(str::to_owned),
        _ => None,
    };
    Ok(Answer {
        status: head.status,
        date,
        body,
    })
}

/// A request that is the only one on its connection.
pub fn asking(method: Method, authority: &str, path: &str) -> request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, authority)
        .header(CONNECTION, "close")
        .header(USER_AGENT, concat!("grid/", env!("CARGO_PKG_VERSION")))
}

/// Sends a request without a body over `stream` and reads its answer, with at most `most` bytes of body. The caller keeps
/// the deadline; dropping this closes the connection.
///
/// # Errors
/// When there is no whole answer within the bound.
pub async fn exchange<S>(
    stream: S,
    request: Request<Empty<Bytes>>,
    most: usize,
) -> Result<(response::Parts, Vec<u8>), FetchError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(HEAD)
        .handshake(TokioIo::new(stream))
        .await?;
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let answer = sender.send_request(request).await?;
    let (head, mut body) = answer.into_parts();
    let length = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if length > most {
        return Err(FetchError::TooLarge(most));
    }
    let mut bytes = Vec::with_capacity(length);
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame?.data_ref() {
            if bytes.len().saturating_add(data.len()) > most {
                return Err(FetchError::TooLarge(most));
            }
            bytes.extend_from_slice(data);
        }
    }
    Ok((head, bytes))
}
