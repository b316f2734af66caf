//! The two requests that a site answers: `GET /v1/site/signals` (and `HEAD`) and `POST /v1/site/signals/ingest`.
//!
//! Who asks is what its certificate says, and nothing in the request. It is asked anew whenever a file changed, so that
//! a connection does not outlive its trust.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{AGE, ALLOW, CONNECTION, CONTENT_TYPE, DATE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};
use rustls::pki_types::{CertificateDer, UnixTime};

use super::board::Board;
use super::metrics::Metrics;
use super::now::now;
use super::tls::Credentials;
use super::trust::{Caller, Known, Stranger};
use super::writer::Ingest;
use crate::evidence::headers::{self, Header};
use crate::evidence::{Answer, Event, Refusal, Report};
use crate::signals::query::Query;
use crate::signals::response;

/// Where signals are read.
pub const SIGNALS: &str = "/v1/site/signals";
/// Where gateways report.
pub const INGEST: &str = "/v1/site/signals/ingest";

/// An answer.
pub type Reply = Response<Full<Bytes>>;

/// Who asks on one connection.
#[derive(Debug)]
pub struct Session {
    credentials: Arc<Credentials>,
    leaf: CertificateDer<'static>,
    caller: Caller,
    /// Whom the site knew when it was last asked.
    judged: Mutex<Arc<Known>>,
}

impl Session {
    /// Asks who holds `leaf`.
    ///
    /// # Errors
    /// When it is nobody.
    pub fn begin(
        credentials: &Arc<Credentials>,
        leaf: CertificateDer<'static>,
    ) -> Result<Self, Stranger> {
        let known = credentials.known();
        let caller = known.caller(&leaf, UnixTime::now())?;
        Ok(Self {
            credentials: Arc::clone(credentials),
            leaf,
            caller,
            judged: Mutex::new(known),
        })
    }

    /// Who it is.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether it still is.
    fn holds(&self) -> bool {
        let known = self.credentials.known();
        let mut judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&known, &judged) {
            return true;
        }
        let holds = known.caller(&self.leaf, UnixTime::now()).as_ref() == Ok(&self.caller);
        if holds {
            *judged = known;
        }
        holds
    }
}

/// What is served.
pub struct Served {
    /// What the site knows.
    pub board: Arc<Board>,
    /// Where reports go.
    pub ingest: Ingest,
    /// How long a report may take.
    pub budget: Duration,
    /// Counters.
    pub metrics: Arc<Metrics>,
}

impl Served {
    /// Answers a request.
    ///
    /// # Errors
    /// When the caller is nobody any more: the connection is closed.
    pub async fn answer(
        &self,
        session: &Session,
        request: Request<Incoming>,
    ) -> Result<Reply, Stranger> {
        if !session.holds() {
            return Err(Stranger::Unpinned);
        }
        let caller = session.caller();
        let reply = match (request.method(), request.uri().path()) {
            _ if !names_one_host(&request) => {
                text(StatusCode::BAD_REQUEST, "a request has exactly one Host\n")
            }
            // Of an answer to HEAD hyper sends the head.
            (&Method::GET | &Method::HEAD, SIGNALS) => self.signals(caller, request.uri().query()),
            (&Method::POST, INGEST) => {
                let reply = self.ingest(caller, request).await;
                self.metrics.report(reply.status().as_u16());
                reply
            }
            (_, SIGNALS) => not_allowed("GET, HEAD"),
            (_, INGEST) => not_allowed("POST"),
            _ => text(StatusCode::NOT_FOUND, "there is no such path\n"),
        };
        self.metrics.request(reply.status().as_u16());
        Ok(reply)
    }

    fn signals(&self, caller: &Caller, query: Option<&str>) -> Reply {
        let query = match query.map(Query::parse).transpose() {
            Ok(query) => query,
            Err(error) => return text(StatusCode::BAD_REQUEST, &format!("{error}\n")),
        };
        let page = self.board.page(caller, query.as_ref(), now());
        if page.left_out > 0 {
            self.metrics.left_out(page.left_out);
        }
        let mut reply = Response::new(Full::new(page.body));
        let headers = reply.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static(response::CONTENT_TYPE),
        );
        if let Some(age) = page.age {
            headers.insert(AGE, age.into());
        }
        if let Ok(date) = HeaderValue::try_from(page.date) {
            headers.insert(DATE, date);
        }
        reply
    }

    async fn ingest(&self, caller: &Caller, request: Request<Incoming>) -> Reply {
        let until = Instant::now() + self.budget;
        if *caller != Caller::Local {
            self.metrics.feedback(Event::Unauthorized);
            return text(
                StatusCode::FORBIDDEN,
                "only the site's own gateways report to it\n",
            );
        }
        let (head, mut body) = request.into_parts();
        let read = tokio::time::timeout_at(until.into(), is_empty(&mut body)).await;
        let report = match read {
            Err(_) => return unknown("the time was up before the request was read\n", true),
            Ok(Err(unread)) => return unread.reply(),
            Ok(Ok(false)) => Err(Refusal::Body),
            Ok(Ok(true)) => {
                let lines = head.headers.iter();
                headers::parse(lines.map(|(name, value)| (name.as_str(), value.as_bytes())))
            }
        };
        let report: Report = match report {
            Ok(report) => report,
            Err(refusal) => {
                let status = StatusCode::from_u16(refusal.status());
                let mut reply = text(
                    status.unwrap_or(StatusCode::BAD_REQUEST),
                    &format!("{refusal}\n"),
                );
                if refusal == Refusal::Body {
                    close(&mut reply);
                }
                return reply;
            }
        };
        let answer = self.ingest.take(report.clone(), until).await;
        answered(answer, &report)
    }
}

/// Why a body cannot be read.
///
/// A `Content-Length` beside a `Transfer-Encoding` is not among it: hyper takes it out of the headers before anybody sees
/// them, reads by the latter alone and closes the connection after its answer, as RFC 9112 (section 6.1) has it, so that
/// nothing can be smuggled behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unread {
    /// It is not framed as HTTP frames one: the same again will not be either.
    Malformed,
    /// What is framed around it is larger than is read.
    TooLarge,
    /// The connection broke off, or failed.
    Cut,
}

impl Unread {
    /// Tells these apart by the kind that hyper's decoder of chunks gives its errors.
    fn of(error: &hyper::Error) -> Self {
        let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
        match cause.map(io::Error::kind) {
            Some(io::ErrorKind::InvalidInput) => Self::Malformed,
            Some(io::ErrorKind::InvalidData) => Self::TooLarge,
            _ => Self::Cut,
        }
    }

    fn reply(self) -> Reply {
        let mut reply = match self {
            Self::TooLarge => text(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the chunks' sizes, extensions or trailers are larger than is read\n",
            ),
            Self::Cut => return unknown("the request's body broke off\n", true),
            Self::Malformed => text(
                StatusCode::BAD_REQUEST,
                "the request's body is not framed as HTTP/1.1 frames one\n",
            ),
        };
        close(&mut reply);
        reply
    }
}

/// Whether a body ends without a byte.
async fn is_empty(body: &mut Incoming) -> Result<bool, Unread> {
    if body.size_hint().lower() > 0 {
        return Ok(false);
    }
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Unread::of(&error))?;
        if frame.data_ref().is_some_and(|data| !data.is_empty()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a request has exactly one `Host` (RFC 9112, section 3.2); that of an older version may have none.
fn names_one_host<B>(request: &Request<B>) -> bool {
    let hosts = request.headers().get_all(HOST).iter().count();
    hosts == 1 || (hosts == 0 && request.version() < Version::HTTP_11)
}

fn answered(answer: Answer, report: &Report) -> Reply {
    let status = StatusCode::from_u16(answer.status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let mut reply = match status {
        StatusCode::NO_CONTENT => Response::new(Full::default()),
        StatusCode::CONFLICT => text(status, "it contradicts what is held for its epoch\n"),
        StatusCode::INSUFFICIENT_STORAGE => text(
            status,
            "as many reporters are held as there may be, and none is stale and clean\n",
        ),
        _ => {
            return unknown(
                "unknown whether it was persisted: repeat the same report\n",
                false,
            );
        }
    };
    *reply.status_mut() = status;
    if status == StatusCode::NO_CONTENT {
        for (header, value) in headers::write(report) {
            if matches!(header, Header::Epoch | Header::Sequence)
                && let Ok(value) = HeaderValue::try_from(value)
            {
                let name = HeaderName::from_static(header.name());
                reply.headers_mut().insert(name, value);
            }
        }
    }
    reply
}

fn unknown(why: &'static str, closes: bool) -> Reply {
    let mut reply = text(StatusCode::SERVICE_UNAVAILABLE, why);
    if closes {
        close(&mut reply);
    }
    reply
}

fn close(reply: &mut Reply) {
    reply
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
}

fn not_allowed(method: &'static str) -> Reply {
    let mut reply = text(StatusCode::METHOD_NOT_ALLOWED, "not with this method\n");
    reply
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(method));
    reply
}

/// An answer in words.
#[must_use]
pub fn text(status: StatusCode, words: &str) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::copy_from_slice(words.as_bytes())));
    *reply.status_mut() = status;
    reply.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    reply
}
